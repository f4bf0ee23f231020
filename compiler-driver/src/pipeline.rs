//! From a request to a bundle, step by step.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use mlxcel_artifacts::{
    Blob, Bundle, BundleWriter, CacheType, Cancel, Compiler, Destination as _, Digest, Driver, FORMAT, Float,
    Machine, Manifest, Packing, Quant, SMALL_FILE_LIMIT_BYTES, Store, TargetArtifact,
};
use mlxcel_emitter::{Numerics, Products, Program};
use mlxcel_models::{Head, ModelConfig};
use safetensors::Dtype;
use serde::de::IgnoredAny;

use crate::{
    Error,
    checkpoint::{Checkpoint, INDEX, SINGLE, TensorFile},
    documents::{self, Material},
    planned::planned,
    ptx,
    random::Random,
    sentence,
    source::{Model, ModelSource, WeightSource, read_limited},
    target::{Precision, Resolved, Target, float_name},
    toolchain::Toolchain,
    vmfbs::{Job, Keep, Unit, vmfbs},
};

/// The context when none is asked for, where the model reaches that far.
pub const DEFAULT_CONTEXT: usize = 4096;

/// A checkpoint's small files that go into a bundle, besides config.json.
const SMALL_FILES: [&str; 5] = [
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
];

/// What to build.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which model.
    pub model: ModelSource,
    /// The targets by name.
    pub targets: Vec<String>,
    /// The weights that the bundle carries.
    pub weights: WeightSource,
    /// What matrix products are computed in.
    pub precision: Precision,
    /// How weights are quantised.
    pub quant: Quant,
    /// What the key/value cache holds; by default floats of the precision.
    pub kv: Option<CacheType>,
    /// Positions of the cache, or tokens of a text; by default [`DEFAULT_CONTEXT`], or what the folder of an encoder says,
    /// or the model's own, whichever is less.
    pub context: Option<usize>,
    /// Tokens that a prompt goes through at a time; by default the target's sizes.
    pub chunk: Option<usize>,
    /// The bundle's folder; by default `<model>.bundle` here.
    pub out: Option<PathBuf>,
    /// A folder to leave MLIR, flags and vmfbs in.
    pub keep: Option<PathBuf>,
    /// The store; by default that of the environment.
    pub store: Option<PathBuf>,
    /// The iree-compile to use; by default it is looked for.
    pub compiler: Option<PathBuf>,
    /// Ends the build early.
    pub cancel: Cancel,
}

/// What happens during a build, for whoever watches.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Something that a person should know and that stops nothing.
    Warning(String),
    /// The program is emitted.
    Emitted {
        /// Length of its text.
        bytes: usize,
        /// How long it took.
        took: Duration,
    },
    /// The compiler starts on a target.
    Compiling {
        /// The target.
        target: String,
    },
    /// It is done with that target.
    Compiled {
        /// The target.
        target: String,
        /// How long it took.
        took: Duration,
        /// Length of the vmfb.
        bytes: u64,
    },
    /// A target's vmfb was in the store.
    Stored {
        /// The target.
        target: String,
        /// Length of the vmfb.
        bytes: u64,
    },
    /// Weights are being copied or made.
    Weights {
        /// The file.
        file: String,
    },
}

/// Whoever watches a build.
pub type Progress<'p> = dyn FnMut(Event) + 'p;

/// Builds the bundle that `request` describes and gives it opened. Nothing is at its place until it is whole.
///
/// # Errors
/// Any step's; what is checked without the compiler is checked before it starts.
pub fn build(request: &Request, progress: &mut Progress<'_>) -> Result<Bundle, Error> {
    let plan = Prepared::new(request, progress)?;
    let out = request.out.clone().unwrap_or_else(|| format!("{}.bundle", plan.model.name).into());
    let mut writer = BundleWriter::create(&out)?;
    let store = Store::open(request.store.as_deref())?;
    let using = store.in_use()?;
    let toolchain = Toolchain::find(request.compiler.as_deref(), &store)?;
    let keep = request.keep.as_deref().map(Keep::new).transpose()?;
    let machine = Machine::host();
    let mlxcel_emitter::Plan { precision, quant, .. } = plan.plan;
    let resolve = |target: &Target| target.resolve(&machine, precision, quant);
    let resolved: Vec<_> = plan.targets.iter().map(resolve).collect();
    let mut programs = BTreeMap::new();
    for target in &resolved {
        if quant != Quant::None && !matches!(target.numerics.products, Products::Kernels(_)) {
            let what = match target.numerics.steps_by() {
                Some(_) => format!("kernels for {quant} only of single tokens: prompts take"),
                None => format!("no kernels for {quant}: it takes"),
            };
            progress(Event::Warning(format!(
                "target {} has {what} plain StableHLO, which is slower",
                target.name
            )));
        }
        if let Entry::Vacant(place) = programs.entry(target.numerics) {
            place.insert(plan.emit(target.numerics, progress)?);
        }
    }
    let jobs: Vec<_> =
        resolved.iter().flat_map(|target| jobs(target, programs.get(&target.numerics))).collect();
    let vmfbs = vmfbs(&jobs, &toolchain, &store, &request.cancel, progress)?;
    let mut targets = BTreeMap::new();
    for (job, (build_key, vmfb)) in jobs.iter().zip(vmfbs) {
        if let Some(keep) = &keep {
            keep.job(job, &vmfb)?;
        }
        let Resolved { name, driver, arch, cpu_features, flags, numerics } = job.target.clone();
        let gpu = if driver == Driver::Cuda { ptx::needs(&vmfb)? } else { None };
        let vmfb = writer.add_file(&vmfb)?;
        let Some(program) = programs.get(&numerics) else { continue };
        match targets.entry(name) {
            Entry::Vacant(place) => {
                let Program { entries, step_bytes, rewind, dispatches, .. } = program.clone();
                place.insert(TargetArtifact {
                    driver,
                    arch,
                    cpu_features,
                    gpu,
                    flags,
                    build_key,
                    vmfb,
                    entries,
                    step_bytes,
                    rewind,
                    dispatches,
                    packing: None,
                });
            }
            // Its second job.
            Entry::Occupied(mut place) => {
                let steps = program.packed.as_ref().map(|packed| packed.steps.clone()).unwrap_or_default();
                place.get_mut().packing =
                    Some(Packing { build_key, vmfb, weights: None, made_from: BTreeMap::new(), steps });
            }
        }
    }
    // What is read of the checkpoint does not depend on the target.
    let Program { mut parameters, .. } = programs.into_values().next().ok_or(Error::NoTarget)?;

    let files = plan.add_files(&mut writer)?;
    let Added { files: weights, sources, materials } =
        plan.add_weights(&mut writer, &request.cancel, progress)?;
    for parameter in &mut parameters {
        parameter.source = sources.get(&parameter.name).copied();
    }
    let mut manifest = Manifest {
        format: FORMAT,
        plan: planned(&plan.model.config, &plan.plan),
        model: plan.model.name,
        family: plan.model.config.family,
        compiler: Compiler { version: toolchain.version, digest: toolchain.digest },
        targets,
        files,
        weights,
        documents: BTreeMap::new(),
        replays: vec![],
        parameters,
    };
    manifest.documents = documents::add(&mut writer, &manifest, request, &materials)?;
    let bundle = writer.finish(&manifest)?;
    store.remember_built(&bundle);
    drop(using);
    store.keep_to_limit();
    Ok(bundle)
}

/// What is compiled for a target: its program, then what packs the program's parameters.
fn jobs<'j>(target: &'j Resolved, program: Option<&'j Program>) -> Vec<Job<'j>> {
    let Some(Program { mlir, objects, parameters, packed, .. }) = program else {
        return Vec::new();
    };
    let mut jobs = vec![Job { label: target.name.clone(), target, unit: Unit { mlir, objects, parameters } }];
    if let Some(packed) = packed {
        let unit = Unit { mlir: &packed.mlir, objects: &[], parameters: &[] };
        jobs.push(Job { label: format!("{} packing", target.name), target, unit });
    }
    jobs
}

/// Emits the program that `request` describes for its first target, compiling nothing.
///
/// # Errors
/// As [`build`], but for the compiler and the bundle.
pub fn emit(request: &Request, progress: &mut Progress<'_>) -> Result<Program, Error> {
    let plan = Prepared::new(request, progress)?;
    let target = plan.targets.first().ok_or(Error::NoTarget)?;
    let Resolved { numerics, .. } = target.resolve(&Machine::host(), plan.plan.precision, plan.plan.quant);
    plan.emit(numerics, progress)
}

/// A request, checked against model, weights and targets.
struct Prepared {
    model: Model,
    weights: Weights,
    /// By their names in the bundle.
    small_files: Vec<(&'static str, PathBuf)>,
    targets: Vec<Target>,
    plan: mlxcel_emitter::Plan,
}

/// The weights in a bundle.
#[derive(Default)]
struct Added {
    /// By file name.
    files: BTreeMap<String, Blob>,
    /// The digest of every tensor.
    sources: BTreeMap<String, Digest>,
    /// The files that they were copied from.
    materials: Vec<Material>,
}

/// The weights of a bundle, found and checked.
enum Weights {
    None,
    Random(u64),
    Files(Checkpoint),
}

impl Prepared {
    fn new(request: &Request, progress: &mut Progress<'_>) -> Result<Self, Error> {
        let mut targets: Vec<Target> = Vec::new();
        for name in &request.targets {
            if !targets.iter().any(|target| target.name == *name) {
                targets.push(Target::find(name)?);
            }
        }
        if targets.is_empty() {
            return Err(Error::NoTarget);
        }
        let mut model = request.model.load()?;
        model.said.take().into_iter().for_each(|text| progress(Event::Warning(text)));
        let weights = Weights::find(&mut model, request, progress)?;
        let checkpoint_dtype = weights.main_dtype().unwrap_or(model.config.dtype);
        let precision = request.precision.choose(checkpoint_dtype, &targets)?;
        let can =
            |target: &&Target| Float::of_dtype(checkpoint_dtype).is_some_and(|float| target.computes(float));
        let unable = targets.iter().find(|target| !can(target));
        if let (Precision::Auto, Some(Target { name, .. })) = (request.precision, unable) {
            progress(Event::Warning(format!(
                "computing in {} on every target: {name} cannot compute in the checkpoint's {}",
                precision,
                float_name(checkpoint_dtype),
            )));
        }
        if let (None, Some(folder)) = (&model.folder, weights.folder()) {
            // A preset's checkpoint says more than its config.json.
            let (longest, said) = sentence::read(folder, &mut model.config)?;
            model.longest = longest;
            said.into_iter().for_each(|text| progress(Event::Warning(text)));
        }
        let context = context(request.context, &model)?;
        if let Some(found) = request.chunk.filter(|chunk| !(1..=context).contains(chunk)) {
            return Err(Error::Chunk { found, context });
        }
        let kv = match (&model.config.head, request.kv) {
            (Head::Pooling(_), Some(_)) => return Err(Error::NoCache { model: model.name }),
            (_, asked) => asked.unwrap_or(CacheType::Float(precision)),
        };
        targets.iter().try_for_each(|target| target.check_kv(kv))?;
        if request.quant != Quant::None {
            targets.iter().try_for_each(Target::check_quant)?;
        }
        let plan = mlxcel_emitter::Plan {
            quant: request.quant,
            kv,
            chunk: request.chunk,
            ..mlxcel_emitter::Plan::new(&model.config, precision, context)
        };
        let small_files = model.small_files(weights.folder());
        for (_, path) in small_files.iter().filter(|(name, _)| name.ends_with(".json")) {
            check_json(path)?;
        }
        Ok(Self { model, weights, small_files, targets, plan })
    }

    fn emit(&self, numerics: Numerics, progress: &mut Progress<'_>) -> Result<Program, Error> {
        let start = Instant::now();
        let config = &self.model.config;
        let plan = self.plan.for_target(numerics);
        let program = mlxcel_emitter::emit(config, &plan, &|name| self.weights.dtype(name, config))
            .map_err(|source| Error::Emit { model: self.model.name.clone(), source: Box::new(source) })?;
        progress(Event::Emitted { bytes: program.mlir.len(), took: start.elapsed() });
        Ok(program)
    }

    fn add_files(&self, writer: &mut BundleWriter) -> Result<BTreeMap<String, Blob>, Error> {
        let mut files = BTreeMap::new();
        files.insert("config.json".to_owned(), writer.add_bytes(self.model.json.as_bytes())?);
        for (name, path) in &self.small_files {
            files.insert((*name).to_owned(), writer.add_file(path)?);
        }
        Ok(files)
    }

    fn add_weights(
        &self,
        writer: &mut BundleWriter,
        cancel: &Cancel,
        progress: &mut Progress<'_>,
    ) -> Result<Added, Error> {
        let mut added = Added::default();
        let mut materials = Vec::new();
        let made = writer.scratch().join(SINGLE);
        let mut add = |name: &str, path: &Path| {
            let blob = if name == INDEX {
                writer.add_file(path)?
            } else {
                let mut file = TensorFile::open(path)?;
                added.sources.append(&mut file.digests(cancel)?);
                writer.add_reader(&mut cancel.watch(file.aligned()?), path)?
            };
            added.files.insert(name.to_owned(), blob);
            Ok::<_, Error>(())
        };
        match &self.weights {
            Weights::None => {}
            Weights::Random(seed) => {
                progress(Event::Weights { file: SINGLE.to_owned() });
                Random::new(&self.model.config, *seed)?
                    .write_file(&made, cancel)
                    .map_err(Error::io("write", &made))?;
                add(SINGLE, &made)?;
                fs::remove_file(&made).map_err(Error::io("write", &made))?;
            }
            Weights::Files(checkpoint) => {
                for (name, path) in checkpoint.files() {
                    progress(Event::Weights { file: name.to_owned() });
                    add(name, &path)?;
                    let (digest, _) = Digest::of_file(&path).map_err(Error::io("read", &path))?;
                    materials.push(Material { name: name.to_owned(), digest });
                }
            }
        }
        Ok(Added { materials, ..added })
    }
}

impl Weights {
    /// Those of the request; `model` is then what their tensors say it is.
    fn find(model: &mut Model, request: &Request, progress: &mut Progress<'_>) -> Result<Self, Error> {
        let no_weights = |folder: &Path| Error::NoWeights { folder: folder.to_owned() };
        let found = match &request.weights {
            WeightSource::None => None,
            WeightSource::Random(seed) => {
                Random::new(&model.config, *seed)?;
                return Ok(Self::Random(*seed));
            }
            WeightSource::Folder(folder) => {
                Some(Checkpoint::in_folder(folder)?.ok_or_else(|| no_weights(folder))?)
            }
            WeightSource::Model => {
                let found = model.folder.as_deref().map(Checkpoint::in_folder).transpose()?.flatten();
                if let (None, Some(folder)) = (&found, &model.folder) {
                    progress(Event::Warning(format!(
                        "found no weights in {}: the bundle carries none, mlxcel-run --weights names them",
                        folder.display()
                    )));
                }
                found
            }
        };
        let Some(checkpoint) = found else { return Ok(Self::None) };
        let (config, said) = checkpoint.fit(model.config.clone(), &model.name, &request.cancel)?;
        model.config = config;
        said.into_iter().for_each(|text| progress(Event::Warning(text)));
        Ok(Self::Files(checkpoint))
    }

    /// The folder they were found in.
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Files(checkpoint) => Some(checkpoint.folder()),
            Self::None | Self::Random(_) => None,
        }
    }

    fn main_dtype(&self) -> Option<Dtype> {
        match self {
            Self::Files(checkpoint) => checkpoint.main_dtype(),
            Self::None | Self::Random(_) => None,
        }
    }

    /// The element type of a tensor: the file's, else the config's.
    fn dtype(&self, name: &str, config: &ModelConfig) -> Dtype {
        match self {
            Self::Files(checkpoint) => checkpoint.dtype(name).unwrap_or(config.dtype),
            Self::None | Self::Random(_) => config.dtype,
        }
    }
}

impl Model {
    /// The small files there are: those of the model's folder, else those beside the weights.
    pub(crate) fn small_files(&self, beside_weights: Option<&Path>) -> Vec<(&'static str, PathBuf)> {
        let folders: Vec<&Path> = self.folder.as_deref().into_iter().chain(beside_weights).collect();
        let find = |name: &'static str| {
            let path = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())?;
            Some((name, path))
        };
        SMALL_FILES.into_iter().filter_map(find).collect()
    }
}

/// Refuses a small file that is cut off or something else: found here, it costs nobody a copy to another machine.
fn check_json(path: &Path) -> Result<(), Error> {
    let bytes = read_limited(path, SMALL_FILE_LIMIT_BYTES)?;
    match serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(&bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Damaged { path: path.to_owned(), reason: error.to_string() }),
    }
}

/// The context to plan for.
fn context(asked: Option<usize>, model: &Model) -> Result<usize, Error> {
    let limit = model.config.max_positions;
    let usual = model.longest.unwrap_or(DEFAULT_CONTEXT);
    let found = asked.unwrap_or_else(|| limit.min(usual));
    if (1..=limit).contains(&found) {
        Ok(found)
    } else {
        let notes = model.config.notes.clone();
        Err(Error::Context { model: model.name.clone(), found, limit, notes })
    }
}
