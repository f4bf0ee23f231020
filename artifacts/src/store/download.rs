//! Downloads of blobs, which a later process may resume.

use std::{
    fs::{self, File, TryLockError},
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
    cancel::Cancel,
    digest::Digest,
    error::Error,
    identity::is_at,
    layout::{DOWNLOAD_EXTENSION, StoreFolder},
};

/// What there is of a blob that is to be downloaded.
#[derive(Debug)]
pub(crate) enum Download {
    /// The store has it.
    Present,
    /// Another process downloads it.
    Busy,
    /// Nothing, or what an interrupted download left.
    Part(PartialDownload),
}

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

    /// Returns whether the bytes are those of `blob`. An error if the token is cancelled meanwhile.
    pub(crate) fn matches(&self, blob: &Blob, cancel: &Cancel) -> Result<bool, Error> {
        let (digest, size) = self.digest(cancel)?;
        Ok(Blob { digest, size } == *blob)
    }

    /// Returns digest and length of what is there.
    fn digest(&self, cancel: &Cancel) -> Result<(Digest, u64), Error> {
        let file = File::open(&self.path).map_err(Error::read(&self.path))?;
        Digest::of_reader(&mut cancel.watch(file)).map_err(Error::read(&self.path))
    }

    /// Drops all bytes.
    pub(crate) fn restart(&mut self) -> Result<(), Error> {
        self.file.set_len(0).map_err(Error::write(&self.path))?;
        self.len = 0;
        Ok(())
    }
}

impl Store {
    /// Opens and locks the download of `blob`, which is new or was interrupted. `None` if another process has the lock.
    fn download(&self, blob: &Blob) -> Result<Option<PartialDownload>, Error> {
        let incoming = self.create_folder(StoreFolder::Incoming)?;
        let path = incoming.join(format!("{}.{DOWNLOAD_EXTENSION}", blob.digest.hex()));
        loop {
            let file = File::options().create(true).append(true).open(&path).map_err(Error::write(&path))?;
            // On a file system without locks two downloads may mix their bytes. The digest shows that.
            if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
                return Ok(None);
            }
            // Another process may have completed the download before the lock.
            if is_at(&file, &path) {
                let len = file.metadata().map_err(Error::read(&path))?.len();
                return Ok(Some(PartialDownload { file, path, len }));
            }
        }
    }
}

impl StoreWriter {
    /// Opens the download of `blob`.
    pub(crate) fn download(&mut self, blob: &Blob) -> Result<Download, Error> {
        if self.contains(blob) {
            return Ok(Download::Present);
        }
        let Some(download) = self.store().download(blob)? else { return Ok(Download::Busy) };
        // Another process may have completed it since.
        Ok(if self.contains(blob) { Download::Present } else { Download::Part(download) })
    }

    /// Adds a complete download as a blob. If it is not the manifest's blob, it is removed.
    ///
    /// # Errors
    /// It is another blob, the store cannot be written, or the token is cancelled meanwhile.
    pub(crate) fn add_download(
        &mut self,
        download: PartialDownload,
        (role, blob): (&BlobRole, &Blob),
        cancel: &Cancel,
    ) -> Result<(), Error> {
        download.file.sync_all().map_err(Error::write(&download.path))?;
        let (digest, found) = download.digest(cancel)?;
        let PartialDownload { file, path, .. } = download;
        let checked = if found == blob.size {
            check_digest(role, digest, blob)
        } else {
            let Blob { digest, size: expected } = *blob;
            Err(Error::BlobSize { role: role.clone(), found, expected, digest })
        };
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
