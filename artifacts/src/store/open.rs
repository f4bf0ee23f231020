//! The store: files by their content, shared by everything on this machine that has them in common.
//!
//! ```text
//! blobs/<digest>                 a file; every name is the blake3 digest of what is in it
//! bundles/<digest>/              a bundle's manifest, named by its digest
//! names/<name>                   which of them a name means
//! signatures/<name>=<digest>     the signature that it has under this name
//! built/<key>                    which blob the compiler gave for a key
//! incoming/                      what is on its way into the store, and what a download has so far
//! notes/                         what this machine remembers of bundles: see `bundle/verified.rs` and `bundle/origin.rs`
//! lock                           held shared by who adds and uses, alone by who collects
//! ```
//!
//! Everything is written beside its place, brought to the disk and renamed, and what names something is written after it:
//! a process that dies at any moment leaves a store that is whole, and perhaps files that nothing names, which
//! [`Store::collect`] removes. What is damaged afterwards counts as missing, and adding it again mends it.

use std::{
    env,
    ffi::{OsStr, OsString},
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
    layout::{BLOBS, INCOMING},
};

/// The variable that says how many bytes the store may have.
const LIMIT: &str = "MLXCEL_STORE_LIMIT";

/// A folder of files that bundles and builds share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    pub(super) path: PathBuf,
    /// How many bytes its blobs may have together.
    pub(super) limit: Option<u64>,
}

/// A folder in the store for a bundle on its way there. Goes when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _lock: File,
    _using: SharedLock,
}

impl Scratch {
    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Store {
    /// Opens the store in the folder `path`, whose blobs may have `limit` bytes together. The folder is made by whatever is
    /// put there first.
    ///
    /// # Errors
    /// When something that is no folder lies there.
    pub fn new(path: impl Into<PathBuf>, limit: Option<u64>) -> Result<Self, Error> {
        let path = path.into();
        match fs::metadata(&path) {
            Ok(found) if !found.is_dir() => Err(Error::StoreNotAFolder { path }),
            _ => Ok(Self { path, limit }),
        }
    }

    /// Opens the store in the folder `path`, which a program was given, or where the environment says: at `$MLXCEL_STORE`,
    /// `$XDG_CACHE_HOME/mlxcel` or `~/.cache/mlxcel`. `$MLXCEL_STORE_LIMIT` limits it.
    ///
    /// # Errors
    /// When no path is given and the environment names none, something that is no folder lies there, or
    /// `$MLXCEL_STORE_LIMIT` is no size.
    pub fn from_env(path: Option<&Path>) -> Result<Self, Error> {
        let path = path.map(Path::to_path_buf).or_else(|| default_path(|name| env::var_os(name)));
        Self::new(path.ok_or(Error::NoStore)?, limit(env::var_os(LIMIT).as_deref())?)
    }

    /// The store's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps what is in the store there for as long as the answer lives.
    ///
    /// # Errors
    /// When the store's folder cannot be made or written.
    pub fn in_use(&self) -> Result<SharedLock, Error> {
        self.lock().map(SharedLock::new)
    }

    /// A folder for a bundle that is not whole yet. What a process leaves there that is killed is collected.
    ///
    /// # Errors
    /// When the store's folder cannot be made or written.
    pub fn scratch(&self) -> Result<Scratch, Error> {
        let using = self.in_use()?;
        let (folder, lock) = self.incoming_folder()?;
        Ok(Scratch { folder, _lock: lock, _using: using })
    }

    pub(super) fn lock(&self) -> Result<File, Error> {
        fs::create_dir_all(&self.path).map_err(Error::write(&self.path))?;
        let path = self.path.join("lock");
        let mode = |file: &File| file.set_permissions(fs::Permissions::from_mode(0o666));
        match File::options().write(true).create_new(true).open(&path) {
            Ok(file) => {
                // For the other users of a shared store; where it cannot be, they have a store of their own.
                _ = mode(&file);
                Ok(file)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                File::open(&path).map_err(Error::read(path))
            }
            Err(error) => Err(Error::write(path)(error)),
        }
    }

    /// Where its blobs lie.
    pub(crate) fn blobs(&self) -> PathBuf {
        self.path.join(BLOBS)
    }

    pub(super) fn blob_path(&self, digest: Digest) -> PathBuf {
        self.blobs().join(digest.hex())
    }

    /// The blob, and how many bytes it has, if it is there and whole.
    pub(super) fn whole_blob(&self, digest: Digest) -> Option<(PathBuf, u64)> {
        let path = self.blob_path(digest);
        let regular = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        let (found, size) = regular.then(|| Digest::of_file(&path).ok())??;
        (found == digest).then_some((path, size))
    }

    /// Adds everything that `source` gives, which a failed read calls `from`, in place of a damaged one.
    pub(super) fn add_blob(&self, source: &mut dyn Read, from: &Path) -> Result<Blob, Error> {
        let mut incoming = self.incoming_file()?;
        let (digest, size) = copy_hashed(source, from, incoming.as_file_mut(), &self.path)?;
        self.place_blob(incoming, digest)?;
        Ok(Blob { digest, size })
    }

    /// Puts a file that is on the disk in its place.
    fn place_blob(&self, incoming: NamedTempFile, digest: Digest) -> Result<PathBuf, Error> {
        let path = self.blob_path(digest);
        self.make(BLOBS)?;
        incoming.persist(&path).map_err(|error| Error::write(&path)(error.error))?;
        Ok(path)
    }

    /// A file on its way into the store.
    fn incoming_file(&self) -> Result<NamedTempFile, Error> {
        let incoming = self.make(INCOMING)?;
        // Nobody has a reason to write to it ever after.
        let mode = fs::Permissions::from_mode(0o444);
        let file = tempfile::Builder::new().prefix(".").permissions(mode).tempfile_in(&incoming);
        file.map_err(Error::write(incoming))
    }

    /// A folder for what is on its way.
    pub(super) fn incoming_folder(&self) -> Result<(TempDir, File), Error> {
        staging_in(&self.make(INCOMING)?, OsStr::new("."))
    }

    /// One of the store's folders.
    pub(super) fn make(&self, folder: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(folder);
        fs::create_dir_all(&path).map_err(Error::write(&path))?;
        Ok(path)
    }

    /// Puts a small file in its place, at once and on the disk.
    pub(super) fn replace(&self, folder: &str, name: &str, text: &str) -> Result<(), Error> {
        let folder = self.make(folder)?;
        let (staging, _lock) = self.incoming_folder()?;
        replace_file(&folder, staging.path(), name, text.as_bytes()).map_err(Error::write(folder.join(name)))
    }

    /// Brings the names of new blobs to the disk.
    pub(super) fn sync_blobs(&self) -> Result<(), Error> {
        let blobs = self.make(BLOBS)?;
        sync_folder(&blobs).map_err(Error::write(blobs))
    }
}

/// The files of a folder; none where there is no folder.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(Error::read(folder))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(Error::read(folder))?.path());
    }
    paths.sort();
    Ok(paths)
}

/// The digest that names a file.
pub(super) fn named(path: &Path) -> Option<Digest> {
    path.file_name().and_then(OsStr::to_str).and_then(Digest::from_hex)
}

/// The store's place by the environment. An empty variable counts as unset, and so does a relative `XDG_CACHE_HOME`, as
/// its specification has it.
pub(super) fn default_path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("MLXCEL_STORE")
        .or_else(|| variable("XDG_CACHE_HOME").filter(|p| p.is_absolute()).map(|p| p.join("mlxcel")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/mlxcel")))
}

/// The limit by the environment.
pub(super) fn limit(text: Option<&OsStr>) -> Result<Option<u64>, Error> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let size = text.to_str().and_then(|text| text.parse::<ByteSize>().ok());
    let size = size.ok_or_else(|| Error::StoreLimit { found: text.to_string_lossy().into_owned() })?;
    Ok(Some(size.as_u64()))
}
