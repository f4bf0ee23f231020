//! What a module's entry points take and give: the one list that emitter, manifest and runtime share.
//!
//! The emitter builds a function's arguments by walking [`Entry::arguments`]; the runtime fills a call by walking the
//! same list. Nothing else says what an entry takes.

use std::fmt;

use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use crate::{digest::Digest, tensor::tensor_bytes};

/// One entry point of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The exported function's name, without the module's: `prefill_128`.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// What it takes, in order.
    pub arguments: Vec<ArgumentSpec>,
    /// What it gives, in order.
    pub results: Vec<ResultSpec>,
}

/// What an entry point is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Role {
    /// Takes up to `tokens` tokens a row, writes their keys and values to the cache and attends over all before.
    Prefill {
        /// Tokens a row; shorter rows are padded.
        tokens: usize,
    },
    /// Takes one token a row and attends over the first `cache` positions.
    Decode {
        /// Positions attended over: every row's position must be below it.
        cache: usize,
    },
    /// Takes a whole text of up to `tokens` tokens a row and keeps nothing of it.
    Encode {
        /// Tokens a row; shorter rows are padded.
        tokens: usize,
    },
}

/// An argument: what it means, and its type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentSpec {
    /// What the caller must put there.
    pub kind: ArgumentKind,
    /// Element type.
    pub dtype: Dtype,
    /// Shape; empty is a scalar.
    pub shape: Vec<usize>,
}

/// What an argument means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentKind {
    /// Token ids, `[batch, tokens]`.
    Tokens,
    /// The position of each row's first token, `[batch]`.
    Positions,
    /// How many of a row's tokens are real, at least 1, `[batch]`.
    Lengths,
    /// One past the last position that the call writes, padding included: the largest of `positions` and the tokens a
    /// row. A scalar, which entries take as a number of the host: it says how much of the cache there is to read, and
    /// the device must not be waited for to know it.
    End,
}

/// A result: what it means, and its type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultSpec {
    /// What the caller finds there.
    pub kind: ResultKind,
    /// Element type.
    pub dtype: Dtype,
    /// Shape.
    pub shape: Vec<usize>,
}

/// What a result means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// The id with the largest logit after each row's last real token (the lowest id on a tie), `[batch]`.
    NextToken,
    /// The logits after each row's last real token, `[batch, vocab]`.
    Logits,
    /// One vector of each row's text, `[batch, hidden]`.
    Embedding,
}

/// A weight that a module reads as a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The tensor's name in the checkpoint, and its key in the scope [`PARAMETER_SCOPE`].
    pub name: String,
    /// Its element type in the checkpoint.
    pub dtype: Dtype,
    /// Its shape in the checkpoint.
    pub shape: Vec<usize>,
    /// The digest of its bytes in the checkpoint, where the bundle was built with weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Digest>,
    /// What other checkpoints of the same model call it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// A step in making a target's own parameters out of the checkpoint's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackStep {
    /// The function of the packing module that takes the sources and gives the results; none where the one result is the
    /// one source as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Names of the checkpoint's tensors.
    pub sources: Vec<String>,
    /// What the target's module then reads.
    pub results: Vec<Parameter>,
}

/// The scope under which modules look their parameters up.
pub const PARAMETER_SCOPE: &str = "model";

/// The name of every model's module, the part before the dot in `model.prefill_128`.
pub const MODULE_NAME: &str = "model";

/// The name of every packing module.
pub const PACKING_MODULE_NAME: &str = "packing";

impl Entry {
    /// The entry for `role` with `batch` rows, which gives `width` numbers a row: logits, or those of an embedding.
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
    /// The name of the function in this role: `prefill_128`, `decode_512`.
    #[must_use]
    pub fn entry_name(self) -> String {
        match self {
            Self::Prefill { tokens } => format!("prefill_{tokens}"),
            Self::Decode { cache } => format!("decode_{cache}"),
            Self::Encode { tokens } => format!("encode_{tokens}"),
        }
    }

    /// What its size counts: tokens of a call, or positions of the cache.
    #[must_use]
    pub fn size(self) -> usize {
        let (Self::Prefill { tokens: size } | Self::Decode { cache: size } | Self::Encode { tokens: size }) =
            self;
        size
    }

    /// What every entry in this role takes, whatever else it does.
    pub(crate) fn needs(self) -> &'static [ArgumentKind] {
        match self {
            Self::Prefill { .. } | Self::Decode { .. } => &[ArgumentKind::Tokens, ArgumentKind::Positions],
            Self::Encode { .. } => &[ArgumentKind::Tokens, ArgumentKind::Lengths],
        }
    }

    /// What an entry in this role gives.
    pub(crate) fn results(self) -> &'static [ResultKind] {
        match self {
            Self::Prefill { .. } | Self::Decode { .. } => &[ResultKind::NextToken, ResultKind::Logits],
            Self::Encode { .. } => &[ResultKind::Embedding],
        }
    }
}

impl ArgumentSpec {
    /// The argument of this kind that an entry in `role` takes.
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
    /// The result of this kind that every entry gives, of `width` numbers a row where it is several.
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
    /// One with a single name, which may have any bytes.
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
