//! Writing files and folders: staged beside their place, synced, and put there by an atomic rename.

use std::{
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::{self, Read, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    digest::{Digest, Stopped, read_hashed},
    error::Error,
    layout::{BLOBS, STAGING_LOCK},
};

/// The youngest age of an abandoned staging folder. A younger one may not be locked yet.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// A lock that is held together with others. While one lives, nothing is removed from the store.
#[derive(Debug)]
pub struct SharedLock {
    file: File,
}

impl SharedLock {
    /// Locks `file`. On a file system without locks nothing is held.
    pub(crate) fn new(file: File) -> Self {
        _ = file.lock_shared();
        Self { file }
    }
}

impl Drop for SharedLock {
    /// Unlocks the file. Closing it would not, while a process that is being started still has a copy of its descriptor.
    fn drop(&mut self) {
        _ = self.file.unlock();
    }
}

/// Copies all of `source` into `to` and syncs it. Returns digest and length.
///
/// Errors name `from` for a failed read and `destination` for a failed write, because `to` may be a temporary file.
pub(crate) fn copy_hashed(
    source: &mut dyn Read,
    from: &Path,
    to: &mut File,
    destination: &Path,
) -> Result<(Digest, u64), Error> {
    let copied = read_hashed(source, |chunk| to.write_all(chunk)).map_err(|stopped| match stopped {
        Stopped::Read(error) => Error::read(from)(error),
        Stopped::Sink(error) => Error::write(destination)(error),
    })?;
    to.sync_all().map_err(Error::write(destination))?;
    Ok(copied)
}

/// Returns the folder that contains `out`.
pub(crate) fn parent(out: &Path) -> Result<PathBuf, Error> {
    match (out.file_name(), out.parent()) {
        (None, _) => Err(Error::NoFolderName(out.to_path_buf())),
        (_, Some(parent)) if parent != Path::new("") => Ok(parent.to_path_buf()),
        _ => Ok(PathBuf::from(".")),
    }
}

/// Creates a staging folder beside the bundle `out`, and locks it. Removes abandoned staging folders of that bundle.
///
/// # Errors
/// The folder cannot be created, or a rename cannot move files from it into the bundle.
pub(crate) fn staging(out: &Path) -> Result<(TempDir, File), Error> {
    let parent = parent(out)?;
    let mut prefix = OsStr::new(".").to_os_string();
    prefix.push(out.file_name().unwrap_or_default());
    prefix.push(".");
    let (staging, lock) = staging_in(&parent, &prefix)?;
    for folder in [out, out.join(BLOBS).as_path()] {
        refuse_mount_point(staging.path(), folder)?;
    }
    Ok((staging, lock))
}

/// Refuses a folder on another file system than the staging folder beside it, before anything is written.
fn refuse_mount_point(staging: &Path, folder: &Path) -> Result<(), Error> {
    // Only folders: overlays give files the numbers of other devices.
    let device = |path: &Path| {
        let found = fs::symlink_metadata(path).ok().filter(Metadata::is_dir)?;
        Some(found.dev())
    };
    match (device(staging), device(folder)) {
        (Some(beside), Some(found)) if beside != found => {
            let problem = "it is a mount point, expected a folder on the file system of its parent\n\
                           hint: mount the folder that contains the bundle";
            Err(Error::write(folder)(io::Error::other(problem)))
        }
        _ => Ok(()),
    }
}

/// Creates a staging folder in `parent` whose name starts with `prefix`, and locks it. Removes abandoned ones.
pub(crate) fn staging_in(parent: &Path, prefix: &OsStr) -> Result<(TempDir, File), Error> {
    remove_abandoned(parent, prefix);
    let staging = tempfile::Builder::new().prefix(prefix).tempdir_in(parent);
    let staging = staging.map_err(Error::write(parent))?;
    let lock = File::create(staging.path().join(STAGING_LOCK)).map_err(Error::write(parent))?;
    // On a file system without locks no staging folder ever counts as abandoned.
    _ = lock.try_lock();
    Ok((staging, lock))
}

/// Removes the staging folders in `parent` whose writers died. What cannot be removed is left to the next writer.
fn remove_abandoned(parent: &Path, prefix: &OsStr) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if is_staging(&entry.file_name(), prefix) && is_abandoned(&entry.path()) {
            _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns whether a staging folder can have this name: the prefix and tempfile's six letters and digits.
fn is_staging(name: &OsStr, prefix: &OsStr) -> bool {
    let rest = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
    rest.is_some_and(|rest| rest.len() == 6 && rest.iter().all(u8::is_ascii_alphanumeric))
}

/// Returns whether the writer of a staging folder died. Other folders may have a file of the lock's name, but no empty one.
fn is_abandoned(staging: &Path) -> bool {
    let path = staging.join(STAGING_LOCK);
    if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() == 0) {
        return false;
    }
    let Ok(lock) = File::open(path) else { return false };
    let age = lock.metadata().and_then(|lock| lock.modified()).ok().and_then(|made| made.elapsed().ok());
    age.is_some_and(|age| age > ABANDONED_AFTER) && lock.try_lock().is_ok()
}

/// Writes a file into `folder` by an atomic rename, and syncs both. An existing file of this name is replaced.
pub(crate) fn replace_file(folder: &Path, staging: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let staged = staging.join(name);
    let mut file = File::create(&staged)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&staged, folder.join(name))?;
    sync_folder(folder)
}

/// Syncs the entries of a folder to the disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Returns the sorted paths of a folder's entries, or none if there is no such folder.
pub(crate) fn list_folder(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(Error::read(folder))?,
    };
    let paths = entries.map(|entry| Ok(entry.map_err(Error::read(folder))?.path()));
    let mut paths: Vec<_> = paths.collect::<Result<_, Error>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn mount_points_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let (inner, file) = (at.join("inner"), at.join("file"));
        fs::create_dir(&inner).unwrap();
        fs::write(&file, "").unwrap();
        for other in [inner, file, at.join("missing")] {
            refuse_mount_point(at, &other).unwrap();
        }
        // A file system of its own on every Linux.
        assert_eq!(
            crate::error::report(&refuse_mount_point(at, Path::new("/proc")).unwrap_err()),
            "error: cannot write /proc: it is a mount point, expected a folder on the file system of its parent\n\
             hint: mount the folder that contains the bundle"
        );
    }
}
