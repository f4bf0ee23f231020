//! Reading a manifest's file and verifying blobs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{location::Location, verified::VerifiedFiles};
use crate::{
    blob::{Blob, BlobRole},
    digest::Digest,
    error::Error,
    layout::MANIFEST,
    manifest::MANIFEST_LIMIT,
    read::{Links, ReadError, read_limited},
};

/// Reads the text of the manifest in the folder `bundle`.
pub(crate) fn read_manifest(bundle: &Path) -> Result<String, Error> {
    let checkpoint = bundle.join("config.json").is_file();
    let not =
        |reason| Error::NotABundle { path: bundle.to_path_buf(), reason, checkpoint, nearest: Vec::new() };
    match fs::metadata(bundle) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not("it does not exist")),
        Err(error) => return Err(Error::read(bundle)(error)),
        Ok(found) if !found.is_dir() => return Err(not("it is a file, expected a folder")),
        Ok(_) => {}
    }
    let path = bundle.join(MANIFEST);
    let bytes = read_limited(&path, MANIFEST_LIMIT, Links::Refuse).map_err(|error| match error {
        ReadError::Io(error) if error.kind() == io::ErrorKind::NotFound => not("it has no manifest.toml"),
        ReadError::NotRegular => not("its manifest.toml is not a regular file"),
        ReadError::TooLong { found, limit } => Error::ManifestTooLarge { found, limit },
        other => Error::read(path)(other.into()),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|&&b| b == b'\n').count();
        Error::Syntax { line, message: "found bytes that are not UTF-8, expected text".into() }
    })
}

/// Returns the path of a blob, if it is a regular file of the right size.
pub(super) fn check_file(location: &Location, role: &BlobRole, blob: &Blob) -> Result<PathBuf, Error> {
    let (role, Blob { digest, size }) = (role.clone(), *blob);
    let path = location.blob_path(digest);
    // Not `metadata`: a link could lead out of the bundle, or to something that blocks when read.
    let found = match fs::symlink_metadata(&path) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(Error::MissingBlob { role, digest });
        }
        other => other.map_err(Error::read(&path))?,
    };
    let kind = found.file_type();
    if !kind.is_file() {
        let found = match (kind.is_symlink(), kind.is_dir()) {
            (true, _) => "a symbolic link",
            (_, true) => "a folder",
            _ => "a special file",
        };
        return Err(Error::NotAFile { role, found, digest });
    }
    if found.len() != size {
        return Err(Error::BlobSize { role, found: found.len(), expected: size, digest });
    }
    Ok(path)
}

/// Verifies a blob by reading it.
pub(super) fn verify(location: &Location, role: &BlobRole, blob: &Blob) -> Result<(), Error> {
    let path = check_file(location, role, blob)?;
    let (found, _) = Digest::of_file(&path).map_err(Error::read(&path))?;
    check_digest(role, found, blob)
}

/// Verifies a blob and returns its path. If the file is unchanged since it was last verified, it is not read.
pub(super) fn verify_once(
    verified: &VerifiedFiles,
    location: &Location,
    role: &BlobRole,
    blob: &Blob,
) -> Result<PathBuf, Error> {
    let path = check_file(location, role, blob)?;
    let found = verified.digest(&path, blob.digest).map_err(Error::read(&path))?;
    check_digest(role, found, blob)?;
    Ok(path)
}

/// Compares the digest that was found with the manifest's.
pub(crate) fn check_digest(role: &BlobRole, found: Digest, blob: &Blob) -> Result<(), Error> {
    if found == blob.digest {
        return Ok(());
    }
    Err(Error::BlobDigest { role: role.clone(), found, expected: blob.digest })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::bundle::Bundle;

    fn message(path: &Path) -> String {
        Bundle::open(path).unwrap_err().to_string()
    }

    #[test]
    fn paths_without_a_bundle() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let shown = at.display();
        assert_eq!(
            message(at),
            format!(
                "{shown} is not a bundle: it has no manifest.toml\n\
                 hint: use the last line that mlxcel-compile printed, or a name that \
                 `mlxcel-bundle list` shows"
            )
        );
        fs::write(at.join("config.json"), "{}").unwrap();
        assert!(message(at).ends_with(&format!("compile it with `mlxcel-compile --model {shown}`")));
        assert!(
            message(&at.join("x")).starts_with(&format!("{shown}/x is not a bundle: it does not exist\n"))
        );
        fs::write(at.join("x"), "").unwrap();
        let file = format!("{shown}/x is not a bundle: it is a file, expected a folder\n");
        assert!(message(&at.join("x")).starts_with(&file));
        fs::create_dir(at.join(MANIFEST)).unwrap();
        let irregular = format!("{shown} is not a bundle: its manifest.toml is not a regular file\n");
        assert!(message(at).starts_with(&irregular));
    }

    #[test]
    fn long_manifests_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        // A sparse file takes no disk space.
        let file = File::create(folder.path().join(MANIFEST)).unwrap();
        file.set_len(1 << 40).unwrap();
        let message = message(folder.path());
        assert!(
            message.starts_with("manifest.toml has 1099511627776 bytes, expected at most 67108864\nhint: "),
            "{message}"
        );
    }

    #[test]
    fn manifests_that_are_not_utf8_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(MANIFEST), b"format = 1\nmodel = \"\xff\"\n").unwrap();
        let message = message(folder.path());
        assert!(
            message
                .starts_with("manifest.toml line 2: found bytes that are not UTF-8, expected text\nhint: "),
            "{message}"
        );
    }
}
