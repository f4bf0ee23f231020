//! What a model is: a value.
//!
//! A checkpoint's `config.json` names an architecture and its numbers. This crate turns it into a [`ModelConfig`]: a
//! plain description made of blocks of attention, mlp, norm and rope, with the name and shape of every weight. One
//! emitter interprets descriptions; nothing outside `family/` knows a Hugging Face key or tensor name.
//!
//! Invariants: a `ModelConfig` that came out of [`ModelConfig::from_json`] is consistent (head counts divide, sizes are
//! nonzero, every count derived from them fits), and whatever a config.json asks for that the description cannot
//! express exactly is refused by name, never approximated. A config.json from anywhere gives a description or an
//! [`Error`], never a panic.
//!
//! Start at [`ModelConfig`], then `family/llama.rs`. A new family is one file in `family/` and its line in
//! [`FAMILIES`]; a new preset is one file in `presets/`.

mod config;
mod error;
mod family;
mod feed_forward;
mod head;
mod nearest;
mod preset;
mod rope;
mod sentence;

pub use config::{
    Attention, Block, Branch, Embedding, Linear, ModelConfig, Norm, NormKind, Part, Spellings, Weight,
};
pub use error::Error;
pub use family::{FAMILIES, Family};
pub use feed_forward::{Activation, Experts, FeedForward, Mlp, Shared};
pub use head::{Head, Logits, Pooling, PoolingKind};
pub use nearest::nearest;
pub use preset::{PRESETS, Preset};
pub use rope::{Pairs, Rope, RopeScaling};
pub use sentence::Modules;
