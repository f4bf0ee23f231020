//! Vmfbs: the bytes that were verified, and not of damaged parts.
//!
//! What is executed is a copy in memory: whoever may write to the bundle's folder could give a mapped file, or another one of
//! its name, other code after its digest was compared.
//!
//! IREE verifies a vmfb's FlatBuffers and its bytecode, but not the code for the device that lies in it: a changed bit there
//! crashes the program or changes its answers. A vmfb is a zip archive too, whose CRC-32s are over all of its parts; they
//! find what was damaged before the bundle's digests were made. Whoever changes code on purpose changes them too: what
//! keeps that out is a signature.

use std::io::{self, Cursor};

use memmap2::{Mmap, MmapMut};
use mlxcel_artifacts::{Blob, Bundle};
use zip::ZipArchive;

use crate::error::Error;

/// Reads the vmfb `blob`, which the target `target` has, to where a page begins: IREE wants its data aligned.
///
/// # Errors
/// It cannot be read, is not what the manifest names, or its parts are not whole.
pub(super) fn read(bundle: &Bundle, blob: &Blob, target: &str) -> Result<Mmap, Error> {
    let failed = || Error::read(bundle.blob_path(blob));
    let size = usize::try_from(blob.size).unwrap_or(usize::MAX);
    let mut bytes = MmapMut::map_anon(size).map_err(failed())?;
    bundle.read_blob(blob, &mut bytes)?;
    let bytes = bytes.make_read_only().map_err(failed())?;
    check(&bytes).map_err(|reason| Error::Vmfb { target: target.to_owned(), reason })?;
    Ok(bytes)
}

/// Reads all parts, whose checksums the library compares.
fn check(bytes: &[u8]) -> Result<(), String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| error.to_string())?;
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).map_err(|error| error.to_string())?;
        let name = part.name().map_err(|error| error.to_string())?.escape_debug().to_string();
        io::copy(&mut part, &mut io::sink()).map_err(|error| format!("{name}: {error}"))?;
    }
    if archive.is_empty() { Err("it has no parts".into()) } else { Ok(()) }
}
