//! The key that tells a user's notes in a store from those of other users, who may be able to write there.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::{
    fs::OFlags,
    process::geteuid,
    rand::{GetRandomFlags, getrandom},
};

use crate::layout::{NOTES_KEY, StoreFolder};

/// A key that only this user can read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UserKey([u8; blake3::KEY_LEN]);

impl UserKey {
    /// Opens the user's key in the store at `store`. Creates it if it does not exist.
    pub(super) fn in_store(store: &Path) -> io::Result<Self> {
        Self::open(&StoreFolder::OfUser(geteuid().as_raw()).path(store))
    }

    /// Opens the key in `folder`. Creates both if they do not exist.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(NOTES_KEY);
        if fs::symlink_metadata(&path).is_err() {
            Self::create(folder, &path)?;
        }
        // What was checked is what is read, even if another user replaces it meanwhile.
        let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
        let mut file = File::options().read(true).custom_flags(flags).open(&path)?;
        let found = file.metadata()?;
        if !found.is_file() || found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
            return Err(io::Error::other("other users can read or replace the key"));
        }
        let mut key = [0; blake3::KEY_LEN];
        if found.len() != key.len() as u64 {
            return Err(io::Error::other("the key has the wrong length"));
        }
        file.read_exact(&mut key)?;
        Ok(Self(key))
    }

    /// Writes a new key, unless another process is faster. Then its key stays.
    fn create(folder: &Path, path: &Path) -> io::Result<()> {
        let mut key = [0; blake3::KEY_LEN];
        if getrandom(&mut key, GetRandomFlags::empty())? != key.len() {
            return Err(io::Error::other("too few random bytes"));
        }
        // Only its owner can read a temporary file.
        let mut staged = tempfile::NamedTempFile::new_in(folder)?;
        staged.write_all(&key)?;
        // A key that is not complete would never be replaced.
        staged.as_file().sync_all()?;
        _ = staged.persist_noclobber(path);
        Ok(())
    }

    /// Returns a text of hex digits that only who has the key can make of `claim`.
    pub(super) fn seal(&self, claim: &str) -> String {
        blake3::keyed_hash(&self.0, claim.as_bytes()).to_hex().to_string()
    }

    #[cfg(test)]
    pub(super) fn of(bytes: [u8; blake3::KEY_LEN]) -> Self {
        Self(bytes)
    }
}

/// Writes a note by an atomic rename.
pub(super) fn write_note(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut staged = tempfile::NamedTempFile::new_in(folder)?;
    staged.write_all(text.as_bytes())?;
    staged.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_key_that_other_users_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let open = || UserKey::open(&store);
        let key = open().unwrap();
        assert_eq!(open().unwrap(), key);
        let path = store.join(NOTES_KEY);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(open().is_err());
        fs::rename(&path, folder.path().join("elsewhere")).unwrap();
        symlink(folder.path().join("elsewhere"), &path).unwrap();
        assert!(open().is_err());
        fs::remove_file(&path).unwrap();
        fs::write(&path, [7; 31]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(open().is_err());
        fs::remove_file(&path).unwrap();
        assert_ne!(open().unwrap(), key);
    }
}
