//! The build command: makes a bundle in a folder or under a name in the store.

use std::path::{Path, PathBuf};

use mlxcel_artifacts::{Name, ScratchFolder, Store};
use mlxcel_compiler_driver::{
    Cancel, CompilerLocation, Error, Event, HubSettings, ModelSource, ProgramRequest, Request, Target,
    WeightSource, build, build_program, emit, emit_program,
};

use crate::{
    options::{Compile, Emit},
    outcome::Outcome,
    pack::{CalibrateBy, pack},
    progress::ProgressView,
};

/// Builds the bundle that `options` describe, and packs its weights. With `--emit`, only emits the program.
pub(crate) fn compile(
    options: Compile,
    cancel: &Cancel,
    progress: &mut ProgressView,
) -> Result<Outcome, Error> {
    let store = match Store::from_env(options.store.as_deref()) {
        // Emitting needs no store.
        Err(mlxcel_artifacts::Error::NoStore) if options.emit.is_some() => None,
        store => Some(store?),
    };
    let named = options.name.zip(store.as_ref());
    let named = named.map(|(name, store)| NamedBundle::new(name, store)).transpose()?;
    if let Some(program) = options.program {
        let out = named.as_ref().map(NamedBundle::folder).or(options.out);
        let request = options.of_program.request(program, options.target, cancel);
        let request = ProgramRequest { out, dump_dir: options.dump_dir, store, ..request };
        return compile_program(&request, options.emit, named, progress);
    }
    // Before anything large is downloaded.
    options.target.iter().try_for_each(|target| Target::find(target).map(|_| ()))?;
    let weights = options.weights.unwrap_or_default();
    let from_env = HubSettings::from_env();
    let request = Request {
        model: ModelSource::find_or_download(
            // The parser requires it.
            options.model.as_deref().unwrap_or_default(),
            options.revision.as_deref(),
            weights == WeightSource::Model,
            &HubSettings { offline: options.offline || from_env.offline, ..from_env },
            cancel,
            &mut |event| progress.show(event),
        )?,
        targets: options.target,
        weights,
        precision: options.precision,
        quant: options.quant,
        calibration: options.calibrate.is_some(),
        input_bits: options.input_bits,
        cache_type: options.cache_type,
        context: options.ctx_size,
        chunk: options.chunk,
        separate_kernels: options.separate_kernels,
        pack_elements: None,
        is_lean: false,
        out: named.as_ref().map(NamedBundle::folder).or(options.out),
        dump_dir: options.dump_dir,
        store,
        compiler: CompilerLocation::from_env(),
        cancel: cancel.clone(),
    };
    let mut progress = |event| progress.show(event);
    if let Some(Emit::Mlir) = options.emit {
        return Ok(emit(&request, &mut progress)?.mlir.into());
    }
    let bundle = build(&request, &mut progress)?;
    let path = bundle.path().display().to_string();
    let hint = match &named {
        None => format!("run `mlxcel-pack {path}`"),
        Some(NamedBundle { name, .. }) => {
            format!("run `mlxcel-bundle copy {name} --out FOLDER`, then `mlxcel-pack FOLDER`")
        }
    };
    let keep_in = named.as_ref().and_then(NamedBundle::unfinished_files);
    let calibrate = options.calibrate.as_deref().map(|text| CalibrateBy { text, keep_in });
    let hint = match &calibrate {
        Some(by) => format!("{hint} with `{by}`"),
        None => hint,
    };
    let store = request.store.as_ref();
    let packing = match options.no_pack {
        true => Ok(()),
        false => pack(&bundle, store, calibrate.as_ref(), &hint, cancel, &mut progress),
    };
    let location = match named {
        Some(named) => named.save(&mut progress)?,
        None => path,
    };
    Ok(Outcome { stdout: format!("{location}\n"), packing })
}

/// Builds the bundle of a program. With `emit`, only emits its module.
fn compile_program(
    request: &ProgramRequest,
    emit: Option<Emit>,
    named: Option<NamedBundle>,
    progress: &mut ProgressView,
) -> Result<Outcome, Error> {
    let mut progress = |event| progress.show(event);
    if let Some(Emit::Mlir) = emit {
        return Ok(emit_program(request, &mut progress)?.mlir.into());
    }
    let bundle = build_program(request, &mut progress)?;
    let location = match named {
        Some(named) => named.save(&mut progress)?,
        None => bundle.path().display().to_string(),
    };
    Ok(format!("{location}\n").into())
}

/// A bundle that is made in a scratch folder and then saved in the store.
struct NamedBundle {
    name: Name,
    store: Store,
    scratch: ScratchFolder,
}

impl NamedBundle {
    fn new(name: Name, store: &Store) -> Result<Self, Error> {
        let scratch = store.scratch_folder()?;
        Ok(Self { name, store: store.clone(), scratch })
    }

    /// Returns the scratch folder of the bundle.
    fn folder(&self) -> PathBuf {
        self.scratch.path().join("bundle")
    }

    /// Returns the store's folder of unfinished files. Unlike the scratch folder in it, files with an extension stay there for
    /// a week, as garbage collection keeps downloads.
    fn unfinished_files(&self) -> Option<&Path> {
        self.scratch.path().parent()
    }

    /// Saves the bundle in the store and returns its name.
    fn save(self, progress: &mut dyn FnMut(Event)) -> Result<String, Error> {
        let bundle = self.store.open_without_weights(&self.folder())?;
        let replaced = self.store.write(&self.name, |to| bundle.copy_to(Box::new(to)))?;
        if let Some(replaced) = replaced {
            progress(Event::Warning(replaced.to_string()));
        }
        Ok(self.name.to_string())
    }
}
