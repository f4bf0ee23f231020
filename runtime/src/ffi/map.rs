//! Files mapped into memory.

use std::{fs::File, io, path::Path};

use memmap2::Mmap;

/// Maps a file for reading.
pub(crate) fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: the mapping is private and read-only. This code cannot prevent that another process truncates or rewrites
    // the file; bundles and checkpoints are written under another name and renamed, never in place.
    unsafe { Mmap::map(&file) }
}
