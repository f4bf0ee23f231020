//! Files of a repository at one commit.

use std::path::{Path, PathBuf};

use crate::hub::{
    digest::{Computed, HubDigest},
    name::HubName,
};

/// A file that a repository has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemoteFile {
    pub(super) name: String,
    pub(super) size: Option<u64>,
    pub(super) digest: Option<HubDigest>,
}

/// The files of a commit, on the hub or in the cache.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    pub(super) commit: String,
    pub(super) files: Vec<RemoteFile>,
}

impl Listing {
    /// Returns the file of this name.
    pub(super) fn get(&self, name: &str) -> Option<&RemoteFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

/// A model of the hub in the cache, whose files were verified.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) name: HubName,
    pub(crate) commit: String,
    pub(crate) folder: PathBuf,
    pub(crate) files: Vec<SnapshotFile>,
}

/// A file of a snapshot.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotFile {
    pub(crate) name: String,
    /// What the hub states, which the file was compared with.
    pub(crate) stated: Option<HubDigest>,
    pub(crate) computed: Computed,
}

impl Snapshot {
    /// Returns the folder of the files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the commit that the revision is.
    #[must_use]
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// Returns the path of the GGUF file that was named.
    pub(crate) fn gguf(&self) -> Option<PathBuf> {
        self.name.file().map(|file| self.folder.join(file))
    }
}
