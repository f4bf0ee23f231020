//! A blake3 digest, written `blake3:<64 hex digits>`.

use std::{fmt, io, path::Path, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::copy::{Stopped, read_hashed};

/// What a digest's text form starts with.
const PREFIX: &str = "blake3:";

/// A blake3 digest. Its text form is `blake3:` and 64 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(blake3::Hash);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes))
    }

    /// The digest and the length of a file, read through a mapping and hashed on all cores.
    ///
    /// # Errors
    /// When the file cannot be opened or read.
    pub fn of_file(path: &Path) -> io::Result<(Self, u64)> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_mmap_rayon(path)?;
        Ok((Self(hasher.finalize()), hasher.count()))
    }

    /// The digest and the length of everything that `source` gives.
    ///
    /// # Errors
    /// When reading fails.
    pub fn of_reader(source: &mut dyn io::Read) -> io::Result<(Self, u64)> {
        read_hashed(source, |_| Ok(())).map_err(|stopped| match stopped {
            Stopped::Read(error) | Stopped::Sink(error) => error,
        })
    }

    /// The 64 hex digits alone: a blob's file name.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.to_hex().to_string()
    }

    /// The digest of everything `hasher` has seen.
    pub(crate) fn finish(hasher: &blake3::Hasher) -> Self {
        Self(hasher.finalize())
    }

    /// The digest whose [`Digest::hex`] is `text`.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let hash = blake3::Hash::from_hex(text).ok()?;
        // One digest has one text: upper case would name another file.
        (hash.to_hex().as_str() == text).then_some(Self(hash))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0.to_hex())
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a digest, expected `blake3:` and 64 lower-case hex digits", .0.escape_default())]
pub struct ParseDigestError(String);

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix(PREFIX)
            .and_then(Self::from_hex)
            .ok_or_else(|| ParseDigestError(text.chars().take(80).collect()))
    }
}

impl TryFrom<String> for Digest {
    type Error = ParseDigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        let digest = Digest::of(b"abc");
        // The reference value of blake3's specification.
        let text = "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        assert_eq!(format!("blake3:{}", digest.hex()), text);
    }

    #[test]
    fn other_texts_are_refused() {
        let hex = Digest::of(b"abc").hex();
        for text in ["", "blake3:", &hex, &format!("sha256:{hex}"), &format!("blake3:{}", &hex[1..])] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
        assert!(format!("blake3:{}", hex.to_uppercase()).parse::<Digest>().is_err());
        assert_eq!(
            "a\nb".parse::<Digest>().unwrap_err().to_string(),
            "`a\\nb` is not a digest, expected `blake3:` and 64 lower-case hex digits"
        );
    }

    #[test]
    fn files_of_any_size_hash_like_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        // Below and above the size from which blake3 maps the file.
        for size in [0usize, 1, 16_383, 16_384, 3_000_001] {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let path = folder.path().join(size.to_string());
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(Digest::of_file(&path).unwrap(), (Digest::of(&bytes), size as u64));
        }
    }
}
