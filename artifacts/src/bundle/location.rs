//! Where the files of a bundle lie.

use std::{path::PathBuf, sync::Arc};

use crate::{
    digest::Digest,
    files::SharedLock,
    layout::{BLOBS, SIGNATURE},
    name::Name,
};

/// The folders of a bundle.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// The folder of its manifest.
    pub(crate) folder: PathBuf,
    /// That of its blobs.
    pub(crate) blobs: PathBuf,
    /// The signature's file, if there is one.
    pub(crate) signature: PathBuf,
    /// Where it is in a store, whose other bundles have its blobs too.
    pub(crate) stored: Option<StoreEntry>,
    /// The folder of the store that remembers verified files and compiled bundles, if there is one.
    pub(crate) notes: Option<PathBuf>,
}

/// A bundle's place in a store.
#[derive(Debug, Clone)]
pub(crate) struct StoreEntry {
    /// The name that it has.
    pub(crate) name: Name,
    /// The digest of its manifest.
    pub(crate) manifest: Digest,
    /// Keeps its files there, also when the name comes to mean another bundle. None in a store that cannot be written.
    pub(crate) _using: Option<Arc<SharedLock>>,
}

/// A bundle is the same wherever and for how long it is kept.
impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        (&self.folder, &self.blobs) == (&other.folder, &other.blobs)
    }
}

impl Location {
    /// Returns the location of a bundle in a folder of its own.
    pub(crate) fn folder(path: PathBuf) -> Self {
        Self {
            blobs: path.join(BLOBS),
            signature: path.join(SIGNATURE),
            folder: path,
            stored: None,
            notes: None,
        }
    }

    /// Returns the path of a blob.
    pub(super) fn blob_path(&self, digest: Digest) -> PathBuf {
        self.blobs.join(digest.hex())
    }
}
