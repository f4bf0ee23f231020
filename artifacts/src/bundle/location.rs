//! The location of a bundle's files.

use std::{path::PathBuf, sync::Arc};

use crate::{
    digest::Digest,
    files::SharedLock,
    layout::{BLOBS, SIGNATURE},
    name::Name,
};

/// The paths of a bundle's files.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// The folder of the manifest.
    pub(crate) folder: PathBuf,
    /// The folder of the blobs.
    pub(crate) blobs: PathBuf,
    /// The signature, which need not exist.
    pub(crate) signature: PathBuf,
    /// The entry of a bundle in a store, whose blobs other bundles share.
    pub(crate) stored: Option<StoreEntry>,
    /// The store that remembers verified files and compiled bundles, if there is one.
    pub(crate) notes: Option<PathBuf>,
}

/// A bundle's entry in a store.
#[derive(Debug, Clone)]
pub(crate) struct StoreEntry {
    /// The bundle's name.
    pub(crate) name: Name,
    /// The digest of its manifest.
    pub(crate) manifest: Digest,
    /// Keeps the bundle's files in the store, even if its name is given to another bundle. A store that is read-only cannot
    /// be locked.
    pub(crate) _lock: Option<Arc<SharedLock>>,
}

/// Locks and notes do not matter to equality.
impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        (&self.folder, &self.blobs) == (&other.folder, &other.blobs)
    }
}

impl Location {
    /// Returns the location of a bundle in a folder of its own.
    pub(crate) fn folder(path: PathBuf) -> Self {
        let (blobs, signature) = (path.join(BLOBS), path.join(SIGNATURE));
        Self { blobs, signature, folder: path, stored: None, notes: None }
    }

    /// Returns the path of a blob.
    pub(super) fn blob_path(&self, digest: Digest) -> PathBuf {
        self.blobs.join(digest.hex())
    }
}
