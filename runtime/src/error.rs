//! Errors of running a bundle. A message is one line, then `hint:` lines with the remedy.

use std::{
    error, io,
    path::{Path, PathBuf},
};

use bytesize::ByteSize;
use mlxcel_artifacts::Driver;

mod calibration;
mod engine;
mod hints;
mod lost;
mod measure;
mod program;

use hints::{first_lines, folder_of, portable_target, read_hint};

pub use calibration::CalibrationError;
pub use engine::{EngineError, SharedCause};
pub use measure::MeasureError;
pub use program::ProgramError;

/// The cause of an error, from a library underneath.
pub type Cause = Box<dyn error::Error + Send + Sync>;

/// An error of running a bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bundle cannot be opened, or has nothing for this machine.
    #[error(transparent)]
    Bundle(#[from] mlxcel_artifacts::Error),

    /// The engine refuses a request, or ends it without an answer.
    #[error(transparent)]
    Engine(#[from] EngineError),

    /// A measurement cannot be made.
    #[error(transparent)]
    Measure(#[from] MeasureError),

    /// A function of a program is not called as it is declared.
    #[error(transparent)]
    Program(#[from] ProgramError),

    /// Weights cannot be rounded by a text.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),

    /// Another process keeps in this folder what it collects of the same text.
    #[error("another process calibrates this bundle in {}, expected none\nhint: wait for it, then repeat the command", .0.display())]
    CalibrationInUse(PathBuf),

    /// This crate was built without its feature `iree`.
    #[error(
        "built without the IREE runtime\n\
         hint: build with the feature iree: cargo build --release -p mlxcel-runtime --features iree"
    )]
    BuiltWithoutIree,

    /// The bundle has no target for the kind of device that was requested.
    #[error(
        "no target of this bundle is for the device {device}: found {found}, expected one of the driver {driver}\n\
         hint: leave out --device, or compile the bundle again with --target {}",
        portable_target(*driver)
    )]
    NoTargetFor {
        /// The device requested: `cuda`.
        device: String,
        /// The driver that it needs.
        driver: Driver,
        /// The bundle's targets with their drivers: `cpu (local)`.
        found: String,
    },

    /// None of the bundle's targets runs on this machine.
    #[error(
        "no target of this bundle runs {place}{}\nhint: {hint}",
        reasons.iter().map(|(target, reason)| format!("\n  {target}: {reason}")).collect::<String>()
    )]
    NoTarget {
        /// `here`, or `on local-task` if that device was requested.
        place: String,
        /// The name of each target that was tried, and why it does not run.
        reasons: Vec<(String, String)>,
        /// The remedy.
        hint: String,
    },

    /// The requested device cannot be opened.
    #[error("cannot use the device {device}\nhint: {hint}")]
    Device {
        /// The device requested: `cuda:1`.
        device: String,
        /// The remedy.
        hint: String,
        /// The driver's answer.
        source: Cause,
    },

    /// Memory for a file of the bundle, or for weights that are packed at load, cannot be allocated.
    #[error("cannot allocate {bytes} bytes for {purpose}\nhint: {hint}")]
    Allocate {
        /// The use of the memory: `the packed weights`.
        purpose: &'static str,
        /// The size requested.
        bytes: usize,
        /// The remedy.
        hint: &'static str,
        /// The system's answer.
        source: io::Error,
    },

    /// The packed weights cannot be written.
    #[error("cannot write the packed weights\nhint: df -h shows whether the disk of the bundle is full")]
    WritePacked {
        /// The system's answer.
        source: io::Error,
    },

    /// IREE failed.
    #[error(
        "cannot {doing}\n\
         hint: try --device local-sync; if that fails too, compile the bundle again with this version"
    )]
    Iree {
        /// The operation that failed: `load the module`, `run prefill_128`.
        doing: String,
        /// IREE's answer.
        source: Cause,
    },

    /// The bundle's calls are those of an older format.
    #[error(
        "the bundle has format {found}, which no longer runs, expected at least {expected}\n\
         hint: compile it again with `mlxcel-compile`"
    )]
    OldFormat {
        /// The bundle's format.
        found: u32,
        /// The oldest format that runs.
        expected: u32,
    },

    /// The bundle lacks something that running it needs.
    #[error("the bundle does not fit this program: {0}\nhint: compile the bundle again with this version")]
    Unsupported(String),

    /// A model that continues texts was requested of a bundle that makes embeddings.
    #[error(
        "{model} makes embeddings of texts and does not continue them\n\
         hint: mlxcel-run BUNDLE --embed -p TEXT writes an embedding"
    )]
    OnlyEmbedding {
        /// The model.
        model: String,
    },

    /// Embeddings were requested of a bundle that continues texts.
    #[error("{model} continues texts and makes no embeddings of them\nhint: leave out --embed")]
    NoEmbedding {
        /// The model.
        model: String,
    },

    /// The requested context is larger than the bundle's.
    #[error(
        "context of {asked} tokens, expected 1 to {context}\n\
         hint: the bundle was compiled for {context}: leave out --ctx-size, or compile it again with a larger one"
    )]
    ContextSize {
        /// Tokens requested.
        asked: usize,
        /// Tokens that the bundle was compiled for.
        context: usize,
    },

    /// There are no tokens to append.
    #[error(
        "the prompt has no tokens, expected at least one\n\
         hint: give a text with -p, -f or on standard input, or ids with --tokens"
    )]
    NoTokens,

    /// A token id is outside the model's vocabulary.
    #[error(
        "token {} of the prompt has the id {token}, expected 0 to {}\n\
         hint: give ids of the model's own tokenizer",
        index + 1,
        vocab.saturating_sub(1)
    )]
    TokenOutOfRange {
        /// The id.
        token: u32,
        /// The index of the token in the prompt, from 0.
        index: usize,
        /// The size of the vocabulary.
        vocab: usize,
    },

    /// The tokens do not fit the context.
    #[error(
        "{tokens} tokens, expected at most {context}, the size of the context\n\
         hint: shorten the prompt, raise --ctx-size if it was given, or compile the bundle again with a larger one"
    )]
    TooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens that a sequence can have.
        context: usize,
    },

    /// The cache has no room for a page.
    #[error(
        "a cache of {found}, expected at least {expected}, for a page of 64 positions\n\
         hint: give a larger --cache-size, or free memory"
    )]
    CacheTooSmall {
        /// The size allowed.
        found: ByteSize,
        /// The size of a page of each pool, and of one for padding.
        expected: ByteSize,
    },

    /// A text to embed is refused.
    #[error("text {}: {reason}", index + 1)]
    Text {
        /// The index of the text, from 0.
        index: usize,
        /// The reason, which ends with a hint.
        reason: Box<Error>,
    },

    /// The system gives no memory.
    #[error("cannot get {} of memory\nhint: end other programs that need memory", ByteSize(*bytes as u64))]
    Memory {
        /// The bytes asked for.
        bytes: usize,
        /// The system's answer.
        source: io::Error,
    },

    /// The operation was cancelled.
    #[error("interrupted")]
    Cancelled,

    /// The file of a timeline cannot be written.
    #[error(
        "cannot write the timeline {}\nhint: name a file in a folder that exists and may be written, on a disk with room",
        path.display()
    )]
    WriteTrace {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },

    /// The device does not record a profile.
    #[error("{device} keeps no profile of dispatches\nhint: choose --device local-task")]
    NoProfile {
        /// The device.
        device: String,
    },

    /// Logits were requested of a row that the last step did not select.
    #[error(
        "no logits: the last step did not select that row\nhint: select it, and read its logits after the step"
    )]
    NoLogits,

    /// The logits are not a distribution.
    #[error(
        "the logit of token {token} is {value}, expected a number\n\
         hint: check the weights, or compile the bundle with --precision f32"
    )]
    BadLogit {
        /// The first such token.
        token: usize,
        /// Its logit.
        value: f32,
    },

    /// A sampling setting is out of its range.
    #[error("{name} is {value}, expected {expected}\nhint: {hint}")]
    BadSampling {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: f32,
        /// The range.
        expected: &'static str,
        /// The remedy.
        hint: &'static str,
    },

    /// A vmfb has the digest of the manifest, but damaged parts: it was damaged before the bundle was made.
    #[error(
        "the vmfb of target {target} is damaged: {reason}, expected whole parts\n\
         hint: it was damaged before its digest was taken: compile the bundle again, and check the machine that made it"
    )]
    Vmfb {
        /// The target.
        target: String,
        /// The damage.
        reason: String,
    },

    /// The bundle carries no weights and none were given.
    #[error(
        "{} carries no weights\nhint: name the checkpoint's folder, or a safetensors file, with --weights",
        .0.display()
    )]
    NoWeights(PathBuf),

    /// The weights to pack differ from those that the bundle carries.
    #[error(
        "{} carries other weights than those given, expected none or the same\n\
         hint: leave out --weights, or compile the bundle again with these",
        .0.display()
    )]
    OtherWeights(PathBuf),

    /// A folder has no weights.
    #[error(
        "found no weights in {}, expected model.safetensors or model.safetensors.index.json\n{WEIGHTS_HINT}",
        .0.display()
    )]
    NoWeightsInFolder(PathBuf),

    /// Nothing is at the path of the weights.
    #[error("found nothing at {}, expected a folder with weights or a safetensors file\n{WEIGHTS_HINT}", .0.display())]
    NoSuchWeights(PathBuf),

    /// The path of a safetensors file is a folder, a pipe or a device.
    #[error("{} is not a regular file, expected a safetensors file\n{WEIGHTS_HINT}", .0.display())]
    NotAFile(PathBuf),

    /// Git LFS left a pointer in place of a file.
    #[error(
        "{} is a pointer of Git LFS, expected the tensors\n\
         hint: run git lfs pull in {}",
        .0.display(),
        folder_of(.0).display()
    )]
    LfsPointer(PathBuf),

    /// A file is damaged, or does not have the format of its name.
    #[error("{} is damaged: {reason}\nhint: download or copy the checkpoint again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        reason: String,
    },

    /// Two files have the same tensor.
    #[error(
        "tensor `{}` is both in {} and in {}, expected it in one\nhint: download or copy the checkpoint again",
        name.escape_default(), first.display(), second.display()
    )]
    DuplicateTensor {
        /// The tensor.
        name: String,
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },

    /// The weights are of another model than the bundle.
    #[error(
        "the weights do not fit the bundle: {} of {expected} tensors{}\n\
         hint: give the checkpoint that the bundle was compiled from, or compile it for this one",
        problems.len(),
        first_lines(problems)
    )]
    WeightsMismatch {
        /// One line for each tensor that is missing or of another type.
        problems: Vec<String>,
        /// Tensors that the bundle needs.
        expected: usize,
    },

    /// A file of the checkpoint is not JSON, or lacks the expected fields.
    #[error("cannot understand {file}\nhint: take the checkpoint's own file")]
    Json {
        /// The file: `generation_config.json in my.bundle`.
        file: String,
        /// The parser's answer.
        source: serde_json::Error,
    },

    /// A text file of the checkpoint is not UTF-8.
    #[error("{file} is not UTF-8 at offset {offset}, expected text\nhint: take the checkpoint's own file")]
    NotUtf8 {
        /// The file: `chat_template.jinja in my.bundle`.
        file: String,
        /// The first byte that is not UTF-8.
        offset: usize,
    },

    /// Neither the bundle nor the folder of the weights has a tokenizer.
    #[error(
        "no tokenizer in {0}: expected a tokenizer.json\n\
         hint: name a checkpoint's folder that has one with --weights, or compile the bundle from such a folder or with \
         --weights FOLDER\n\
         hint: without a tokenizer, give mlxcel-run token ids with --tokens"
    )]
    NoTokenizer(String),

    /// A tokenizer.json cannot be parsed.
    #[error(
        "cannot understand {file}\n\
         hint: take the checkpoint's own tokenizer.json, or give token ids with --tokens"
    )]
    BadTokenizer {
        /// The file: `tokenizer.json in my.bundle`.
        file: String,
        /// The tokenizer's answer.
        source: Cause,
    },

    /// The tokenizer failed.
    #[error(
        "cannot {doing}\nhint: take the checkpoint's own tokenizer.json, or give token ids with --tokens"
    )]
    Tokenizer {
        /// The operation that failed.
        doing: &'static str,
        /// The tokenizer's answer.
        source: Cause,
    },

    /// The checkpoint has no chat template.
    #[error(
        "no chat template in {0}: expected a chat_template.jinja, or one in a tokenizer_config.json\n\
         hint: leave out --chat and --system to continue the text as it is"
    )]
    NoChatTemplate(String),

    /// The tokens of a tokenizer have no bytes of their own.
    #[error(
        "the tokenizer's decoder is {found}, expected ByteLevel, ByteFallback, Metaspace or Replace\nhint: generate without a grammar"
    )]
    NoVocabulary {
        /// The decoder's type.
        found: String,
    },

    /// The chat template cannot be parsed, or refuses the chat.
    #[error(
        "the chat template failed: {0}\nhint: leave out --chat and --system to continue the text of -p as it is"
    )]
    ChatTemplate(String),

    /// A file or folder cannot be read.
    #[error("cannot read {}\nhint: {}", path.display(), read_hint(path, source))]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl Error {
    /// Makes [`Error::Read`] of an I/O error, for `map_err`.
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Read { path, source }
    }

    /// Makes [`Error::Iree`] of an error of IREE, for `map_err`.
    #[cfg(feature = "iree")]
    pub(crate) fn iree<E: Into<Cause>>(doing: impl FnOnce() -> String) -> impl FnOnce(E) -> Self {
        |source| Self::Iree { doing: doing(), source: source.into() }
    }

    /// Makes [`Error::WriteTrace`] of an I/O error, for `map_err`.
    pub(crate) fn write_trace(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::WriteTrace { path: path.clone(), source }
    }

    /// Makes [`Error::WritePacked`] of an I/O error, for `map_err`.
    #[cfg(feature = "iree")]
    pub(crate) fn write_packed(source: io::Error) -> Self {
        Self::WritePacked { source }
    }
}

/// The remedy for a path without weights.
const WEIGHTS_HINT: &str = "hint: name the checkpoint's folder, or a safetensors file, with --weights";

#[cfg(test)]
mod tests;
