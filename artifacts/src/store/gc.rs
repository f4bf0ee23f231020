//! Garbage collection: removes the files that no bundle and no build needs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    build_cache::read_digest,
    open::{Store, digest_in_name},
};
use crate::{error::Error, files::list_folder, layout::StoreFolder};

/// How long an interrupted download can be resumed.
const DOWNLOAD_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The result of garbage collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GcSummary {
    /// Number of removed files.
    pub files: u64,
    /// Bytes of the removed files.
    pub bytes: u64,
    /// Bytes of the blobs that stay.
    pub kept_bytes: u64,
    /// The limit. Bundles with a name stay even beyond it.
    pub limit_bytes: Option<u64>,
}

impl Store {
    /// Removes the files that no bundle and no build needs.
    ///
    /// Then removes compiled modules, the least recently used first, until at most `limit` bytes remain. By default that is the
    /// store's own limit. Bundles with a name always stay. A dry run removes nothing.
    ///
    /// # Errors
    /// The store is in use or cannot be read or written. A bundle has a newer format, so its needs are unknown.
    pub fn gc(&self, limit: Option<u64>, dry_run: bool) -> Result<GcSummary, Error> {
        if !self.path().exists() {
            return Ok(GcSummary::default());
        }
        let lock = self.open_lock()?;
        // On a file system without locks nobody counts as using the store.
        if !dry_run && let Err(fs::TryLockError::WouldBlock) = lock.try_lock() {
            return Err(Error::StoreInUse { path: self.path().to_path_buf() });
        }
        let limit = limit.or(self.limit());
        let mut sweep = Sweep { dry_run, summary: GcSummary { limit_bytes: limit, ..GcSummary::default() } };
        let live = self.sweep_bundles(&mut sweep)?;
        self.sweep_incoming(&mut sweep)?;
        self.sweep_blobs(live, limit, &mut sweep)?;
        Ok(sweep.summary)
    }

    /// Collects garbage if the store has a limit. On failure, leaves that to the next process.
    pub fn enforce_limit(&self) {
        if self.limit().is_some() {
            _ = self.gc(None, false);
        }
    }

    /// Removes bundles without a name. Returns the digests, in hex, of the blobs that the others need.
    fn sweep_bundles(&self, sweep: &mut Sweep) -> Result<BTreeSet<String>, Error> {
        let names = self.named_bundles()?;
        let mut live = BTreeSet::new();
        for (digest, name) in names.values() {
            let manifest = match self.manifest(*digest) {
                // Its blobs stay, so that adding the bundle again repairs it.
                Err(Error::BlobDigest { .. } | Error::NotABundle { .. }) => {
                    return Err(Error::DamagedName { name: name.clone() });
                }
                other => other?,
            };
            live.extend(manifest.blobs().map(|(_, blob)| blob.digest.hex()));
        }
        for signature in self.orphaned_signatures()? {
            sweep.remove(&signature)?;
        }
        for (folder, digest) in self.bundle_folders()? {
            if !digest.is_some_and(|digest| names.contains_key(&digest.hex())) {
                // In reverse order, so that the manifest goes last: a folder without one is no bundle.
                for file in list_folder(&folder)?.into_iter().rev() {
                    sweep.remove(&file)?;
                }
                if !sweep.dry_run {
                    fs::remove_dir(&folder).map_err(Error::write(folder))?;
                }
            }
        }
        Ok(live)
    }

    /// Removes the files of writers that died, but keeps downloads, which have an extension, until nobody resumes them.
    fn sweep_incoming(&self, sweep: &mut Sweep) -> Result<(), Error> {
        for path in list_folder(&self.folder(StoreFolder::Incoming))? {
            let found = fs::symlink_metadata(&path).map_err(Error::read(&path))?;
            let age = found.modified().ok().and_then(|modified| modified.elapsed().ok()).unwrap_or_default();
            if found.is_dir() {
                if !sweep.dry_run {
                    fs::remove_dir_all(&path).map_err(Error::write(path))?;
                }
            } else if age > DOWNLOAD_KEPT || path.extension().is_none() {
                sweep.remove(&path)?;
            }
        }
        Ok(())
    }

    /// Removes compiled modules beyond the limit, and blobs that nothing needs.
    fn sweep_blobs(
        &self,
        live: BTreeSet<String>,
        limit: Option<u64>,
        sweep: &mut Sweep,
    ) -> Result<(), Error> {
        let blobs = self.folder(StoreFolder::Blobs);
        let mut sizes = BTreeMap::new();
        for path in list_folder(&blobs)? {
            let size = fs::symlink_metadata(&path).map_err(Error::read(&path))?.len();
            match digest_in_name(&path) {
                Some(digest) => _ = sizes.insert(digest.hex(), size),
                None => sweep.remove(&path)?,
            }
        }
        let mut needed: BTreeMap<String, u64> =
            live.into_iter().filter_map(|hex| sizes.get(&hex).map(|size| (hex, *size))).collect();
        let mut total: u64 = needed.values().sum();
        let mut is_full = false;
        for (_, entry, hex) in self.modules_by_use(&sizes, sweep)? {
            let size =
                if needed.contains_key(&hex) { 0 } else { sizes.get(&hex).copied().unwrap_or_default() };
            is_full |= limit.is_some_and(|limit| total + size > limit) && size > 0;
            if is_full && size > 0 {
                sweep.remove(&entry)?;
            } else {
                total += size;
                needed.insert(hex, size);
            }
        }
        for (hex, _) in sizes.iter().filter(|(hex, _)| !needed.contains_key(*hex)) {
            sweep.remove(&blobs.join(hex))?;
        }
        sweep.summary.kept_bytes = total;
        Ok(())
    }

    /// Returns time, entry and blob of the compiled modules, the most recently used first. Removes damaged entries and those
    /// whose blob is gone.
    fn modules_by_use(
        &self,
        sizes: &BTreeMap<String, u64>,
        sweep: &mut Sweep,
    ) -> Result<Vec<(SystemTime, PathBuf, String)>, Error> {
        let mut modules = Vec::new();
        for entry in list_folder(&self.folder(StoreFolder::Built))? {
            let used =
                fs::metadata(&entry).and_then(|found| found.modified()).map_err(Error::read(&entry))?;
            match read_digest(&entry)? {
                Some(digest) if sizes.contains_key(&digest.hex()) => {
                    modules.push((used, entry, digest.hex()))
                }
                _ => sweep.remove(&entry)?,
            }
        }
        modules.sort_by(|a, b| b.cmp(a));
        Ok(modules)
    }
}

/// Removes files and counts them.
struct Sweep {
    dry_run: bool,
    summary: GcSummary,
}

impl Sweep {
    /// Removes a file, unless this is a dry run.
    fn remove(&mut self, path: &Path) -> Result<(), Error> {
        self.summary.files += 1;
        self.summary.bytes += fs::symlink_metadata(path).map_err(Error::read(path))?.len();
        if self.dry_run { Ok(()) } else { fs::remove_file(path).map_err(Error::write(path)) }
    }
}
