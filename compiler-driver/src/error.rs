//! What can go wrong on the way to a bundle. A message is one line (lists of problems follow indented), then a `hint:`
//! line where there is a remedy; [`mlxcel_artifacts::report`] renders both together with the causes.

use std::{io, path::PathBuf};

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither a preset nor a folder.
    #[error(
        "found no model `{}`, expected a folder with a config.json or one of {known}\n\
         hint: --list-models lists the presets",
        found.escape_default()
    )]
    UnknownModel {
        /// What was asked for.
        found: String,
        /// The presets' names.
        known: String,
    },

    /// No folder at what can only be a path.
    #[error(
        "found no folder {}, expected one with a config.json\nhint: --list-models lists the presets, which need none",
        path.display()
    )]
    NoFolder {
        /// The path.
        path: PathBuf,
    },

    /// A folder without a config.json.
    #[error(
        "found no config.json in {}, expected a checkpoint in Hugging Face's form\n\
         hint: --model names the folder that config.json and the weights lie in",
        folder.display()
    )]
    NoConfig {
        /// The folder.
        folder: PathBuf,
    },

    /// The build was asked to end early.
    #[error("cancelled; nothing was written")]
    Cancelled,

    /// The model's description could not be made.
    #[error("cannot describe the model of {origin}")]
    Model {
        /// The config.json or the preset.
        origin: String,
        /// Why.
        source: Box<mlxcel_models::Error>,
    },

    /// A file beside an encoder asks for something else than what is done with texts.
    #[error("{}: {problem}\nhint: {hint}", path.display())]
    EncoderOption {
        /// The file.
        path: PathBuf,
        /// The key, its value, and what is supported.
        problem: String,
        /// What to do about it.
        hint: &'static str,
    },

    /// What a bundle says of its making could not be written down.
    #[error(
        "cannot describe the bundle\nhint: this is a defect of the program: report it with the model's name"
    )]
    Document(#[source] Box<dyn std::error::Error + Send + Sync>),

    /// Prompts would go through in parts of another size than the context allows.
    #[error(
        "--chunk is {found}, expected 1 to {context}: the context\nhint: leave it out for sizes that suit the target"
    )]
    Chunk {
        /// What was asked for.
        found: usize,
        /// The context.
        context: usize,
    },

    /// The type of a cache was asked for, and the model has none.
    #[error(
        "found --kv, but {model} makes embeddings of whole texts: it has no key/value cache\nhint: leave out --kv"
    )]
    NoCache {
        /// The model.
        model: String,
    },

    /// The program could not be emitted.
    #[error("cannot emit the program of {model}")]
    Emit {
        /// The model.
        model: String,
        /// Why.
        source: Box<mlxcel_emitter::Error>,
    },

    /// Bundle or store could not be read or written.
    #[error(transparent)]
    Artifacts(#[from] mlxcel_artifacts::Error),

    /// No target was asked for.
    #[error("found no target, expected at least one\nhint: --list-targets says what each target is")]
    NoTarget,

    /// No target has that name.
    #[error(
        "found no target `{}`, expected one of {known}\n\
         hint: --list-targets says what each target is",
        found.escape_default()
    )]
    UnknownTarget {
        /// What was asked for.
        found: String,
        /// Every target's name.
        known: String,
    },

    /// A target's file does not describe a target.
    #[error("targets/{name}.toml does not describe a target")]
    TargetFile {
        /// The target's name.
        name: String,
        /// Why.
        source: Box<toml::de::Error>,
    },

    /// The target does not compile in this precision.
    #[error(
        "target {target} cannot compute in {found}, expected {expected}\n\
         hint: choose --precision {expected}, or make a bundle of its own for this target"
    )]
    TargetPrecision {
        /// The target.
        target: String,
        /// The precision.
        found: String,
        /// Those it can.
        expected: String,
    },

    /// The target cannot quantise weights.
    #[error(
        "target {target} cannot quantise weights, expected --quant none\n\
         hint: make a bundle of its own for this target"
    )]
    TargetQuant {
        /// The target.
        target: String,
    },

    /// The target cannot hold a quantised cache.
    #[error(
        "target {target} cannot load 8-bit numbers, expected --kv f32\n\
         hint: make a bundle of its own for this target"
    )]
    TargetKv {
        /// The target.
        target: String,
    },

    /// The context is empty or longer than the model's.
    #[error(
        "context of {found} tokens, expected 1 to {limit} for {model}{}\nhint: choose --ctx between 1 and {limit}",
        left_out(notes)
    )]
    Context {
        /// The model.
        model: String,
        /// What was asked for.
        found: usize,
        /// The longest.
        limit: usize,
        /// What the description leaves out: why a checkpoint that offers more has this limit.
        notes: Vec<String>,
    },

    /// iree-compile is nowhere.
    #[error("found no iree-compile at {looked}\n{SETUP}")]
    NoCompiler {
        /// Where it was looked for.
        looked: String,
    },

    /// iree-compile does not say what it is.
    #[error(
        "`{} --version` printed `{}`, expected `IREE compiler version …`\n{SETUP}",
        path.display(), found.escape_default()
    )]
    CompilerUnreadable {
        /// The executable.
        path: PathBuf,
        /// What it printed first.
        found: String,
    },

    /// iree-compile has another version than the runtime.
    #[error("{} is version {}, expected {expected}\n{SETUP}", path.display(), found.escape_default())]
    CompilerVersion {
        /// The executable.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version of the runtime.
        expected: &'static str,
    },

    /// iree-compile failed.
    #[error(
        "iree-compile {outcome} for target {target}: {reason}\n\
         hint: its input and all it printed are in {}; to repeat it: {command}",
        folder.display()
    )]
    Compile {
        /// The target.
        target: String,
        /// How it ended: `failed with exit status 1`, `crashed with SIGSEGV`.
        outcome: String,
        /// Its first error lines.
        reason: String,
        /// The command line that repeats it.
        command: String,
        /// The folder with the MLIR and all that it printed.
        folder: PathBuf,
    },

    /// There are no weights where they were expected.
    #[error(
        "found no weights in {}, expected model.safetensors or model.safetensors.index.json\n\
         hint: choose --weights none or --weights random to compile without them",
        folder.display()
    )]
    NoWeights {
        /// The folder.
        folder: PathBuf,
    },

    /// A file of the checkpoint is not what its name says.
    #[error("{} is damaged: {reason}\nhint: download or copy the checkpoint again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found and expected.
        reason: String,
    },

    /// The checkpoint's tensors are not the model's.
    #[error(
        "the weights in {} do not fit {model}:{}\n\
         hint: check that config.json and weights are of one checkpoint",
        folder.display(), lines(problems)
    )]
    Weights {
        /// The folder.
        folder: PathBuf,
        /// The model.
        model: String,
        /// Every problem, one tensor each.
        problems: Vec<String>,
    },

    /// Random weights cannot be written in this type.
    #[error("random weights in {found}, expected f32, bf16 or f16")]
    RandomType {
        /// The type the config names.
        found: String,
    },

    /// Something is where a checkpoint should be written.
    #[error("{} exists, expected nothing there\nhint: name another folder, or remove this one", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
    },

    /// The system refused something.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// `read`, `write`, `run` …
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// The remedy where the compiler is not the right one.
const SETUP: &str = "hint: cargo xtask setup installs the right one, MLXCEL_IREE_COMPILE names another";

fn left_out(notes: &[String]) -> String {
    notes.iter().map(|note| format!("\nnot supported: {note}")).collect()
}

impl Error {
    /// For `map_err` of what makes a document.
    pub(crate) fn document(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Document(source.into())
    }

    /// Puts the system's answer together with what was tried on which file, for `map_err`.
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}

fn lines(problems: &[String]) -> String {
    problems.iter().map(|problem| format!("\n  {problem}")).collect()
}
