//! Files and folders: copied with their digest, staged beside their place, renamed and synced.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    digest::{Digest, Stopped, read_hashed},
    error::Error,
    layout::STAGING_LOCK,
};

/// A staging folder is not taken for a left one before this age: it is not locked in the moment it is made.
const LEFT_AFTER: Duration = Duration::from_secs(60);

/// Copies everything that `source` gives into `to` and syncs it. `from` is the path that a failed read names, `shown` that of
/// a failed write: `to` itself may be a temporary file whose name says nothing.
pub(crate) fn copy_hashed(
    source: &mut dyn Read,
    from: &Path,
    to: &mut File,
    shown: &Path,
) -> Result<(Digest, u64), Error> {
    let copied = read_hashed(source, |chunk| to.write_all(chunk)).map_err(|stopped| match stopped {
        Stopped::Read(error) => Error::read(from)(error),
        Stopped::Sink(error) => Error::write(shown)(error),
    })?;
    to.sync_all().map_err(Error::write(shown))?;
    Ok(copied)
}

/// The folder that `out` lies in.
pub(crate) fn parent(out: &Path) -> Result<PathBuf, Error> {
    match (out.file_name(), out.parent()) {
        (None, _) => Err(Error::NoName(out.to_path_buf())),
        (_, Some(parent)) if parent != Path::new("") => Ok(parent.to_path_buf()),
        _ => Ok(PathBuf::from(".")),
    }
}

/// A folder beside the bundle `out`, and the lock that says that it is in use. Removes what killed writers of that bundle
/// left.
pub(crate) fn staging(out: &Path) -> Result<(TempDir, File), Error> {
    let parent = parent(out)?;
    let mut prefix = OsStr::new(".").to_os_string();
    prefix.push(out.file_name().unwrap_or_default());
    prefix.push(".");
    staging_in(&parent, &prefix)
}

/// The same in the folder `parent`, of a name that starts with `prefix`.
pub(crate) fn staging_in(parent: &Path, prefix: &OsStr) -> Result<(TempDir, File), Error> {
    remove_left(parent, prefix);
    let staging = tempfile::Builder::new().prefix(prefix).tempdir_in(parent);
    let staging = staging.map_err(Error::write(parent))?;
    let lock = File::create(staging.path().join(STAGING_LOCK)).map_err(Error::write(parent))?;
    // Not every file system has locks; without one, nothing is ever removed as left.
    _ = lock.try_lock();
    Ok((staging, lock))
}

/// Removes the staging folders of killed writers of one bundle: those in `parent` that start with `prefix`. Whatever cannot
/// be removed stays; the next writer tries again.
fn remove_left(parent: &Path, prefix: &OsStr) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_encoded_bytes())
            && is_left(&entry.path())
        {
            _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether `staging` was made by a writer that does not live any more.
fn is_left(staging: &Path) -> bool {
    let Ok(lock) = File::open(staging.join(STAGING_LOCK)) else { return false };
    let age = lock.metadata().and_then(|lock| lock.modified()).ok().and_then(|made| made.elapsed().ok());
    age.is_some_and(|age| age > LEFT_AFTER) && lock.try_lock().is_ok()
}

/// Puts a file of these bytes into `folder`, at once, in place of the one of that name: staged, brought to the disk, renamed.
pub(crate) fn replace_file(folder: &Path, staging: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let staged = staging.join(name);
    let mut file = File::create(&staged)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&staged, folder.join(name))?;
    sync_folder(folder)
}

/// Brings a folder's entries to the disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// A lock that is held together with others. While it lives, nothing is collected from the store.
#[derive(Debug)]
pub struct SharedLock {
    _file: File,
}

impl SharedLock {
    /// Locks `file`. On a file system without locks nothing is held.
    pub(crate) fn new(file: File) -> Self {
        _ = file.lock_shared();
        Self { _file: file }
    }
}
