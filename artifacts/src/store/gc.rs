//! Removing what nothing needs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    build_cache::built,
    open::{Store, entries, named},
};
use crate::{
    error::Error,
    layout::{BUILT, INCOMING},
};

/// How long a download that was broken off may be gone on with.
const PART_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// What was removed from a store, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// How many files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the blobs that stay.
    pub kept_bytes: u64,
    /// How many there should be at most; what has a name stays even so.
    pub limit_bytes: Option<u64>,
}

impl Store {
    /// Removes what no bundle and no build needs, and then of what was built what was not used for the longest time, until
    /// no more than `limit` bytes are there; without one, the store's own limit holds. Bundles that have a name always stay.
    /// With `dry`, says only what would be removed.
    ///
    /// # Errors
    /// When somebody adds to the store or uses it, a bundle is of a newer format (what it needs is not known), or the store
    /// cannot be read or written.
    pub fn collect(&self, limit: Option<u64>, dry: bool) -> Result<Collected, Error> {
        if !self.path.exists() {
            return Ok(Collected::default());
        }
        let lock = self.lock()?;
        // A file system without locks: as if nobody was there.
        if !dry && let Err(fs::TryLockError::WouldBlock) = lock.try_lock() {
            return Err(Error::StoreInUse { path: self.path.clone() });
        }
        let limit = limit.or(self.limit);
        let mut removing =
            Removing { dry, collected: Collected { limit_bytes: limit, ..Collected::default() } };
        let live = self.collect_bundles(&mut removing)?;
        self.collect_incoming(&mut removing)?;
        self.collect_blobs(live, limit, &mut removing)?;
        Ok(removing.collected)
    }

    /// The same after something was added, where there is a limit. Who cannot do it now leaves it to the next.
    pub fn keep_to_limit(&self) {
        if self.limit.is_some() {
            _ = self.collect(None, false);
        }
    }

    /// Removes bundles without a name; gives the digests, in hex, of what the others need.
    fn collect_bundles(&self, removing: &mut Removing) -> Result<BTreeSet<String>, Error> {
        let names = self.named_bundles()?;
        let mut live = BTreeSet::new();
        for (digest, name) in names.values() {
            let manifest = match self.manifest(*digest) {
                // What it needs is there to mend it with.
                Err(Error::BlobDigest { .. } | Error::NotABundle { .. }) => {
                    return Err(Error::DamagedName { name: name.clone() });
                }
                other => other?,
            };
            live.extend(manifest.blobs().map(|(_, blob)| blob.digest.hex()));
        }
        for signature in self.orphaned_signatures()? {
            removing.file(&signature)?;
        }
        for (folder, digest) in self.bundle_folders()? {
            if !digest.is_some_and(|digest| names.contains_key(&digest.hex())) {
                // The manifest last: without it, it is none.
                for file in entries(&folder)?.into_iter().rev() {
                    removing.file(&file)?;
                }
                if !removing.dry {
                    fs::remove_dir(&folder).map_err(Error::write(folder))?;
                }
            }
        }
        Ok(live)
    }

    /// Removes what was on its way when its writer died, but not what a download may go on with.
    fn collect_incoming(&self, removing: &mut Removing) -> Result<(), Error> {
        for path in entries(&self.path.join(INCOMING))? {
            let found = fs::symlink_metadata(&path).map_err(Error::read(&path))?;
            let age = found.modified().ok().and_then(|modified| modified.elapsed().ok()).unwrap_or_default();
            if found.is_dir() {
                if !removing.dry {
                    fs::remove_dir_all(&path).map_err(Error::write(path))?;
                }
            } else if age > PART_KEPT || path.extension().is_none() {
                removing.file(&path)?;
            }
        }
        Ok(())
    }

    fn collect_blobs(
        &self,
        live: BTreeSet<String>,
        limit: Option<u64>,
        removing: &mut Removing,
    ) -> Result<(), Error> {
        let mut sizes = BTreeMap::new();
        for path in entries(&self.blobs())? {
            let size = fs::symlink_metadata(&path).map_err(Error::read(&path))?.len();
            match named(&path) {
                Some(digest) => _ = sizes.insert(digest.hex(), size),
                None => removing.file(&path)?,
            }
        }
        let mut entries_by_use: Vec<(SystemTime, PathBuf, String)> = Vec::new();
        for entry in entries(&self.path.join(BUILT))? {
            let used =
                fs::metadata(&entry).and_then(|found| found.modified()).map_err(Error::read(&entry))?;
            match built(&entry)? {
                Some(digest) if sizes.contains_key(&digest.hex()) => {
                    entries_by_use.push((used, entry, digest.hex()))
                }
                // Damaged, or of a blob that is gone.
                _ => removing.file(&entry)?,
            }
        }
        // Used last comes first.
        entries_by_use.sort_by(|a, b| b.cmp(a));
        let mut needed: BTreeMap<String, u64> =
            live.into_iter().filter_map(|hex| sizes.get(&hex).map(|size| (hex, *size))).collect();
        let mut total: u64 = needed.values().sum();
        let mut full = false;
        for (_, entry, hex) in entries_by_use {
            let size =
                if needed.contains_key(&hex) { 0 } else { sizes.get(&hex).copied().unwrap_or_default() };
            full |= limit.is_some_and(|limit| total + size > limit) && size > 0;
            if full && size > 0 {
                removing.file(&entry)?;
            } else {
                total += size;
                needed.insert(hex, size);
            }
        }
        for (hex, _) in sizes.iter().filter(|(hex, _)| !needed.contains_key(*hex)) {
            removing.file(&self.blobs().join(hex))?;
        }
        removing.collected.kept_bytes = total;
        Ok(())
    }
}

/// Who removes files and counts them.
struct Removing {
    dry: bool,
    collected: Collected,
}

impl Removing {
    fn file(&mut self, path: &Path) -> Result<(), Error> {
        self.collected.files += 1;
        self.collected.bytes += fs::symlink_metadata(path).map_err(Error::read(path))?.len();
        if self.dry { Ok(()) } else { fs::remove_file(path).map_err(Error::write(path)) }
    }
}
