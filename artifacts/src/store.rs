//! A cache of built files, by the key of everything that determines them.
//!
//! An entry is a file `<store>/<key's hex>/<content's hex>`. Its name says what it must contain, so one rename makes it
//! and one hash checks it; several processes may put the same entry at once, and every one of them succeeds.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crate::{copy::copy_hashed, digest::Digest, error::Error};

/// A folder of built files, by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// The store at `path`; without one at `$MLXCEL_STORE`, `$XDG_CACHE_HOME/mlxcel` or `~/.cache/mlxcel`. The folder is
    /// made by the first [`Store::put`].
    ///
    /// # Errors
    /// When no path is given and the environment names none, or something that is no folder lies there.
    pub fn open(path: Option<&Path>) -> Result<Self, Error> {
        let path = path.map(Path::to_path_buf).or_else(|| default_path(|name| env::var_os(name)));
        let path = path.ok_or(Error::NoStore)?;
        match fs::metadata(&path) {
            Ok(found) if !found.is_dir() => Err(Error::StoreNotAFolder { path }),
            _ => Ok(Self { path }),
        }
    }

    /// The store's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file put under `key`, verified. A damaged one counts as none: it will be made again.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn get(&self, key: &Digest) -> Result<Option<PathBuf>, Error> {
        let folder = self.folder(key);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(Error::read(&folder))?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(Error::read(&folder))?.path());
        }
        // More than one where a compiler gave two outputs for one key: any will do, but always the same.
        paths.sort();
        Ok(paths.into_iter().find(|path| is_whole(path)))
    }

    /// Puts a copy of `file` under `key`; gives the copy's path.
    ///
    /// # Errors
    /// When `file` cannot be read or the store cannot be written; the store is then as it was.
    pub fn put(&self, key: &Digest, file: &Path) -> Result<PathBuf, Error> {
        let folder = self.folder(key);
        fs::create_dir_all(&folder).map_err(Error::write(&folder))?;
        // The mode is that of an ordinary new file, so that users who share a store can read it.
        let mode = fs::Permissions::from_mode(0o666);
        let temporary = tempfile::Builder::new().prefix(".put.").permissions(mode).tempfile_in(&folder);
        let mut temporary = temporary.map_err(Error::write(&folder))?;
        let mut source = fs::File::open(file).map_err(Error::read(file))?;
        let (content, _) = copy_hashed(&mut source, file, temporary.as_file_mut(), &folder)?;
        let path = folder.join(content.hex());
        temporary.persist(&path).map_err(|error| Error::write(&path)(error.error))?;
        Ok(path)
    }

    fn folder(&self, key: &Digest) -> PathBuf {
        self.path.join(key.hex())
    }
}

/// Whether `path` is a regular file with the content that its name says.
fn is_whole(path: &Path) -> bool {
    let named = path.file_name().and_then(OsStr::to_str).and_then(Digest::from_hex);
    let regular = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    named.is_some_and(|named| regular && Digest::of_file(path).is_ok_and(|(found, _)| found == named))
}

/// The store's place by the environment. An empty variable counts as unset, and so does a relative `XDG_CACHE_HOME`, as
/// its specification has it.
fn default_path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("MLXCEL_STORE")
        .or_else(|| variable("XDG_CACHE_HOME").filter(|p| p.is_absolute()).map(|p| p.join("mlxcel")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/mlxcel")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store in a temporary folder, and a file to put.
    fn store() -> (tempfile::TempDir, Store, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(Some(&folder.path().join("store"))).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "content").unwrap();
        (folder, store, file)
    }

    #[test]
    fn what_was_put_is_found() {
        let (_folder, store, file) = store();
        let (key, other) = (Digest::of(b"key"), Digest::of(b"other"));
        assert_eq!(store.get(&key).unwrap(), None);
        let path = store.put(&key, &file).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"content");
        assert_eq!(store.get(&key).unwrap(), Some(path));
        assert_eq!(store.get(&other).unwrap(), None);
    }

    #[test]
    fn a_damaged_entry_is_a_miss_and_heals() {
        let (_folder, store, file) = store();
        let key = Digest::of(b"key");
        let path = store.put(&key, &file).unwrap();
        for damage in ["contenT", "", "longer content"] {
            fs::write(&path, damage).unwrap();
            assert_eq!(store.get(&key).unwrap(), None);
            assert_eq!(store.put(&key, &file).unwrap(), path);
            assert_eq!(store.get(&key).unwrap().as_ref(), Some(&path));
        }
        // A link to the right content is not the store's own file.
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&file, &path).unwrap();
        assert_eq!(store.get(&key).unwrap(), None);
    }

    #[test]
    fn a_put_that_was_cut_short_is_not_found() {
        let (_folder, store, file) = store();
        let key = Digest::of(b"key");
        store.put(&Digest::of(b"other"), &file).unwrap();
        fs::create_dir_all(store.folder(&key)).unwrap();
        fs::write(store.folder(&key).join(".put.abc"), "cont").unwrap();
        assert_eq!(store.get(&key).unwrap(), None);
    }

    #[test]
    fn puts_at_once_all_succeed() {
        let (_folder, store, file) = store();
        let key = Digest::of(b"key");
        let paths: Vec<PathBuf> = std::thread::scope(|scope| {
            let put = || {
                let path = store.put(&key, &file).unwrap();
                // Whole at any moment, whoever is writing.
                assert_eq!(store.get(&key).unwrap().as_ref(), Some(&path));
                path
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(put)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(paths.iter().all(|path| *path == paths[0]));
        assert_eq!(fs::read_dir(store.folder(&key)).unwrap().count(), 1);
    }

    #[test]
    fn errors_name_the_path() {
        let (folder, store, file) = store();
        let missing = folder.path().join("missing");
        let error = store.put(&Digest::of(b"key"), &missing).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read {}", missing.display()));
        assert_eq!(fs::read_dir(store.folder(&Digest::of(b"key"))).unwrap().count(), 0);
        assert_eq!(
            Store::open(Some(&file)).unwrap_err().to_string(),
            format!(
                "the store {} is a file, expected a folder or nothing\n\
                 hint: --store or MLXCEL_STORE names a folder",
                file.display()
            )
        );
    }

    #[test]
    fn the_environment_names_the_store() {
        let path = |set: &[(&str, &str)]| {
            default_path(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into()))
        };
        let all = [("MLXCEL_STORE", "/s"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(path(&all), Some("/s".into()));
        assert_eq!(path(&all[1..]), Some("/x/mlxcel".into()));
        assert_eq!(path(&all[2..]), Some("/h/.cache/mlxcel".into()));
        assert_eq!(
            path(&[("MLXCEL_STORE", ""), ("XDG_CACHE_HOME", "r"), ("HOME", "/h")]),
            Some("/h/.cache/mlxcel".into())
        );
        assert_eq!(path(&[]), None);
        assert_eq!(
            Error::NoStore.to_string(),
            "no folder for the store: neither HOME, XDG_CACHE_HOME nor MLXCEL_STORE is set\n\
             hint: set MLXCEL_STORE to a folder"
        );
    }
}
