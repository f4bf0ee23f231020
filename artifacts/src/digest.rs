//! blake3 digests, and readers and writers that compute them.

use std::{
    fmt,
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::Path,
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// The start of a digest's text form.
const PREFIX: &str = "blake3:";

/// The bytes that are hashed at a time, enough for all cores.
const CHUNK: usize = 4 << 20;

/// A blake3 digest. Its text form is `blake3:` and 64 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(blake3::Hash);

impl Digest {
    /// Returns the digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes))
    }

    /// Returns digest and length of a file. Maps it and hashes it on all cores.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn of_file(path: &Path) -> io::Result<(Self, u64)> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_mmap_rayon(path)?;
        Ok((Self(hasher.finalize()), hasher.count()))
    }

    /// Returns digest and length of all of `source`.
    ///
    /// # Errors
    /// Reading fails.
    pub fn of_reader(source: &mut dyn io::Read) -> io::Result<(Self, u64)> {
        read_hashed(source, |_| Ok(())).map_err(|stopped| match stopped {
            Stopped::Read(error) | Stopped::Sink(error) => error,
        })
    }

    /// Returns the 64 hex digits, which are a blob's file name.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.to_hex().to_string()
    }

    /// Returns the digest of the bytes that `hasher` received.
    fn finish(hasher: &blake3::Hasher) -> Self {
        Self(hasher.finalize())
    }

    /// Parses the text that [`Digest::hex`] returns.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let hash = blake3::Hash::from_hex(text).ok()?;
        // Every digest has one text, because it names a file. So upper case is refused.
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

/// The error for a text that is not a digest.
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

/// Why [`read_hashed`] stopped.
pub(crate) enum Stopped<E> {
    /// The source failed.
    Read(io::Error),
    /// The sink failed.
    Sink(E),
}

/// Reads all of `source` and passes each chunk to `sink`. Returns digest and length.
pub(crate) fn read_hashed<E>(
    source: &mut dyn Read,
    mut sink: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(Digest, u64), Stopped<E>> {
    let mut hasher = blake3::Hasher::new();
    let mut chunk = Vec::new();
    loop {
        chunk.clear();
        (&mut *source).take(CHUNK as u64).read_to_end(&mut chunk).map_err(Stopped::Read)?;
        if chunk.is_empty() {
            return Ok((Digest::finish(&hasher), hasher.count()));
        }
        hasher.update_rayon(&chunk);
        sink(&chunk).map_err(Stopped::Sink)?;
    }
}

/// A reader that hashes what is read through it.
pub(crate) struct HashedReader<R> {
    inner: R,
    hasher: blake3::Hasher,
}

impl<R> HashedReader<R> {
    /// Hashes what is read of `inner` from here on.
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hasher: blake3::Hasher::new() }
    }

    /// Returns the digest of everything that was read.
    pub(crate) fn digest(&self) -> Digest {
        Digest::finish(&self.hasher)
    }
}

impl<R: Read> Read for HashedReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.hasher.update(&bytes[..read]);
        Ok(read)
    }
}

/// A buffered file that hashes what is written to it.
pub(crate) struct HashedWriter {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
}

impl HashedWriter {
    /// Hashes what is written to `file` from here on.
    pub(crate) fn new(file: File) -> Self {
        Self { file: BufWriter::with_capacity(CHUNK, file), hasher: blake3::Hasher::new() }
    }

    /// Syncs the file and returns the digest and the length of what was written.
    pub(crate) fn finish(mut self) -> io::Result<(Digest, u64)> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok((Digest::finish(&self.hasher), self.hasher.count()))
    }
}

impl Write for HashedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update_rayon(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        let digest = Digest::of(b"abc");
        // A reference value from blake3's specification.
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
