//! A receipt.

use mlxcel_artifacts::{Digest, PublicKey, SecretKey, SignatureInfo};
use serde::{Deserialize, Serialize};

use super::{error::ReceiptError, fields, request::RecordedRequest};
use crate::engine::StopReason;

/// The version of receipts that this crate writes and reads.
pub const VERSION: u32 = 1;

/// What comes before the JSON of a signed receipt, so that its signature is of nothing else.
const SIGNED: &str = "mlxcel receipt\n";

/// The receipt of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    version: u32,
    /// The digest of the bundle's manifest.
    pub bundle: Digest,
    /// The bundle's target that ran. Tokens are the same for this target, wherever it runs.
    pub target: String,
    /// The name that the bundle was served under.
    pub model: String,
    /// When the answer was complete, in seconds since 1970.
    pub created: u64,
    /// The request as the engine ran it.
    pub request: RecordedRequest,
    /// The answer.
    pub answer: RecordedAnswer,
    prompt_hash: Digest,
    answer_hash: Digest,
    /// The text of minisign's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

/// The tokens of an answer, and why it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedAnswer {
    /// The tokens, the one that ended it included.
    pub tokens: Vec<u32>,
    /// Why it ended.
    #[serde(with = "fields::stop_reason")]
    pub finish_reason: StopReason,
}

/// Where an answer was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Maker {
    /// The digest of the bundle's manifest.
    pub bundle: Digest,
    /// The bundle's target.
    pub target: String,
    /// The name that the bundle is served under.
    pub model: String,
}

impl Receipt {
    /// Writes the receipt of an answer that was complete so many seconds after 1970.
    #[must_use]
    pub fn new(maker: Maker, created: u64, request: RecordedRequest, answer: RecordedAnswer) -> Self {
        let Maker { bundle, target, model } = maker;
        let (prompt_hash, answer_hash) = (hash(&request.prompt), hash(&answer.tokens));
        Self {
            version: VERSION,
            bundle,
            target,
            model,
            created,
            request,
            answer,
            prompt_hash,
            answer_hash,
            signature: None,
        }
    }

    /// Returns the text that a signature covers: a line, and the receipt as JSON without spaces and signature.
    ///
    /// # Errors
    /// A number of the request has no JSON.
    pub fn signed_text(&self) -> Result<String, ReceiptError> {
        let unsigned = Self { signature: None, ..self.clone() };
        let json = serde_json::to_string(&unsigned).map_err(|error| ReceiptError::Text(error.to_string()))?;
        Ok(format!("{SIGNED}{json}"))
    }

    /// Signs the receipt.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(self, key: &SecretKey) -> Result<Self, ReceiptError> {
        let signature = key.sign(&self.signed_text()?, "", "an mlxcel receipt");
        let signature = signature.map_err(ReceiptError::Sign)?;
        Ok(Self { signature: Some(signature), ..self })
    }

    /// Returns whether there is a signature, which nothing has verified.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.signature.is_some()
    }

    /// Verifies that the key's owner signed the receipt.
    ///
    /// # Errors
    /// There is no signature, or it is forged, of another receipt or another key's.
    pub fn verify(&self, key: &PublicKey) -> Result<SignatureInfo, ReceiptError> {
        let signature = self.signature.as_ref().ok_or_else(|| ReceiptError::NotSigned { key: key.id() })?;
        Ok(key.verify(&self.signed_text()?, signature)?)
    }

    /// Checks that the parts of the receipt fit together.
    ///
    /// # Errors
    /// It has another version, a hash of other tokens, or more tokens than were asked for.
    pub(super) fn check(&self) -> Result<(), ReceiptError> {
        if self.version != VERSION {
            return Err(ReceiptError::Version { found: self.version.into(), expected: VERSION });
        }
        for (part, found, tokens) in [
            ("prompt", self.prompt_hash, &self.request.prompt),
            ("answer", self.answer_hash, &self.answer.tokens),
        ] {
            let expected = hash(tokens);
            if found != expected {
                return Err(ReceiptError::Hash { part, found, expected });
            }
        }
        let (found, expected) = (self.answer.tokens.len(), self.request.max_tokens);
        if found > expected { Err(ReceiptError::TooManyTokens { found, expected }) } else { Ok(()) }
    }
}

/// Returns the blake3 digest of tokens, each as 4 bytes, the lowest first.
fn hash(tokens: &[u32]) -> Digest {
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    Digest::of(&bytes)
}
