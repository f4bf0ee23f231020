#![doc = include_str!("../README.md")]

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
