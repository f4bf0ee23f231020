//! The small files of a model's folder: config.json and the files of the tokenizer.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use mlxcel_artifacts::{Links, ReadError, SMALL_FILE_LIMIT_BYTES, SMALL_FILES};
use serde::de::IgnoredAny;

use crate::error::Error;

/// Largest config.json that is read.
pub(crate) const CONFIG_LIMIT_BYTES: u64 = 1 << 20;

/// A small file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SmallFile {
    /// A file of a folder.
    Path(PathBuf),
    /// A text that was made of a GGUF file's metadata.
    Text(String),
}

/// Finds the small files in `folders`, each in the first folder that has it. Returns their names and paths.
pub(crate) fn find_small_files(folders: &[&Path]) -> Vec<(&'static str, SmallFile)> {
    let find = |name: &'static str| {
        let path = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())?;
        Some((name, SmallFile::Path(path)))
    };
    SMALL_FILES.into_iter().filter_map(find).collect()
}

/// Refuses a file that is not a JSON object.
///
/// Checking it here keeps a damaged tokenizer out of the bundle: it would fail only where the bundle runs.
pub(crate) fn check_json_object(path: &Path) -> Result<(), Error> {
    let bytes = read_limited(path, SMALL_FILE_LIMIT_BYTES)?;
    match serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(&bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Damaged { path: path.to_owned(), reason: error.to_string() }),
    }
}

/// Reads a regular file of at most `limit` bytes as UTF-8 text.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, Error> {
    let bytes = read_limited(path, limit)?;
    String::from_utf8(bytes)
        .map_err(|error| Error::Damaged { path: path.to_owned(), reason: error.to_string() })
}

/// Reads a regular file of at most `limit` bytes.
pub(crate) fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    mlxcel_artifacts::read_limited(path, limit, Links::Follow).map_err(|error| match error {
        ReadError::TooLong { .. } => Error::Damaged { path: path.to_owned(), reason: error.to_string() },
        other => Error::io("read", path)(other.into()),
    })
}
