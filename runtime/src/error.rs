//! What can go wrong when a bundle is run. A message is one line, then `hint:` lines where there is a remedy.

use std::{error, io, path::PathBuf};

use mlxcel_artifacts::Driver;

/// The cause of an error, from a library underneath.
pub type Cause = Box<dyn error::Error + Send + Sync>;

/// What can go wrong when a bundle is run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bundle cannot be opened, or has nothing for this machine.
    #[error(transparent)]
    Bundle(#[from] mlxcel_artifacts::Error),

    /// This crate was built without its feature `iree`.
    #[error("built without iree\nhint: build mlxcel-runtime with its default features")]
    BuiltWithoutIree,

    /// The bundle was not compiled for the kind of device asked for.
    #[error(
        "no target of this bundle is for the device {device}: found {found}, expected one of the driver {driver}\n\
         hint: leave out --device, or compile the bundle again with --target {}",
        target_of(*driver)
    )]
    NoTargetFor {
        /// What was asked for: `cuda`.
        device: String,
        /// The driver that it needs.
        driver: Driver,
        /// The bundle's targets with their drivers: `cpu (local)`.
        found: String,
    },

    /// The bundle's targets do not run on this machine.
    #[error(
        "no target of this bundle runs {place}{}\nhint: {hint}",
        reasons.iter().map(|(target, reason)| format!("\n  {target}: {reason}")).collect::<String>()
    )]
    NoTarget {
        /// `here`, or `on local-task` where that was asked for.
        place: String,
        /// For each target that was tried its name and why it does not run.
        reasons: Vec<(String, String)>,
        /// The remedy.
        hint: String,
    },

    /// No device answers to the name given.
    #[error("cannot use the device {device}\nhint: {hint}")]
    Device {
        /// What was asked for: `cuda:1`.
        device: String,
        /// The remedy.
        hint: String,
        /// The driver's answer.
        source: Cause,
    },

    /// There is no room for the packed weights.
    #[error("cannot keep the packed weights")]
    Packed {
        /// The system's answer.
        source: io::Error,
    },

    /// IREE failed.
    #[error("cannot {doing}")]
    Iree {
        /// What it was to do: `load the module`, `run prefill_128`.
        doing: String,
        /// IREE's answer.
        source: Cause,
    },

    /// The bundle does not have what a session needs.
    #[error("the bundle does not fit this program: {0}\nhint: compile the bundle again with this version")]
    Unsupported(String),

    /// The bundle makes embeddings.
    #[error(
        "{model} makes embeddings of texts and does not continue them\nhint: mlxcel-run --embed gives them"
    )]
    OnlyEmbedding {
        /// The model.
        model: String,
    },

    /// The bundle makes no embeddings.
    #[error("{model} continues texts and makes no embeddings of them\nhint: leave out --embed")]
    NoEmbedding {
        /// The model.
        model: String,
    },

    /// The context asked for is not one that the bundle has.
    #[error(
        "context of {asked} tokens, expected 1 to {context}\n\
         hint: the bundle was compiled for {context}: compile it again with another --ctx-size"
    )]
    Context {
        /// Tokens asked for.
        asked: usize,
        /// Tokens that the bundle was compiled for.
        context: usize,
    },

    /// Nothing to append.
    #[error("the prompt has no tokens, expected at least one")]
    NoTokens,

    /// An id that the model does not know.
    #[error(
        "token {} of the prompt has the id {token}, expected 0 to {}\n\
         hint: give ids of the model's own tokenizer",
        index + 1,
        vocab.saturating_sub(1)
    )]
    TokenOutOfRange {
        /// The id.
        token: u32,
        /// Its place among the tokens given, from 0.
        index: usize,
        /// Ids that the model knows.
        vocab: usize,
    },

    /// More tokens than the cache has room for.
    #[error(
        "{tokens} tokens at position {position}, expected at most {}: the context is {context}\n\
         hint: shorten the prompt, raise --ctx-size if it was given, or compile the bundle again with a larger --ctx-size",
        context.saturating_sub(*position)
    )]
    TooLong {
        /// Tokens to append.
        tokens: usize,
        /// Tokens in the cache.
        position: usize,
        /// Tokens that the cache holds.
        context: usize,
    },

    /// A benchmark that the context has no room for.
    #[error(
        "{case} needs {needed} positions, the context has {context}\n\
         hint: choose less, raise --ctx-size if it was given, or compile the bundle with a larger --ctx-size"
    )]
    BenchTooLong {
        /// What was to be measured.
        case: String,
        /// Positions that it takes.
        needed: usize,
        /// Tokens that the cache holds.
        context: usize,
    },

    /// Somebody ended it.
    #[error("interrupted")]
    Cancelled,

    /// The session cannot say where its time goes.
    #[error("{device} keeps no profile of dispatches\nhint: choose --device local-task")]
    NoProfile {
        /// What it runs on.
        device: String,
    },

    /// Two models that are to be compared have other tokens.
    #[error(
        "the bundle has a vocabulary of {found} tokens, its reference one of {expected}\n\
         hint: compare bundles of the same checkpoint"
    )]
    OtherVocabulary {
        /// The bundle's.
        found: usize,
        /// The reference's.
        expected: usize,
    },

    /// A window of tokens that there is no room for, or in which nothing is predicted.
    #[error(
        "windows of {window} token{}, expected 2 to {context}\nhint: choose another --window",
        if *window == 1 { "" } else { "s" }
    )]
    Window {
        /// Tokens asked for.
        window: usize,
        /// Tokens that the cache holds.
        context: usize,
    },

    /// A text in which nothing is predicted.
    #[error(
        "the text has {tokens} token{}, expected at least 2\nhint: choose a longer text, or leave out --tokens",
        if *tokens == 1 { "" } else { "s" }
    )]
    ShortText {
        /// Its length.
        tokens: usize,
    },

    /// A rewind that goes forward.
    #[error("cannot rewind to {target}, expected at most {position}")]
    Rewind {
        /// The position asked for.
        target: usize,
        /// The session's position.
        position: usize,
    },

    /// Logits were asked for before any token.
    #[error("no logits: no token was appended since the session's start or its last rewind")]
    NoLogits,

    /// The model's answer is not a distribution.
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

    /// Sampling settings that mean nothing.
    #[error("{name} is {value}, expected {expected}")]
    BadSampling {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: f32,
        /// What it may be.
        expected: &'static str,
    },

    /// A vmfb whose digest is right and whose parts are not: it was damaged before the bundle was made.
    #[error(
        "the vmfb of target {target} is damaged: {reason}, expected whole parts\n\
         hint: its digest is that of the damaged one: compile the bundle again, and look at what made this one"
    )]
    Vmfb {
        /// The target.
        target: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The bundle has no weights and none were given.
    #[error(
        "{} carries no weights\nhint: name the checkpoint's folder, or a safetensors file, with --weights",
        .0.display()
    )]
    NoWeights(PathBuf),

    /// Weights were given to be packed into a bundle that carries others.
    #[error(
        "{} carries other weights than those given, expected none or the same\n\
         hint: leave out --weights, or compile the bundle again with these",
        .0.display()
    )]
    OtherWeights(PathBuf),

    /// A folder without weights.
    #[error(
        "found no weights in {}, expected model.safetensors or model.safetensors.index.json\n{WEIGHTS}",
        .0.display()
    )]
    NoWeightsInFolder(PathBuf),

    /// A path to weights with nothing there.
    #[error("found nothing at {}, expected a folder with weights or a safetensors file\n{WEIGHTS}", .0.display())]
    NoSuchWeights(PathBuf),

    /// A file in place of which Git LFS left a pointer.
    #[error(
        "{} is a pointer of git lfs, expected the tensors\n\
         hint: fetch the files of the checkpoint with git lfs pull",
        .0.display()
    )]
    LfsPointer(PathBuf),

    /// A file that is damaged or not what its name says.
    #[error("{} is damaged: {reason}\nhint: download or copy the checkpoint again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// Two files that both have a tensor.
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

    /// Weights of another model than the bundle's.
    #[error(
        "the weights do not fit the bundle: {} of {expected} tensors{}\n\
         hint: give the checkpoint that the bundle was compiled from, or compile it for this one",
        problems.len(),
        some_of(problems)
    )]
    WeightsMismatch {
        /// One line for each tensor that is missing or of another type.
        problems: Vec<String>,
        /// Tensors that the bundle needs.
        expected: usize,
    },

    /// A file of the checkpoint that is not JSON, or not of its form.
    #[error("cannot understand {file}\nhint: take the checkpoint's own file")]
    Json {
        /// The file: `generation_config.json in my.bundle`.
        file: String,
        /// Where and why.
        source: serde_json::Error,
    },

    /// There is no tokenizer where one was looked for.
    #[error(
        "no tokenizer in {0}: expected a tokenizer.json\n\
         hint: name a checkpoint's folder that has one with --weights, or compile the bundle from such a folder or with \
         --weights FOLDER\n\
         hint: without a tokenizer, give mlxcel-run token ids with --tokens"
    )]
    NoTokenizer(String),

    /// A tokenizer.json that is none.
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
    #[error("cannot {doing}")]
    Tokenizer {
        /// What it was to do.
        doing: &'static str,
        /// The tokenizer's answer.
        source: Cause,
    },

    /// The checkpoint says nothing of how a chat is written.
    #[error(
        "no chat template in {0}: expected a chat_template.jinja, or one in a tokenizer_config.json\n\
         hint: leave out --chat and --system to continue the text as it is"
    )]
    NoChatTemplate(String),

    /// The chat template cannot be parsed or refuses the chat.
    #[error(
        "the chat template failed: {0}\n\
         hint: without --chat and --system a prompt of -p is continued as it is"
    )]
    ChatTemplate(String),

    /// Reading failed.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// The first of many lines, and how many more there are.
fn some_of(lines: &[String]) -> String {
    const MOST: usize = 8;
    let mut text: String = lines.iter().take(MOST).map(|line| format!("\n  {line}")).collect();
    if let Some(more) = lines.len().checked_sub(MOST).filter(|more| *more > 0) {
        text += &format!("\n  and {more} more");
    }
    text
}

/// The remedy for a path without weights.
const WEIGHTS: &str = "hint: name the checkpoint's folder, or a safetensors file, with --weights";

impl Error {
    /// For `map_err` of a read.
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Read { path, source }
    }

    /// For `map_err` of a call of IREE.
    #[cfg(feature = "iree")]
    pub(crate) fn iree<E: Into<Cause>>(doing: impl FnOnce() -> String) -> impl FnOnce(E) -> Self {
        |source| Self::Iree { doing: doing(), source: source.into() }
    }

    /// For `map_err` of a write of packed weights.
    #[cfg(feature = "iree")]
    pub(crate) fn packed(source: io::Error) -> Self {
        Self::Packed { source }
    }
}

/// The target that always goes with a driver.
fn target_of(driver: Driver) -> &'static str {
    match driver {
        Driver::Local => "cpu",
        Driver::Cuda => "cuda",
        Driver::Vulkan => "vulkan",
    }
}
