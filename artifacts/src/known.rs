//! Which files of weights were found whole before, so that not every start reads gigabytes to find them whole again.
//!
//! A file is known by the place and the times that the file system gives it. Whoever writes to it changes the time of its
//! last change, which nobody can set back, and it is read again. What this cannot see is a disk that loses bits by
//! itself: `mlxcel-bundle verify` always reads everything.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{digest::Digest, store::Store};

/// The folder in the store.
const FOLDER: &str = "whole";

/// A file that was changed this short a time ago could be changed again without another time: file systems' clocks tick some
/// hundred times a second, or every second.
const SETTLED: Duration = Duration::from_secs(2);

/// The files that were found whole.
#[derive(Debug)]
pub(crate) struct Known {
    /// `None` where there is nowhere to remember anything.
    folder: Option<PathBuf>,
}

impl Known {
    /// What the default store remembers.
    pub(crate) fn in_store() -> Self {
        Self { folder: Store::open(None).ok().map(|store| store.path().join(FOLDER)) }
    }

    /// The digest of the file at `path`, which is `expected` without reading it where it was found so before.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn digest(&self, path: &Path, expected: Digest) -> io::Result<Digest> {
        let before = Identity::of(path)?;
        let note = self.folder.as_ref().map(|folder| folder.join(expected.hex()));
        let noted = note.as_ref().and_then(|note| fs::read_to_string(note).ok());
        if noted.is_some_and(|noted| noted == before.text) {
            return Ok(expected);
        }
        let (found, _) = Digest::of_file(path)?;
        let after = Identity::of(path)?;
        if let Some(note) = note.filter(|_| found == expected && before == after && after.is_settled()) {
            // What cannot be noted is read again next time.
            _ = write(&note, &after.text);
        }
        Ok(found)
    }
}

/// What tells a file from every other one, and from itself after a change.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    text: String,
    changed: Duration,
}

impl Identity {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        let (dev, ino, size) = (found.dev(), found.ino(), found.size());
        let (mtime, mtime_ns) = (found.mtime(), found.mtime_nsec());
        let (ctime, ctime_ns) = (found.ctime(), found.ctime_nsec());
        let changed = Duration::new(u64::try_from(ctime).unwrap_or(0), u32::try_from(ctime_ns).unwrap_or(0));
        let text = format!("{dev} {ino} {size} {mtime}.{mtime_ns:09} {ctime}.{ctime_ns:09}\n");
        Ok(Self { text, changed })
    }

    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.checked_sub(self.changed).is_some_and(|age| age > SETTLED)
    }
}

fn write(note: &Path, text: &str) -> io::Result<()> {
    let folder = note.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut staged = tempfile::NamedTempFile::new_in(folder)?;
    staged.write_all(text.as_bytes())?;
    staged.persist(note).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs::File, thread};

    use super::*;

    /// A file with these bytes that was changed long enough ago, as far as the tests can wait.
    fn settled(path: &Path, bytes: &[u8]) {
        fs::write(path, bytes).unwrap();
        thread::sleep(SETTLED + Duration::from_millis(100));
    }

    #[test]
    fn a_file_is_read_once_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let known = Known { folder: Some(folder.path().join("store")) };
        let (path, whole) = (folder.path().join("blob"), Digest::of(b"whole"));
        settled(&path, b"whole");
        assert_eq!(known.digest(&path, whole).unwrap(), whole);
        let note = folder.path().join("store").join(whole.hex());
        let noted = fs::read_to_string(&note).unwrap();
        // It is believed: another expectation that has this file's note is not checked against the bytes.
        let other = Digest::of(b"other");
        fs::write(folder.path().join("store").join(other.hex()), &noted).unwrap();
        assert_eq!(known.digest(&path, other).unwrap(), other);
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
        let known = Known { folder: Some(folder.path().join("store")) };
        let path = folder.path().join("blob");
        fs::write(&path, b"fresh").unwrap();
        assert_eq!(known.digest(&path, Digest::of(b"fresh")).unwrap(), Digest::of(b"fresh"));
        settled(&path, b"damaged");
        assert_eq!(known.digest(&path, Digest::of(b"fresh")).unwrap(), Digest::of(b"damaged"));
        assert!(!folder.path().join("store").exists());
        let nowhere = Known { folder: None };
        assert_eq!(nowhere.digest(&path, Digest::of(b"damaged")).unwrap(), Digest::of(b"damaged"));
    }
}
