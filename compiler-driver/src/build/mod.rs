//! Builds a bundle: checks the request, emits and compiles the programs, and writes the bundle.

pub(crate) mod compiler_location;
pub(crate) mod event;
pub(crate) mod request;
pub(crate) mod toolchain;

mod dump;
pub(crate) mod iree_compile;
mod key;
mod plan;
mod prepare;
mod programs;
mod ptx;
mod schedule;
mod unit;
mod weights;

use std::collections::BTreeMap;

use mlxcel_artifacts::entry::Parameter;
use mlxcel_artifacts::{
    Bundle, BundleKind, BundleWriter, Compiler, FORMAT, Machine, Manifest, TargetArtifact,
};
use mlxcel_emitter::Program;

use crate::{
    documents::{self, provenance::ExternalParameters},
    error::Error,
    target::ResolvedTarget,
};
use dump::DumpDir;
use event::Progress;
use plan::model_spec;
use prepare::Prepared;
use programs::Programs;
use request::Request;
use toolchain::Toolchain;
use weights::BundledWeights;

/// Builds the bundle that `request` describes, and opens it.
///
/// Checks everything that needs no compiler before it starts the compiler. The bundle appears at its path only when it
/// is complete.
///
/// # Errors
/// Any step failed; nothing is left at the bundle's path then.
pub fn build(request: &Request, progress: &mut Progress<'_>) -> Result<Bundle, Error> {
    let prepared = Prepared::new(request, progress)?;
    let out = request.out.clone().unwrap_or_else(|| format!("{}.bundle", prepared.model.name).into());
    let mut writer = BundleWriter::create(&out)?;
    let store = request.store.as_ref().ok_or(mlxcel_artifacts::Error::NoStore)?;
    let lock = store.lock_shared()?;
    let toolchain = Toolchain { verifies: request.verifies, ..Toolchain::find(&request.compiler, store)? };
    let dump_dir = request.dump_dir.as_deref().map(DumpDir::create).transpose()?;

    let programs = Programs::emit(&prepared, &Machine::host(), progress)?;
    let jobs = programs.jobs();
    let modules = schedule::compile_all(&jobs, &toolchain, store, &request.cancel, progress)?;
    if let Some(dump_dir) = dump_dir {
        jobs.iter().zip(&modules).try_for_each(|(job, module)| dump_dir.save(job, &module.vmfb))?;
    }
    let targets = programs.write_modules(&jobs, modules, &mut writer)?;
    let manifest =
        write_contents(request, prepared, programs.parameters()?, targets, toolchain, &mut writer, progress)?;
    let bundle = writer.finish(&manifest)?;
    store.remember_built(&bundle);
    drop(lock);
    store.enforce_limit();
    Ok(bundle)
}

/// Adds small files, weights and documents to a bundle. Returns its manifest.
fn write_contents(
    request: &Request,
    prepared: Prepared,
    mut parameters: Vec<Parameter>,
    targets: BTreeMap<String, TargetArtifact>,
    toolchain: Toolchain,
    writer: &mut BundleWriter,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Error> {
    let files = prepared.write_small_files(writer)?;
    let Prepared { model, weights, plan, .. } = prepared;
    let BundledWeights { blobs, tensors, sources } =
        weights.write(&model.config, writer, &request.cancel, progress)?;
    for parameter in &mut parameters {
        parameter.source = tensors.get(&parameter.name).copied();
    }
    let mut manifest = Manifest {
        format: FORMAT,
        kind: BundleKind::Model,
        plan: Some(model_spec(&model.config, &plan)),
        program: None,
        model: model.name,
        family: model.config.family,
        compiler: Compiler { version: toolchain.version, digest: toolchain.digest },
        targets,
        files,
        weights: blobs,
        documents: BTreeMap::new(),
        replays: vec![],
        goldens: vec![],
        parameters,
    };
    let Request { ref targets, ref weights, chunk, separate_kernels, pack_elements, .. } = *request;
    let options = ExternalParameters { targets, weights, chunk, separate_kernels, pack_elements };
    manifest.documents = documents::write(writer, &manifest, &options, &sources)?;
    Ok(manifest)
}

/// Emits the program that `request` describes for its first target, without compiling it.
///
/// # Errors
/// The request, the model or its weights are refused, as in [`build`].
pub fn emit(request: &Request, progress: &mut Progress<'_>) -> Result<Program, Error> {
    let prepared = Prepared::new(request, progress)?;
    let target = prepared.targets.first().ok_or(Error::NoTarget)?;
    let ResolvedTarget { numerics, .. } =
        target.resolve(&Machine::host(), prepared.plan.precision, prepared.plan.quant);
    prepared.emit(numerics, progress)
}
