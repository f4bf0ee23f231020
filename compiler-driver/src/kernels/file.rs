//! A file of kernels: for one architecture, with functions to call.

use std::path::{Path, PathBuf};

use mlxcel_artifacts::{Digest, Links, ReadError, read_limited};
use mlxcel_emitter::{Isa, Object};

use super::{
    elf::{self, Symbols},
    problem::KernelError,
    ptx,
};
use crate::error::Error;

/// The most bytes of a file of kernels.
const LIMIT_BYTES: u64 = 64 << 20;

/// Digits of a digest in the name of an object, which iree-compile looks up. The file's own name would be seen in the module.
const NAME_DIGITS: usize = 16;

/// A file of kernels.
#[derive(Debug)]
pub(super) struct KernelFile {
    pub(super) path: PathBuf,
    pub(super) digest: Digest,
    pub(super) object: Object,
    pub(super) symbols: Symbols,
    /// The sizes of parameters in bits for each of the functions, if the file says them.
    pub(super) parameter_bits: Vec<Option<Vec<u32>>>,
}

impl KernelFile {
    /// Reads the file at a path.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let bytes = read_limited(path, LIMIT_BYTES, Links::Follow).map_err(|error| match error {
            ReadError::TooLong { found, limit } => Error::LargeKernels { path: path.into(), found, limit },
            other => Error::io("read", path)(other.into()),
        })?;
        Self::of(path, bytes).map_err(|problem| Error::Kernels { path: path.into(), problem })
    }

    fn of(path: &Path, mut bytes: Vec<u8>) -> Result<Self, KernelError> {
        let digest = Digest::of(&bytes);
        let text = std::str::from_utf8(&bytes).ok().filter(|text| ptx::is_ptx(text));
        let (symbols, parameter_bits) = match text {
            Some(text) => {
                let entries = ptx::entries(text)?;
                let functions: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
                let symbols = Symbols {
                    arch: Isa::Sm80.arch(),
                    strong: functions.clone(),
                    functions,
                    ..Symbols::default()
                };
                (symbols, entries.into_iter().map(|entry| Some(entry.parameter_bits)).collect())
            }
            None => {
                let symbols = Symbols::read(&bytes)?;
                elf::hide(&mut bytes)?;
                let unknown = vec![None; symbols.functions.len()];
                (symbols, unknown)
            }
        };
        if symbols.functions.is_empty() {
            return Err(KernelError::NoFunction);
        }
        let extension = if symbols.arch == Isa::Sm80.arch() { "ptx" } else { "o" };
        let name = format!("{}.{extension}", &digest.hex()[..NAME_DIGITS]);
        let object = Object { name: name.into(), bytes: bytes.into() };
        Ok(Self { path: path.into(), digest, object, symbols, parameter_bits })
    }
}
