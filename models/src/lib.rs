#![doc = include_str!("../README.md")]

mod aliases;
mod block;
mod config;
mod error;
mod family;
mod feed_forward;
mod gguf;
mod head;
mod json;
mod layers;
mod nearest;
mod preset;
mod rope;
mod sentence;
mod storage;

pub use aliases::Aliases;
pub use block::{Attention, Block, Branch};
pub use config::ModelConfig;
pub use error::Error;
pub use family::{FAMILIES, Family};
pub use feed_forward::{Activation, Experts, FeedForward, Mlp, Shared};
pub use gguf::{GgufModel, GgufTensorInfo, SmallFiles};
pub use head::{Head, Logits, Pooling, PoolingKind};
pub use layers::{Embedding, Linear, Norm, NormKind, Part, Weight};
pub use nearest::nearest;
pub use preset::{PRESETS, Preset};
pub use rope::{Pairs, Rope, RopeScaling};
pub use sentence::Modules;
pub use storage::{
    CheckpointTensors, Coding, Expr, FloatCodes, HF_QUANT_CONFIG_FILE, IQ4, Numbers, OfGroups, Scheme,
    Storage, StoragePart, StoredTensor, StoredTensors, TWICE_E2M1, WrongStorage, with_hf_quant_config,
};
