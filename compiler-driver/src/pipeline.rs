//! From a request to a bundle, step by step.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs, io,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        mpsc::{self, Sender},
    },
    thread::{self, ScopedJoinHandle},
    time::{Duration, Instant},
};

use mlxcel_artifacts::{
    Blob, Bundle, BundleWriter, Compiler, Digest, FORMAT, Machine, Manifest, Plan, Store, TargetArtifact,
};
use mlxcel_emitter::{Numerics, Program};
use mlxcel_models::ModelConfig;
use safetensors::Dtype;

use crate::{
    Error,
    checkpoint::{Checkpoint, INDEX, SINGLE, TensorFile},
    compile,
    key::build_key,
    random::Random,
    source::{Model, Source, WeightsFrom},
    target::{Precision, Resolved, Target, float_name},
    toolchain::Toolchain,
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
    pub model: Source,
    /// The targets by name.
    pub targets: Vec<String>,
    /// The weights that the bundle carries.
    pub weights: WeightsFrom,
    /// What matrix products are computed in.
    pub precision: Precision,
    /// Positions of the cache; by default [`DEFAULT_CONTEXT`] or the model's own, whichever is less.
    pub context: Option<usize>,
    /// The bundle's folder; by default `<model>.bundle` here.
    pub out: Option<PathBuf>,
    /// A folder to leave MLIR, flags and vmfbs in.
    pub keep: Option<PathBuf>,
    /// The store; by default that of the environment.
    pub store: Option<PathBuf>,
    /// The iree-compile to use; by default it is looked for.
    pub compiler: Option<PathBuf>,
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
    let toolchain = Toolchain::find(request.compiler.as_deref(), &store)?;
    let keep = request.keep.as_deref().map(Keep::new).transpose()?;
    let machine = Machine::this();
    let resolved: Vec<_> =
        plan.targets.iter().map(|target| target.resolve(&machine, plan.plan.precision)).collect();
    let mut programs = BTreeMap::new();
    for target in &resolved {
        if let Entry::Vacant(place) = programs.entry(target.numerics) {
            place.insert(plan.emit(target.numerics, progress)?);
        }
    }
    let jobs: Vec<_> =
        resolved.iter().filter_map(|target| Some((target, programs.get(&target.numerics)?))).collect();
    let vmfbs = vmfbs(&jobs, &toolchain, &store, progress)?;
    let mut targets = BTreeMap::new();
    for ((target, program), (build_key, vmfb)) in jobs.into_iter().zip(vmfbs) {
        if let Some(keep) = &keep {
            keep.target(target, program, &vmfb)?;
        }
        let Resolved { name, driver, arch, cpu_features, flags, numerics: _ } = target.clone();
        let vmfb = writer.add_file(&vmfb)?;
        targets.insert(name, TargetArtifact { driver, arch, cpu_features, flags, build_key, vmfb });
    }
    // What the module looks like from outside does not depend on the target.
    let Program { entries, mut parameters, .. } = programs.into_values().next().ok_or(Error::NoTarget)?;

    let files = plan.add_files(&mut writer)?;
    let Added { files: weights, sources } = plan.add_weights(&mut writer, &out, progress)?;
    for parameter in &mut parameters {
        parameter.source = sources.get(&parameter.name).copied();
    }
    let manifest = Manifest {
        format: FORMAT,
        model: plan.model.name,
        family: plan.model.config.family,
        plan: Plan {
            precision: float_name(plan.plan.precision),
            batch: plan.plan.batch,
            context: plan.plan.context,
            vocab: plan.model.config.vocab,
        },
        compiler: Compiler { version: toolchain.version, digest: toolchain.digest },
        targets,
        files,
        weights,
        entries,
        parameters,
    };
    Ok(writer.finish(&manifest)?)
}

/// Emits the program that `request` describes for its first target, compiling nothing.
///
/// # Errors
/// As [`build`], but for the compiler and the bundle.
pub fn emit(request: &Request, progress: &mut Progress<'_>) -> Result<Program, Error> {
    let plan = Prepared::new(request, progress)?;
    let target = plan.targets.first().ok_or(Error::NoTarget)?;
    plan.emit(target.resolve(&Machine::this(), plan.plan.precision).numerics, progress)
}

/// Writes the random checkpoint of `model` for `seed` as a folder in Hugging Face's form: what a bundle with
/// `--weights random:SEED` carries, for another program to load.
///
/// # Errors
/// The folder exists, or cannot be written.
pub fn write_random_weights(model: &Source, seed: u64, out: &Path) -> Result<(), Error> {
    let model = model.load()?;
    let random = Random::new(&model.config, seed)?;
    if out.exists() {
        return Err(Error::Occupied { path: out.to_owned() });
    }
    fs::create_dir_all(parent(out)).map_err(Error::io("write", parent(out)))?;
    let staging = tempfile::Builder::new()
        .prefix(".mlxcel-")
        .tempdir_in(parent(out))
        .map_err(Error::io("write", parent(out)))?;
    write_random(&random, &staging.path().join(SINGLE)).map_err(Error::io("write", out))?;
    let config = staging.path().join("config.json");
    fs::write(&config, &model.json).map_err(Error::io("write", &config))?;
    for (name, path) in model.small_files(None) {
        fs::copy(&path, staging.path().join(name)).map_err(Error::io("copy", &path))?;
    }
    fs::rename(staging.path(), out).map_err(Error::io("write", out))?;
    // Renamed away: there is nothing to remove any more.
    let _ = staging.keep();
    Ok(())
}

/// A request, checked against model, weights and targets.
struct Prepared {
    model: Model,
    weights: Weights,
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
        let model = request.model.load()?;
        let weights = Weights::find(&model, &request.weights, progress)?;
        let checkpoint_dtype = weights.main_dtype().unwrap_or(model.config.dtype);
        let precision = request.precision.choose(checkpoint_dtype, &targets)?;
        if request.precision == Precision::Auto && precision != checkpoint_dtype {
            progress(Event::Warning(format!(
                "computing in {} on every target: one of them cannot compute in the checkpoint's {}",
                float_name(precision),
                float_name(checkpoint_dtype),
            )));
        }
        let context = context(request.context, &model)?;
        let plan = mlxcel_emitter::Plan::new(&model.config, precision, context);
        Ok(Self { model, weights, targets, plan })
    }

    fn emit(&self, numerics: Numerics, progress: &mut Progress<'_>) -> Result<Program, Error> {
        let start = Instant::now();
        let config = &self.model.config;
        let plan = mlxcel_emitter::Plan { numerics, ..self.plan.clone() };
        let program = mlxcel_emitter::emit(config, &plan, &|name| self.weights.dtype(name, config))
            .map_err(|source| Error::Emit { model: self.model.name.clone(), source: Box::new(source) })?;
        progress(Event::Emitted { bytes: program.mlir.len(), took: start.elapsed() });
        Ok(program)
    }

    fn add_files(&self, writer: &mut BundleWriter) -> Result<BTreeMap<String, Blob>, Error> {
        let mut files = BTreeMap::new();
        files.insert("config.json".to_owned(), writer.add_bytes(self.model.json.as_bytes())?);
        let beside_weights = match &self.weights {
            Weights::Files(checkpoint) => Some(checkpoint.folder()),
            Weights::None | Weights::Random(_) => None,
        };
        for (name, path) in self.model.small_files(beside_weights) {
            files.insert(name.to_owned(), writer.add_file(&path)?);
        }
        Ok(files)
    }

    fn add_weights(
        &self,
        writer: &mut BundleWriter,
        out: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<Added, Error> {
        let mut added = Added::default();
        let mut add = |name: &str, path: &Path| {
            let blob = if name == INDEX {
                writer.add_file(path)?
            } else {
                let mut file = TensorFile::open(path)?;
                added.sources.append(&mut file.digests()?);
                writer.add_reader(&mut file.aligned()?, path)?
            };
            added.files.insert(name.to_owned(), blob);
            Ok::<_, Error>(())
        };
        match &self.weights {
            Weights::None => {}
            Weights::Random(seed) => {
                progress(Event::Weights { file: SINGLE.to_owned() });
                let file = tempfile::Builder::new()
                    .prefix(".mlxcel-")
                    .tempfile_in(parent(out))
                    .map_err(Error::io("write", parent(out)))?;
                write_random(&Random::new(&self.model.config, *seed)?, file.path())
                    .map_err(Error::io("write", out))?;
                add(SINGLE, file.path())?;
            }
            Weights::Files(checkpoint) => {
                for (name, path) in checkpoint.files() {
                    progress(Event::Weights { file: name.to_owned() });
                    add(name, &path)?;
                }
            }
        }
        Ok(added)
    }
}

impl Weights {
    fn find(model: &Model, from: &WeightsFrom, progress: &mut Progress<'_>) -> Result<Self, Error> {
        let no_weights = |folder: &Path| Error::NoWeights { folder: folder.to_owned() };
        let found = match from {
            WeightsFrom::None => None,
            WeightsFrom::Random(seed) => {
                Random::new(&model.config, *seed)?;
                return Ok(Self::Random(*seed));
            }
            WeightsFrom::Folder(folder) => {
                Some(Checkpoint::in_folder(folder)?.ok_or_else(|| no_weights(folder))?)
            }
            WeightsFrom::Model => model.folder.as_deref().map(Checkpoint::in_folder).transpose()?.flatten(),
        };
        let Some(checkpoint) = found else { return Ok(Self::None) };
        let extra = checkpoint.check(&model.config, &model.name)?;
        if !extra.is_empty() {
            let shown: Vec<String> = extra
                .iter()
                .take(5)
                .map(|name| name.chars().take(100).flat_map(char::escape_default).collect())
                .collect();
            let dots = if extra.len() > shown.len() { ", …" } else { "" };
            progress(Event::Warning(format!(
                "{} tensors of the checkpoint are not used: {}{dots}",
                extra.len(),
                shown.join(", "),
            )));
        }
        Ok(Self::Files(checkpoint))
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
    fn small_files(&self, beside_weights: Option<&Path>) -> Vec<(&'static str, PathBuf)> {
        let folders: Vec<&Path> = self.folder.as_deref().into_iter().chain(beside_weights).collect();
        let find = |name: &'static str| {
            let path = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())?;
            Some((name, path))
        };
        SMALL_FILES.into_iter().filter_map(find).collect()
    }
}

/// The context to plan for.
fn context(asked: Option<usize>, model: &Model) -> Result<usize, Error> {
    let limit = model.config.max_positions;
    let found = asked.unwrap_or_else(|| limit.min(DEFAULT_CONTEXT));
    if (1..=limit).contains(&found) {
        Ok(found)
    } else {
        Err(Error::Context { model: model.name.clone(), found, limit })
    }
}

/// The vmfb of every job with its build key, in the order of the jobs: as many at a time as there are cores, because one
/// compiler does not keep two busy.
fn vmfbs(
    jobs: &[(&Resolved, &Program)],
    toolchain: &Toolchain,
    store: &Store,
    progress: &mut Progress<'_>,
) -> Result<Vec<(Digest, PathBuf)>, Error> {
    let queue = Mutex::new(jobs.iter().enumerate());
    let (events, seen) = mpsc::channel();
    let work = |events: Sender<Event>| {
        let mut done = Vec::new();
        // A queue that is locked while nobody can panic is never poisoned.
        while let Some((index, (target, program))) = queue.lock().ok().and_then(|mut queue| queue.next()) {
            let vmfb = vmfb(program, target, toolchain, store, &events);
            if vmfb.is_err()
                && let Ok(mut queue) = queue.lock()
            {
                // Nobody starts on another.
                queue.by_ref().for_each(drop);
            }
            done.push((index, vmfb));
        }
        done
    };
    let done = thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                let events = events.clone();
                scope.spawn(|| work(events))
            })
            .collect();
        drop(events);
        seen.into_iter().for_each(progress);
        let join =
            |worker: ScopedJoinHandle<'_, Vec<_>>| worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        workers.into_iter().flat_map(join).collect::<BTreeMap<_, _>>()
    });
    done.into_values().collect()
}

/// The vmfb of `program` for `target`, out of the store or made and put there, and its key.
fn vmfb(
    program: &Program,
    target: &Resolved,
    toolchain: &Toolchain,
    store: &Store,
    events: &Sender<Event>,
) -> Result<(Digest, PathBuf), Error> {
    // Whoever listens outlives the workers.
    let progress = |event| _ = events.send(event);
    let key = build_key(&program.mlir, &program.parameters, target, toolchain);
    if let Some(path) = store.get(&key)? {
        progress(Event::Stored { target: target.name.clone(), bytes: file_size(&path)? });
        return Ok((key, path));
    }
    progress(Event::Compiling { target: target.name.clone() });
    let start = Instant::now();
    let compiled = compile::compile(&program.mlir, target, toolchain)?;
    let took = start.elapsed();
    let path = store.put(&key, &compiled.path())?;
    progress(Event::Compiled { target: target.name.clone(), took, bytes: file_size(&path)? });
    Ok((key, path))
}

fn file_size(path: &Path) -> Result<u64, Error> {
    Ok(fs::metadata(path).map_err(Error::io("read", path))?.len())
}

fn write_random(random: &Random<'_>, path: &Path) -> io::Result<()> {
    random.write(&mut fs::File::create(path)?)
}

/// The folder in which `path` lies.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A folder that intermediates are left in.
struct Keep<'k>(&'k Path);

impl<'k> Keep<'k> {
    fn new(folder: &'k Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::io("write", folder))?;
        Ok(Self(folder))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.0.join(name);
        fs::write(&path, bytes).map_err(Error::io("write", &path))
    }

    fn target(&self, target: &Resolved, program: &Program, vmfb: &Path) -> Result<(), Error> {
        self.write(&format!("{}.mlir", target.name), program.mlir.as_bytes())?;
        self.write(&format!("{}.flags", target.name), format!("{}\n", target.flags.join("\n")).as_bytes())?;
        let to = self.0.join(format!("{}.vmfb", target.name));
        fs::copy(vmfb, &to).map_err(Error::io("write", &to))?;
        Ok(())
    }
}
