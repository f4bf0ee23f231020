//! How checkpoints store weights.
//!
//! A scheme turns the tensors of a checkpoint into a [`Storage`] for each weight of the description. Each has a file. What a
//! storage says is computed elsewhere: the emitter makes StableHLO of it.

mod coding;
mod expr;
mod find;
mod part;
mod recognize;
mod scheme;
pub(crate) mod schemes;
mod tensors;
mod whole;

pub use coding::{Coding, Numbers, OfGroups, Storage, StoredTensor};
pub use expr::Expr;
pub use find::CheckpointTensors;
pub use part::StoragePart;
pub use scheme::Scheme;
pub use schemes::{
    gguf::lists::{IQ4, TWICE_E2M1},
    modelopt::{HF_QUANT_CONFIG_FILE, with_hf_quant_config},
    numbers::FloatCodes,
};
pub use tensors::{StoredTensors, WrongStorage};
