//! Errors of receipts.

use std::{io, path::PathBuf};

use mlxcel_artifacts::{Digest, WrongSignature};

use crate::error::Error;

/// The error of a receipt that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// The file cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no JSON, or a receipt in it has another form.
    #[error("found no valid receipt: {0}")]
    Text(String),
    /// There is no receipt.
    #[error(
        "found no receipt, expected one or an answer that has one\n\
         hint: a server writes receipts of requests with \"receipt\": true"
    )]
    Missing,
    /// The receipt has another version.
    #[error(
        "the receipt has the version {found}, expected {expected}\nhint: use a program of the version of the server"
    )]
    Version {
        /// The version.
        found: serde_json::Value,
        /// The version that this crate reads.
        expected: u32,
    },
    /// The tokens were changed, or the hash was.
    #[error(
        "the hash of the {part} is {found}, expected {expected} for its tokens\nhint: the receipt was changed"
    )]
    Hash {
        /// `prompt` or `answer`.
        part: &'static str,
        /// The hash in the receipt.
        found: Digest,
        /// The hash of its tokens.
        expected: Digest,
    },
    /// The answer is longer than it can be.
    #[error("the answer has {found} tokens, expected at most the {expected} of the request")]
    TooManyTokens {
        /// Its tokens.
        found: usize,
        /// The most tokens.
        expected: usize,
    },
    /// The receipt has no signature.
    #[error(
        "the receipt is not signed, expected a signature by the key {key}\n\
         hint: a server signs receipts with --receipt-key FILE"
    )]
    NotSigned {
        /// The key.
        key: String,
    },
    /// The signature is not the one that was asked for.
    #[error(
        "the signature of the receipt does not hold\nhint: the receipt was changed, or another server made it"
    )]
    Signature(#[from] WrongSignature),
    /// The signature cannot be made.
    #[error("cannot sign the receipt")]
    Sign(#[source] mlxcel_artifacts::Error),
    /// A token of the answer is none of the model's.
    #[error("token {} of the answer has the id {token}, expected 0 to {}", .index + 1, .vocab.saturating_sub(1))]
    Token {
        /// The token.
        token: u32,
        /// Its index in the answer, from 0.
        index: usize,
        /// The size of the vocabulary.
        vocab: usize,
    },
    /// The request cannot be run.
    #[error(transparent)]
    Run(#[from] Error),
    /// The receipt is of another bundle.
    #[error(
        "the receipt is of the bundle {found}, expected {expected}\n\
         hint: give the bundle that was served; packing weights makes another one"
    )]
    OtherBundle {
        /// The receipt's.
        found: Digest,
        /// The one that is here.
        expected: Digest,
    },
}
