//! Writing a bundle into a store.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    io::Read,
    path::Path,
};

use super::open::Store;
use crate::{
    blob::Blob,
    bundle::{
        Bundle,
        write::{Destination, check_complete},
    },
    digest::Digest,
    error::Error,
    files::{SharedLock, replace_file},
    layout::{MANIFEST, StoreFolder},
    manifest::Manifest,
    name::Name,
};

/// A bundle that lost its name to another bundle. Its text form is a note for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedBundle {
    name: Name,
    before: Digest,
}

impl fmt::Display for ReplacedBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was another bundle before, {}", self.name, self.before)
    }
}

/// A bundle on its way into a store. If it is dropped before the commit, garbage collection removes its files.
#[derive(Debug)]
pub struct StoreWriter {
    store: Store,
    name: Name,
    added: HashMap<Digest, u64>,
    lock: SharedLock,
}

impl Store {
    /// Writes a bundle with `work` and gives it a name. Returns the bundle that had the name before.
    ///
    /// # Errors
    /// Errors of `work`, or the store cannot be read or written.
    pub fn write(
        &self,
        name: &Name,
        work: impl FnOnce(StoreWriter) -> Result<Bundle, Error>,
    ) -> Result<Option<ReplacedBundle>, Error> {
        let before = self.resolve(name)?;
        work(StoreWriter::new(self, name)?)?;
        let now = self.resolve(name)?;
        let before = before.filter(|before| Some(*before) != now);
        Ok(before.map(|before| ReplacedBundle { name: name.clone(), before }))
    }
}

impl StoreWriter {
    /// Starts a bundle. The commit gives it the name, even if another bundle has that.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn new(store: &Store, name: &Name) -> Result<Self, Error> {
        let lock = store.lock_shared()?;
        Ok(Self { store: store.clone(), name: name.clone(), added: HashMap::new(), lock })
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Records that the store has a blob.
    #[cfg(feature = "registry")]
    pub(super) fn mark_added(&mut self, blob: &Blob) {
        self.added.insert(blob.digest, blob.size);
    }

    /// Checks that the blobs of a manifest and of the other bundles fit within the store's limit.
    ///
    /// # Errors
    /// [`Error::StoreFull`].
    pub fn check_room(&self, manifest: &Manifest) -> Result<(), Error> {
        let Some(limit) = self.store.limit() else { return Ok(()) };
        let mut blobs: BTreeMap<String, u64> = BTreeMap::new();
        for bundle in self.store.list()?.iter().filter(|bundle| bundle.name != self.name) {
            blobs.extend(
                bundle.manifest.iter().flat_map(Manifest::blobs).map(|(_, b)| (b.digest.hex(), b.size)),
            );
        }
        let others = blobs.values().sum();
        for (_, blob) in manifest.blobs() {
            // A blob that is there has its own size, whatever this manifest says of it.
            blobs.entry(blob.digest.hex()).or_insert(blob.size);
        }
        let needed: u64 = blobs.values().sum();
        if needed > limit { Err(Error::StoreFull { needed: needed - others, others, limit }) } else { Ok(()) }
    }
}

impl Destination for StoreWriter {
    fn prepare(&mut self, manifest: &Manifest) -> Result<(), Error> {
        self.check_room(manifest)
    }

    fn contains(&mut self, blob: &Blob) -> bool {
        let found = self.store.find_blob(blob.digest);
        if let Some((_, size)) = &found {
            // The size of the file, not the manifest's. The commit compares them.
            self.added.insert(blob.digest, *size);
        }
        found.is_some()
    }

    fn add_reader(&mut self, source: &mut dyn Read, path: &Path) -> Result<Blob, Error> {
        let blob = self.store.add_blob(source, path)?;
        self.added.insert(blob.digest, blob.size);
        Ok(blob)
    }

    fn commit(
        self: Box<Self>,
        manifest: &Manifest,
        text: String,
        signature: Option<&str>,
    ) -> Result<Bundle, Error> {
        check_complete(manifest, &self.added)?;
        let Self { store, name, lock, .. } = *self;
        store.sync_blobs()?;
        let digest = Digest::of(text.as_bytes());
        write_manifest(&store, digest, &text)?;
        match signature {
            Some(signature) => {
                let path = store.signature_path(&name, digest);
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                store.replace(StoreFolder::Signatures, &file, signature)?;
            }
            None => store.remove_signature(&name, digest)?,
        }
        let before = store.resolve(&name)?.filter(|before| *before != digest);
        store.replace(StoreFolder::Names, &name.file_name(), &format!("{}\n", digest.hex()))?;
        if let Some(before) = before {
            // Nothing reads it any more, so a failure does not matter.
            _ = store.remove_signature(&name, before);
        }
        drop(lock);
        store.enforce_limit();
        let location = store.location(&name, digest, store.lock_shared().ok());
        Ok(Bundle::new_verified(location, manifest.clone(), text))
    }
}

/// Writes a manifest into its folder.
fn write_manifest(store: &Store, digest: Digest, text: &str) -> Result<(), Error> {
    let folder = store.create_folder(StoreFolder::Bundles)?.join(digest.hex());
    std::fs::create_dir_all(&folder).map_err(Error::write(&folder))?;
    let (staging, _lock) = store.staging()?;
    replace_file(&folder, staging.path(), MANIFEST, text.as_bytes()).map_err(Error::write(&folder))
}
