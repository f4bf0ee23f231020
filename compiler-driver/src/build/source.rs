//! What bundles are compiled from: models and programs are two kinds of it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use mlxcel_artifacts::{
    Blob, BundleKind, BundleWriter, Cancel, Golden, Machine, ModelSpec, ProgramSpec, Store, entry::Parameter,
};
use mlxcel_emitter::Program;

use crate::{
    build::{compiler_location::CompilerLocation, event::Progress, request::Request},
    documents::provenance::SourceFile,
    error::Error,
    hub::snapshot::Snapshot,
    target::{ResolvedTarget, Target},
};

/// A model or a program, checked before the compiler starts.
pub(crate) trait Source {
    /// Returns its name.
    fn name(&self) -> &str;

    /// Returns the targets to compile for, on this machine if they follow it.
    fn targets(&self, machine: &Machine) -> Vec<ResolvedTarget>;

    /// Returns what people should know about a target.
    fn warnings(&self, target: &ResolvedTarget) -> Vec<String>;

    /// Emits the module for targets of this one's numerics and architecture.
    fn emit(&self, target: &ResolvedTarget, progress: &mut Progress<'_>) -> Result<Program, Error>;

    /// Adds to a bundle what is not compiled. `programs` are those that were emitted.
    fn write(
        self: Box<Self>,
        parameters: Vec<Parameter>,
        writer: &mut BundleWriter,
        cancel: &Cancel,
        progress: &mut Progress<'_>,
    ) -> Result<Contents, Error>;
}

/// What a bundle has beside its targets.
pub(crate) struct Contents {
    pub(crate) kind: BundleKind,
    pub(crate) family: String,
    pub(crate) plan: Option<ModelSpec>,
    pub(crate) program: Option<ProgramSpec>,
    pub(crate) files: BTreeMap<String, Blob>,
    pub(crate) weights: BTreeMap<String, Blob>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) goldens: Vec<Golden>,
    /// The options that provenance records, beside what the manifest says.
    pub(crate) recorded: BTreeMap<&'static str, String>,
    /// The files that were read.
    pub(crate) sources: Vec<SourceFile>,
    /// The model of the hub that was read.
    pub(crate) snapshot: Option<Snapshot>,
}

/// Where and how to build, whatever is built.
pub(crate) struct Setup<'s> {
    pub(crate) is_lean: bool,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) out: Option<PathBuf>,
    pub(crate) dump_dir: Option<&'s Path>,
    pub(crate) store: Option<&'s Store>,
    pub(crate) compiler: &'s CompilerLocation,
    pub(crate) cancel: &'s Cancel,
}

impl<'s> Setup<'s> {
    /// Returns the setup of a request for a model.
    pub(crate) fn of(request: &'s Request) -> Self {
        let Request { is_lean, out, dump_dir, store, compiler, cancel, .. } = request;
        Self {
            is_lean: *is_lean,
            time_limit: None,
            out: out.clone(),
            dump_dir: dump_dir.as_deref(),
            store: store.as_ref(),
            compiler,
            cancel,
        }
    }
}

/// Finds targets by name. Naming a target twice is the same as naming it once.
pub(crate) fn find_targets(names: &[String]) -> Result<Vec<Target>, Error> {
    let mut targets: Vec<Target> = Vec::new();
    for name in names {
        if !targets.iter().any(|target| target.name == *name) {
            targets.push(Target::find(name)?);
        }
    }
    if targets.is_empty() { Err(Error::NoTarget) } else { Ok(targets) }
}
