//! Errors of a build.
//!
//! A message is one line, followed by indented lists of problems and a `hint:` line if there is a remedy.
//! [`mlxcel_artifacts::report`] renders it with its causes.

use std::{fmt::Display, io, path::PathBuf};

use mlxcel_artifacts::Quant;

use crate::{hub::error::HubError, input_bits::InputBits, kernels::KernelError, program::FormError};

/// Why a build failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No preset and no folder has this name.
    #[error(
        "found no model `{}`, expected a folder with a config.json or a preset such as {}\n\
         hint: `mlxcel-compile models` lists the presets",
        found.escape_default(), alternatives(nearest)
    )]
    UnknownModel {
        /// The name.
        found: String,
        /// The presets with the most similar names.
        nearest: Vec<&'static str>,
    },

    /// There is no folder at this path.
    #[error(
        "found no folder {}, expected one with a config.json\n\
         hint: `mlxcel-compile models` lists the presets, which need none",
        path.display()
    )]
    NoFolder {
        /// The path.
        path: PathBuf,
    },

    /// A model's folder has no config.json.
    #[error(
        "found no config.json in {}, expected a checkpoint in Hugging Face's format\n\
         hint: pass the folder that contains config.json and the weights to --model",
        folder.display()
    )]
    NoConfig {
        /// The folder.
        folder: PathBuf,
    },

    /// A file is in no form of a StableHLO program.
    #[error("{}: {problem}", path.display())]
    ProgramForm {
        /// The file.
        path: PathBuf,
        /// What was found, what was expected, and a hint.
        problem: FormError,
    },

    /// A program is larger than any.
    #[error(
        "{} has {found} bytes, expected a StableHLO program of at most {limit}\n\
         hint: pass weights as arguments, not as constants",
        path.display()
    )]
    LargeProgram {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// The most bytes.
        limit: u64,
    },

    /// A file of kernels cannot be linked.
    #[error("{}: {problem}", path.display())]
    Kernels {
        /// The file.
        path: PathBuf,
        /// What was found, what was expected, and a hint.
        problem: KernelError,
    },

    /// A file of kernels is larger than any.
    #[error(
        "{} has {found} bytes, expected kernels of at most {limit}\nhint: pass tables as operands of the calls",
        path.display()
    )]
    LargeKernels {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// The most bytes.
        limit: u64,
    },

    /// Kernels would take numbers that become others.
    #[error(
        "found --kernels with --narrow-f64, expected one of them\n\
         hint: kernels take the types of the program as it is; export it with f32"
    )]
    NarrowKernels,

    /// The compiler cannot read a program.
    #[error(
        "{}: found no valid StableHLO, expected some\n{reason}\nhint: if the file is whole, export it again",
        path.display()
    )]
    UnreadableProgram {
        /// The file.
        path: PathBuf,
        /// What the compiler says.
        reason: String,
    },

    /// A program that the compiler read is not understood.
    #[error(
        "cannot read what iree-compile made of {}\nhint: this is a bug in mlxcel-compile: report it with the file",
        path.display()
    )]
    Import {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<mlxcel_emitter::Error>,
    },

    /// The build was cancelled.
    #[error("cancelled; nothing was written")]
    Cancelled,

    /// A model's config.json gives no description.
    #[error("cannot describe the model of {origin}")]
    Model {
        /// Path of config.json, or name of the preset.
        origin: String,
        /// The cause.
        source: Box<mlxcel_models::Error>,
    },

    /// A file in an encoder's folder asks for an unsupported treatment of texts.
    #[error("{}: {problem}\nhint: {hint}", path.display())]
    EncoderOption {
        /// The file.
        path: PathBuf,
        /// Key, value, and the supported values.
        problem: String,
        /// The remedy.
        hint: &'static str,
    },

    /// SBOM or provenance could not be serialized.
    #[error(
        "cannot describe the bundle\nhint: this is a bug in mlxcel-compile: report it with the model's name"
    )]
    Document(#[source] Box<dyn std::error::Error + Send + Sync>),

    /// Chunks of prompts are empty or longer than the context.
    #[error(
        "--chunk is {found}, expected 1 to {context}, the context size\n\
         hint: omit --chunk for sizes that suit the target"
    )]
    Chunk {
        /// The size of a chunk.
        found: usize,
        /// The context size.
        context: usize,
    },

    /// Bits of inputs were given where no weights are in groups.
    #[error(
        "found --input-bits {0}, but no weights are in groups with quant {1}\n\
         hint: omit --input-bits, or choose --quant q4 or q4k"
    )]
    InputBits(InputBits, Quant),

    /// A cache type was given for a model without a cache.
    #[error(
        "found --cache-type, but {model} embeds whole texts and has no key/value cache\nhint: omit --cache-type"
    )]
    NoCache {
        /// The model.
        model: String,
    },

    /// A program could not be emitted.
    #[error("cannot emit the program of {model}")]
    Emit {
        /// The model.
        model: String,
        /// The cause.
        source: Box<mlxcel_emitter::Error>,
    },

    /// The bundle or the store could not be read or written.
    #[error(transparent)]
    Artifacts(#[from] mlxcel_artifacts::Error),

    /// The request names no target.
    #[error("found no target, expected at least one\nhint: `mlxcel-compile targets` lists the targets")]
    NoTarget,

    /// A model of the hub cannot be had.
    #[error(transparent)]
    Hub(Box<HubError>),

    /// No target has this name.
    #[error(
        "found no target `{}`, expected one such as {}\n\
         hint: `mlxcel-compile targets` lists the targets",
        found.escape_default(), alternatives(nearest)
    )]
    UnknownTarget {
        /// The name.
        found: String,
        /// The targets with the most similar names.
        nearest: Vec<&'static str>,
    },

    /// A target's file is invalid.
    #[error("targets/{name}.toml does not describe a target")]
    TargetFile {
        /// The target's name.
        name: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// A target cannot compute in the precision.
    #[error(
        "target {target} cannot compute in {found}, expected {expected}\n\
         hint: choose --precision {expected}, or build a separate bundle for this target"
    )]
    TargetPrecision {
        /// The target.
        target: String,
        /// The precision.
        found: String,
        /// The precisions it can compute in.
        expected: String,
    },

    /// A target cannot do what an option asks for.
    #[error(
        "target {target} cannot {what}, expected {expected}\nhint: build a separate bundle for this target"
    )]
    TargetLacks {
        /// The target.
        target: String,
        /// What it cannot do.
        what: &'static str,
        /// The option to give instead.
        expected: &'static str,
    },

    /// The context size is zero or beyond the model's limit.
    #[error(
        "context of {found} tokens, expected 1 to {limit} for {model}{}\nhint: choose --ctx-size between 1 and {limit}",
        unsupported(notes)
    )]
    Context {
        /// The model.
        model: String,
        /// The context size.
        found: usize,
        /// The largest context size.
        limit: usize,
        /// Features of the checkpoint that are not supported, and cause this limit.
        notes: Vec<String>,
    },

    /// iree-compile was not found.
    #[error("found no iree-compile at {searched}\n{SETUP}")]
    NoCompiler {
        /// The paths that were searched.
        searched: String,
    },

    /// iree-compile does not print its version.
    #[error(
        "`{} --version` printed `{}`, expected `IREE compiler version …`\n{SETUP}",
        path.display(), found.escape_default()
    )]
    CompilerUnreadable {
        /// The executable.
        path: PathBuf,
        /// The first line it printed.
        found: String,
    },

    /// iree-compile does not have the runtime's version.
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
         hint: its input and output are in {}; to repeat it: {command}",
        folder.display()
    )]
    Compile {
        /// The target.
        target: String,
        /// How the compiler ended: `failed with exit status 1`, `crashed with SIGSEGV`.
        outcome: String,
        /// Its first error lines.
        reason: String,
        /// The shell command that repeats the compilation.
        command: String,
        /// The folder with the compiler's input and log.
        folder: PathBuf,
    },

    /// iree-compile took too long.
    #[error("{what}: gave up after {seconds} s in iree-compile\nhint: {hint}")]
    TimeLimit {
        /// The target, or the program that was read.
        what: String,
        /// The limit.
        seconds: u64,
        /// The remedy.
        hint: &'static str,
    },

    /// A program is refused.
    #[error(transparent)]
    Program(Box<mlxcel_emitter::Error>),

    /// A file of tensors cannot be read, or does not fit a program.
    #[error(transparent)]
    Tensors(#[from] mlxcel_artifacts::TensorFileError),

    /// The tensors of --parameters do not fit a program.
    #[error("{}: {problem}\nhint: {hint}", path.display())]
    Parameters {
        /// The file.
        path: PathBuf,
        /// What was found and expected.
        problem: String,
        /// The remedy.
        hint: &'static str,
    },

    /// A golden does not fit a program.
    #[error(
        "--golden {golden}: {problem}\nhint: `mlxcel-compile explain` shows functions, arguments and results"
    )]
    Golden {
        /// The golden's files.
        golden: String,
        /// What was found and expected.
        problem: String,
    },

    /// A folder has no weights.
    #[error(
        "found no weights in {}, expected model.safetensors or model.safetensors.index.json\n\
         hint: pass --weights none or --weights random to compile without them",
        folder.display()
    )]
    NoWeights {
        /// The folder.
        folder: PathBuf,
    },

    /// A folder whose config.json names a scheme has no weights.
    #[error(
        "found no weights in {}, expected those of {scheme}, whose headers say how they are stored\n\
         hint: with --weights none they are not put into the bundle, but read",
        folder.display()
    )]
    NothingStored {
        /// The folder.
        folder: PathBuf,
        /// The scheme.
        scheme: &'static str,
    },

    /// A part of a split GGUF file is missing.
    #[error("found no {}, expected all {count} parts of the file\nhint: download the missing part", path.display())]
    NoPart {
        /// The part.
        path: PathBuf,
        /// How many parts there are.
        count: usize,
    },

    /// There is no file at this path.
    #[error("found no file {}, expected a GGUF file\nhint: check the path", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
    },

    /// A file of the checkpoint is damaged.
    #[error("{} is damaged: {reason}\nhint: download or copy the checkpoint again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found and expected.
        reason: String,
    },

    /// The checkpoint's tensors do not fit the model.
    #[error(
        "the weights in {} do not fit {model}:{}\n\
         hint: check that config.json and the weights belong to the same checkpoint",
        folder.display(), lines(problems)
    )]
    Weights {
        /// The folder.
        folder: PathBuf,
        /// The model.
        model: String,
        /// The problems, one per tensor.
        problems: Vec<String>,
    },

    /// Random weights cannot have this element type.
    #[error("random weights in {found}, expected f32, bf16 or f16")]
    RandomType {
        /// The element type in config.json.
        found: String,
    },

    /// The output folder of a checkpoint exists.
    #[error("{} exists, expected a new folder\nhint: pass another folder to --out, or remove this one", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
    },

    /// An operating system call failed.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried: `read`, `write`, `run` …
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// How many known names an error suggests in place of an unknown one.
pub(crate) const SUGGESTIONS: usize = 3;

/// The hint if the compiler is missing or unsuitable.
const SETUP: &str = "hint: `pip install iree-base-compiler==3.13.0` (in a checkout `cargo xtask setup`), or set MLXCEL_IREE_COMPILE to its path";

fn unsupported(notes: &[String]) -> String {
    notes.iter().map(|note| format!("\nnot supported: {note}")).collect()
}

impl From<HubError> for Error {
    fn from(error: HubError) -> Self {
        Self::Hub(error.into())
    }
}

impl Error {
    /// Wraps the error of a file or preset that describes no model, for `map_err`.
    pub(crate) fn model(origin: impl Display) -> impl FnOnce(mlxcel_models::Error) -> Self {
        move |source| Self::Model { origin: origin.to_string(), source: Box::new(source) }
    }

    /// Wraps an error of a document, for `map_err`.
    pub(crate) fn document(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Document(source.into())
    }

    /// Wraps a system error with what was tried on which path, for `map_err`.
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}

/// Returns `a, b or c`.
fn alternatives(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => names.concat(),
    }
}

fn lines(problems: &[String]) -> String {
    problems.iter().map(|problem| format!("\n  {problem}")).collect()
}
