//! Builds a bundle: checks the request, emits and compiles the modules, and writes the bundle.

pub(crate) mod compiler_location;
pub(crate) mod event;
pub(crate) mod program;
pub(crate) mod request;
pub(crate) mod toolchain;

mod dump;
pub(crate) mod golden;
pub(crate) mod iree_compile;
mod key;
mod lean;
mod parameters;
mod places;
mod plan;
mod prepare;
mod programs;
mod ptx;
mod schedule;
mod source;
mod unit;
mod weights;

use std::collections::BTreeMap;

use mlxcel_artifacts::{Bundle, BundleWriter, Compiler, FORMAT, Machine, Manifest};
use mlxcel_emitter::Program;

use crate::{documents, error::Error};
use dump::DumpDir;
use event::Progress;
use prepare::Prepared;
use program::{PreparedProgram, ProgramRequest};
use programs::Programs;
use request::Request;
use source::{Contents, Setup, Source};
use toolchain::Toolchain;

/// Builds the bundle that `request` describes, and opens it.
///
/// Checks everything that needs no compiler before it starts the compiler. The bundle appears at its path only when it
/// is complete.
///
/// # Errors
/// Any step failed; nothing is left at the bundle's path then.
pub fn build(request: &Request, progress: &mut Progress<'_>) -> Result<Bundle, Error> {
    run(Box::new(Prepared::new(request, progress)?), &Setup::of(request), progress)
}

/// Builds the bundle of a program, and opens it; as [`build`].
///
/// # Errors
/// The program is refused, or any step failed; nothing is left at the bundle's path then.
pub fn build_program(request: &ProgramRequest, progress: &mut Progress<'_>) -> Result<Bundle, Error> {
    run(Box::new(PreparedProgram::new(request)?), &request.setup(), progress)
}

/// Builds the bundle of a source.
fn run(
    source: Box<dyn Source + '_>,
    setup: &Setup<'_>,
    progress: &mut Progress<'_>,
) -> Result<Bundle, Error> {
    let out = setup.out.clone().unwrap_or_else(|| format!("{}.bundle", source.name()).into());
    let mut writer = BundleWriter::create(&out)?;
    let store = setup.store.ok_or(mlxcel_artifacts::Error::NoStore)?;
    let lock = store.lock_shared()?;
    let found = Toolchain::find(setup.compiler, store)?;
    let toolchain = Toolchain { is_lean: setup.is_lean, time_limit: setup.time_limit, ..found };
    let dump_dir = setup.dump_dir.map(DumpDir::create).transpose()?;

    let programs = Programs::emit(&*source, &Machine::host(), progress)?;
    let jobs = programs.jobs();
    let modules = schedule::compile_all(&jobs, &toolchain, store, setup.cancel, progress)?;
    if let Some(dump_dir) = dump_dir {
        jobs.iter().zip(&modules).try_for_each(|(job, module)| dump_dir.save(job, &module.vmfb))?;
    }
    let targets = programs.write_modules(&jobs, modules, &mut writer)?;
    let model = source.name().to_owned();
    let Contents {
        kind,
        family,
        plan,
        program,
        files,
        weights,
        parameters,
        goldens,
        recorded,
        sources,
        snapshot,
    } = source.write(programs.parameters()?, &mut writer, setup.cancel, progress)?;
    let mut manifest = Manifest {
        format: FORMAT,
        kind,
        model,
        family,
        plan,
        program,
        compiler: Compiler { version: toolchain.version, digest: toolchain.digest },
        targets,
        files,
        weights,
        documents: BTreeMap::new(),
        replays: vec![],
        goldens,
        parameters,
    };
    manifest.documents = documents::write(&mut writer, &manifest, recorded, &sources, snapshot.as_ref())?;
    let bundle = writer.finish(&manifest)?;
    store.remember_built(&bundle);
    drop(lock);
    store.enforce_limit();
    Ok(bundle)
}

/// Emits the program that `request` describes for its first target, without compiling it.
///
/// # Errors
/// The request, the model or its weights are refused, as in [`build`].
pub fn emit(request: &Request, progress: &mut Progress<'_>) -> Result<Program, Error> {
    emit_first(&Prepared::new(request, progress)?, progress)
}

/// Emits the module of a program for its first target, without compiling it.
///
/// # Errors
/// The program is refused, as in [`build_program`].
pub fn emit_program(request: &ProgramRequest, progress: &mut Progress<'_>) -> Result<Program, Error> {
    emit_first(&PreparedProgram::new(request)?, progress)
}

fn emit_first(source: &dyn Source, progress: &mut Progress<'_>) -> Result<Program, Error> {
    let target = source.targets(&Machine::host()).into_iter().next().ok_or(Error::NoTarget)?;
    source.emit(&target, progress)
}
