//! `manifest.toml`: the description of a bundle.

mod content;
pub mod entry;
pub(crate) mod numerics;
mod parse;
pub(crate) mod program;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod validate;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    blob::{Blob, BlobRole},
    digest::Digest,
    driver::Driver,
    version::Version,
};

use entry::{Calibration, Entry, PackStep, Parameter, Pool};
use numerics::{CacheType, Float, Pooling, Quant};
use program::{BundleKind, Golden, ProgramSpec};

/// The version of the format that this crate writes. It reads every older one.
///
/// 1. The first version.
/// 2. Adds `documents`.
/// 3. Entry points take rows of several sequences, and the cache is in pages: `serving`. Bundles of older formats open, but
///    do not run.
/// 4. Packed weights may be rounded by a text: `calibration` and `calibrated_by` of packings.
/// 5. Weights may be packed in parts: `calls` of packing steps.
/// 6. A bundle may have a program in place of a model: `kind`, `program` and `goldens`.
/// 7. Calls may write their results where the caller says: `in_place` of entries.
pub const FORMAT: u32 = 7;

/// The first format whose cache is in pages.
pub(crate) const FORMAT_OF_PAGES: u32 = 3;

/// The first format whose weights may be calibrated.
pub const FORMAT_OF_CALIBRATION: u32 = 4;

/// The first format whose weights may be packed in parts.
pub const FORMAT_OF_PARTS: u32 = 5;

/// The first format whose bundles may have a program.
pub const FORMAT_OF_PROGRAMS: u32 = 6;

/// The first format whose calls may be in place.
pub(crate) const FORMAT_IN_PLACE: u32 = 7;

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

/// The longest small file of a checkpoint, and the longest document. Programs read them at once.
pub const SMALL_FILE_LIMIT_BYTES: u64 = 256 << 20;

/// The longest manifest that is read.
pub(crate) const MANIFEST_LIMIT: u64 = 64 << 20;

/// A bundle's manifest. [`Manifest::parse`] validates it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the format.
    pub format: u32,
    /// What the bundle was compiled from. Since format 6.
    #[serde(default, skip_serializing_if = "BundleKind::is_model")]
    pub kind: BundleKind,
    /// The model's name: that of the preset or of the checkpoint's folder. Of a program, that of its file.
    pub model: String,
    /// The model's family: `model_type` in config.json. Empty for a program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub family: String,
    /// Precision, sizes and cache of the model. A program has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<ModelSpec>,
    /// The program, if the bundle has one. Since format 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramSpec>,
    /// The compiler of the vmfbs.
    pub compiler: Compiler,
    /// The compiled targets by name.
    pub targets: BTreeMap<String, TargetArtifact>,
    /// The checkpoint's small files by name: [`CONFIG_FILE`] and some of [`SMALL_FILES`].
    pub files: BTreeMap<String, Blob>,
    /// The checkpoint's safetensors files by name, if the bundle carries weights.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, Blob>,
    /// The bundle's documents by name: an SBOM (`sbom.cdx.json`) and its provenance (`provenance.intoto.json`). Since format 2.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub documents: BTreeMap<String, Blob>,
    /// The checkpoint's tensors that the modules read.
    pub parameters: Vec<Parameter>,
    /// Prompts with the answers that every device must give.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replays: Vec<SelfTestCase>,
    /// Recorded calls of the program's functions. Since format 6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goldens: Vec<Golden>,
}

/// A prompt with its recorded answer: the tokens of a greedy generation, or the embedding.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTestCase {
    /// The prompt's token ids.
    pub prompt: Vec<u32>,
    /// The most likely tokens after the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<u32>,
    /// The distance of each token's logit to the next one. If it is small, another order of additions may choose another token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<f32>,
    /// The prompt's embedding, if the model is an encoder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub embedding: Vec<f32>,
}

/// Precision, sizes and cache of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// The element type of matrix products.
    #[serde(deserialize_with = "numerics::of_plan")]
    pub precision: Float,
    /// The quantization of the weights of matrix products.
    #[serde(deserialize_with = "numerics::of_plan")]
    pub quant: Quant,
    /// The element type of the key/value cache.
    #[serde(rename = "kv", deserialize_with = "numerics::of_plan")]
    pub cache_type: CacheType,
    /// Up to format 2, the sequences of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// The context size: the most tokens of a sequence.
    pub context: usize,
    /// The size of the vocabulary, and the logits of a row.
    pub vocab: usize,
    /// Bytes of one position's keys and values in the layers without a window.
    pub position_bytes: u64,
    /// The layers with a sliding window, by the size of the window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// The embedding, if the model is an encoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<EmbeddingSpec>,
}

/// The vector that an encoder makes of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingSpec {
    /// The vector's dimensions.
    pub width: usize,
    /// The pooling of the tokens' hidden states.
    #[serde(deserialize_with = "numerics::of_plan")]
    pub pooling: Pooling,
    /// Whether the vector has the Euclidean length 1.
    #[serde(rename = "normalised")]
    pub normalized: bool,
}

/// The layers with a sliding window of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The window's size in positions.
    pub positions: usize,
    /// Bytes of one position's keys and values in these layers.
    pub position_bytes: u64,
}

/// The compiler of the vmfbs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compiler {
    /// IREE's version, such as `3.13.0`. The runtime must have the same version.
    pub version: String,
    /// The digest of the compiler's executable and library.
    pub digest: Digest,
}

/// The module compiled for one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetArtifact {
    /// The IREE HAL driver that runs it.
    pub driver: Driver,
    /// The CPU's architecture, `x86_64` or `aarch64`. Empty if the device is not the CPU.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// The CPU features that the code uses, by LLVM's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_features: Vec<String>,
    /// The needs of code for NVIDIA GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuNeeds>,
    /// The compiler's flags.
    pub flags: Vec<String>,
    /// The digest of everything that determines the vmfb.
    pub build_key: Digest,
    /// The compiled module.
    pub vmfb: Blob,
    /// The module's entry points.
    pub entries: Vec<Entry>,
    /// Bytes of weights that a decode step reads. Counts one row of an embedding that is not the head, and active experts only.
    pub step_bytes: u64,
    /// How the module serves several sequences. Since format 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<Serving>,
    /// Up to format 2, how many positions a sequence can go back before layers with a window miss some in the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewind: Option<usize>,
    /// The memory traffic of dispatches by name, as far as it is known. Of a GPU's kernels, the name follows the function's, and the
    /// traffic is the mean of its calls: `step_1.cuda_argmax`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dispatches: BTreeMap<String, Traffic>,
    /// The packing of the checkpoint's tensors, if the module does not read them as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packing: Option<Packing>,
}

/// How a module serves several sequences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serving {
    /// The positions of a page.
    pub page: usize,
    /// Whether the logits of a sequence are the same, bit for bit, whatever else a call computes and however a prompt is cut.
    pub exact: bool,
    /// The pages of the cache. An encoder has none.
    pub pools: Vec<Pool>,
}

/// The needs of code for NVIDIA GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuNeeds {
    /// The lowest compute capability.
    pub compute_capability: Version,
    /// The version of PTX that the driver must understand.
    pub ptx: Version,
}

/// Bytes that a dispatch reads and writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Bytes of every call.
    pub bytes: u64,
    /// Further bytes for each position of the cache that the call attends to.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub position_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// The packing of a checkpoint's tensors into those that a target's module reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packing {
    /// The digest of everything that determines the vmfb.
    pub build_key: Digest,
    /// The packing module, for the device of the target.
    pub vmfb: Blob,
    /// The packed weights as a safetensors file, if the bundle carries them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Blob>,
    /// The checkpoint's safetensors files that the packed weights were made from, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made_from: BTreeMap<String, Blob>,
    /// The text by which the packed weights were rounded, if they were. Since format 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated_by: Option<CalibratedBy>,
    /// How moments of inputs are collected, if weights can be rounded by them. Since format 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// The steps, whose results are the tensors that the target's module reads.
    pub steps: Vec<PackStep>,
}

/// The text by which weights were rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratedBy {
    /// The digest of the text.
    pub text: Digest,
    /// How many of its tokens the model read.
    pub tokens: usize,
    /// The digest of the moments that the model's layers had as inputs.
    pub moments: Digest,
}

impl Manifest {
    /// Returns the bytes of all blobs. A blob with several roles counts once.
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
        let goldens = self.goldens.iter().zip(1..).flat_map(|(golden, number)| {
            [
                (BlobRole::GoldenInputs(number), &golden.inputs),
                (BlobRole::GoldenOutputs(number), &golden.outputs),
            ]
        });
        targets.chain(files).chain(goldens).chain(documents)
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
