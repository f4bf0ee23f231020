//! Signatures of a module's entry points, which emitter, manifest and runtime share.
//!
//! The emitter builds a function's arguments from [`Entry::arguments`], and the runtime fills a call from the same list.

use std::fmt;

use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use crate::{digest::Digest, tensor::tensor_bytes};

/// An entry point of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The name of the exported function without the module's, such as `prefill_128`.
    pub name: String,
    /// The entry point's purpose.
    pub role: Role,
    /// The arguments in order.
    pub arguments: Vec<ArgumentSpec>,
    /// The results in order.
    pub results: Vec<ResultSpec>,
}

/// The purpose of an entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Role {
    /// Processes several tokens of each row, appends them to the cache, and attends to all earlier positions.
    Prefill {
        /// The tokens of a row. Shorter rows are padded.
        tokens: usize,
    },
    /// Processes one token of each row, appends it to the cache, and attends to the first positions.
    Decode {
        /// The number of positions. Every row's position is below it.
        cache: usize,
    },
    /// Processes a text of each row at once, without a cache.
    Encode {
        /// The tokens of a row. Shorter rows are padded.
        tokens: usize,
    },
}

/// An argument of an entry point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentSpec {
    /// The argument's meaning.
    pub kind: ArgumentKind,
    /// The element type.
    pub dtype: Dtype,
    /// The shape. That of a scalar is empty.
    pub shape: Vec<usize>,
}

/// The meaning of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentKind {
    /// Token ids, `[batch, tokens]`.
    Tokens,
    /// The position of each row's first token, `[batch]`.
    Positions,
    /// The number of tokens of each row without padding, at least 1, `[batch]`.
    Lengths,
    /// One past the last position that the call writes, with padding: the largest of `positions` plus the tokens of a row.
    ///
    /// A scalar of the host, because the host must know how much of the cache to read without waiting for the device.
    End,
}

/// A result of an entry point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultSpec {
    /// The result's meaning.
    pub kind: ResultKind,
    /// The element type.
    pub dtype: Dtype,
    /// The shape.
    pub shape: Vec<usize>,
}

/// The meaning of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// The token id with the largest logit after each row's last token, `[batch]`. Of equal ones, the lowest id.
    NextToken,
    /// The logits after each row's last token, `[batch, vocab]`.
    Logits,
    /// The embedding of each row's text, `[batch, hidden]`.
    Embedding,
}

/// A tensor of the weights that a module reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The tensor's name in the checkpoint, and its key in the scope [`PARAMETER_SCOPE`].
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

/// The scope of the parameters of modules.
pub const PARAMETER_SCOPE: &str = "model";

/// The name of every model's module, as in `model.prefill_128`.
pub const MODULE_NAME: &str = "model";

/// The name of every packing module.
pub const PACKING_MODULE_NAME: &str = "packing";

impl Entry {
    /// Returns the entry for `role` with `batch` rows. `width` is the number of logits or the dimensions of the embedding.
    #[must_use]
    pub fn new(role: Role, batch: usize, width: usize) -> Self {
        let kinds: &[ArgumentKind] = match role {
            Role::Prefill { .. } => {
                &[ArgumentKind::Tokens, ArgumentKind::Positions, ArgumentKind::Lengths, ArgumentKind::End]
            }
            Role::Decode { .. } => &[ArgumentKind::Tokens, ArgumentKind::Positions],
            Role::Encode { .. } => &[ArgumentKind::Tokens, ArgumentKind::Lengths],
        };
        Self {
            name: role.entry_name(),
            role,
            arguments: kinds.iter().map(|&kind| ArgumentSpec::new(kind, role, batch)).collect(),
            results: role.results().iter().map(|&kind| ResultSpec::new(kind, batch, width)).collect(),
        }
    }
}

impl Role {
    /// Returns the name of the function, such as `prefill_128`.
    #[must_use]
    pub fn entry_name(self) -> String {
        match self {
            Self::Prefill { tokens } => format!("prefill_{tokens}"),
            Self::Decode { cache } => format!("decode_{cache}"),
            Self::Encode { tokens } => format!("encode_{tokens}"),
        }
    }

    /// Returns the size: tokens of a row, or positions of the cache.
    #[must_use]
    pub fn size(self) -> usize {
        let (Self::Prefill { tokens: size } | Self::Decode { cache: size } | Self::Encode { tokens: size }) =
            self;
        size
    }

    /// Returns the arguments that every entry in this role has.
    pub(crate) fn needs(self) -> &'static [ArgumentKind] {
        match self {
            Self::Prefill { .. } | Self::Decode { .. } => &[ArgumentKind::Tokens, ArgumentKind::Positions],
            Self::Encode { .. } => &[ArgumentKind::Tokens, ArgumentKind::Lengths],
        }
    }

    /// Returns the results of an entry in this role.
    pub(crate) fn results(self) -> &'static [ResultKind] {
        match self {
            Self::Prefill { .. } | Self::Decode { .. } => &[ResultKind::NextToken, ResultKind::Logits],
            Self::Encode { .. } => &[ResultKind::Embedding],
        }
    }
}

impl ArgumentSpec {
    /// Returns the argument of this kind of an entry in `role`.
    #[must_use]
    pub fn new(kind: ArgumentKind, role: Role, batch: usize) -> Self {
        let shape = match (kind, role) {
            (ArgumentKind::Tokens, Role::Prefill { tokens } | Role::Encode { tokens }) => vec![batch, tokens],
            (ArgumentKind::Tokens, Role::Decode { .. }) => vec![batch, 1],
            (ArgumentKind::Positions | ArgumentKind::Lengths, _) => vec![batch],
            (ArgumentKind::End, _) => Vec::new(),
        };
        Self { kind, dtype: Dtype::I32, shape }
    }
}

impl ResultSpec {
    /// Returns the result of this kind. `width` is the number of logits or the dimensions of the embedding.
    #[must_use]
    pub fn new(kind: ResultKind, batch: usize, width: usize) -> Self {
        match kind {
            ResultKind::NextToken => Self { kind, dtype: Dtype::I32, shape: vec![batch] },
            ResultKind::Logits | ResultKind::Embedding => {
                Self { kind, dtype: Dtype::F32, shape: vec![batch, width] }
            }
        }
    }
}

impl fmt::Display for ArgumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tokens => "tokens",
            Self::Positions => "positions",
            Self::Lengths => "lengths",
            Self::End => "end",
        })
    }
}

impl fmt::Display for ResultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NextToken => "next_token",
            Self::Logits => "logits",
            Self::Embedding => "embedding",
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::type_text;

    #[test]
    fn entries_by_role() {
        let text = |entry: Entry| {
            let arguments =
                entry.arguments.iter().map(|a| format!("{} {}", a.kind, type_text(a.dtype, &a.shape)));
            let results =
                entry.results.iter().map(|r| format!("{} {}", r.kind, type_text(r.dtype, &r.shape)));
            let all: Vec<String> = arguments.chain(results).collect();
            format!("{}: {}", entry.name, all.join(", "))
        };
        assert_eq!(
            text(Entry::new(Role::Prefill { tokens: 128 }, 2, 1000)),
            "prefill_128: tokens i32[2,128], positions i32[2], lengths i32[2], end i32[], next_token i32[2], logits f32[2,1000]"
        );
        assert_eq!(
            text(Entry::new(Role::Decode { cache: 512 }, 2, 1000)),
            "decode_512: tokens i32[2,1], positions i32[2], next_token i32[2], logits f32[2,1000]"
        );
        assert_eq!(
            text(Entry::new(Role::Encode { tokens: 64 }, 2, 384)),
            "encode_64: tokens i32[2,64], lengths i32[2], embedding f32[2,384]"
        );
    }
}
