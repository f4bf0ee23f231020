//! Blobs: the files of a bundle, by their content.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// A file under `blobs/`, named by its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blob {
    /// blake3 of its bytes.
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
}

/// The purpose of a blob in its bundle. Several purposes may share one blob.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlobRole {
    /// The compiled module of this target.
    Vmfb(String),
    /// The module that packs the weights of this target.
    PackingVmfb(String),
    /// The checkpoint's small file of this name.
    File(String),
    /// The document of this name.
    Document(String),
    /// The inputs of the recorded call of this number.
    GoldenInputs(usize),
    /// The outputs of the recorded call of this number.
    GoldenOutputs(usize),
    /// The checkpoint's safetensors file of this name.
    Weights(String),
    /// The packed weights of this target.
    PackedWeights(String),
    /// The manifest itself, which the store names by its digest.
    Manifest,
    /// A blob that the manifest does not name.
    Unnamed,
}

impl Blob {
    /// Returns the blob of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { digest: Digest::of(bytes), size: bytes.len() as u64 }
    }
}

impl fmt::Display for BlobRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vmfb(target) => write!(f, "vmfb of target {target}"),
            Self::PackingVmfb(target) => write!(f, "packing vmfb of target {target}"),
            Self::File(name) => write!(f, "file {name}"),
            Self::Document(name) => write!(f, "document {name}"),
            Self::GoldenInputs(number) => write!(f, "inputs of golden {number}"),
            Self::GoldenOutputs(number) => write!(f, "outputs of golden {number}"),
            Self::Weights(name) => write!(f, "weights file {name}"),
            Self::PackedWeights(target) => write!(f, "packed weights of target {target}"),
            Self::Manifest => f.write_str("manifest"),
            Self::Unnamed => f.write_str("blob"),
        }
    }
}
