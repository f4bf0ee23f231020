//! Vmfbs: read into memory, compared with their digest, and checked for damaged parts.
//!
//! Code runs from a copy in memory, because a mapped file can be changed after its digest was compared.
//!
//! IREE verifies the FlatBuffers and the bytecode of a vmfb, but not the device code in it. A vmfb is also a zip archive
//! with a CRC-32 of each part. Comparing these finds damage that happened before the bundle's digests were taken. It
//! does not detect code that was changed on purpose; a signature does.

use std::io::{self, Cursor};

use memmap2::{Mmap, MmapMut};
use mlxcel_artifacts::{Blob, Bundle};
use zip::ZipArchive;

use crate::error::Error;

/// Reads the vmfb `blob` of a target into memory that is aligned to a page, because IREE requires alignment.
///
/// # Errors
/// The file cannot be read, its digest differs from the manifest's, or its parts are damaged.
pub(super) fn read(bundle: &Bundle, blob: &Blob, target: &str) -> Result<Mmap, Error> {
    let size = usize::try_from(blob.size).unwrap_or(usize::MAX);
    let no_memory = |source| Error::Allocate {
        purpose: "the module",
        bytes: size,
        hint: "free memory and try again",
        source,
    };
    let mut bytes = MmapMut::map_anon(size).map_err(no_memory)?;
    bundle.read_blob(blob, &mut bytes)?;
    let bytes = bytes.make_read_only().map_err(no_memory)?;
    check(&bytes).map_err(|reason| Error::Vmfb { target: target.to_owned(), reason })?;
    Ok(bytes)
}

/// Reads all parts of the archive; the library compares their checksums.
fn check(bytes: &[u8]) -> Result<(), String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| error.to_string())?;
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).map_err(|error| error.to_string())?;
        let name = part.name().map_err(|error| error.to_string())?.escape_debug().to_string();
        io::copy(&mut part, &mut io::sink()).map_err(|error| format!("{name}: {error}"))?;
    }
    if archive.is_empty() { Err("it has no parts".into()) } else { Ok(()) }
}
