//! The index of a checkpoint in several files.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
};

use serde::Deserialize;

use super::header::{HEADER_LIMIT_BYTES, printable};
use crate::read::{Links, ReadError, read_limited};

/// The file of a checkpoint in one file. As in transformers, it takes precedence over an index.
pub const SINGLE_FILE: &str = "model.safetensors";

/// The file that lists the shards of a checkpoint in several files.
pub const INDEX_FILE: &str = "model.safetensors.index.json";

/// The part of `model.safetensors.index.json` that is read: the shard of each tensor.
#[derive(Debug, Clone, Deserialize)]
pub struct CheckpointIndex {
    weight_map: BTreeMap<String, String>,
}

/// An error of a checkpoint's index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The system cannot read the index.
    #[error(transparent)]
    Io(#[from] io::Error),

    /// The index is not what its name says, or does not fit the files.
    #[error("{0}")]
    Damaged(String),
}

impl CheckpointIndex {
    /// Reads the index in `folder`. Every shard that it names is a file in the folder.
    ///
    /// # Errors
    /// The index cannot be read or is damaged, or a shard is missing.
    pub fn read(folder: &Path) -> Result<Self, IndexError> {
        let index = Self::read_alone(folder)?;
        let missing: Vec<_> =
            index.shards().into_iter().filter(|shard| !folder.join(shard).is_file()).collect();
        if !missing.is_empty() {
            let problem = format!("it names shards that are not there: {}", missing.join(", "));
            return Err(IndexError::Damaged(problem));
        }
        Ok(index)
    }

    /// Reads the index in `folder`, whose shards may be missing, as before they are downloaded.
    ///
    /// # Errors
    /// The index cannot be read, is damaged, or names a shard that would be no file of the folder.
    pub fn read_alone(folder: &Path) -> Result<Self, IndexError> {
        let bytes =
            read_limited(&folder.join(INDEX_FILE), HEADER_LIMIT_BYTES, Links::Follow).map_err(|error| {
                match error {
                    ReadError::TooLong { .. } => IndexError::Damaged(error.to_string()),
                    other => IndexError::Io(other.into()),
                }
            })?;
        let index: Self = serde_json::from_slice(&bytes)
            .map_err(|error| IndexError::Damaged(printable(&error.to_string())))?;
        if let Some(shard) = index.shards().iter().find(|shard| !is_file_name(shard)) {
            let shard = shard.escape_default();
            return Err(IndexError::Damaged(format!(
                "shard `{shard}`, expected the name of a safetensors file"
            )));
        }
        Ok(index)
    }

    /// Returns the names of the shards, sorted.
    #[must_use]
    pub fn shards(&self) -> BTreeSet<&str> {
        self.weight_map.values().map(String::as_str).collect()
    }

    /// Checks that every tensor lies in the shard that the index says. `shard_of` returns a tensor's shard.
    ///
    /// # Errors
    /// The first tensor that lies elsewhere or is missing.
    pub fn check<'s>(&self, shard_of: impl Fn(&str) -> Option<&'s str>) -> Result<(), IndexError> {
        match self.weight_map.iter().find(|(name, shard)| shard_of(name) != Some(shard.as_str())) {
            None => Ok(()),
            Some((name, shard)) => {
                let name = name.escape_default();
                Err(IndexError::Damaged(format!("it expects tensor `{name}` in {shard}, which lacks it")))
            }
        }
    }
}

/// Returns whether a shard lies beside the index: its name is not a path to another folder.
fn is_file_name(name: &str) -> bool {
    name.ends_with(".safetensors") && !name.contains(['/', '\\', '\0'])
}
