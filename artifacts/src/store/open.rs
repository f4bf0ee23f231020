//! The store's folder, its lock and its blobs.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use bytesize::ByteSize;
use tempfile::{NamedTempFile, TempDir};

use crate::{
    blob::Blob,
    digest::Digest,
    error::Error,
    files::{SharedLock, copy_hashed, replace_file, staging_in, sync_folder},
    layout::{STORE_LOCK, StoreFolder, default_store},
};

/// The environment variable with the store's limit.
const LIMIT_VARIABLE: &str = "MLXCEL_STORE_LIMIT";

/// Permissions of blobs, which nobody may change once they are complete.
pub(super) const BLOB_MODE: u32 = 0o444;

/// Permissions of the lock: every user of a shared store opens it.
const LOCK_MODE: u32 = 0o666;

/// A folder of files that bundles and builds share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    path: PathBuf,
    /// The most bytes of all blobs together.
    limit: Option<u64>,
}

/// A temporary folder in the store for a bundle that is not complete. Removed when dropped.
#[derive(Debug)]
pub struct ScratchFolder {
    folder: TempDir,
    _lock: File,
    _store_lock: SharedLock,
}

impl ScratchFolder {
    /// Returns the folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Store {
    /// Opens the store in the folder `path`, with a limit to the bytes of its blobs. Writing creates the folder.
    ///
    /// # Errors
    /// `path` is a file.
    pub fn new(path: impl Into<PathBuf>, limit: Option<u64>) -> Result<Self, Error> {
        let path = path.into();
        match fs::metadata(&path) {
            Ok(found) if !found.is_dir() => Err(Error::StoreNotAFolder { path }),
            _ => Ok(Self { path, limit }),
        }
    }

    /// Opens the store in the folder `path`, by default in that of the environment, with the environment's limit.
    ///
    /// The default folder is `$MLXCEL_STORE`, `$XDG_CACHE_HOME/mlxcel` or `~/.cache/mlxcel`. The limit is
    /// `$MLXCEL_STORE_LIMIT`.
    ///
    /// # Errors
    /// No folder is given and the environment names none, the folder is a file, or the limit is not a size.
    pub fn from_env(path: Option<&Path>) -> Result<Self, Error> {
        let path = path.map(Path::to_path_buf).or_else(|| default_store(|name| env::var_os(name)));
        let path = path.ok_or(Error::NoStore)?;
        Self::new(path, parse_limit(env::var_os(LIMIT_VARIABLE).as_deref())?)
    }

    /// Returns the store's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the most bytes of all blobs together, if there is a limit.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Keeps every file in the store for as long as the lock lives.
    ///
    /// # Errors
    /// The store's folder cannot be created or written.
    pub fn lock_shared(&self) -> Result<SharedLock, Error> {
        self.open_lock().map(SharedLock::new)
    }

    /// Creates a temporary folder for a bundle. If the process is killed, garbage collection removes it.
    ///
    /// # Errors
    /// The store's folder cannot be created or written.
    pub fn scratch_folder(&self) -> Result<ScratchFolder, Error> {
        let store_lock = self.lock_shared()?;
        let (folder, lock) = self.staging()?;
        Ok(ScratchFolder { folder, _lock: lock, _store_lock: store_lock })
    }

    /// Opens the file that is locked. Creates the store if it does not exist.
    pub(super) fn open_lock(&self) -> Result<File, Error> {
        fs::create_dir_all(&self.path).map_err(Error::write(&self.path))?;
        let path = self.path.join(STORE_LOCK);
        match File::options().write(true).create_new(true).open(&path) {
            Ok(file) => {
                // If this fails, other users of the store cannot lock it. They can still name another store.
                _ = file.set_permissions(fs::Permissions::from_mode(LOCK_MODE));
                Ok(file)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                File::open(&path).map_err(Error::read(path))
            }
            Err(error) => Err(Error::write(path)(error)),
        }
    }

    /// Returns the path of one of the store's folders.
    pub(super) fn folder(&self, folder: StoreFolder) -> PathBuf {
        folder.path(&self.path)
    }

    /// Returns the path of one of the store's folders. Creates the folder if it does not exist.
    pub(super) fn create_folder(&self, folder: StoreFolder) -> Result<PathBuf, Error> {
        let path = self.folder(folder);
        fs::create_dir_all(&path).map_err(Error::write(&path))?;
        Ok(path)
    }

    /// Returns the path of a blob.
    pub(super) fn blob_path(&self, digest: Digest) -> PathBuf {
        self.folder(StoreFolder::Blobs).join(digest.hex())
    }

    /// Returns path and length of a blob if the store has it undamaged.
    pub(super) fn find_blob(&self, digest: Digest) -> Option<(PathBuf, u64)> {
        let path = self.blob_path(digest);
        let is_regular = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        let (found, size) = is_regular.then(|| Digest::of_file(&path).ok())??;
        (found == digest).then_some((path, size))
    }

    /// Adds all of `source` as a blob, which replaces a damaged one. Errors of reading name `from`.
    pub(super) fn add_blob(&self, source: &mut dyn Read, from: &Path) -> Result<Blob, Error> {
        let mut incoming = self.incoming_file()?;
        let (digest, size) = copy_hashed(source, from, incoming.as_file_mut(), &self.path)?;
        let path = self.blob_path(digest);
        self.create_folder(StoreFolder::Blobs)?;
        incoming.persist(&path).map_err(|error| Error::write(&path)(error.error))?;
        Ok(Blob { digest, size })
    }

    /// Creates a temporary file for a blob.
    fn incoming_file(&self) -> Result<NamedTempFile, Error> {
        let incoming = self.create_folder(StoreFolder::Incoming)?;
        let mode = fs::Permissions::from_mode(BLOB_MODE);
        let file = tempfile::Builder::new().prefix(".").permissions(mode).tempfile_in(&incoming);
        file.map_err(Error::write(incoming))
    }

    /// Creates and locks a temporary folder.
    pub(super) fn staging(&self) -> Result<(TempDir, File), Error> {
        staging_in(&self.create_folder(StoreFolder::Incoming)?, OsStr::new("."))
    }

    /// Writes a small file by an atomic rename.
    pub(super) fn replace(&self, folder: StoreFolder, name: &str, text: &str) -> Result<(), Error> {
        let folder = self.create_folder(folder)?;
        let (staging, _lock) = self.staging()?;
        replace_file(&folder, staging.path(), name, text.as_bytes()).map_err(Error::write(folder.join(name)))
    }

    /// Syncs the names of new blobs to the disk.
    pub(super) fn sync_blobs(&self) -> Result<(), Error> {
        let blobs = self.create_folder(StoreFolder::Blobs)?;
        sync_folder(&blobs).map_err(Error::write(blobs))
    }
}

/// Returns the digest that names the file at `path`.
pub(super) fn digest_in_name(path: &Path) -> Option<Digest> {
    path.file_name().and_then(OsStr::to_str).and_then(Digest::from_hex)
}

/// Parses the limit of the environment. An empty variable counts as unset.
pub(super) fn parse_limit(text: Option<&OsStr>) -> Result<Option<u64>, Error> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let size = text.to_str().and_then(|text| text.parse::<ByteSize>().ok());
    let size = size.ok_or_else(|| Error::StoreLimit { found: text.to_string_lossy().into_owned() })?;
    Ok(Some(size.as_u64()))
}
