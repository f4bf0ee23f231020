//! Space on the disk of the cache.

use std::{io, path::Path};

use crate::hub::error::HubError;

/// Refuses a download that does not fit the disk of `folder`, which may not exist yet.
pub(super) fn check(repo: &str, folder: &Path, needed: u64) -> Result<(), HubError> {
    let existing = folder.ancestors().find(|folder| folder.is_dir());
    // A system that does not say what is free is not refused: writing will tell.
    let Some(Ok(disk)) = existing.map(rustix::fs::statvfs) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    match needed > free {
        true => Err(HubError::NoSpace { repo: repo.to_owned(), folder: folder.to_owned(), free, needed }),
        false => Ok(()),
    }
}

/// Returns whether a file cannot become longer: the disk is full, or a quota or a limit is reached.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_before_it_is_downloaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not/yet");
        check("a/b", &path, 1).unwrap();
        let error = check("a/b", &path, u64::MAX).unwrap_err().to_string();
        assert!(
            error.contains(" bytes free for ") && error.contains("expected 18446744073709551615 for a/b"),
            "{error}"
        );
        assert!(!path.exists());
    }
}
