//! The facts of a bundle that clients see.

use mlxcel_artifacts::{Bundle, Digest, Error, Quant, SignatureInfo};
use mlxcel_runtime::DeviceInfo;
use serde::Serialize;

/// The facts of a bundle on a device, as `/v1/models` shows them.
#[derive(Debug, Clone, Serialize)]
pub struct Facts {
    /// The digest of the bundle's manifest.
    pub digest: Digest,
    /// Tokens of context.
    pub context: usize,
    /// The bundle's target that runs.
    pub target: String,
    /// The device that it runs on.
    pub device: String,
    /// The quantization of the weights.
    pub quantization: Quant,
    /// The bundle's signature, if it has one.
    pub signature: Option<Signature>,
    /// What requests can ask for.
    pub task: Task,
}

/// The signature of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// The id of the key that the signature names, 16 hex digits.
    pub key: String,
    /// Whether it was verified with a key that the server requires. Otherwise it proves nothing.
    pub verified: bool,
}

/// What a model does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// It continues texts and chats.
    Generation,
    /// It makes embeddings of texts.
    Embedding,
}

impl Facts {
    /// Returns the facts of a bundle that runs on a device with so many tokens of context.
    ///
    /// # Errors
    /// The bundle has no language model.
    pub fn new(
        bundle: &Bundle,
        signature: Option<Signature>,
        device: &DeviceInfo,
        context: usize,
    ) -> Result<Self, Error> {
        let plan = bundle.manifest().model_spec()?;
        Ok(Self {
            digest: bundle.digest(),
            context,
            target: device.target.clone(),
            device: device.name.clone(),
            quantization: plan.quant,
            signature,
            task: if plan.embedding.is_some() { Task::Embedding } else { Task::Generation },
        })
    }
}

impl Signature {
    /// Returns what to show of a signature: of the `verified` one, or else of the one that the bundle `claims`.
    #[must_use]
    pub fn new(verified: Option<SignatureInfo>, claimed: Option<SignatureInfo>) -> Option<Self> {
        let is_verified = verified.is_some();
        verified.or(claimed).map(|SignatureInfo { key, .. }| Self { key, verified: is_verified })
    }
}
