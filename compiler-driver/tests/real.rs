//! Bundles made by the real iree-compile, and engines on them.
#![allow(dead_code, reason = "each test target uses its own part")]

use std::{
    collections::BTreeSet,
    env,
    fs::{self, File},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::answers::{Loaded, Recorded, engine, on};
use mlxcel_artifacts::{Bundle, Store, entry::PAGE, report};
use mlxcel_compiler_driver::{
    CompilerLocation, Float, ModelSource, Precision, Quant, Request, WeightSource, build,
};
use mlxcel_models::{Block, FeedForward, ModelConfig};
use mlxcel_runtime::{
    Cancel, Error, ModelRunner,
    model::{Batch, SequenceRows},
};
use safetensors::Dtype;
use tempfile::TempDir;

/// A bundle in a folder of its own, which goes with it.
pub(crate) struct Built {
    pub(crate) folder: TempDir,
    pub(crate) bundle: Bundle,
}

/// A checkpoint with what Hugging Face answers.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) name: String,
    /// Its `model_type`.
    pub(crate) family: String,
    /// Whether Vulkan, which cannot load 16-bit numbers, takes it: it does not stack such experts.
    pub(crate) on_vulkan: bool,
    pub(crate) folder: PathBuf,
    pub(crate) prompts: Vec<Recorded>,
}

impl Fixture {
    /// Every folder in `folder` as a fixture, sorted by name.
    pub(crate) fn all_in(folder: &Path) -> Result<Vec<Self>, String> {
        let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        if paths.is_empty() {
            return Err(format!("{}: no fixtures", folder.display()));
        }
        paths.iter().map(|path| Self::open(path)).collect()
    }

    /// The committed one of that name.
    pub(crate) fn find(name: &str) -> Self {
        Self::open(&fixtures().join(name)).unwrap()
    }

    pub(crate) fn open(folder: &Path) -> Result<Self, String> {
        let prompts = Recorded::all_in(&folder.join("expected.json"))?;
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if gguf(folder).is_some() {
            // The metadata is read when it is compiled.
            return Ok(Self { name, family: "gguf".into(), on_vulkan: true, folder: folder.into(), prompts });
        }
        let config = fs::read_to_string(folder.join("config.json")).map_err(|error| error.to_string())?;
        let model = ModelConfig::from_json(&config).map_err(|error| error.to_string())?;
        let is_mixture = |block: &Block| matches!(block.mlp.layer, FeedForward::Experts(_));
        let on_vulkan = model.dtype == Dtype::F32 || !model.blocks.iter().any(is_mixture);
        Ok(Self { name, family: model.family, on_vulkan, folder: folder.into(), prompts })
    }
}

/// Returns the GGUF file of a folder, or its first part. A file is its own.
fn gguf(folder: &Path) -> Option<PathBuf> {
    if folder.is_file() {
        return Some(folder.to_owned());
    }
    let entries = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|path| path.extension().is_some_and(|end| end == "gguf")).min()
}

/// Returns whether everything is asked for, not the default.
pub(crate) fn is_full() -> bool {
    env::var_os("MLXCEL_ORACLE").is_some_and(|value| value == "full")
}

/// Held by whoever has a Vulkan device. Two of them at a time in one process were once lost (VK_ERROR_DEVICE_LOST, with
/// Debian 12's Mesa on a machine that had much else to do).
pub(crate) static ON_LAVAPIPE: Mutex<()> = Mutex::new(());

/// Runs `work` while no other test builds the same code for one of these targets, in this process or in another: each would
/// compile it.
fn alone<T>(request: &Request, work: impl FnOnce() -> T) -> T {
    let Request { model, precision, quant, cache_type, context, chunk, .. } = request;
    let code = format!("{model:?} {precision:?} {quant:?} {cache_type:?} {context:?} {chunk:?}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("building");
    fs::create_dir_all(&folder).unwrap();
    let file = |target: &String| {
        let mut hasher = DefaultHasher::new();
        (target, &code).hash(&mut hasher);
        folder.join(format!("{:016x}", hasher.finish()))
    };
    // Everybody takes locks in this order. The system releases those of a process that is killed.
    let files: BTreeSet<PathBuf> = request.targets.iter().map(file).collect();
    let lock = |path: &PathBuf| {
        let file = File::create(path).unwrap();
        file.lock().unwrap();
        file
    };
    let _held: Vec<File> = files.iter().map(lock).collect();
    work()
}

/// Runs `check` on every item, as many at a time as there are cores.
pub(crate) fn each<T: Sync>(items: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(item);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
}

/// The folder of the committed fixtures.
pub(crate) fn fixtures() -> PathBuf {
    models().join("oracle/fixtures")
}

/// `models/` of the workspace.
pub(crate) fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models")
}

/// Returns a copy of a model's folder without weights, and with other words in config.json. With random weights and fewer layers
/// it compiles sooner.
pub(crate) fn changed(model: &Path, words: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(model).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "safetensors") {
            fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let config = folder.path().join("config.json");
    let mut text = fs::read_to_string(&config).unwrap();
    for (old, new) in words {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    fs::write(&config, text).unwrap();
    folder
}

/// Numbers that look random.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns a number below `most`.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % most
    }
}

/// The folder that `cargo xtask setup` fills.
pub(crate) fn toolchain() -> PathBuf {
    let named = env::var_os("MLXCEL_TOOLCHAIN").filter(|path| !path.is_empty());
    named.map_or_else(|| models().join("../.toolchain"), PathBuf::from)
}

/// Runs Python with the packages of a part of the toolchain, in `folder`.
pub(crate) fn python(part: &str, folder: &Path, arguments: &[&str], variables: &[(&str, &Path)]) {
    let python = toolchain().join(part).join("bin/python3");
    assert!(
        python.exists(),
        "found no {}, expected Python with packages\nhint: cargo xtask setup",
        python.display()
    );
    let output = Command::new(python)
        .args(arguments)
        .current_dir(folder)
        // Compiled once, though not beside the sources: Ray starts a Python for each worker.
        .env("PYTHONPYCACHEPREFIX", toolchain().join("pycache"))
        .env_remove("PYTHONDONTWRITEBYTECODE")
        // A proxy is for other machines.
        .env("NO_PROXY", "127.0.0.1")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    // What failed stands at the end of what pytest prints. It comes first, because logs of CI may be cut, and what the tests'
    // processes say is long.
    let [stdout, stderr] = text.each_ref().map(|text| last_lines(text, 80));
    assert!(output.status.success(), "{} failed:\n{stdout}\n{stderr}", arguments.join(" "));
    // pytest passes if it finds no test, too.
    eprint!("{}", text[0]);
}

/// Returns so many lines of a text at most, from its end.
fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(most)..].join("\n")
}

/// A program of the runtime, which cargo builds with the workspace.
pub(crate) fn program(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_mlxcel-compile")).with_file_name(name);
    let package = if name == "mlxcel-serve" { name } else { "mlxcel-runtime" };
    assert!(
        program.exists(),
        "found no {}, which the tests of the whole workspace build\nhint: cargo build -p {package} --bin {name}",
        program.display()
    );
    program
}

/// The folder of the store of all tests. It outlives them, so that only the first run of an emitter and a compiler starts the
/// latter.
pub(crate) fn store() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("store")
}

/// Elements of a panel of a fixture, so that its weights are packed in parts as large ones are. Matrices with rows of one length
/// then share a function, whatever their outputs are.
pub(crate) const OF_PANELS: usize = 1 << 9;

/// What builds a bundle of the checkpoint in `model`, with its weights, in f32. A GGUF file beside a config.json has only the
/// weights.
pub(crate) fn request(model: &Path, targets: &[&str]) -> Request {
    let folder = ModelSource::Folder(model.into());
    let (source, weights) = match gguf(model) {
        Some(file) if model.join("config.json").is_file() => (folder, WeightSource::Gguf(file)),
        Some(file) => (ModelSource::Gguf(file), WeightSource::Model),
        None => (folder, WeightSource::Model),
    };
    Request {
        model: source,
        targets: targets.iter().map(ToString::to_string).collect(),
        weights,
        precision: Precision::Float(Float::F32),
        quant: Quant::None,
        input_bits: None,
        cache_type: None,
        context: None,
        chunk: None,
        separate_kernels: false,
        pack_elements: None,
        // The code is the same, and the full run verifies it.
        is_lean: !is_full(),
        calibration: false,
        out: None,
        dump_dir: None,
        store: Some(Store::new(store(), None).unwrap()),
        compiler: CompilerLocation::from_env(),
        cancel: Cancel::new(),
    }
}

/// Builds into a folder of the test's own.
pub(crate) fn built(request: &Request) -> Built {
    try_built(request).unwrap_or_else(|words| panic!("{words}"))
}

/// The same, with a failure in words.
pub(crate) fn try_built(request: &Request) -> Result<Built, String> {
    let folder = tempfile::tempdir().unwrap();
    let request = Request { out: Some(folder.path().join("bundle")), ..request.clone() };
    let bundle = alone(&request, || build(&request, &mut |_| {})).map_err(|error| report(&error))?;
    Ok(Built { folder, bundle })
}

impl Built {
    /// An engine with the bundle's own weights.
    pub(crate) fn engine(&self, device: &str) -> Result<Loaded, Error> {
        engine(&self.bundle, None, &on(device))
    }

    /// The message of an engine that cannot be had, with the test's folder as `…`.
    pub(crate) fn refusal(&self, device: &str) -> String {
        let Err(error) = self.engine(device) else { panic!("it was loaded") };
        self.shown(&error)
    }

    /// A message with the test's folder as `…`.
    pub(crate) fn shown(&self, error: &(dyn std::error::Error + 'static)) -> String {
        report(error).replace(&self.folder.path().display().to_string(), "…")
    }
}

/// The logits after `prompt`, which goes to the device in pieces of these lengths, the last one repeated.
pub(crate) fn in_pieces(
    model: &mut dyn ModelRunner,
    prompt: &[u32],
    pieces: &[usize],
) -> Result<Vec<f32>, Error> {
    let limits = model.limits().clone();
    let pages: Vec<u32> = (1..).take(prompt.len().div_ceil(PAGE)).collect();
    assert!(limits.pools.iter().all(|pool| pages.len() <= pool.pages), "one sequence fits");
    let (mut start, mut lengths, mut length) = (0, pieces.iter(), 1);
    while start < prompt.len() {
        length = lengths.next().copied().unwrap_or(length).min(prompt.len() - start);
        let holds = |index: &usize| limits.steps[*index].rows_of_a_sequence() >= length;
        let size = (0..limits.steps.len()).filter(holds).min_by_key(|&index| limits.steps[index].rows);
        let rows = SequenceRows {
            tokens: prompt[start..start + length].to_vec(),
            start,
            pages: vec![&pages; limits.pools.len()],
            selected: vec![length - 1],
        };
        model.step(&Batch { size: size.unwrap(), sequences: vec![rows] })?;
        start += length;
    }
    model.logits(0)
}
