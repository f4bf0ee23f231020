//! `manifest.toml`: everything a bundle says about itself.

pub mod entry;
pub(crate) mod numerics;
mod parse;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod validate;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    blob::{Blob, BlobRole},
    digest::Digest,
    driver::Driver,
    error::Error,
    version::Version,
};

use entry::{Entry, PackStep, Parameter};
use numerics::{CacheType, Float, Pooling, Quant};

/// The version of the format that this crate writes. A reader takes every older one, and refuses a newer one.
///
/// 1. The first.
/// 2. `documents`.
pub const FORMAT: u32 = 2;

/// The file that describes a checkpoint's model.
pub const CONFIG_FILE: &str = "config.json";

/// The small files of a checkpoint that its bundle carries, besides [`CONFIG_FILE`].
pub const SMALL_FILES: [&str; 5] = [
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
];

/// No small file of a checkpoint is longer, and no document: programs read them whole. The tokenizers of the largest
/// vocabularies have some 30 MB.
pub const SMALL_FILE_LIMIT_BYTES: u64 = 256 << 20;

/// The longest manifest that is read. One with 50,000 tensors that are packed for three targets has 47 MB.
pub(crate) const MANIFEST_LIMIT: u64 = 64 << 20;

/// A bundle's manifest. Fields are public; a value that came out of [`Manifest::parse`] has passed
/// [`Manifest::validate`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Format version, [`FORMAT`] when written by this crate.
    pub format: u32,
    /// What the model is called: the preset's name or the folder's.
    pub model: String,
    /// The family: `model_type` of config.json.
    pub family: String,
    /// What the module was planned for.
    pub plan: ModelSpec,
    /// The compiler that made the vmfbs.
    pub compiler: Compiler,
    /// One vmfb per target, by the target's name.
    pub targets: BTreeMap<String, TargetArtifact>,
    /// The checkpoint's small files by file name: [`CONFIG_FILE`], and of [`SMALL_FILES`] those that it has.
    pub files: BTreeMap<String, Blob>,
    /// The checkpoint's safetensors files by file name, where the bundle carries weights.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, Blob>,
    /// What says where the bundle comes from, by file name: its parts in CycloneDX's form (`sbom.cdx.json`), and how it was
    /// made in in-toto's (`provenance.intoto.json`). Since format 2.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub documents: BTreeMap<String, Blob>,
    /// The parameters that every target's module needs.
    pub parameters: Vec<Parameter>,
    /// What the model must answer on every device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replays: Vec<SelfTestCase>,
}

/// A prompt, and what was recorded for it: what a greedy generation goes on with, or the embedding.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTestCase {
    /// Token ids.
    pub prompt: Vec<u32>,
    /// The most likely tokens after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<u32>,
    /// By how much the logit of each of them was above every other: where it is little, another order of additions may
    /// choose another token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<f32>,
    /// The vector of the prompt, of a model that embeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub embedding: Vec<f32>,
}

/// What the module was planned for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// What matrix products are computed in: `f32`, `bf16` or `f16`.
    #[serde(deserialize_with = "numerics::of_plan")]
    pub precision: Float,
    /// How the weights of matrix products are quantized: `none`, `q8` or `q4`.
    #[serde(deserialize_with = "numerics::of_plan")]
    pub quant: Quant,
    /// What the key/value cache holds: `f32`, `bf16`, `f16` or `q8`.
    #[serde(rename = "kv", deserialize_with = "numerics::of_plan")]
    pub cache_type: CacheType,
    /// Rows of a call.
    pub batch: usize,
    /// Positions the cache holds per row: the longest sequence, in tokens.
    pub context: usize,
    /// How many tokens the model knows; of a model that continues texts also the logits a row.
    pub vocab: usize,
    /// Bytes of the keys and values of one position, in layers that attend to all positions.
    pub position_bytes: u64,
    /// The same in layers that attend to no more than the last ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// What is made of a text, where the model does not continue it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<EmbeddingSpec>,
}

/// One vector of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingSpec {
    /// How many numbers it has.
    pub width: usize,
    /// What it is made of: `mean` of all tokens' hidden states, or that of `cls`, the first.
    #[serde(deserialize_with = "numerics::of_plan")]
    pub pooling: Pooling,
    /// Whether its Euclidean length is 1.
    #[serde(rename = "normalised")]
    pub normalized: bool,
}

/// The layers of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// How many positions they attend to at most.
    pub positions: usize,
    /// Bytes of their keys and values of one position.
    pub position_bytes: u64,
}

/// The compiler that made the vmfbs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compiler {
    /// IREE's version, `3.13.0`: the runtime must be of the same.
    pub version: String,
    /// blake3 of the compiler's shared library.
    pub digest: Digest,
}

/// The module compiled for one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetArtifact {
    /// The IREE HAL driver that runs it.
    pub driver: Driver,
    /// CPU architecture, `x86_64` or `aarch64`; empty for a device that is not the CPU.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// CPU features (LLVM's names) the code uses and the machine must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_features: Vec<String>,
    /// What an NVIDIA GPU must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuNeeds>,
    /// The flags given to the compiler.
    pub flags: Vec<String>,
    /// Digest of everything that determines the vmfb.
    pub build_key: Digest,
    /// The vmfb.
    pub vmfb: Blob,
    /// Its entry points.
    pub entries: Vec<Entry>,
    /// Bytes of parameters that a decode step reads: all, but of an embedding that is no head only a row, and of the experts
    /// of a mixture those that are active.
    pub step_bytes: u64,
    /// How many positions a sequence may go back and still have in its cache what layers with a window attend to; any
    /// number, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewind: Option<usize>,
    /// What its dispatches move by their names, of those of which it is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dispatches: BTreeMap<String, Traffic>,
    /// How the parameters that the vmfb reads are made from the checkpoint's; none where they are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packing: Option<Packing>,
}

/// What an NVIDIA GPU must have, as the code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuNeeds {
    /// The least compute capability.
    pub compute_capability: Version,
    /// The version of PTX, which newer drivers understand.
    pub ptx: Version,
}

/// Bytes that a call of a dispatch reads and writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Every time.
    pub bytes: u64,
    /// For each position of the cache that it attends to.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub position_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// How a target's own parameters are made from the checkpoint's, once, for every later start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packing {
    /// Digest of everything that determines the vmfb.
    pub build_key: Digest,
    /// The module with the functions that the steps name, for the same device as the target's.
    pub vmfb: Blob,
    /// The results as a safetensors file, where the bundle carries them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Blob>,
    /// The checkpoint's safetensors files that they were made from, by file name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made_from: BTreeMap<String, Blob>,
    /// What to run; their results are the parameters of the target's vmfb.
    pub steps: Vec<PackStep>,
}

impl Manifest {
    /// The manifest's text; the same manifest always has the same one.
    ///
    /// # Errors
    /// When [`Manifest::validate`] refuses the manifest.
    pub fn render(&self) -> Result<String, Error> {
        self.validate()?;
        // Cannot fail after `validate`: every number fits TOML's 64 bits with a sign.
        toml::to_string(self).map_err(|error| Error::Invalid(error.to_string()))
    }

    /// Bytes of all blobs, each once.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.distinct_blobs().into_values().map(|(_, blob)| blob.size).sum()
    }

    /// Returns every blob once, by its file's name, with one of its roles.
    pub(crate) fn distinct_blobs(&self) -> BTreeMap<String, (BlobRole, Blob)> {
        self.blobs().map(|(role, blob)| (blob.digest.hex(), (role, *blob))).collect()
    }

    /// Returns every blob with its role. Two roles may share one blob.
    pub fn blobs(&self) -> impl Iterator<Item = (BlobRole, &Blob)> {
        self.code_blobs().chain(self.weight_blobs())
    }

    /// Returns the blobs that are not weights.
    pub(crate) fn code_blobs(&self) -> impl Iterator<Item = (BlobRole, &Blob)> {
        let targets = self.targets.iter().flat_map(|(name, target)| {
            let packing = target.packing.iter();
            let packing = packing.map(|packing| (BlobRole::PackingVmfb(name.clone()), &packing.vmfb));
            packing.chain([(BlobRole::Vmfb(name.clone()), &target.vmfb)])
        });
        let files = self.files.iter().map(|(name, blob)| (BlobRole::File(name.clone()), blob));
        let documents = self.documents.iter().map(|(name, blob)| (BlobRole::Document(name.clone()), blob));
        targets.chain(files).chain(documents)
    }

    /// Returns the blobs of the checkpoint's weights and of packed weights.
    pub(crate) fn weight_blobs(&self) -> impl Iterator<Item = (BlobRole, &Blob)> {
        let packed = self.targets.iter().filter_map(|(name, target)| {
            let blob = target.packing.as_ref()?.weights.as_ref()?;
            Some((BlobRole::PackedWeights(name.clone()), blob))
        });
        packed.chain(self.weights.iter().map(|(name, blob)| (BlobRole::Weights(name.clone()), blob)))
    }
}

#[cfg(test)]
pub(crate) mod tests;
