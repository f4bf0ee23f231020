//! The bundles in a store: manifests under names, with shared blobs.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    build_cache::read_digest,
    open::{Store, digest_in_name},
};
use crate::{
    blob::BlobRole,
    bundle::{
        Bundle,
        location::{Location, StoreEntry},
        verify::read_manifest,
    },
    digest::Digest,
    error::Error,
    files::{SharedLock, list_folder},
    layout::{MANIFEST, StoreFolder},
    manifest::Manifest,
    name::Name,
    nearest::{SUGGESTIONS, nearest},
};

/// A bundle in the store.
#[derive(Debug)]
pub struct StoredBundle {
    /// Its name.
    pub name: Name,
    /// The digest of its manifest.
    pub digest: Digest,
    /// Its manifest, or why that cannot be read.
    pub manifest: Result<Manifest, Error>,
    /// Bytes of the blobs that no other bundle needs.
    pub own_bytes: u64,
}

impl Store {
    /// Opens a bundle and verifies all of it.
    ///
    /// `bundle` is a folder or a name. A folder with a manifest takes precedence over a name.
    ///
    /// # Errors
    /// As [`Bundle::open`].
    pub fn open(&self, bundle: &Path) -> Result<Bundle, Error> {
        Bundle::open_at(self.locate(bundle)?)
    }

    /// Opens a bundle without reading its weights.
    ///
    /// `bundle` is a folder or a name. If a large file is unchanged since it was last verified, it is not read again.
    ///
    /// # Errors
    /// As [`Bundle::open_without_weights`].
    pub fn open_without_weights(&self, bundle: &Path) -> Result<Bundle, Error> {
        Bundle::open_without_weights_at(self.locate(bundle)?)
    }

    /// Remembers that this machine compiled `bundle`. If that fails, the bundle counts as compiled elsewhere.
    pub fn remember_built(&self, bundle: &Bundle) {
        _ = bundle.remember_built(self.path());
    }

    /// Returns the location of the bundle in a folder, or under a name.
    fn locate(&self, bundle: &Path) -> Result<Location, Error> {
        // A folder without a manifest may have the name of a bundle by accident.
        if fs::symlink_metadata(bundle.join(MANIFEST)).is_err()
            && let Some(name) = bundle.to_str().and_then(|text| text.parse::<Name>().ok())
        {
            if let Some(location) = self.locate_name(&name)? {
                return Ok(location);
            }
            if !bundle.exists() {
                let (path, reason) = (bundle.to_path_buf(), "it does not exist");
                let nearest = self.similar_names(&name);
                return Err(Error::NotABundle { path, reason, checkpoint: false, nearest });
            }
        }
        let folder = Location::folder(bundle.to_path_buf());
        Ok(Location { notes: Some(self.path().to_path_buf()), ..folder })
    }

    /// Returns the location of the bundle under a name, if there is one.
    fn locate_name(&self, name: &Name) -> Result<Option<Location>, Error> {
        // Locking creates the store, which a question about a name should not.
        if self.resolve(name)?.is_none() {
            return Ok(None);
        }
        // Locked before the name is read again, so that its files are not removed in between. A store that is read-only
        // cannot be locked.
        let lock = self.lock_shared().ok();
        Ok(self.resolve(name)?.map(|digest| self.location(name, digest, lock)))
    }

    /// Returns the location of the bundle with this manifest under a name.
    pub(super) fn location(&self, name: &Name, manifest: Digest, lock: Option<SharedLock>) -> Location {
        Location {
            folder: self.folder(StoreFolder::Bundles).join(manifest.hex()),
            blobs: self.folder(StoreFolder::Blobs),
            signature: self.signature_path(name, manifest),
            stored: Some(StoreEntry { name: name.clone(), manifest, _lock: lock.map(Arc::new) }),
            notes: Some(self.path().to_path_buf()),
        }
    }

    /// Returns the path of a bundle's signature under a name.
    ///
    /// It contains the manifest's digest. So if another process changes the name's bundle, that one does not get this
    /// signature. No name has a `=`.
    pub(super) fn signature_path(&self, name: &Name, manifest: Digest) -> PathBuf {
        let file = format!("{}={}", name.file_name(), manifest.hex());
        self.folder(StoreFolder::Signatures).join(file)
    }

    /// Removes a bundle's signature under a name, if there is one.
    pub(super) fn remove_signature(&self, name: &Name, manifest: Digest) -> Result<(), Error> {
        let path = self.signature_path(name, manifest);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::write(path)(error)),
            _ => Ok(()),
        }
    }

    /// Returns the digest of the manifest that a name stands for, if the name is in the store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn resolve(&self, name: &Name) -> Result<Option<Digest>, Error> {
        read_digest(&self.name_path(name))
    }

    /// Returns an error that suggests similar names if a name is not in the store.
    ///
    /// # Errors
    /// [`Error::NoSuchBundle`].
    pub fn require(&self, name: &Name) -> Result<(), Error> {
        if self.name_path(name).is_file() { Ok(()) } else { Err(self.no_such_bundle(name)) }
    }

    /// Returns all bundles, sorted by name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self) -> Result<Vec<StoredBundle>, Error> {
        let mut bundles = Vec::new();
        for path in list_folder(&self.folder(StoreFolder::Names))? {
            let Some(name) = Name::of_file(&path) else { continue };
            let Some(digest) = read_digest(&path)? else { continue };
            bundles.push(StoredBundle { name, digest, manifest: self.manifest(digest), own_bytes: 0 });
        }
        let mut users: BTreeMap<String, BTreeSet<Name>> = BTreeMap::new();
        for StoredBundle { name, manifest, .. } in &bundles {
            for (_, blob) in manifest.iter().flat_map(Manifest::blobs) {
                users.entry(blob.digest.hex()).or_default().insert(name.clone());
            }
        }
        for bundle in &mut bundles {
            let blobs = bundle.manifest.iter().flat_map(Manifest::distinct_blobs);
            let own = blobs.filter(|(hex, _)| users.get(hex).is_some_and(|users| users.len() == 1));
            bundle.own_bytes = own.map(|(_, (_, blob))| blob.size).sum();
        }
        Ok(bundles)
    }

    /// Removes a name. The files of its bundle stay until garbage collection.
    ///
    /// # Errors
    /// The name is not in the store, or the store cannot be written.
    pub fn remove(&self, name: &Name) -> Result<(), Error> {
        let path = self.name_path(name);
        if let Some(manifest) = self.resolve(name)? {
            self.remove_signature(name, manifest)?;
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.no_such_bundle(name)),
            other => other.map_err(Error::write(path)),
        }
    }

    /// Reads and verifies the manifest with this digest.
    pub(super) fn manifest(&self, digest: Digest) -> Result<Manifest, Error> {
        let text = read_manifest(&self.folder(StoreFolder::Bundles).join(digest.hex()))?;
        let found = Digest::of(text.as_bytes());
        if found != digest {
            return Err(Error::BlobDigest { role: BlobRole::Manifest, found, expected: digest });
        }
        Manifest::parse(&text)
    }

    /// Returns the manifests that names stand for, by their digests, each with one of its names.
    ///
    /// A damaged name is an error, because nobody knows which files its bundle needs.
    pub(super) fn named_bundles(&self) -> Result<BTreeMap<String, (Digest, Name)>, Error> {
        let mut bundles = BTreeMap::new();
        for path in list_folder(&self.folder(StoreFolder::Names))? {
            let Some(name) = Name::of_file(&path) else { continue };
            let digest = read_digest(&path)?.ok_or_else(|| Error::DamagedName { name: name.clone() })?;
            bundles.insert(digest.hex(), (digest, name));
        }
        Ok(bundles)
    }

    /// Returns the signatures of names that were removed, or stand for another bundle now.
    pub(super) fn orphaned_signatures(&self) -> Result<Vec<PathBuf>, Error> {
        let mut orphans = Vec::new();
        for path in list_folder(&self.folder(StoreFolder::Signatures))? {
            let file = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let current = match file.rsplit_once('=') {
                Some((name, _)) => read_digest(&self.folder(StoreFolder::Names).join(name))?,
                None => None,
            };
            if !current.is_some_and(|digest| file.ends_with(&format!("={}", digest.hex()))) {
                orphans.push(path);
            }
        }
        Ok(orphans)
    }

    /// Returns the folders of manifests with the digests that name them.
    pub(super) fn bundle_folders(&self) -> Result<Vec<(PathBuf, Option<Digest>)>, Error> {
        let folders = list_folder(&self.folder(StoreFolder::Bundles))?;
        Ok(folders.into_iter().map(|path| (path.clone(), digest_in_name(&path))).collect())
    }

    fn name_path(&self, name: &Name) -> PathBuf {
        self.folder(StoreFolder::Names).join(name.file_name())
    }

    /// Returns the error for a name that is not in the store. It suggests similar names.
    fn no_such_bundle(&self, name: &Name) -> Error {
        let nearest = self.similar_names(name);
        Error::NoSuchBundle { name: name.clone(), store: self.path().to_path_buf(), nearest }
    }

    /// Returns the names in the store that are most similar to `name`, the most similar one first.
    fn similar_names(&self, name: &Name) -> Vec<String> {
        let files = list_folder(&self.folder(StoreFolder::Names)).unwrap_or_default();
        let names: Vec<_> = files.iter().filter_map(|path| Name::of_file(path)).collect();
        let nearest = nearest(name.as_str(), names.iter().map(Name::as_str), SUGGESTIONS);
        nearest.into_iter().map(str::to_owned).collect()
    }
}
