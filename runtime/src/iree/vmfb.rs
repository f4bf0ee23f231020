//! Vmfbs: mapped, and not of damaged parts.
//!
//! IREE verifies a vmfb's FlatBuffers and its bytecode, but not the code for the device that lies in it: a changed bit there
//! crashes the program or changes its answers. A vmfb is a zip archive too, whose CRC-32s are over all of its parts; they
//! find what was damaged before the bundle's digests were made. Whoever changes code on purpose changes them too: what
//! keeps that out is a signature.

use std::{
    io::{self, Cursor},
    path::Path,
};

use memmap2::Mmap;
use zip::ZipArchive;

use crate::{Error, ffi};

/// Maps the vmfb at `path`, which the target `target` has.
///
/// # Errors
/// It cannot be read, or its parts are not whole.
pub(super) fn map(path: &Path, target: &str) -> Result<Mmap, Error> {
    let bytes = ffi::map(path).map_err(Error::read(path))?;
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
