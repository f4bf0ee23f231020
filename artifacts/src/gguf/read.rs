//! Reads the parts of a header: numbers, strings and values.

use std::io::{self, Read};

use super::value::MetadataValue;

/// The longest header. The longest known have 20 MB, of which most is the vocabulary.
pub(super) const HEADER_LIMIT_BYTES: u64 = 256 << 20;

/// The most values of all lists. Vocabularies known have a million with their merges.
const LISTED_MAX: usize = 1 << 23;

/// The deepest list of lists.
const MAX_DEPTH: usize = 2;

/// The bytes of a header, in order.
pub(super) struct Source<R> {
    from: R,
    /// Bytes that were read.
    pub(super) read: u64,
    /// Bytes of the file.
    length: u64,
    /// Values of lists that were read.
    listed: usize,
}

/// Why a header is refused, or why it could not be read.
#[derive(Debug)]
pub enum GgufError {
    /// The file cannot be read.
    Io(io::Error),
    /// The file is damaged, or of a form that is not supported: found and expected.
    Damaged(String),
}

/// The kinds of values, by number (`gguf_type` of gguf.h).
const KINDS: [&str; 13] =
    ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "list", "u64", "i64", "f64"];
const LIST: u32 = 9;
const TEXT: u32 = 8;

impl<R: Read> Source<R> {
    pub(super) fn new(from: R, length: u64) -> Self {
        Self { from, read: 0, length, listed: 0 }
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        self.count(N as u64)?;
        self.from.read_exact(&mut bytes).map_err(GgufError::Io)?;
        Ok(bytes)
    }

    /// Checks that there are so many bytes more.
    fn count(&mut self, bytes: u64) -> Result<(), GgufError> {
        let left = self.length.min(HEADER_LIMIT_BYTES).saturating_sub(self.read);
        if bytes > left {
            let at = self.read;
            let problem =
                format!("the header needs {bytes} bytes more at byte {at}, expected at most {left}");
            return Err(GgufError::Damaged(problem));
        }
        self.read += bytes;
        Ok(())
    }

    pub(super) fn u32(&mut self) -> Result<u32, GgufError> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, GgufError> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// Reads a count of things that have at least `least` bytes each.
    pub(super) fn number_of(&mut self, what: &str, least: u64) -> Result<usize, GgufError> {
        let found = self.u64()?;
        let most = self.length.min(HEADER_LIMIT_BYTES).saturating_sub(self.read) / least;
        match usize::try_from(found).ok().filter(|_| found <= most) {
            Some(count) => Ok(count),
            None => Err(GgufError::Damaged(format!(
                "found {found} {what}, expected at most {most} in the rest of the file"
            ))),
        }
    }

    pub(super) fn text(&mut self, what: &str) -> Result<String, GgufError> {
        let length = self.number_of(&format!("bytes of {what}"), 1)?;
        self.count(length as u64)?;
        let mut bytes = vec![0; length];
        self.from.read_exact(&mut bytes).map_err(GgufError::Io)?;
        String::from_utf8(bytes).map_err(|_| GgufError::Damaged(format!("{what} is no UTF-8, expected text")))
    }

    /// Reads a name, which messages show: it may neither control the terminal nor fill it.
    pub(super) fn name(&mut self, what: &str) -> Result<String, GgufError> {
        const MAX_BYTES: usize = 1024;
        let name = self.text(what)?;
        if name.len() <= MAX_BYTES && !name.contains(char::is_control) {
            return Ok(name);
        }
        let start: String = name.chars().take(80).collect();
        Err(GgufError::Damaged(format!(
            "{what} has {} bytes and begins with {start:?}, expected at most {MAX_BYTES} without control characters",
            name.len()
        )))
    }

    /// Reads the value of a key: its kind, then itself.
    pub(super) fn value(&mut self, key: &str) -> Result<MetadataValue, GgufError> {
        let kind = self.u32()?;
        self.value_of(key, kind, 0)
    }

    fn value_of(&mut self, key: &str, kind: u32, depth: usize) -> Result<MetadataValue, GgufError> {
        use MetadataValue::{Bool, Float, Integer, List, Text};
        Ok(match KINDS.get(kind as usize).copied().unwrap_or_default() {
            "u8" => Integer(self.bytes::<1>()?[0].into()),
            "i8" => Integer(i8::from_le_bytes(self.bytes()?).into()),
            "u16" => Integer(u16::from_le_bytes(self.bytes()?).into()),
            "i16" => Integer(i16::from_le_bytes(self.bytes()?).into()),
            "u32" => Integer(self.u32()?.into()),
            "i32" => Integer(i32::from_le_bytes(self.bytes()?).into()),
            "u64" => Integer(self.u64()?.into()),
            "i64" => Integer(i64::from_le_bytes(self.bytes()?).into()),
            "f32" => Float(f32::from_le_bytes(self.bytes()?).into()),
            "f64" => Float(f64::from_le_bytes(self.bytes()?)),
            "bool" => match self.bytes::<1>()? {
                [0] => Bool(false),
                [1] => Bool(true),
                [other] => {
                    return Err(GgufError::Damaged(format!(
                        "`{key}` is the boolean {other}, expected 0 or 1"
                    )));
                }
            },
            "string" => Text(self.text(&format!("the text of `{key}`"))?),
            "list" if depth < MAX_DEPTH => {
                let of = self.u32()?;
                // The least that one value takes in the file.
                let least = if of == TEXT || of == LIST { 8 } else { 1 };
                let count = self.number_of(&format!("values of `{key}`"), least)?;
                self.listed = self.listed.saturating_add(count);
                if self.listed > LISTED_MAX {
                    let problem = format!(
                        "found {} values in lists up to `{key}`, expected at most {LISTED_MAX}",
                        self.listed
                    );
                    return Err(GgufError::Damaged(problem));
                }
                let mut values = Vec::new();
                for _ in 0..count {
                    values.push(self.value_of(key, of, depth + 1)?);
                }
                List(values)
            }
            _ => {
                let problem = format!(
                    "`{key}` has the kind {kind}, expected one of 0 to 12, with lists at most {MAX_DEPTH} deep"
                );
                return Err(GgufError::Damaged(problem));
            }
        })
    }
}
