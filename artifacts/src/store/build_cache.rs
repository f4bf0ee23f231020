//! What was built, by the key of everything that determines it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::open::Store;
use crate::{digest::Digest, error::Error, layout::BUILT};

impl Store {
    /// The file put under `key`, verified. A damaged one counts as none: it will be made again.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn get(&self, key: &Digest) -> Result<Option<PathBuf>, Error> {
        let entry = self.path.join(BUILT).join(key.hex());
        let Some(digest) = built(&entry)? else { return Ok(None) };
        let found = self.whole_blob(digest);
        if found.is_some() {
            // When it was used last: what was not for the longest time goes first. A store that cannot be written serves.
            _ = File::options()
                .append(true)
                .open(&entry)
                .and_then(|file| file.set_modified(SystemTime::now()));
        }
        Ok(found.map(|(path, _)| path))
    }

    /// Puts a copy of `file` under `key`; gives the copy's path.
    ///
    /// # Errors
    /// When `file` cannot be read or the store cannot be written; the store is then as it was.
    pub fn put(&self, key: &Digest, file: &Path) -> Result<PathBuf, Error> {
        let mut source = File::open(file).map_err(Error::read(file))?;
        let blob = self.add_blob(&mut source, file)?;
        self.sync_blobs()?;
        self.replace(BUILT, &key.hex(), &format!("{}\n", blob.digest.hex()))?;
        Ok(self.blob_path(blob.digest))
    }
}

/// What an entry names; nothing if it is damaged.
pub(super) fn built(entry: &Path) -> Result<Option<Digest>, Error> {
    match fs::read_to_string(entry) {
        Ok(text) => Ok(text.strip_suffix('\n').and_then(Digest::from_hex)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        // Bytes that are no text: damaged too.
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(Error::read(entry)(error)),
    }
}
