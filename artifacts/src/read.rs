//! Reading regular files of a limited size.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

/// How [`read_limited`] treats a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Reads the file that the link points to.
    Follow,
    /// Counts the link as a file that is not regular.
    Refuse,
}

/// An error of [`read_limited`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system cannot read the file.
    #[error(transparent)]
    Io(#[from] io::Error),

    /// The path is a folder, a pipe, a device or, if links are refused, a symbolic link.
    #[error("not a regular file")]
    NotRegular,

    /// The file is longer than the limit.
    #[error("found {found} bytes, expected at most {limit}")]
    TooLong {
        /// The file's length.
        found: u64,
        /// The limit.
        limit: u64,
    },
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            other => Self::other(other),
        }
    }
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// The file cannot be read, is not regular, or is longer than `limit`.
pub fn read_limited(path: &Path, limit: u64, links: Links) -> Result<Vec<u8>, ReadError> {
    // Checked before opening, because opening a pipe waits for its writer.
    let found = match links {
        Links::Follow => fs::metadata(path)?,
        Links::Refuse => fs::symlink_metadata(path)?,
    };
    if !found.is_file() {
        return Err(ReadError::NotRegular);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLong { found: found.len().max(bytes.len() as u64), limit });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_short_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "12345").unwrap();
        symlink(&file, &link).unwrap();
        let read =
            |path: &Path, limit, links| read_limited(path, limit, links).map_err(|error| error.to_string());
        assert_eq!(read(&file, 5, Links::Refuse).unwrap(), b"12345");
        assert_eq!(read(&link, 5, Links::Follow).unwrap(), b"12345");
        assert_eq!(read(&file, 4, Links::Follow).unwrap_err(), "found 5 bytes, expected at most 4");
        assert_eq!(read(&link, 5, Links::Refuse).unwrap_err(), "not a regular file");
        assert_eq!(read(folder.path(), 5, Links::Follow).unwrap_err(), "not a regular file");
        assert_eq!(read(Path::new("/dev/zero"), 5, Links::Follow).unwrap_err(), "not a regular file");
    }
}
