//! What the manifest says of programs: StableHLO that others wrote, in place of a language model.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{blob::Blob, digest::Digest};

/// What a bundle was compiled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BundleKind {
    /// A language model or an encoder of texts.
    #[default]
    Model,
    /// A StableHLO program.
    Program,
}

impl BundleKind {
    /// Returns whether it is a model, which manifests do not say.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(super) fn is_model(&self) -> bool {
        matches!(self, Self::Model)
    }
}

impl fmt::Display for BundleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Model => "model",
            Self::Program => "program",
        })
    }
}

/// The program that a bundle was compiled from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    /// The version of StableHLO that the program's file was written for. Text has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stablehlo: Option<String>,
    /// The digest of the program as text, without the places in source files that it names.
    pub source: Digest,
}

/// A recorded call of a function: what it was given, and what every device must return.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Golden {
    /// The name of the entry point.
    pub function: String,
    /// The largest difference of two numbers, relative to the one that is expected.
    pub rtol: f64,
    /// What is added to that difference.
    pub atol: f64,
    /// The arguments by name, as a safetensors file.
    pub inputs: Blob,
    /// The results by name, as a safetensors file.
    pub outputs: Blob,
}
