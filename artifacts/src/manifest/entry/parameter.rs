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
    /// The packing module's function from sources to results. `None` makes results by [`calls`](Self::calls), or copies the one
    /// source to the one result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Names of the checkpoint's tensors.
    pub sources: Vec<String>,
    /// The function that also takes moments of the weights' inputs, after the sources, and rounds the weights by them. Since
    /// format 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated_entry: Option<String>,
    /// The moments that it takes, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moments: Option<String>,
    /// The calls that make the results without moments, one part of the first dimension after the other. Since format 5.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<PackCall>,
    /// The tensors that the target's module reads.
    pub results: Vec<Parameter>,
}

/// Calls of a function that makes parts of results, small enough for the caches of a processor.
///
/// The first dimension of each source is split into [`parts`](Self::parts) equal parts, and the function is called with the
/// first part of each, the second of each, and so on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackCall {
    /// The packing module's function.
    pub entry: String,
    /// Names of the checkpoint's tensors that are split.
    pub sources: Vec<String>,
    /// Names of those that every call takes whole, after the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<String>,
    /// How many parts a source has.
    pub parts: usize,
}

impl PackStep {
    /// Returns a step that copies a tensor of the checkpoint.
    #[must_use]
    pub fn copy(source: &str, result: Parameter) -> Self {
        Self { entry: None, ..Self::whole("", vec![source.to_owned()], vec![result]) }
    }

    /// Returns a step of one call that makes the results of whole sources.
    #[must_use]
    pub fn whole(entry: &str, sources: Vec<String>, results: Vec<Parameter>) -> Self {
        let entry = Some(entry.to_owned());
        Self { entry, sources, calibrated_entry: None, moments: None, calls: Vec::new(), results }
    }
}

/// How the packing module collects moments of inputs: the sums of their products over all tokens of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The tokens of a call.
    pub window: usize,
    /// The numbers of a token's hidden state.
    pub hidden: usize,
    /// The steps. The first takes tokens, `[1, window]` of `i32`, and each of the others the hidden states that the one before
    /// returned, `[1, window, hidden]` of `f32`. The last returns none.
    pub steps: Vec<CalibrationStep>,
}

/// A part of the model that is run to collect moments of its layers' inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationStep {
    /// The packing module's function: of tokens or hidden states, sources, and the moments so far. It returns hidden states and
    /// the moments with those of the call.
    pub entry: String,
    /// Names of the checkpoint's tensors.
    pub sources: Vec<String>,
    /// The moments, `[inputs, inputs]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moments: Vec<Parameter>,
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
