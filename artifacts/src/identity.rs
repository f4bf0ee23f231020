//! Identities of files.

use std::{
    fmt,
    fs::{self, File, Metadata},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};

/// The identity of a file and of its content: a change of the file changes it.
///
/// Nobody can set the time of a file's last change back, so equal identities mean an unchanged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds of the last change of the content.
    modified: (i64, i64),
    /// Seconds and nanoseconds of the last change of the content, the name or the permissions.
    changed: (i64, i64),
}

impl FileIdentity {
    /// Returns the identity of the file with this metadata.
    #[must_use]
    pub fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Returns whether both are the same file, which may have changed.
    #[must_use]
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Returns the time of the last change, since 1970.
    pub(crate) fn changed(&self) -> Duration {
        let (seconds, nanoseconds) = self.changed;
        Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanoseconds).unwrap_or(0))
    }
}

/// Returns whether what was opened is still what is at `path`, which is no link.
pub(crate) fn is_at(open: &File, path: &Path) -> bool {
    let [open, named] = [open.metadata(), fs::symlink_metadata(path)]
        .map(|found| found.ok().map(|found| FileIdentity::of(&found)));
    open.zip(named).is_some_and(|(open, named)| open.is_same_file(&named))
}

impl fmt::Display for FileIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, inode, size, modified: (mtime, mtime_ns), changed: (ctime, ctime_ns) } = self;
        write!(f, "{device} {inode} {size} {mtime}.{mtime_ns:09} {ctime}.{ctime_ns:09}")
    }
}
