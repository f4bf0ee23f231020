//! The bundles in a store: manifests under names, their blobs shared.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    fmt, fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    build_cache::built,
    open::{Store, entries, named},
};
use crate::{
    blob::{Blob, BlobRole},
    bundle::{
        Bundle,
        location::{Location, StoreEntry},
        verify::read_manifest,
        write::{Destination, all_added},
    },
    digest::Digest,
    error::Error,
    files::{SharedLock, replace_file},
    layout::{BUNDLES, MANIFEST, NAMES, SIGNATURES},
    manifest::Manifest,
    name::Name,
    nearest::nearest,
};

/// A name in the store.
#[derive(Debug)]
pub struct Stored {
    /// The name.
    pub name: Name,
    /// Digest of its manifest.
    pub digest: Digest,
    /// What the manifest says, or why it cannot be read.
    pub manifest: Result<Manifest, Error>,
    /// Bytes of its blobs that no other name needs.
    pub own_bytes: u64,
}

/// That a name has meant another bundle until now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    name: Name,
    before: Digest,
}

impl fmt::Display for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was another bundle before, {}", self.name, self.before)
    }
}

impl Store {
    /// Has `work` write the bundle that has this name from then on.
    ///
    /// # Errors
    /// Those of `work`, and when the store cannot be read or written.
    pub fn write(
        &self,
        name: &Name,
        work: impl FnOnce(StoreWriter) -> Result<Bundle, Error>,
    ) -> Result<Option<Replaced>, Error> {
        let before = self.resolve(name)?;
        work(StoreWriter::new(self, name)?)?;
        let now = self.resolve(name)?;
        let before = before.filter(|before| Some(*before) != now);
        Ok(before.map(|before| Replaced { name: name.clone(), before }))
    }

    /// Opens a bundle: the folder `bundle`, or the bundle of this name in the store if no bundle is in such a folder. Verifies
    /// all of it.
    ///
    /// # Errors
    /// As [`Bundle::open`].
    pub fn open(&self, bundle: &Path) -> Result<Bundle, Error> {
        Bundle::open_at(self.locate(bundle)?)
    }

    /// Opens a bundle as [`open`](Self::open) does, without reading its weights.
    ///
    /// If a large file is unchanged since it was last verified, it is not read again.
    ///
    /// # Errors
    /// As [`Bundle::open_without_weights`].
    pub fn open_without_weights(&self, bundle: &Path) -> Result<Bundle, Error> {
        Bundle::open_without_weights_at(self.locate(bundle)?)
    }

    /// Remembers that this machine compiled `bundle`. If that fails, the bundle counts as one from elsewhere.
    pub fn remember_built(&self, bundle: &Bundle) {
        _ = bundle.note_built(&self.path);
    }

    /// Returns the location of the bundle in the folder `bundle`, or of the one with that name.
    fn locate(&self, bundle: &Path) -> Result<Location, Error> {
        // An unrelated folder often has the name of a bundle in the store.
        if fs::symlink_metadata(bundle.join(MANIFEST)).is_err()
            && let Some(name) = bundle.to_str().and_then(|text| text.parse::<Name>().ok())
            && let Some(location) = self.place(&name)?
        {
            return Ok(location);
        }
        Ok(Location { notes: Some(self.path.clone()), ..Location::folder(bundle.to_path_buf()) })
    }

    /// Where the bundle of this name lies.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn place(&self, name: &Name) -> Result<Option<Location>, Error> {
        // A store is not made for being asked.
        if self.resolve(name)?.is_none() {
            return Ok(None);
        }
        // In use before it is looked at, so that nothing of it goes in between.
        let using = self.in_use().ok();
        Ok(self.resolve(name)?.map(|digest| self.place_of(name, digest, using)))
    }

    /// Where the bundle with this manifest lies under a name.
    fn place_of(&self, name: &Name, manifest: Digest, using: Option<SharedLock>) -> Location {
        Location {
            folder: self.path.join(BUNDLES).join(manifest.hex()),
            blobs: self.blobs(),
            signature: self.path.join(SIGNATURES).join(signature_file(name, manifest)),
            stored: Some(StoreEntry { name: name.clone(), manifest, _using: using.map(Arc::new) }),
            notes: Some(self.path.clone()),
        }
    }

    /// Puts a signature to the bundle of this manifest under a name. Other names of the same bundle keep theirs.
    pub(crate) fn sign(&self, name: &Name, manifest: Digest, signature: &str) -> Result<(), Error> {
        self.replace(SIGNATURES, &signature_file(name, manifest), signature)
    }

    fn remove_signature(&self, name: &Name, manifest: Digest) -> Result<(), Error> {
        let path = self.path.join(SIGNATURES).join(signature_file(name, manifest));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::write(path)(error)),
            _ => Ok(()),
        }
    }

    /// The digest of the manifest that a name means, if it means any.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn resolve(&self, name: &Name) -> Result<Option<Digest>, Error> {
        built(&self.path.join(NAMES).join(name.file_name()))
    }

    /// All bundles by name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(&self) -> Result<Vec<Stored>, Error> {
        let mut all = Vec::new();
        for path in entries(&self.path.join(NAMES))? {
            let Some(name) = Name::of_file(&path) else { continue };
            let Some(digest) = built(&path)? else { continue };
            all.push(Stored { name, digest, manifest: self.manifest(digest), own_bytes: 0 });
        }
        // Which names need a blob.
        let mut users: BTreeMap<String, BTreeSet<Name>> = BTreeMap::new();
        for Stored { name, manifest, .. } in &all {
            for (_, blob) in manifest.iter().flat_map(Manifest::blobs) {
                users.entry(blob.digest.hex()).or_default().insert(name.clone());
            }
        }
        for stored in &mut all {
            let blobs = stored.manifest.iter().flat_map(Manifest::distinct_blobs);
            let own = blobs.filter(|(hex, _)| users.get(hex).is_some_and(|users| users.len() == 1));
            stored.own_bytes = own.map(|(_, (_, blob))| blob.size).sum();
        }
        Ok(all)
    }

    /// The manifest of this digest, whole.
    pub(super) fn manifest(&self, digest: Digest) -> Result<Manifest, Error> {
        let text = read_manifest(&self.path.join(BUNDLES).join(digest.hex()))?;
        let found = Digest::of(text.as_bytes());
        if found != digest {
            return Err(Error::BlobDigest { role: BlobRole::Manifest, found, expected: digest });
        }
        Manifest::parse(&text)
    }

    /// Takes a name away. What only its bundle had stays until the store is collected.
    ///
    /// # Errors
    /// When there is no such name, or the store cannot be written.
    pub fn remove(&self, name: &Name) -> Result<(), Error> {
        let path = self.path.join(NAMES).join(name.file_name());
        if let Some(manifest) = self.resolve(name)? {
            self.remove_signature(name, manifest)?;
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.no_such_bundle(name)),
            other => other.map_err(Error::write(path)),
        }
    }

    /// Digests of the manifests that names mean, each with one of the names.
    ///
    /// # Errors
    /// When what a name means cannot be read: what it needs is not known then.
    pub(super) fn named_bundles(&self) -> Result<BTreeMap<String, (Digest, Name)>, Error> {
        let mut all = BTreeMap::new();
        for path in entries(&self.path.join(NAMES))? {
            let Some(name) = Name::of_file(&path) else { continue };
            let digest = built(&path)?.ok_or_else(|| Error::DamagedName { name: name.clone() })?;
            all.insert(digest.hex(), (digest, name));
        }
        Ok(all)
    }

    /// Whether a name is there.
    ///
    /// # Errors
    /// [`Error::NoSuchBundle`] when it is not.
    pub fn find(&self, name: &Name) -> Result<(), Error> {
        let there = self.path.join(NAMES).join(name.file_name()).is_file();
        if there { Ok(()) } else { Err(self.no_such_bundle(name)) }
    }

    /// Returns the error for a name that is not in the store. It suggests similar names.
    fn no_such_bundle(&self, name: &Name) -> Error {
        let files = entries(&self.path.join(NAMES)).unwrap_or_default();
        let names: Vec<_> = files.iter().filter_map(|path| Name::of_file(path)).collect();
        let nearest = nearest(name.as_str(), names.iter().map(Name::as_str));
        let nearest = nearest.into_iter().map(str::to_owned).collect();
        Error::NoSuchBundle { name: name.clone(), store: self.path.clone(), nearest }
    }

    /// Signatures of names that are there no more, or mean another bundle.
    pub(super) fn orphaned_signatures(&self) -> Result<Vec<PathBuf>, Error> {
        let mut orphans = Vec::new();
        for path in entries(&self.path.join(SIGNATURES))? {
            let file = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let meant = match file.rsplit_once('=') {
                Some((name, _)) => built(&self.path.join(NAMES).join(name))?,
                None => None,
            };
            if !meant.is_some_and(|digest| file.ends_with(&format!("={}", digest.hex()))) {
                orphans.push(path);
            }
        }
        Ok(orphans)
    }

    /// The folders of manifests.
    pub(super) fn bundle_folders(&self) -> Result<Vec<(PathBuf, Option<Digest>)>, Error> {
        let folders = entries(&self.path.join(BUNDLES))?;
        Ok(folders.into_iter().map(|path| (path.clone(), named(&path))).collect())
    }
}

/// The file of a signature: the name's, and after a character that no name has, which manifest it is of. So nobody who
/// changes what the name means, at whatever moment, gives it another bundle's.
fn signature_file(name: &Name, manifest: Digest) -> String {
    format!("{}={}", name.file_name(), manifest.hex())
}

/// A bundle on its way into a store. Dropped before it is finished, it leaves at most files that nothing names.
#[derive(Debug)]
pub struct StoreWriter {
    store: Store,
    name: Name,
    added: HashMap<Digest, u64>,
    using: SharedLock,
}

impl StoreWriter {
    /// Starts a bundle that will have this name in the store, in place of the one that has it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn new(store: &Store, name: &Name) -> Result<Self, Error> {
        let using = store.in_use()?;
        Ok(Self { store: store.clone(), name: name.clone(), added: HashMap::new(), using })
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Notes that a blob is there.
    #[cfg(feature = "registry")]
    pub(super) fn added(&mut self, blob: &Blob) {
        self.added.insert(blob.digest, blob.size);
    }

    /// Whether the blobs that a manifest names fit, together with the other bundles.
    ///
    /// # Errors
    /// [`Error::StoreFull`] when they do not.
    pub fn check_room(&self, manifest: &Manifest) -> Result<(), Error> {
        let Some(limit) = self.store.limit else { return Ok(()) };
        let mut blobs: BTreeMap<String, u64> = BTreeMap::new();
        for stored in self.store.list()?.iter().filter(|stored| stored.name != self.name) {
            blobs.extend(
                stored.manifest.iter().flat_map(Manifest::blobs).map(|(_, b)| (b.digest.hex(), b.size)),
            );
        }
        let others = blobs.values().sum();
        blobs.extend(manifest.blobs().map(|(_, blob)| (blob.digest.hex(), blob.size)));
        let needed: u64 = blobs.values().sum();
        if needed > limit { Err(Error::StoreFull { needed: needed - others, others, limit }) } else { Ok(()) }
    }
}

impl Destination for StoreWriter {
    fn begin(&mut self, manifest: &Manifest) -> Result<(), Error> {
        self.check_room(manifest)
    }

    fn has(&mut self, blob: &Blob) -> bool {
        let found = self.store.whole_blob(blob.digest);
        if let Some((_, size)) = &found {
            // What it has, whatever the manifest says: `finish_as` compares.
            self.added.insert(blob.digest, *size);
        }
        found.is_some()
    }

    fn add_reader(&mut self, source: &mut dyn Read, path: &Path) -> Result<Blob, Error> {
        let blob = self.store.add_blob(source, path)?;
        self.added.insert(blob.digest, blob.size);
        Ok(blob)
    }

    fn finish_as(
        self: Box<Self>,
        manifest: &Manifest,
        text: String,
        signature: Option<&str>,
    ) -> Result<Bundle, Error> {
        all_added(manifest, &self.added)?;
        let Self { store, name, using, .. } = *self;
        store.sync_blobs()?;
        let digest = Digest::of(text.as_bytes());
        let folder = store.make(&format!("{BUNDLES}/{}", digest.hex()))?;
        let (staging, _lock) = store.incoming_folder()?;
        let put = |file: &str, text: &str| replace_file(&folder, staging.path(), file, text.as_bytes());
        put(MANIFEST, &text).map_err(Error::write(&folder))?;
        match signature {
            Some(signature) => store.sign(&name, digest, signature)?,
            None => store.remove_signature(&name, digest)?,
        }
        let before = store.resolve(&name)?.filter(|before| *before != digest);
        store.replace(NAMES, &name.file_name(), &format!("{}\n", digest.hex()))?;
        if let Some(before) = before {
            // What it meant before is no longer looked for.
            _ = store.remove_signature(&name, before);
        }
        drop(using);
        store.keep_to_limit();
        Ok(Bundle::written(store.place_of(&name, digest, store.in_use().ok()), manifest.clone(), text))
    }
}
