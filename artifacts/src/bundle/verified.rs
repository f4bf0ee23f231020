//! Which large files were found whole before, so that not every start reads gigabytes of weights to find them whole again.
//! Code and small files are verified when they are read, besides.
//!
//! A file is known by the place and the times that the file system gives it. Whoever writes to it changes the time of its
//! last change, which nobody can set back, and it is read again. Whoever had mapped it before may write without that as long
//! as the pages are not on the disk: so they are brought there before the file is read, and a file that lies in memory alone
//! is not noted if others may write to it. What this cannot see is a disk that loses bits by itself: `mlxcel-bundle
//! verify` always reads everything.
//!
//! A note carries a code under a key that only this user can read, so that nobody else's note is believed, nor one that was
//! torn, edited or copied from another machine.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::fstatfs,
    process::geteuid,
    rand::{GetRandomFlags, getrandom},
};

use crate::{digest::Digest, identity::FileIdentity, layout::VERIFIED};

/// The key's file beside the notes.
const KEY: &str = "key";

/// A file that was changed this short a time ago could be changed again without another time: file systems' clocks tick some
/// hundred times a second, or every second.
const SETTLED: Duration = Duration::from_secs(2);

/// File systems without a disk, by their numbers in Linux's `magic.h`.
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

/// The files that were found whole.
#[derive(Debug)]
pub(crate) struct VerifiedFiles {
    /// `None` where there is nowhere to remember anything.
    notes: Option<Notes>,
}

impl VerifiedFiles {
    /// Opens the notes in the store at `store`. Without a store nothing is remembered.
    pub(crate) fn in_store(store: Option<&Path>) -> Self {
        let folder = |store: &Path| store.join(format!("{VERIFIED}{}", geteuid().as_raw()));
        Self { notes: store.map(folder).and_then(|folder| Notes::in_folder(folder).ok()) }
    }

    /// The digest of the file at `path`, which is `expected` without reading it where it was found so before.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn digest(&self, path: &Path, expected: Digest) -> io::Result<Digest> {
        let before = identity(path)?;
        if self.notes.as_ref().is_some_and(|notes| notes.have(expected, &before)) {
            return Ok(expected);
        }
        let is_watched = is_settled(&before) && shows_writes(path)?;
        let (found, _) = Digest::of_file(path)?;
        if let Some(notes) = &self.notes
            && found == expected
            && is_watched
            && before == identity(path)?
        {
            // What cannot be noted is read again next time.
            _ = notes.write(expected, &before);
        }
        Ok(found)
    }
}

/// Whether every write to the file from now on changes its times, or is its owner's, who is this user or the system.
fn shows_writes(path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    let ours = [geteuid().as_raw(), 0].contains(&found.uid()) && found.mode() & 0o022 == 0;
    let in_memory = [TMPFS, RAMFS].contains(&(fstatfs(&file)?.f_type as u64));
    // A page that was written through a mapping is watched again once it is on the disk.
    Ok(ours || !in_memory && file.sync_data().is_ok())
}

/// A folder of notes, one for a digest, and the key to them.
#[derive(Debug)]
struct Notes {
    folder: PathBuf,
    key: [u8; blake3::KEY_LEN],
}

impl Notes {
    /// Makes the folder and the key where they are missing.
    fn in_folder(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let path = folder.join(KEY);
        if fs::symlink_metadata(&path).is_err() {
            let mut key = [0; blake3::KEY_LEN];
            if getrandom(&mut key, GetRandomFlags::empty())? != key.len() {
                return Err(io::Error::other("too few random bytes"));
            }
            // A temporary file is for its owner's eyes.
            let mut staged = tempfile::NamedTempFile::new_in(&folder)?;
            staged.write_all(&key)?;
            // Half a key would be one for ever.
            staged.as_file().sync_all()?;
            // Another process may have been faster: its key is as good.
            _ = staged.persist_noclobber(&path);
        }
        let found = fs::symlink_metadata(&path)?;
        if !found.is_file() || found.uid() != geteuid().as_raw() || found.mode() & 0o077 != 0 {
            return Err(io::Error::other("the key is not for its owner's eyes alone"));
        }
        let key = fs::read(&path)?.try_into().map_err(|_| io::Error::other("no key"))?;
        Ok(Self { folder, key })
    }

    fn text(&self, digest: Digest, identity: &FileIdentity) -> String {
        let claim = format!("{} {identity}\n", digest.hex());
        format!("{identity}\n{}\n", blake3::keyed_hash(&self.key, claim.as_bytes()).to_hex())
    }

    fn have(&self, digest: Digest, identity: &FileIdentity) -> bool {
        let noted = fs::read_to_string(self.folder.join(digest.hex()));
        noted.is_ok_and(|noted| noted == self.text(digest, identity))
    }

    fn write(&self, digest: Digest, identity: &FileIdentity) -> io::Result<()> {
        let mut staged = tempfile::NamedTempFile::new_in(&self.folder)?;
        staged.write_all(self.text(digest, identity).as_bytes())?;
        staged.persist(self.folder.join(digest.hex())).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Returns the identity of the file at `path`.
fn identity(path: &Path) -> io::Result<FileIdentity> {
    fs::metadata(path).map(|found| FileIdentity::of(&found))
}

/// Returns whether a change from now on gives the file another identity.
fn is_settled(identity: &FileIdentity) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.checked_sub(identity.changed()).is_some_and(|age| age > SETTLED)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// A file with these bytes that was changed long enough ago, as far as the tests can wait.
    fn settled(path: &Path, bytes: &[u8]) {
        fs::write(path, bytes).unwrap();
        thread::sleep(SETTLED + Duration::from_millis(100));
    }

    /// Notes in `store`, and how many there are.
    fn known(folder: &Path) -> (VerifiedFiles, impl Fn() -> usize) {
        let store = folder.join("store");
        let notes = Notes::in_folder(store.clone()).unwrap();
        // The key is one of the files.
        (VerifiedFiles { notes: Some(notes) }, move || fs::read_dir(&store).unwrap().count() - 1)
    }

    #[test]
    fn a_file_is_read_once_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (known, notes) = known(folder.path());
        let (path, whole) = (folder.path().join("blob"), Digest::of(b"whole"));
        settled(&path, b"whole");
        assert_eq!(known.digest(&path, whole).unwrap(), whole);
        let note = folder.path().join("store").join(whole.hex());
        let noted = fs::read_to_string(&note).unwrap();
        // It is believed: what our own note says of this file is not checked against the bytes.
        let other = Digest::of(b"other");
        known.notes.as_ref().unwrap().write(other, &identity(&path).unwrap()).unwrap();
        assert_eq!(known.digest(&path, other).unwrap(), other);
        assert_eq!(notes(), 2);
        // Same length, and the time of the content set back: the time of the change tells.
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, b"whale").unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
        assert_eq!(known.digest(&path, whole).unwrap(), Digest::of(b"whale"));
        assert_eq!(fs::read_to_string(&note).unwrap(), noted);
    }

    #[test]
    fn nothing_is_noted_of_what_is_fresh_or_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let (known, notes) = known(folder.path());
        let path = folder.path().join("blob");
        fs::write(&path, b"fresh").unwrap();
        assert_eq!(known.digest(&path, Digest::of(b"fresh")).unwrap(), Digest::of(b"fresh"));
        settled(&path, b"damaged");
        assert_eq!(known.digest(&path, Digest::of(b"fresh")).unwrap(), Digest::of(b"damaged"));
        assert_eq!(notes(), 0);
        let nowhere = VerifiedFiles { notes: None };
        assert_eq!(nowhere.digest(&path, Digest::of(b"damaged")).unwrap(), Digest::of(b"damaged"));
    }

    #[test]
    fn only_our_own_notes_are_believed() {
        let folder = tempfile::tempdir().unwrap();
        let (known, _) = known(folder.path());
        let path = folder.path().join("blob");
        settled(&path, b"damaged");
        let (damaged, expected) = (Digest::of(b"damaged"), Digest::of(b"whole"));
        known.digest(&path, damaged).unwrap();
        let store = folder.path().join("store");
        let identity = identity(&path).unwrap();
        let noted = fs::read_to_string(store.join(damaged.hex())).unwrap();
        let stranger = Notes { folder: store.clone(), key: [7; 32] };
        let forged =
            [format!("{identity}\n"), noted.clone(), stranger.text(expected, &identity), noted[..30].into()];
        for text in forged {
            fs::write(store.join(expected.hex()), &text).unwrap();
            assert_eq!(known.digest(&path, expected).unwrap(), damaged, "{text} was believed");
        }
    }

    #[test]
    fn a_key_that_others_can_read_is_none() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let open = || Notes::in_folder(folder.path().join("store"));
        let key = open().unwrap().key;
        assert_eq!(open().unwrap().key, key);
        let path = folder.path().join("store").join(KEY);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(open().is_err());
        fs::rename(&path, folder.path().join("elsewhere")).unwrap();
        symlink(folder.path().join("elsewhere"), &path).unwrap();
        assert!(open().is_err());
        fs::remove_file(&path).unwrap();
        assert_ne!(open().unwrap().key, key);
    }
}
