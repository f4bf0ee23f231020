//! Reading with a digest on the way.

use std::{
    fs::File,
    io::{self, Read, Write as _},
    path::Path,
};

use crate::{digest::Digest, error::Error};

/// Large enough that hashing a chunk on several cores pays.
const CHUNK: usize = 4 << 20;

/// What stopped [`read_hashed`].
pub(crate) enum Stopped<E> {
    /// The source gave an error.
    Read(io::Error),
    /// The sink did.
    Sink(E),
}

/// Reads `source` to its end, hands each chunk to `sink`, and gives the digest and length of it all.
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

/// Copies everything that `source` gives into `to` and syncs it. `from` is the path that a failed read names, `shown` that of
/// a failed write: `to` itself may be a temporary file whose name says nothing.
pub(crate) fn copy_hashed(
    source: &mut dyn Read,
    from: &Path,
    to: &mut File,
    shown: &Path,
) -> Result<(Digest, u64), Error> {
    let copied = read_hashed(source, |chunk| to.write_all(chunk)).map_err(|stopped| match stopped {
        Stopped::Read(error) => Error::read(from)(error),
        Stopped::Sink(error) => Error::write(shown)(error),
    })?;
    to.sync_all().map_err(Error::write(shown))?;
    Ok(copied)
}
