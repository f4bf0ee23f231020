//! The kernels of a program, by architecture.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use mlxcel_emitter::{Isa, LinkedFunction, LinkedKernels, Object, objects};

use super::{elf::Symbols, file::KernelFile, problem::KernelError};
use crate::{documents::provenance::SourceFile, error::Error, target::ResolvedTarget};

/// What names begin with that IREE's own functions have.
const OF_IREE: &str = "iree_";

/// The kernels of a program.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    by_arch: BTreeMap<&'static str, LinkedKernels>,
    /// The files, whose names and order change nothing.
    pub(crate) sources: Vec<SourceFile>,
}

impl Kernels {
    /// Reads files of kernels.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut by_arch: BTreeMap<_, Vec<KernelFile>> = BTreeMap::new();
        let mut digests = BTreeMap::new();
        for path in paths {
            let file = KernelFile::read(path)?;
            // The same file twice is one.
            if digests.insert(file.digest.hex(), file.digest).is_none() {
                by_arch.entry(file.symbols.arch).or_default().push(file);
            }
        }
        let sources = digests.into_values().enumerate();
        let sources =
            sources.map(|(index, digest)| SourceFile { name: format!("kernels[{index}]"), digest }).collect();
        let linked = |(arch, files): (&'static str, Vec<KernelFile>)| {
            check(arch, &files).map_err(|(path, problem)| Error::Kernels { path, problem })?;
            Ok((arch, link(arch, files)))
        };
        Ok(Self { by_arch: by_arch.into_iter().map(linked).collect::<Result<_, Error>>()?, sources })
    }

    /// Returns the kernels for a target.
    pub(crate) fn for_target(&self, target: &ResolvedTarget) -> LinkedKernels {
        let arch: &str = target.numerics.gpu.map_or(&target.arch, |gpu| gpu.arch());
        let none = || LinkedKernels { arch: arch.to_owned(), ..LinkedKernels::default() };
        let mut kernels = self.by_arch.get(arch).cloned().unwrap_or_else(none);
        for (other, of_other) in self.by_arch.iter().filter(|(other, _)| **other != arch) {
            for name in of_other.functions.keys() {
                kernels.elsewhere.entry(name.clone()).or_default().push((*other).to_owned());
            }
        }
        kernels
    }
}

/// Checks that files for one architecture can be linked with each other, and with our own.
fn check(arch: &str, files: &[KernelFile]) -> Result<(), (PathBuf, KernelError)> {
    let own = own_symbols(arch);
    let mut strong: BTreeMap<&str, &KernelFile> = BTreeMap::new();
    let defined: BTreeSet<_> = files.iter().flat_map(|file| &file.symbols.defined).collect();
    for file in files {
        let refused = |problem| Err((file.path.clone(), problem));
        for name in &file.symbols.strong {
            if own.contains(name) || name.starts_with(OF_IREE) {
                return refused(KernelError::Reserved { name: name.clone() });
            }
            if let Some(other) = strong.insert(name, file) {
                return refused(KernelError::Twice { name: name.clone(), other: other.path.clone() });
            }
        }
        let mut undefined = file.symbols.undefined.clone();
        undefined.retain(|name| !defined.contains(name));
        if !undefined.is_empty() {
            undefined.sort();
            return refused(KernelError::Undefined { names: undefined });
        }
    }
    Ok(())
}

/// Returns the symbols of our own kernels for an architecture.
fn own_symbols(arch: &str) -> BTreeSet<String> {
    let of = |object: Object| {
        let symbols = Symbols::read(&object.bytes).ok().filter(|symbols| symbols.arch == arch);
        symbols.map(|symbols| symbols.defined).unwrap_or_default()
    };
    // An executable for a GPU has one file, so that names do not meet.
    if arch == Isa::Sm80.arch() { BTreeSet::new() } else { objects().flat_map(of).collect() }
}

/// Returns the functions of files. On a CPU each may need any of them.
fn link(arch: &str, files: Vec<KernelFile>) -> LinkedKernels {
    let mut all: Vec<_> = files.iter().map(|file| file.object.clone()).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let all: Arc<[Object]> = all.into();
    let mut functions = BTreeMap::new();
    for KernelFile { object, symbols, parameter_bits, .. } in files {
        let objects = if arch == Isa::Sm80.arch() { Arc::from([object]) } else { Arc::clone(&all) };
        for (name, parameter_bits) in symbols.functions.into_iter().zip(parameter_bits) {
            functions.insert(name, LinkedFunction { objects: Arc::clone(&objects), parameter_bits });
        }
    }
    LinkedKernels { arch: arch.to_owned(), functions, ..LinkedKernels::default() }
}
