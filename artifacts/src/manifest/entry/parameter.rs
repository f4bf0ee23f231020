//! Parameters of modules, and how they are packed.

use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use crate::{digest::Digest, tensor::tensor_bytes};

/// A tensor of the weights that a module reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The tensor's name in the checkpoint, and its key in the scope [`PARAMETER_SCOPE`](super::PARAMETER_SCOPE).
    pub name: String,
    /// The element type in the checkpoint.
    pub dtype: Dtype,
    /// The shape in the checkpoint.
    pub shape: Vec<usize>,
    /// The digest of the tensor's bytes in the checkpoint, if the bundle was built with weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Digest>,
    /// The tensor's names in other checkpoints of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// A step of packing the checkpoint's tensors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackStep {
    /// The packing module's function from sources to results. `None` copies the one source to the one result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Names of the checkpoint's tensors.
    pub sources: Vec<String>,
    /// The tensors that the target's module reads.
    pub results: Vec<Parameter>,
}

impl Parameter {
    /// Returns a parameter without digest and aliases.
    #[must_use]
    pub fn new(name: impl Into<String>, dtype: Dtype, shape: &[usize]) -> Self {
        Self { name: name.into(), dtype, shape: shape.to_vec(), source: None, aliases: vec![] }
    }

    /// Returns the bytes of its data, or `None` if they overflow or are not whole bytes.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        tensor_bytes(self.dtype, &self.shape)
    }
}
