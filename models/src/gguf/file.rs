//! What a GGUF file has beside its data.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What messages call the metadata.
pub(super) const METADATA: &str = "the GGUF metadata";
/// What tensors are missing from.
pub(super) const TENSORS: &str = "the GGUF file's tensors";

/// A tensor of a GGUF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufTensorInfo {
    /// Its name.
    pub name: String,
    /// ggml's name of the element type, such as `Q4_K`.
    pub ty: String,
    /// Whether elements are stored in blocks.
    pub in_blocks: bool,
    /// The sizes of its dimensions in elements, outermost first.
    pub shape: Vec<usize>,
}

/// The metadata of a file, its tensors, and the numbers of small ones.
#[derive(Debug, Clone)]
pub(super) struct File {
    /// The name of the architecture, with which its keys begin.
    pub(super) architecture: &'static str,
    pub(super) metadata: Map<String, Value>,
    pub(super) tensors: BTreeMap<String, GgufTensorInfo>,
    pub(super) numbers: BTreeMap<String, Vec<f32>>,
}
