//! A repository's folder in the cache, in the layout of huggingface_hub: `blobs`, `refs` and `snapshots`.

use std::{
    ffi::OsStr,
    fs,
    io::ErrorKind,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use hf_hub::{Cache, CacheRepo, Repo, RepoType};

use crate::hub::{
    digest::HubDigest,
    error::HubError,
    name::{HubName, is_commit},
    snapshot::{Listing, RemoteFile},
};

/// A repository's folder.
pub(super) struct RepoCache {
    name: HubName,
    root: PathBuf,
    folder: PathBuf,
    paths: CacheRepo,
}

impl RepoCache {
    /// Returns the folder of a repository in the cache at `root`, which may not exist yet.
    pub(super) fn new(root: &Path, name: &HubName) -> Self {
        let repo =
            || Repo::with_revision(name.repo().to_owned(), RepoType::Model, name.revision().to_owned());
        Self {
            name: name.clone(),
            root: root.to_owned(),
            folder: root.join(repo().folder_name()),
            paths: Cache::new(root.to_owned()).repo(repo()),
        }
    }

    /// Returns the folder of the whole cache.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of a commit's files.
    pub(super) fn snapshot(&self, commit: &str) -> PathBuf {
        self.paths.pointer_path(commit)
    }

    /// Returns the path of a file's bytes.
    pub(super) fn blob(&self, digest: &str) -> PathBuf {
        self.paths.blob_path(digest)
    }

    /// Returns the file that huggingface_hub locks while it downloads.
    pub(super) fn lock(&self, digest: &str) -> PathBuf {
        let repo = self.folder.file_name().unwrap_or(OsStr::new("models"));
        self.root.join(".locks").join(repo).join(format!("{digest}.lock"))
    }

    /// Returns the files of the revision that are in the cache.
    pub(super) fn listing(&self) -> Result<Listing, HubError> {
        let revision = self.name.revision();
        let commit = match is_commit(revision) {
            true => Some(revision.to_owned()),
            false => fs::read_to_string(self.folder.join("refs").join(revision)).ok(),
        };
        let commit = commit.map(|text| text.trim().to_owned()).filter(|text| is_commit(text));
        let commit = commit.filter(|commit| self.snapshot(commit).is_dir());
        let commit = commit.ok_or_else(|| self.missing(format!("revision {revision}")))?;
        let mut files = Vec::new();
        self.list(&self.snapshot(&commit), "", &mut files)?;
        Ok(Listing { commit, files })
    }

    /// Returns the error that nothing may be downloaded.
    pub(super) fn missing(&self, missing: String) -> HubError {
        HubError::Offline { name: self.name.clone(), missing, cache: self.root.clone() }
    }

    /// Adds the files in a folder, and in its folders, with names that begin with `start`.
    fn list(&self, folder: &Path, start: &str, files: &mut Vec<RemoteFile>) -> Result<(), HubError> {
        let failed = || HubError::io("read", folder);
        for entry in fs::read_dir(folder).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let Ok(word) = entry.file_name().into_string() else { continue };
            let (path, name) = (entry.path(), format!("{start}{word}"));
            if entry.file_type().map_err(failed())?.is_dir() {
                self.list(&path, &format!("{name}/"), files)?;
            } else if let Ok(size) = path.metadata().map(|metadata| metadata.len()) {
                files.push(RemoteFile { name, size: Some(size), digest: named_digest(&path) });
            }
        }
        Ok(())
    }

    /// Makes a blob the file `name` of a commit.
    pub(super) fn link(&self, commit: &str, name: &str, blob: &Path) -> Result<(), HubError> {
        let link = self.snapshot(commit).join(name);
        let blob_name = blob.file_name().unwrap_or_default();
        // From the link's folder: out of the folders in `name`, of the commit and of `snapshots`.
        let up = "../".repeat(name.matches('/').count() + 2);
        let target = Path::new(&up).join("blobs").join(blob_name);
        create_parent(&link)?;
        match symlink(&target, &link) {
            // A process that downloads the same file was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && link.is_file() => Ok(()),
            // The file that it led to was removed.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                fs::remove_file(&link).and_then(|()| symlink(&target, &link))
            }
            result => result,
        }
        .map_err(HubError::io("write", &link))
    }

    /// Removes a file of a commit, with its bytes.
    pub(super) fn remove(&self, commit: &str, name: &str) -> Result<(), HubError> {
        let link = self.snapshot(commit).join(name);
        if let Some(digest) = named_digest(&link) {
            remove_if_there(&self.blob(digest.hex()))?;
        }
        remove_if_there(&link)
    }

    /// Notes which commit the revision is, as other programs do when everything is there.
    pub(super) fn write_ref(&self, commit: &str) -> Result<(), HubError> {
        if is_commit(self.name.revision()) {
            return Ok(());
        }
        let path = self.folder.join("refs").join(self.name.revision());
        if fs::read_to_string(&path).is_ok_and(|found| found.trim() == commit) {
            return Ok(());
        }
        self.paths.create_ref(commit).map_err(HubError::io("write", path))
    }
}

/// Returns the digest that names the bytes of a file in the cache. A copy in place of a link has none.
pub(super) fn named_digest(path: &Path) -> Option<HubDigest> {
    let target = fs::read_link(path).ok()?;
    HubDigest::parse(target.file_name()?.to_str()?)
}

/// Makes the folder of a file.
pub(super) fn create_parent(path: &Path) -> Result<(), HubError> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(HubError::io("write", folder))
}

/// Removes a file, if it is there.
pub(super) fn remove_if_there(path: &Path) -> Result<(), HubError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(HubError::io("remove", path)(error)),
        _ => Ok(()),
    }
}
