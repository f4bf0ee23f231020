//! A blob whose download may take several attempts, in several processes.

use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
};

use super::{bundles::StoreWriter, open::Store};
use crate::{
    blob::{Blob, BlobRole},
    bundle::{verify::check_digest, write::Destination as _},
    digest::Digest,
    error::Error,
    identity::FileIdentity,
    layout::{BLOBS, INCOMING},
};

/// What is there of a blob so far. No other process has it meanwhile.
#[derive(Debug)]
pub(crate) struct Part {
    file: File,
    path: PathBuf,
    len: u64,
}

impl Part {
    /// How many bytes are there.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Goes on with these bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(Error::write(&self.path))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Whether it is this blob.
    pub(crate) fn is(&self, blob: &Blob) -> Result<bool, Error> {
        let (digest, size) = Digest::of_file(&self.path).map_err(Error::read(&self.path))?;
        Ok(Blob { digest, size } == *blob)
    }

    /// Begins again from nothing.
    pub(crate) fn restart(&mut self) -> Result<(), Error> {
        self.file.set_len(0).map_err(Error::write(&self.path))?;
        self.len = 0;
        Ok(())
    }

    /// Whether the path still means this file: whoever had it before may have put it in its place.
    fn is_current(&self) -> bool {
        let [open, named] = [self.file.metadata(), fs::symlink_metadata(&self.path)]
            .map(|found| found.ok().map(|found| FileIdentity::of(&found)));
        open.zip(named).is_some_and(|(open, named)| open.is_same_file(&named))
    }
}

impl Store {
    fn part(&self, blob: &Blob) -> Result<Part, Error> {
        let path = self.make(INCOMING)?.join(format!("{}.part", blob.digest.hex()));
        loop {
            let file = File::options().create(true).append(true).open(&path).map_err(Error::write(&path))?;
            // Without locks two downloads of one blob may mix their bytes: its digest tells.
            _ = file.lock();
            let len = file.metadata().map_err(Error::read(&path))?.len();
            let part = Part { file, path: path.clone(), len };
            if part.is_current() {
                return Ok(part);
            }
        }
    }
}

impl StoreWriter {
    /// What is there of a blob, for a download to go on with; `None` where all of it is in the store.
    pub(crate) fn part(&mut self, blob: &Blob) -> Result<Option<Part>, Error> {
        if self.has(blob) {
            return Ok(None);
        }
        let part = self.store().part(blob)?;
        // Whoever had it before us may have been done with it.
        Ok(if self.has(blob) { None } else { Some(part) })
    }

    /// Adds a blob that has been downloaded. One that is not what the manifest says is thrown away.
    pub(crate) fn add_part(&mut self, part: Part, role: &BlobRole, blob: &Blob) -> Result<(), Error> {
        let Part { file, path, .. } = part;
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
        // Nobody has a reason to write to it ever after.
        file.set_permissions(fs::Permissions::from_mode(0o444)).map_err(Error::write(&path))?;
        let place = self.store().blob_path(blob.digest);
        self.store().make(BLOBS)?;
        fs::rename(&path, &place).map_err(Error::write(&place))?;
        self.added(blob);
        Ok(())
    }
}
