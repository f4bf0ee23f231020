//! blake3 digests, and readers and writers that compute them.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Write},
    mem,
    panic::resume_unwind,
    path::Path,
    str::FromStr,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, JoinHandle},
};

use serde::{Deserialize, Serialize};

/// The start of a digest's text form.
const PREFIX: &str = "blake3:";

/// The bytes that are hashed at a time, enough for all cores.
const CHUNK: usize = 4 << 20;

/// The chunks that wait to be written at most.
const CHUNKS_AHEAD: usize = 8;

/// The bytes after which a file is synced. The system would write much later, all at once at the end.
const SYNCED: usize = 64 << 20;

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
///
/// A thread of its own hashes and writes, beside the computation of what is written next, and the disk begins before
/// the end.
pub(crate) struct HashedWriter {
    /// What the thread does not have yet, less than a chunk.
    rest: Vec<u8>,
    thread: Option<WriterThread>,
}

struct WriterThread {
    chunks: SyncSender<Vec<u8>>,
    written: JoinHandle<io::Result<(File, blake3::Hasher)>>,
}

impl HashedWriter {
    /// Hashes what is written to `file` from here on.
    pub(crate) fn new(file: File) -> Self {
        let (chunks, receiver) = sync_channel(CHUNKS_AHEAD);
        let written = thread::spawn(move || write_chunks(file, &receiver));
        Self { rest: Vec::with_capacity(CHUNK), thread: Some(WriterThread { chunks, written }) }
    }

    /// Syncs the file and returns the digest and the length of what was written.
    pub(crate) fn finish(mut self) -> io::Result<(Digest, u64)> {
        let rest = mem::take(&mut self.rest);
        self.send(rest)?;
        let (file, hasher) = self.join()?;
        file.sync_all()?;
        Ok((Digest::finish(&hasher), hasher.count()))
    }

    /// Gives a chunk to the thread.
    fn send(&mut self, chunk: Vec<u8>) -> io::Result<()> {
        let thread = self.thread.as_ref().ok_or_else(ended)?;
        if thread.chunks.send(chunk).is_ok() {
            return Ok(());
        }
        // It ends early only with an error.
        self.join().and_then(|_| Err(ended()))
    }

    /// Waits for the thread to write all that it has.
    fn join(&mut self) -> io::Result<(File, blake3::Hasher)> {
        let WriterThread { chunks, written } = self.thread.take().ok_or_else(ended)?;
        drop(chunks);
        written.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Why nothing more can be written after an error.
fn ended() -> io::Error {
    io::Error::other("an earlier part could not be written")
}

/// Writes and hashes all chunks.
fn write_chunks(mut file: File, chunks: &Receiver<Vec<u8>>) -> io::Result<(File, blake3::Hasher)> {
    let mut hasher = blake3::Hasher::new();
    let mut unsynced = 0;
    for chunk in chunks {
        file.write_all(&chunk)?;
        hasher.update_rayon(&chunk);
        unsynced += chunk.len();
        if unsynced >= SYNCED {
            file.sync_data()?;
            unsynced = 0;
        }
    }
    Ok((file, hasher))
}

impl Write for HashedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(CHUNK - self.rest.len());
        self.rest.extend_from_slice(&bytes[..length]);
        if self.rest.len() == CHUNK {
            let chunk = mem::replace(&mut self.rest, Vec::with_capacity(CHUNK));
            self.send(chunk)?;
        }
        Ok(length)
    }

    /// Does nothing: [`Self::finish`] says whether all was written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for HashedWriter {
    /// Waits for the thread, after which the file can be removed.
    fn drop(&mut self) {
        if self.thread.is_some() {
            _ = self.join();
        }
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
    fn a_writer_hashes_what_the_file_gets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for size in [0, 1, CHUNK, SYNCED + CHUNK + 3] {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 253) as u8).collect();
            let mut writer = HashedWriter::new(File::create(&path).unwrap());
            for part in bytes.chunks(1_000_003) {
                writer.write_all(part).unwrap();
            }
            assert_eq!(writer.finish().unwrap(), (Digest::of(&bytes), size as u64));
            assert!(std::fs::read(&path).unwrap() == bytes, "{size} bytes");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_of_the_writer() {
        let full = || HashedWriter::new(File::options().write(true).open("/dev/full").unwrap());
        let mut writer = full();
        writer.write_all(b"a").unwrap();
        assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        // Of as much as a thread that never ends would take.
        let mut writer = full();
        let error = writer.write_all(&vec![0; (CHUNKS_AHEAD + 2) * CHUNK]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::Other);
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
