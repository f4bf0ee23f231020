//! Files of a bundle, by their content.

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

impl Blob {
    /// The one of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { digest: Digest::of(bytes), size: bytes.len() as u64 }
    }
}
