//! Bundles: opening, reading, writing, packing, signing, copying.

mod archive;
mod copy;
pub(crate) mod documents;
mod edit;
pub(crate) mod location;
mod origin;
pub(crate) mod sign;
mod user_key;
mod verified;
pub(crate) mod verify;
pub(crate) mod write;

use std::{
    cell::LazyCell,
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use crate::{
    blob::{Blob, BlobRole},
    digest::Digest,
    error::Error,
    manifest::{Manifest, Packing, TargetArtifact},
};
use location::{Location, StoreEntry};
use verified::VerifiedFiles;
use verify::{check_digest, check_file, verify, verify_once};

/// How often a bundle is opened anew because another process packed or replaced it meanwhile.
const OPEN_ATTEMPTS: usize = 5;

/// The smallest file that is not read again while it is unchanged. Hashing a smaller one takes no longer than the lookup.
const NOTED_BYTES: u64 = 1 << 20;

/// A bundle. Every blob was verified when the bundle was opened, or is verified before it is handed out.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    location: Location,
    manifest: Manifest,
    /// The manifest's bytes, which the signature covers.
    text: String,
    /// Whether opening verified the weights.
    weights_verified: bool,
}

impl Bundle {
    /// Opens the bundle in a folder. Validates its manifest, and verifies size and digest of every blob.
    ///
    /// # Errors
    /// The folder is not a bundle, its format is newer, its manifest is invalid, or a blob is missing or damaged.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Self::open_at(Location::folder(folder.to_path_buf()))
    }

    /// Opens the bundle in a folder without reading its weights.
    ///
    /// [`weights`](Self::weights) and [`packed_weights`](Self::packed_weights) verify the files that they return.
    ///
    /// # Errors
    /// As [`open`](Self::open), but a file of weights is only checked for its size.
    pub fn open_without_weights(folder: &Path) -> Result<Self, Error> {
        Self::open_without_weights_at(Location::folder(folder.to_path_buf()))
    }

    /// Opens the bundle at `location` and verifies all of it.
    pub(crate) fn open_at(location: Location) -> Result<Self, Error> {
        Self::open_settled(&location, |text| {
            let mut bundle = Self::open_with(location.clone(), text, &verify)?;
            let mut seen = HashSet::new();
            for (role, blob) in bundle.manifest.weight_blobs() {
                if seen.insert(blob.digest) {
                    verify(&bundle.location, &role, blob)?;
                }
            }
            bundle.weights_verified = true;
            Ok(bundle)
        })
    }

    /// Opens the bundle at `location` without reading its weights.
    ///
    /// If a large file is unchanged since it was last verified, it is not read. Code and small files are verified again when
    /// [`read_blob`](Self::read_blob) reads them.
    pub(crate) fn open_without_weights_at(location: Location) -> Result<Self, Error> {
        let notes = location.notes.clone();
        let verified = LazyCell::new(|| VerifiedFiles::in_store(notes.as_deref()));
        Self::open_settled(&location, |text| {
            Self::open_with(location.clone(), text, &|location, role, blob| {
                if blob.size < NOTED_BYTES {
                    return verify(location, role, blob);
                }
                verify_once(&verified, location, role, blob).map(drop)
            })
        })
    }

    /// Reads the manifest and opens the bundle by `open`, which gets its text.
    ///
    /// If a blob is missing because another process packed or replaced the bundle meanwhile, starts over.
    fn open_settled(
        location: &Location,
        open: impl Fn(String) -> Result<Self, Error>,
    ) -> Result<Self, Error> {
        let mut text = verify::read_manifest(&location.folder)?;
        for _ in 1..OPEN_ATTEMPTS {
            let missing = match open(text.clone()) {
                Err(missing @ Error::MissingBlob { .. }) => missing,
                other => return other,
            };
            let now = verify::read_manifest(&location.folder)?;
            if now == text {
                return Err(missing);
            }
            text = now;
        }
        open(text)
    }

    /// Opens the bundle at `location`, whose manifest has this text. `verify` verifies every blob except weights.
    fn open_with(
        location: Location,
        text: String,
        verify: &dyn Fn(&Location, &BlobRole, &Blob) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        match &location.stored {
            Some(StoreEntry { name, manifest, .. }) if Digest::of(text.as_bytes()) != *manifest => {
                return Err(Error::DamagedName { name: name.clone() });
            }
            // Packing would write through the link, into another folder.
            None if fs::symlink_metadata(&location.blobs).is_ok_and(|found| found.is_symlink()) => {
                let (path, reason) = (location.folder, "its folder blobs is a symbolic link");
                return Err(Error::NotABundle { path, reason, checkpoint: false, nearest: Vec::new() });
            }
            _ => {}
        }
        let manifest = Manifest::parse(&text)?;
        let mut seen = HashSet::new();
        for (role, blob) in manifest.code_blobs() {
            if seen.insert(blob.digest) {
                verify(&location, &role, blob)?;
            }
        }
        // Packed weights may be missing: they can be made again.
        for (name, blob) in &manifest.weights {
            check_file(&location, &BlobRole::Weights(name.clone()), blob)?;
        }
        Ok(Self { location, manifest, text, weights_verified: false })
    }

    /// Returns a bundle whose blobs were verified while they were written.
    pub(crate) fn new_verified(location: Location, manifest: Manifest, text: String) -> Self {
        Self { location, manifest, text, weights_verified: true }
    }

    /// Replaces the store that remembers verified files and compiled bundles.
    pub(crate) fn with_notes(mut self, notes: Option<PathBuf>) -> Self {
        self.location.notes = notes;
        self
    }

    /// Replaces the manifest. Weights that are not verified stay so.
    pub(crate) fn with_manifest(self, manifest: Manifest, text: String) -> Self {
        Self { manifest, text, ..self }
    }

    /// Returns the manifest's text as it was read or written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the paths of the bundle's files.
    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// Returns the manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the digest of the manifest's text, which names all files of the bundle by their digests.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// Returns the length of the manifest's text in bytes.
    #[must_use]
    pub fn manifest_size(&self) -> u64 {
        self.text.len() as u64
    }

    /// Returns the bundle's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.location.folder
    }

    /// Returns the bundle's name in the store, or its folder.
    #[must_use]
    pub fn display_name(&self) -> String {
        let name = self.location.stored.as_ref().map(|stored| stored.name.to_string());
        name.unwrap_or_else(|| self.path().display().to_string())
    }

    /// Returns the path of a blob.
    #[must_use]
    pub fn blob_path(&self, blob: &Blob) -> PathBuf {
        self.location.blob_path(blob.digest)
    }

    /// Reads a module, a small file or a document into `to`, which has the blob's size, and verifies these bytes.
    ///
    /// A later change of the file does not matter to them.
    ///
    /// # Errors
    /// The blob is missing or damaged, or cannot be read.
    pub fn read_blob(&self, blob: &Blob, to: &mut [u8]) -> Result<(), Error> {
        let role = self.manifest.code_blobs().find(|(_, other)| *other == blob);
        let role = role.map_or(BlobRole::Unnamed, |(role, _)| role);
        let path = check_file(&self.location, &role, blob)?;
        let read = File::open(&path).and_then(|mut file| file.read_exact(to));
        read.map_err(Error::read(&path))?;
        check_digest(&role, Digest::of(to), blob)
    }

    /// Reads and verifies one of the checkpoint's small files, such as `config.json`, if the bundle has it.
    ///
    /// # Errors
    /// As [`read_blob`](Self::read_blob).
    pub fn read_file(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.manifest.files.get(name).map(|blob| self.read_small(blob)).transpose()
    }

    /// Reads and verifies a document, such as `sbom.cdx.json`, if the bundle has it.
    ///
    /// # Errors
    /// As [`read_blob`](Self::read_blob).
    pub fn read_document(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.manifest.documents.get(name).map(|blob| self.read_small(blob)).transpose()
    }

    /// Reads and verifies a small file, a document or a golden.
    ///
    /// # Errors
    /// As [`read_blob`](Self::read_blob).
    pub fn read_small(&self, blob: &Blob) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; usize::try_from(blob.size).unwrap_or(usize::MAX)];
        self.read_blob(blob, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns name and path of the checkpoint's safetensors files, verified. A bundle without weights has none.
    ///
    /// # Errors
    /// A file is missing or damaged.
    pub fn weights(&self) -> Result<Vec<(&str, PathBuf)>, Error> {
        let verified = LazyCell::new(|| self.verified_files());
        let weights = self.manifest.weights.iter();
        let verify = |(name, blob): (&'_ String, &Blob)| {
            self.verify_weights(&verified, &BlobRole::Weights(name.clone()), blob)
        };
        weights.map(|(name, blob)| Ok((name.as_str(), verify((name, blob))?))).collect()
    }

    /// Returns whether the bundle carries packed weights for any target.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        let is_packed =
            |target: &TargetArtifact| target.packing.as_ref().is_some_and(|p| p.weights.is_some());
        self.manifest.targets.values().any(is_packed)
    }

    /// Returns the path of a target's packed weights, verified, if the bundle carries them.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn packed_weights(&self, target: &str) -> Result<Option<PathBuf>, Error> {
        let blob = self.packing(target).and_then(|packing| packing.weights.as_ref());
        let verified = LazyCell::new(|| self.verified_files());
        let role = BlobRole::PackedWeights(target.to_owned());
        blob.map(|blob| self.verify_weights(&verified, &role, blob)).transpose()
    }

    /// Returns whether the target's packed weights were made from these safetensors files.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn is_packed_from(&self, target: &str, files: &[PathBuf]) -> Result<bool, Error> {
        let Some(packing) = self.packing(target) else { return Ok(false) };
        match_blobs(files, &packing.made_from, &self.verified_files())
    }

    fn packing(&self, target: &str) -> Option<&Packing> {
        self.manifest.targets.get(target).and_then(|target| target.packing.as_ref())
    }

    fn verified_files(&self) -> VerifiedFiles {
        VerifiedFiles::in_store(self.location.notes.as_deref())
    }

    /// Returns the path of a file of weights. Verifies it unless opening did.
    fn verify_weights(
        &self,
        verified: &LazyCell<VerifiedFiles, impl FnOnce() -> VerifiedFiles>,
        role: &BlobRole,
        blob: &Blob,
    ) -> Result<PathBuf, Error> {
        if self.weights_verified {
            return check_file(&self.location, role, blob);
        }
        verify_once(verified, &self.location, role, blob)
    }
}

/// Returns whether the files are these blobs, each under its name. A single file may have another name.
fn match_blobs(
    files: &[PathBuf],
    blobs: &BTreeMap<String, Blob>,
    verified: &VerifiedFiles,
) -> Result<bool, Error> {
    if files.is_empty() || files.len() != blobs.len() {
        return Ok(false);
    }
    for file in files {
        let named = || blobs.get(&Manifest::listed_name(file).ok()?);
        let blob = if files.len() == 1 { blobs.values().next() } else { named() };
        let Some(blob) = blob else { return Ok(false) };
        let size = fs::metadata(file).map_err(Error::read(file))?.len();
        if size != blob.size || verified.digest(file, blob.digest).map_err(Error::read(file))? != blob.digest
        {
            return Ok(false);
        }
    }
    Ok(true)
}
