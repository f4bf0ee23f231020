//! Notes on verified files, so that a program does not hash gigabytes of weights at every start.
//!
//! A note names a file by its [`FileIdentity`], which contains the time of its last change. Nobody can set that time back, so
//! a changed file is read again. There are two exceptions. A mapping that was made before may change the file without changing
//! its times, as long as the pages are not on the disk: so the file is synced before it is read. And a file in memory has no
//! disk: it gets no note if other users can write to it. A disk that loses bits by itself is not noticed here; `mlxcel-bundle
//! verify` reads everything.
//!
//! A note is authenticated with the user's key. So notes of other users, edited notes and notes of other machines are ignored.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{fs::fstatfs, process::geteuid};

use super::user_key::{UserKey, write_note};
use crate::{digest::Digest, identity::FileIdentity, layout::StoreFolder};

/// The age from which on another change gets another time. The clocks of file systems tick every second at least.
const SETTLED: Duration = Duration::from_secs(2);

/// The number of tmpfs in Linux's `magic.h`.
const TMPFS: u64 = 0x0102_1994;

/// The number of ramfs, which has no disk either.
const RAMFS: u64 = 0x8584_58f6;

/// The files that were verified before.
#[derive(Debug)]
pub(crate) struct VerifiedFiles {
    /// `None` if there is no store, or it cannot be written.
    notes: Option<Notes>,
}

impl VerifiedFiles {
    /// Opens the notes in the store at `store`. Without a store nothing is remembered.
    pub(crate) fn in_store(store: Option<&Path>) -> Self {
        let folder = |store| StoreFolder::OfUser(geteuid().as_raw()).path(store);
        Self { notes: store.map(folder).and_then(|folder| Notes::open(folder).ok()) }
    }

    /// Returns the digest of the file at `path`. If the file is unchanged since it last verified as `expected`, does not read
    /// it.
    pub(crate) fn digest(&self, path: &Path, expected: Digest) -> io::Result<Digest> {
        let before = identity(path)?;
        if self.notes.as_ref().is_some_and(|notes| notes.contain(expected, &before)) {
            return Ok(expected);
        }
        let shows_changes = is_settled(&before) && shows_changes(path)?;
        let (found, _) = Digest::of_file(path)?;
        if let Some(notes) = &self.notes
            && found == expected
            && shows_changes
            && before == identity(path)?
        {
            // Without a note the file is read again next time.
            _ = notes.write(expected, &before);
        }
        Ok(found)
    }
}

/// Returns whether every change of the file by another user changes its identity. Syncs the file.
fn shows_changes(path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    let ours = [geteuid().as_raw(), 0].contains(&found.uid()) && found.mode() & 0o022 == 0;
    let in_memory = [TMPFS, RAMFS].contains(&(fstatfs(&file)?.f_type as u64));
    // The first write to a synced page of a mapping changes the times again.
    Ok(ours || !in_memory && file.sync_data().is_ok())
}

/// A folder with a note for each digest, and the key that authenticates them.
#[derive(Debug)]
struct Notes {
    folder: PathBuf,
    key: UserKey,
}

impl Notes {
    /// Opens the notes in `folder`. Creates the folder and the key if they do not exist.
    fn open(folder: PathBuf) -> io::Result<Self> {
        Ok(Self { key: UserKey::open(&folder)?, folder })
    }

    /// Returns the text of a note.
    fn text(&self, digest: Digest, identity: &FileIdentity) -> String {
        let claim = format!("{} {identity}\n", digest.hex());
        format!("{identity}\n{}\n", self.key.seal(&claim))
    }

    /// Returns whether there is a valid note.
    fn contain(&self, digest: Digest, identity: &FileIdentity) -> bool {
        let noted = fs::read_to_string(self.folder.join(digest.hex()));
        noted.is_ok_and(|noted| noted == self.text(digest, identity))
    }

    fn write(&self, digest: Digest, identity: &FileIdentity) -> io::Result<()> {
        write_note(&self.folder, &digest.hex(), &self.text(digest, identity))
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

    /// Writes a file and waits until another change gets another time.
    fn settled(path: &Path, bytes: &[u8]) {
        fs::write(path, bytes).unwrap();
        thread::sleep(SETTLED + Duration::from_millis(100));
    }

    /// Opens notes in `store`. Returns them and a function that counts them.
    fn known(folder: &Path) -> (VerifiedFiles, impl Fn() -> usize) {
        let store = folder.join("store");
        let notes = Notes::open(store.clone()).unwrap();
        // The key is one of the files.
        (VerifiedFiles { notes: Some(notes) }, move || fs::read_dir(&store).unwrap().count() - 1)
    }

    #[test]
    fn a_file_is_read_again_after_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let (known, notes) = known(folder.path());
        let (path, whole) = (folder.path().join("blob"), Digest::of(b"whole"));
        settled(&path, b"whole");
        assert_eq!(known.digest(&path, whole).unwrap(), whole);
        let note = folder.path().join("store").join(whole.hex());
        let noted = fs::read_to_string(&note).unwrap();
        // The note counts: the file is not read.
        let other = Digest::of(b"other");
        known.notes.as_ref().unwrap().write(other, &identity(&path).unwrap()).unwrap();
        assert_eq!(known.digest(&path, other).unwrap(), other);
        assert_eq!(notes(), 2);
        // The same length, and the time of the content set back. The time of the change differs.
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, b"whale").unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
        assert_eq!(known.digest(&path, whole).unwrap(), Digest::of(b"whale"));
        assert_eq!(fs::read_to_string(&note).unwrap(), noted);
    }

    #[test]
    fn fresh_and_damaged_files_get_no_note() {
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
    fn forged_notes_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let (known, _) = known(folder.path());
        let path = folder.path().join("blob");
        settled(&path, b"damaged");
        let (damaged, expected) = (Digest::of(b"damaged"), Digest::of(b"whole"));
        known.digest(&path, damaged).unwrap();
        let store = folder.path().join("store");
        let identity = identity(&path).unwrap();
        let noted = fs::read_to_string(store.join(damaged.hex())).unwrap();
        let stranger = Notes { folder: store.clone(), key: UserKey::of([7; 32]) };
        let forged =
            [format!("{identity}\n"), noted.clone(), stranger.text(expected, &identity), noted[..30].into()];
        for text in forged {
            fs::write(store.join(expected.hex()), &text).unwrap();
            assert_eq!(known.digest(&path, expected).unwrap(), damaged, "{text} was accepted");
        }
    }
}
