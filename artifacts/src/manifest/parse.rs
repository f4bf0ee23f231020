//! A manifest's text to a manifest, in bounded memory.
//!
//! The toml crate makes a tree of all that it is given, which takes up to 540 times the text: of `a.a.a.a=0` each dot is a
//! table. A manifest of a large model is long, but nearly all of it are two lists: parameters, and steps of packing. Their items
//! are given to the crate some at a time; what is left is short.
//!
//! The text is cut before lines that look like an item's header, wherever they are: of a text or an array of several lines,
//! which no manifest has, a part would be taken for an item. What comes out is validated as any other.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    FORMAT, Manifest,
    entry::{PackStep, Parameter},
};
use crate::error::Error;

/// The weight of what there may be beside the two lists, and of the heaviest item of these: what the toml crate gets at once,
/// for which it takes up to 300 MB. Fourteen targets with their entries and dispatches have less than 2 MB of it, by estimate.
const WEIGHT_MAX: usize = 3 << 20;

/// What a byte weighs that may stand for a table of its own. The crate takes up to 100 bytes for any other.
const TABLE_WEIGHT: usize = 13;

/// How many items the lists may have: of the 50,000 tensors, 350,000.
const ITEMS_MAX: usize = 600_000;

/// How many commas there may be, which part what is within an item: of the 50,000 tensors, a million.
const COMMAS_MAX: usize = 4_000_000;

/// Items are put together to pieces of this size: one at a time would be slow.
const PIECE_BYTES: usize = 64 << 10;

/// The one field that every version of the format has.
#[derive(Deserialize)]
struct Probe {
    format: i64,
}

/// Items of the lists.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Items {
    #[serde(default)]
    parameters: Vec<Parameter>,
    #[serde(default)]
    targets: BTreeMap<String, PackedItems>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackedItems {
    packing: StepItems,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepItems {
    steps: Vec<PackStep>,
}

/// Where items lie in the manifest, and on which line they begin.
type Span = (Range<usize>, usize);

/// Text for the toml crate.
#[derive(Default)]
struct Piece {
    text: String,
    weight: usize,
    /// Where each of its parts begins, and on which line of the manifest.
    parts: Vec<(usize, usize)>,
}

impl Piece {
    /// One part.
    fn of(text: &str, line: usize) -> Result<Self, Error> {
        let mut piece = Self::default();
        piece.push(text, line, false)?;
        Ok(piece)
    }

    /// Adds what lies on the line `line` and after, which is a part of its own or goes on with the last one.
    fn push(&mut self, text: &str, line: usize, goes_on: bool) -> Result<(), Error> {
        if !goes_on {
            self.parts.push((self.text.len(), line));
        }
        // Those within texts and comments too: whoever tells them apart can be deceived.
        let tables = text.bytes().filter(|byte| b".[{".contains(byte)).count();
        self.weight += text.len() + tables * (TABLE_WEIGHT - 1);
        if self.weight > WEIGHT_MAX {
            let what = format!(
                "bytes beside parameters and packing steps, or in one (`.`, `[` and `{{` count as {TABLE_WEIGHT})"
            );
            return Err(too_much(line, &what, WEIGHT_MAX));
        }
        self.text.push_str(text);
        Ok(())
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        toml::from_str(&self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let part = self.parts.iter().rfind(|(start, _)| *start <= at);
            let (start, line) = part.copied().unwrap_or((0, 1));
            let line = line + self.text[start..at].matches('\n').count();
            Error::Syntax { line, message: error.message().to_string() }
        })
    }
}

impl Manifest {
    /// Reads a manifest's text and validates it.
    ///
    /// # Errors
    /// When the format is newer, the text is not a manifest, or [`Manifest::validate`] refuses it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let manifest = parse(text)?;
        manifest.validate()?;
        Ok(manifest)
    }
}

/// Reads a manifest's text without validating the manifest.
fn parse(text: &str) -> Result<Manifest, Error> {
    // The format first and alone: a newer manifest may have anything else in it.
    let head = text.find("\n[").map_or(text, |end| &text[..=end]);
    let format = Piece::of(head, 1)?.read().ok().map(|Probe { format }| format);
    refuse_newer(format)?;
    let (rest, pieces) = split(text)?;
    if format.is_none() {
        let Probe { format } = rest.read()?;
        refuse_newer(Some(format))?;
    }
    let mut manifest: Manifest = rest.read()?;
    for (range, line) in pieces {
        let Items { parameters, targets } = Piece::of(&text[range], line)?.read()?;
        manifest.parameters.extend(parameters);
        for (name, PackedItems { packing }) in targets {
            let target = manifest.targets.get_mut(&name).and_then(|target| target.packing.as_mut());
            // The first of its items is not in a piece, but may have been within a text.
            let Some(target) = target else {
                let message = "found packing steps after a text that looks like one, expected none".into();
                return Err(Error::Syntax { line, message });
            };
            target.steps.extend(packing.steps);
        }
    }
    Ok(manifest)
}

fn refuse_newer(format: Option<i64>) -> Result<(), Error> {
    match format {
        Some(found) if found > i64::from(FORMAT) => Err(Error::NewerFormat { found, supported: FORMAT }),
        _ => Ok(()),
    }
}

fn too_much(line: usize, what: &str, limit: usize) -> Error {
    Error::Syntax { line, message: format!("found more than {limit} {what}, expected at most {limit}") }
}

/// Everything but the lists' items after the first of each, and where these lie.
fn split(text: &str) -> Result<(Piece, Vec<Span>), Error> {
    let mut rest = Piece::default();
    let mut pieces: Vec<Span> = Vec::new();
    let mut lists = HashSet::new();
    let (mut at, mut headers, mut commas) = (0, 0, 0);
    // Whether the line before was an item's that goes to the pieces, if there was one.
    let mut was_item = None;
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        let header = line.starts_with('[').then(|| line.trim_end());
        headers += usize::from(header.is_some());
        commas += line.matches(',').count();
        if headers > ITEMS_MAX {
            return Err(too_much(number, "items", ITEMS_MAX));
        }
        if commas > COMMAS_MAX {
            return Err(too_much(number, "commas", COMMAS_MAX));
        }
        let range = at..at + line.len();
        at = range.end;
        let begins = header.is_some_and(begins_item);
        let is_item = match header {
            Some(header) if begins => !lists.insert(header),
            Some(header) => was_item == Some(true) && goes_on_with_item(header),
            None => was_item == Some(true),
        };
        match pieces.last_mut() {
            _ if !is_item => rest.push(line, number, was_item == Some(false))?,
            // Items that follow each other go into one piece until that is long.
            Some((last, _)) if last.end == range.start && (!begins || last.len() < PIECE_BYTES) => {
                last.end = range.end;
            }
            _ => pieces.push((range, number)),
        }
        was_item = Some(is_item);
    }
    Ok((rest, pieces))
}

/// Whether a header begins an item of one of the lists.
fn begins_item(header: &str) -> bool {
    header == "[[parameters]]" || header.starts_with("[[targets.") && header.ends_with(".packing.steps]]")
}

/// Whether a header is of a part of the item before it.
fn goes_on_with_item(header: &str) -> bool {
    header.starts_with("[[targets.") && header.ends_with(".packing.steps.results]]")
}
