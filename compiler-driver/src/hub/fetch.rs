//! Finds a model of the hub in the cache, and downloads what is missing.

use hf_hub::Cache;
use mlxcel_artifacts::{CONFIG_FILE, Cancel, CheckpointIndex, INDEX_FILE, IndexError};

use crate::{
    build::event::{Event, Progress},
    hub::{
        cache::{RepoCache, named_digest},
        client::Client,
        digest::{Computed, HubDigest},
        error::HubError,
        name::{HubName, is_file_word},
        retry::repeated,
        settings::HubSettings,
        snapshot::{Listing, RemoteFile, Snapshot, SnapshotFile},
        space,
        transfer::Transfer,
        wanted::{first_weights, is_part_of, is_small},
    },
};

/// Files that a message about a repository without safetensors names.
const OTHER_WEIGHTS: [&str; 7] = [".safetensors", ".bin", ".pt", ".pth", ".onnx", ".h5", ".msgpack"];

/// What is fetched, and where from.
struct Fetch<'f> {
    name: &'f HubName,
    cache: &'f RepoCache,
    /// `None` if only the cache is used.
    client: Option<&'f Client<'f>>,
    listing: Listing,
    cancel: &'f Cancel,
    files: Vec<SnapshotFile>,
    downloaded: usize,
}

/// Finds a model's files at its revision, with its weights or without, and verifies each.
///
/// # Errors
/// The hub or its mirror refuses, a file is missing or has other bytes than the hub states, or the cache cannot be
/// written. What was downloaded stays in the cache, and nothing names what is not whole.
pub(crate) fn fetch(
    name: &HubName,
    with_weights: bool,
    settings: &HubSettings,
    cancel: &Cancel,
    progress: &mut Progress<'_>,
) -> Result<Snapshot, HubError> {
    let root = settings.cache.as_ref().ok_or(HubError::NoCache)?;
    let cache = RepoCache::new(root, name);
    let fetch = |client, listing| Fetch {
        name,
        cache: &cache,
        client,
        listing,
        cancel,
        files: vec![],
        downloaded: 0,
    };
    if settings.offline {
        return fetch(None, cache.listing()?).run(with_weights, progress);
    }
    let client = Client::new(settings, name, &Cache::new(root.clone()), cancel)?;
    match repeated(cancel, HubError::is_transient, || 0, || client.listing()) {
        Ok(listing) => fetch(Some(&client), listing).run(with_weights, progress),
        Err(error @ HubError::Unreachable { .. }) => {
            // As in transformers, a model that is here needs no hub.
            let Ok(listing) = cache.listing() else { return Err(error) };
            let commit = listing.commit.clone();
            match fetch(None, listing).run(with_weights, progress) {
                Ok(snapshot) => {
                    progress(Event::Warning(format!(
                        "cannot reach {}: using {name} as it is in the cache, at {commit}",
                        settings.endpoint
                    )));
                    Ok(snapshot)
                }
                Err(damaged @ (HubError::Damaged { .. } | HubError::Cancelled)) => Err(damaged),
                Err(_) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

impl Fetch<'_> {
    fn run(mut self, with_weights: bool, progress: &mut Progress<'_>) -> Result<Snapshot, HubError> {
        match self.name.file() {
            Some(file) => {
                let parts = self.names(|name| is_part_of(name, file));
                if !parts.iter().any(|part| part == file) {
                    return Err(self.no_file(file));
                }
                self.ensure(&parts, progress)?;
            }
            None => {
                let small = self.names(is_small);
                if !small.iter().any(|name| name == CONFIG_FILE) {
                    return Err(self.no_file(CONFIG_FILE));
                }
                self.ensure(&small, progress)?;
                if with_weights {
                    self.ensure_weights(progress)?;
                }
            }
        }
        let Self { name, cache, client, listing: Listing { commit, .. }, mut files, downloaded, .. } = self;
        // Whatever was in the cache before, provenance lists the same.
        files.sort_by(|one, other| one.name.cmp(&other.name));
        if client.is_some() {
            cache.write_ref(&commit)?;
        }
        let cached = files.len() - downloaded;
        progress(Event::Fetched { model: name.to_string(), commit: commit.clone(), cached, downloaded });
        let folder = cache.snapshot(&commit);
        // A relative path would no longer lead there from another folder.
        let folder = std::path::absolute(&folder).map_err(HubError::io("read", &folder))?;
        Ok(Snapshot { name: name.clone(), commit, folder, files })
    }

    /// Returns the names of files that are wanted and cannot lead out of the snapshot.
    fn names(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let is_safe = |name: &str| name.split('/').all(is_file_word);
        let names = self.listing.files.iter().map(|file| &file.name);
        names.filter(|name| is_wanted(name) && is_safe(name)).cloned().collect()
    }

    fn ensure_weights(&mut self, progress: &mut Progress<'_>) -> Result<(), HubError> {
        let first = first_weights(|name| self.listing.get(name).is_some());
        let first = first.ok_or_else(|| self.no_safetensors())?;
        self.ensure(&[first.to_owned()], progress)?;
        if first != INDEX_FILE {
            return Ok(());
        }
        let folder = self.cache.snapshot(&self.listing.commit);
        let index = CheckpointIndex::read_alone(&folder).map_err(|error| match error {
            IndexError::Io(error) => HubError::io("read", folder.join(INDEX_FILE))(error),
            IndexError::Damaged(problem) => self.bad_index(&problem),
        })?;
        let shards: Vec<String> = index.shards().into_iter().map(str::to_owned).collect();
        if let Some(missing) = shards.iter().find(|shard| self.listing.get(shard).is_none()) {
            return Err(self.no_file(missing));
        }
        self.ensure(&shards, progress)
    }

    /// Makes sure that files are in the snapshot, and are what the hub states.
    fn ensure(&mut self, names: &[String], progress: &mut Progress<'_>) -> Result<(), HubError> {
        let mut missing = Vec::new();
        for name in names {
            let Some(file) = self.listing.get(name).cloned() else { continue };
            match self.cached(&file, progress)? {
                Some(found) => self.files.push(found),
                None => missing.push(file),
            }
        }
        let Some(client) = self.client else {
            return missing.first().map_or(Ok(()), |file| Err(self.cache.missing(file.name.clone())));
        };
        let needed = missing.iter().map(|file| self.still_needed(file)).sum();
        space::check(self.name.repo(), self.cache.root(), needed)?;
        let commit = self.listing.commit.clone();
        let (cache, cancel, repo) = (self.cache, self.cancel, self.name.repo());
        let transfer = Transfer { client, cache, repo, commit: &commit, cancel };
        for file in missing {
            let (stated, computed) = transfer.download(&file, progress)?;
            if stated.is_none() {
                let name = &file.name;
                progress(Event::Warning(format!(
                    "the hub states no digest of {name}: only its size was compared"
                )));
            }
            self.files.push(SnapshotFile { name: file.name, stated, computed });
            self.downloaded += 1;
        }
        Ok(())
    }

    /// Returns the bytes that a file still takes on the disk.
    fn still_needed(&self, file: &RemoteFile) -> u64 {
        let here = file.digest.as_ref().and_then(|digest| {
            let blob = self.cache.blob(digest.hex());
            let part = blob.with_file_name(format!("{}.incomplete", digest.hex()));
            Some(blob.metadata().or_else(|_| part.metadata()).ok()?.len())
        });
        file.size.unwrap_or_default().saturating_sub(here.unwrap_or_default())
    }

    /// Returns a file that the snapshot has, and verifies it. Removes one that is damaged, to be downloaded again.
    fn cached(
        &self,
        file: &RemoteFile,
        progress: &mut Progress<'_>,
    ) -> Result<Option<SnapshotFile>, HubError> {
        let path = self.cache.snapshot(&self.listing.commit).join(&file.name);
        if !path.is_file() {
            return Ok(None);
        }
        progress(Event::Checking { file: file.name.clone() });
        let computed = Computed::of(&path, self.cancel);
        if self.cancel.is_cancelled() {
            return Err(HubError::Cancelled);
        }
        let computed = computed.map_err(HubError::io("read", &path))?;
        let stated: Option<HubDigest> = file.digest.clone().or_else(|| named_digest(&path));
        let wrong = stated.as_ref().and_then(|stated| stated.mismatch(&computed));
        match (wrong, stated, self.client) {
            (None, stated, _) => Ok(Some(SnapshotFile { name: file.name.clone(), stated, computed })),
            (Some(found), Some(expected), None) => {
                Err(HubError::Damaged { path, found: Box::new(found), expected: Box::new(expected) })
            }
            (Some(_), ..) => {
                let name = &file.name;
                progress(Event::Warning(format!("{name} in the cache is damaged: downloading it again")));
                self.cache.remove(&self.listing.commit, name)?;
                Ok(None)
            }
        }
    }

    fn bad_index(&self, problem: &str) -> HubError {
        let problem = format!("{INDEX_FILE}: {problem}");
        match self.client {
            Some(client) => client.answer(problem),
            None => self.cache.missing(problem),
        }
    }

    /// Returns the error that the repository, or without a client the cache, lacks a file.
    fn no_file(&self, file: &str) -> HubError {
        if self.client.is_none() {
            return self.cache.missing(file.to_owned());
        }
        HubError::NoFile {
            file: file.to_owned(),
            repo: self.name.repo().to_owned(),
            commit: self.listing.commit.clone(),
            others: self.names(|name| name.to_ascii_lowercase().ends_with(".gguf")),
        }
    }

    fn no_safetensors(&self) -> HubError {
        if self.client.is_none() {
            return self.cache.missing("safetensors".to_owned());
        }
        HubError::NoSafetensors {
            repo: self.name.repo().to_owned(),
            commit: self.listing.commit.clone(),
            found: self.names(|name| OTHER_WEIGHTS.iter().any(|end| name.ends_with(end))),
            gguf: self.names(|name| name.to_ascii_lowercase().ends_with(".gguf")),
        }
    }
}
