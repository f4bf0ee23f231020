//! Copying with a digest on the way.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    path::Path,
};

use crate::{digest::Digest, error::Error};

/// Large enough that hashing a chunk on several cores pays.
const CHUNK: usize = 4 << 20;

/// Copies the file `from` into `to` and syncs it. `shown` is the path that a failed write names: `to` itself may be a
/// temporary file whose name says nothing.
pub(crate) fn copy_hashed(from: &Path, to: &mut File, shown: &Path) -> Result<(Digest, u64), Error> {
    let mut source = File::open(from).map_err(Error::read(from))?;
    let length = source.metadata().map_err(Error::read(from))?.len();
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; CHUNK.min(usize::try_from(length).unwrap_or(CHUNK).max(1 << 12))];
    loop {
        let mut filled = 0;
        while filled < chunk.len() {
            match source.read(&mut chunk[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::read(from)(error)),
            }
        }
        if filled == 0 {
            break;
        }
        hasher.update_rayon(&chunk[..filled]);
        to.write_all(&chunk[..filled]).map_err(Error::write(shown))?;
    }
    to.sync_all().map_err(Error::write(shown))?;
    Ok((Digest::finish(&hasher), hasher.count()))
}
