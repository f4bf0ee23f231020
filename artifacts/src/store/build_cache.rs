//! The build cache: compiled modules by build key.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::open::Store;
use crate::{digest::Digest, error::Error, layout::StoreFolder};

impl Store {
    /// Returns the path of the file that was put under `key`, verified. A damaged file counts as missing.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn get(&self, key: &Digest) -> Result<Option<PathBuf>, Error> {
        let entry = self.folder(StoreFolder::Built).join(key.hex());
        let Some(digest) = read_digest(&entry)? else { return Ok(None) };
        let found = self.find_blob(digest);
        if found.is_some() {
            // Garbage collection removes the least recently used first. A store that is read-only works without the time.
            _ = File::options()
                .append(true)
                .open(&entry)
                .and_then(|file| file.set_modified(SystemTime::now()));
        }
        Ok(found.map(|(path, _)| path))
    }

    /// Puts a copy of `file` under `key`. Returns the copy's path.
    ///
    /// # Errors
    /// `file` cannot be read, or the store cannot be written. The store is then unchanged.
    pub fn put(&self, key: &Digest, file: &Path) -> Result<PathBuf, Error> {
        let mut source = File::open(file).map_err(Error::read(file))?;
        let blob = self.add_blob(&mut source, file)?;
        self.sync_blobs()?;
        self.replace(StoreFolder::Built, &key.hex(), &format!("{}\n", blob.digest.hex()))?;
        Ok(self.blob_path(blob.digest))
    }
}

/// Returns the digest in a file of the store, or `None` if the file is missing or damaged.
pub(super) fn read_digest(path: &Path) -> Result<Option<Digest>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.strip_suffix('\n').and_then(Digest::from_hex)),
        // `InvalidData` means bytes that are not text: damaged too.
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::InvalidData].contains(&error.kind()) => {
            Ok(None)
        }
        Err(error) => Err(Error::read(path)(error)),
    }
}
