//! Downloads a file into the cache: locked, resumed, verified, and renamed when it is whole.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    time::Instant,
};

use mlxcel_artifacts::Cancel;

use crate::{
    build::event::{Event, Progress},
    hub::{
        cache::{RepoCache, create_parent, remove_if_there},
        client::{Answer, Client},
        digest::{Computed, HubDigest},
        error::HubError,
        interrupt::Pieces,
        lock::lock,
        retry::repeated,
        snapshot::RemoteFile,
        space::is_full,
    },
};

/// Downloads files of one commit.
pub(super) struct Transfer<'t> {
    pub(super) client: &'t Client<'t>,
    pub(super) cache: &'t RepoCache,
    pub(super) repo: &'t str,
    pub(super) commit: &'t str,
    pub(super) cancel: &'t Cancel,
}

/// What the hub states of a file.
struct Stated {
    digest: Option<HubDigest>,
    size: u64,
}

impl Transfer<'_> {
    /// Downloads a file, verifies it, and makes it a file of the commit. Returns what it was compared with.
    pub(super) fn download(
        &self,
        file: &RemoteFile,
        progress: &mut Progress<'_>,
    ) -> Result<(Option<HubDigest>, Computed), HubError> {
        let start = Instant::now();
        let name = &file.name;
        let stated = self.stated(file)?;
        // A hub that states no digest gives no name either. Nothing would show that a part of another commit's file is wrong.
        let without_digest = || format!("{}-{}", self.commit, name.replace('/', "--"));
        let key = stated.digest.as_ref().map_or_else(without_digest, |digest| digest.hex().to_owned());
        let _lock = lock(&self.cache.lock(&key), self.cancel, || {
            progress(Event::Warning(format!("waiting for another process that downloads {name}")));
        })?;
        let blob = self.cache.blob(&key);
        if let Some(digest) = stated.digest.as_ref().filter(|_| blob.is_file()) {
            // Another commit has the same file, or that other process was faster.
            let computed = self.compute(&blob)?;
            if digest.mismatch(&computed).is_none() {
                self.cache.link(self.commit, name, &blob)?;
                return Ok((stated.digest, computed));
            }
            remove_if_there(&blob)?;
        }
        let part = blob.with_file_name(format!("{key}.incomplete"));
        let computed = self.receive_verified(name, &part, &stated, progress)?;
        let blob = if stated.digest.is_some() { blob } else { self.cache.blob(&computed.sha256) };
        fs::rename(&part, &blob).map_err(HubError::io("write", &blob))?;
        self.cache.link(self.commit, name, &blob)?;
        progress(Event::Downloaded { file: name.clone(), bytes: computed.size, took: start.elapsed() });
        Ok((stated.digest, computed))
    }

    /// Returns what the hub states: in its list, otherwise in its answer to a request for the file.
    fn stated(&self, file: &RemoteFile) -> Result<Stated, HubError> {
        if let RemoteFile { digest: Some(digest), size: Some(size), .. } = file {
            return Ok(Stated { digest: Some(digest.clone()), size: *size });
        }
        let get = || self.client.get(&file.name, self.commit, 0);
        let answer = repeated(self.cancel, HubError::is_transient, || 0, get)?;
        let unknown = || self.client.answer(format!("found no size of {}", file.name.escape_default()));
        let size = file.size.or(answer.size).ok_or_else(unknown)?;
        Ok(Stated { digest: file.digest.clone().or(answer.digest), size })
    }

    /// Receives a file and compares it with what the hub states.
    ///
    /// If a part that was here before leads to other bytes, the file is received once more, from the beginning.
    fn receive_verified(
        &self,
        name: &str,
        part: &Path,
        stated: &Stated,
        progress: &mut Progress<'_>,
    ) -> Result<Computed, HubError> {
        create_parent(part)?;
        let mut is_resumed = part.metadata().is_ok_and(|metadata| metadata.len() > 0);
        loop {
            // The hub listed its files, so that it can be reached.
            let passes =
                |error: &HubError| error.is_transient() || matches!(error, HubError::Unreachable { .. });
            let reached = || part.metadata().map_or(0, |metadata| metadata.len());
            repeated(self.cancel, passes, reached, || self.receive(name, part, stated.size, progress))?;
            let computed = self.compute(part)?;
            let Some(wrong) = self.mismatch(name, stated, &computed) else { return Ok(computed) };
            remove_if_there(part)?;
            if !is_resumed {
                return Err(wrong);
            }
            is_resumed = false;
            progress(Event::Warning(format!(
                "{name}: what was here of it is not part of it, starting again"
            )));
        }
    }

    fn compute(&self, path: &Path) -> Result<Computed, HubError> {
        let computed = Computed::of(path, self.cancel);
        if self.cancel.is_cancelled() {
            return Err(HubError::Cancelled);
        }
        computed.map_err(HubError::io("read", path))
    }

    fn mismatch(&self, name: &str, stated: &Stated, computed: &Computed) -> Option<HubError> {
        let (repo, file) = (self.repo.to_owned(), name.to_owned());
        if computed.size != stated.size {
            return Some(HubError::Size { repo, file, found: computed.size, expected: stated.size });
        }
        let expected = stated.digest.as_ref()?;
        let found = Box::new(expected.mismatch(computed)?);
        Some(HubError::Digest { repo, file, found, expected: Box::new(expected.clone()) })
    }

    /// Appends to `part` what it lacks of a file of `size` bytes.
    fn receive(
        &self,
        name: &str,
        part: &Path,
        size: u64,
        progress: &mut Progress<'_>,
    ) -> Result<(), HubError> {
        let mut file =
            File::options().append(true).create(true).open(part).map_err(HubError::io("write", part))?;
        let mut received = file.metadata().map_err(HubError::io("read", part))?.len();
        if received == size {
            return Ok(());
        }
        // A part that is too long is none.
        let wanted = if received > size { 0 } else { received };
        let Answer { start, size: announced, body, .. } = self.client.get(name, self.commit, wanted)?;
        if let Some(found) = announced.filter(|&announced| announced != size) {
            remove_if_there(part)?;
            return Err(HubError::Size {
                repo: self.repo.to_owned(),
                file: name.to_owned(),
                found,
                expected: size,
            });
        }
        if start != received {
            // The server sends all of it, whatever was asked for.
            file.set_len(0).map_err(HubError::io("write", part))?;
            received = 0;
        }
        if start != 0 && start != wanted {
            return Err(self.client.answer(format!("found bytes from {start} on, expected {wanted}")));
        }
        let pieces = Pieces::of(body.into_reader(), size - received, self.cancel);
        while received < size {
            let cut = |reason: String| HubError::Cut {
                repo: self.repo.to_owned(),
                file: name.to_owned(),
                received,
                size,
                reason,
            };
            let piece = match pieces.next() {
                None => return Err(HubError::Cancelled),
                Some(Ok(piece)) if piece.is_empty() => return Err(cut("the connection was closed".into())),
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Err(cut(error.to_string())),
            };
            file.write_all(&piece).map_err(|source| match is_full(&source) {
                true => HubError::DiskFull {
                    repo: self.repo.to_owned(),
                    file: name.to_owned(),
                    folder: self.cache.root().to_owned(),
                    written: received,
                    size,
                    source,
                },
                false => HubError::io("write", part)(source),
            })?;
            received += piece.len() as u64;
            progress(Event::Downloading { file: name.to_owned(), received, size });
        }
        file.sync_all().map_err(HubError::io("write", part))
    }
}
