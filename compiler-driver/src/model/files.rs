//! The small files of a model's folder: config.json and the files of the tokenizer.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use mlxcel_artifacts::SMALL_FILE_LIMIT_BYTES;
use serde::de::IgnoredAny;

use crate::error::Error;

/// Name of a model's description.
pub(crate) const CONFIG: &str = "config.json";

/// Largest config.json that is read.
pub(crate) const CONFIG_LIMIT_BYTES: u64 = 1 << 20;

/// The small files that go from a checkpoint into a bundle, besides config.json.
const SMALL_FILES: [&str; 5] = [
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
];

/// Finds the small files in `folders`, each in the first folder that has it. Returns their names and paths.
pub(crate) fn find_small_files(folders: &[&Path]) -> Vec<(&'static str, PathBuf)> {
    let find = |name: &'static str| {
        let path = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())?;
        Some((name, path))
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
///
/// Reading a pipe might never end, and a huge file is not what its name says.
pub(crate) fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let read = || {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(Error::io("read", path))?;
    if bytes.len() as u64 > limit {
        let reason = format!("found more than {limit} bytes, expected fewer");
        return Err(Error::Damaged { path: path.to_owned(), reason });
    }
    Ok(bytes)
}
