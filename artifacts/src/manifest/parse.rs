//! Parsing of manifests in bounded memory, and rendering of those that can be parsed.
//!
//! The toml crate builds a tree that takes up to 540 times the memory of the text: in `a.a.a.a=0`, each dot is a table. Nearly
//! all of a long manifest is lists: parameters, packing steps and calibration steps. So this module passes their items to the
//! crate some at a time, and limits the rest.
//!
//! It splits the text at lines that look like the header of an item. In a multi-line string or array, which no manifest has,
//! such a line would be taken for an item. Validation follows in any case.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    FORMAT, MANIFEST_LIMIT, Manifest,
    entry::{CalibrationStep, PackStep, Parameter},
};
use crate::error::Error;

/// The most weight of a text that is passed to the toml crate at once: a piece, or everything beside the lists.
///
/// The crate takes up to 300 MB for it. Fourteen targets with their entries and dispatches weigh less than 2 MB.
const WEIGHT_MAX: usize = 3 << 20;

/// The weight of a byte that may create a table. The crate takes up to 100 bytes for any other byte, which weighs 1.
const TABLE_WEIGHT: usize = 13;

/// The most items of all lists. A model of 50,000 tensors, packed for three targets, has 350,000.
const ITEMS_MAX: usize = 600_000;

/// The most commas, which separate the parts of items. The model of 50,000 tensors has a million.
const COMMAS_MAX: usize = 4_000_000;

/// The least bytes of items that are passed to the crate at once. One at a time would be slow.
const PIECE_BYTES: usize = 64 << 10;

/// The field that every version of the format has.
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
    #[serde(default)]
    calibration: CalibrationItems,
    #[serde(default)]
    steps: Vec<PackStep>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CalibrationItems {
    steps: Vec<CalibrationStep>,
}

/// The bytes of items in the manifest, and the line on which they begin.
type Span = (Range<usize>, usize);

/// A text for the toml crate, of several parts of the manifest.
#[derive(Default)]
struct Piece {
    text: String,
    weight: usize,
    /// The start of each part, and its line in the manifest.
    parts: Vec<(usize, usize)>,
}

impl Piece {
    /// Returns a piece of one part.
    fn of(text: &str, line: usize) -> Result<Self, Error> {
        let mut piece = Self::default();
        piece.push(text, line, false)?;
        Ok(piece)
    }

    /// Appends the text that begins on `line`, as a new part or to the last one.
    fn push(&mut self, text: &str, line: usize, continues: bool) -> Result<(), Error> {
        if !continues {
            self.parts.push((self.text.len(), line));
        }
        // Counts them in strings and comments too, because telling these apart could be tricked.
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

    /// Deserializes the piece. Errors name the line in the manifest.
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
    /// Renders the manifest. Equal manifests have equal texts.
    ///
    /// # Errors
    /// [`Manifest::validate`] refuses the manifest, or [`Manifest::parse`] would refuse the text, because it is too long.
    pub fn render(&self) -> Result<String, Error> {
        self.validate()?;
        // Cannot fail after `validate`, because every number fits TOML's signed 64 bits.
        let text = toml::to_string(self).map_err(|error| Error::Invalid(error.to_string()))?;
        let found = text.len() as u64;
        if found > MANIFEST_LIMIT {
            return Err(Error::ManifestTooLarge { found, limit: MANIFEST_LIMIT });
        }
        let (_, pieces) = split(&text)?;
        pieces.into_iter().try_for_each(|(range, line)| Piece::of(&text[range], line).map(drop))?;
        Ok(text)
    }

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
    // The format comes first, because a newer manifest may differ in everything else.
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
            let known = manifest.targets.get_mut(&name).and_then(|target| target.packing.as_mut());
            // The first item of a list is not in a piece, so its target exists unless the item was in a string.
            let misled = || {
                let message = "found packing steps after a string that looks like one, expected none".into();
                Error::Syntax { line, message }
            };
            let known = known.ok_or_else(misled)?;
            known.steps.extend(packing.steps);
            if !packing.calibration.steps.is_empty() {
                let collected = known.calibration.as_mut().ok_or_else(misled)?;
                collected.steps.extend(packing.calibration.steps);
            }
        }
    }
    Ok(manifest)
}

/// Refuses a format that is newer than this crate's.
fn refuse_newer(format: Option<i64>) -> Result<(), Error> {
    match format {
        Some(found) if found > i64::from(FORMAT) => Err(Error::NewerFormat { found, supported: FORMAT }),
        _ => Ok(()),
    }
}

fn too_much(line: usize, what: &str, limit: usize) -> Error {
    Error::Syntax { line, message: format!("found more than {limit} {what}, expected at most {limit}") }
}

/// Splits a manifest: returns everything except the lists' items after the first of each, and the places of those.
///
/// # Errors
/// There are too many items or commas, or too much beside the items.
fn split(text: &str) -> Result<(Piece, Vec<Span>), Error> {
    let mut rest = Piece::default();
    let mut pieces: Vec<Span> = Vec::new();
    let mut lists = HashSet::new();
    let (mut at, mut headers, mut commas) = (0, 0, 0);
    // Whether the line before belongs to an item in a piece. `None` at the first line.
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
            Some(header) => was_item == Some(true) && continues_item(header),
            None => was_item == Some(true),
        };
        match pieces.last_mut() {
            _ if !is_item => rest.push(line, number, was_item == Some(false))?,
            // Consecutive items share a piece until it is long enough.
            Some((last, _)) if last.end == range.start && (!begins || last.len() < PIECE_BYTES) => {
                last.end = range.end;
            }
            _ => pieces.push((range, number)),
        }
        was_item = Some(is_item);
    }
    Ok((rest, pieces))
}

/// Returns whether a header begins an item of one of the lists.
fn begins_item(header: &str) -> bool {
    let ends = [".packing.steps]]", ".packing.calibration.steps]]"];
    header == "[[parameters]]"
        || header.starts_with("[[targets.") && ends.iter().any(|end| header.ends_with(*end))
}

/// Returns whether a header belongs to the item before it.
fn continues_item(header: &str) -> bool {
    let parts = ["steps.calls", "steps.results", "calibration.steps.moments"];
    let is_part = |part: &&str| header.ends_with(&format!(".packing.{part}]]"));
    header.starts_with("[[targets.") && parts.iter().any(is_part)
}
