//! Downloads of blobs, which a later process may resume.

use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
};

use super::{
    open::{BLOB_MODE, Store},
    write::StoreWriter,
};
use crate::{
    blob::{Blob, BlobRole},
    bundle::{verify::check_digest, write::Destination as _},
    digest::Digest,
    error::Error,
    identity::FileIdentity,
    layout::{DOWNLOAD_EXTENSION, StoreFolder},
};

/// The first bytes of a blob. Locked against other processes.
#[derive(Debug)]
pub(crate) struct PartialDownload {
    file: File,
    path: PathBuf,
    len: u64,
}

impl PartialDownload {
    /// Returns how many bytes are there.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Appends the next bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(Error::write(&self.path))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Returns whether the bytes are those of `blob`.
    pub(crate) fn matches(&self, blob: &Blob) -> Result<bool, Error> {
        let (digest, size) = Digest::of_file(&self.path).map_err(Error::read(&self.path))?;
        Ok(Blob { digest, size } == *blob)
    }

    /// Drops all bytes.
    pub(crate) fn restart(&mut self) -> Result<(), Error> {
        self.file.set_len(0).map_err(Error::write(&self.path))?;
        self.len = 0;
        Ok(())
    }

    /// Returns whether the path is still that of the open file. Another process may have completed the download.
    fn is_current(&self) -> bool {
        let [open, named] = [self.file.metadata(), fs::symlink_metadata(&self.path)]
            .map(|found| found.ok().map(|found| FileIdentity::of(&found)));
        open.zip(named).is_some_and(|(open, named)| open.is_same_file(&named))
    }
}

impl Store {
    /// Opens and locks the download of `blob`, which is new or was interrupted.
    fn download(&self, blob: &Blob) -> Result<PartialDownload, Error> {
        let incoming = self.create_folder(StoreFolder::Incoming)?;
        let path = incoming.join(format!("{}.{DOWNLOAD_EXTENSION}", blob.digest.hex()));
        loop {
            let file = File::options().create(true).append(true).open(&path).map_err(Error::write(&path))?;
            // On a file system without locks two downloads may mix their bytes. The digest shows that.
            _ = file.lock();
            let len = file.metadata().map_err(Error::read(&path))?.len();
            let download = PartialDownload { file, path: path.clone(), len };
            if download.is_current() {
                return Ok(download);
            }
        }
    }
}

impl StoreWriter {
    /// Opens the download of `blob`, or returns `None` if the store has the blob.
    pub(crate) fn download(&mut self, blob: &Blob) -> Result<Option<PartialDownload>, Error> {
        if self.contains(blob) {
            return Ok(None);
        }
        let download = self.store().download(blob)?;
        // Another process may have completed it while this one waited for the lock.
        Ok(if self.contains(blob) { None } else { Some(download) })
    }

    /// Adds a complete download as a blob. If it is not the manifest's blob, it is removed.
    pub(crate) fn add_download(
        &mut self,
        download: PartialDownload,
        role: &BlobRole,
        blob: &Blob,
    ) -> Result<(), Error> {
        let PartialDownload { file, path, .. } = download;
        file.sync_all().map_err(Error::write(&path))?;
        let checked = Digest::of_file(&path).map_err(Error::read(&path)).and_then(|(digest, found)| {
            if found != blob.size {
                let Blob { digest, size: expected } = *blob;
                return Err(Error::BlobSize { role: role.clone(), found, expected, digest });
            }
            check_digest(role, digest, blob)
        });
        if let Err(error) = checked {
            _ = fs::remove_file(&path);
            return Err(error);
        }
        file.set_permissions(fs::Permissions::from_mode(BLOB_MODE)).map_err(Error::write(&path))?;
        let target = self.store().blob_path(blob.digest);
        self.store().create_folder(StoreFolder::Blobs)?;
        fs::rename(&path, &target).map_err(Error::write(&target))?;
        self.mark_added(blob);
        Ok(())
    }
}
