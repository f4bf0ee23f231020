//! Opening a bundle: find, read, validate, verify.

mod archive;
mod copy;
pub(crate) mod documents;
mod edit;
pub(crate) mod location;
mod origin;
pub(crate) mod sign;
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
    manifest::{Manifest, TargetArtifact},
};
use location::{Location, StoreEntry};
use verified::VerifiedFiles;
use verify::{check_digest, check_file, verify, verify_once};

/// Files of this size and larger are not read again that were found whole before. Smaller ones are read in the time that it
/// takes to look for a note.
const NOTED_BYTES: u64 = 1 << 20;

/// A bundle whose every blob was found whole, or will be before it is given out.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    location: Location,
    manifest: Manifest,
    /// The manifest's bytes, which a signature is over.
    text: String,
    /// Whether the weights were found whole.
    weights_verified: bool,
}

impl Bundle {
    /// Opens the bundle in a folder: validates its manifest and verifies size and digest of every blob, weights too.
    ///
    /// # Errors
    /// When `folder` is no bundle, its format is newer, its manifest is invalid, or a blob is missing or damaged.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Self::open_at(Location::folder(folder.to_path_buf()))
    }

    /// Opens the bundle in a folder without reading its weights.
    ///
    /// [`weights`](Self::weights) and [`packed_weights`](Self::packed_weights) verify them when they are asked for.
    ///
    /// # Errors
    /// As [`open`](Self::open). Of the checkpoint's weights only a missing file and one of another size are errors.
    pub fn open_without_weights(folder: &Path) -> Result<Self, Error> {
        Self::open_without_weights_at(Location::folder(folder.to_path_buf()))
    }

    /// Opens the bundle at `location`, reading all of it.
    pub(crate) fn open_at(location: Location) -> Result<Self, Error> {
        let mut bundle = Self::opened(location, &verify)?;
        let mut seen = HashSet::new();
        for (role, blob) in bundle.manifest.weight_blobs() {
            if seen.insert(blob.digest) {
                verify(&bundle.location, &role, blob)?;
            }
        }
        bundle.weights_verified = true;
        Ok(bundle)
    }

    /// Opens the bundle at `location` without reading its weights.
    ///
    /// If a large file is unchanged since it was last verified, it is not read again. What is made of code and small files
    /// is verified as it is read, by [`read_blob`](Self::read_blob).
    pub(crate) fn open_without_weights_at(location: Location) -> Result<Self, Error> {
        let notes = location.notes.clone();
        let known = LazyCell::new(|| VerifiedFiles::in_store(notes.as_deref()));
        Self::opened(location, &|location, role, blob| {
            if blob.size < NOTED_BYTES {
                return verify(location, role, blob);
            }
            verify_once(&known, location, role, blob).map(drop)
        })
    }

    /// Opens the bundle at `place`. `verify` verifies everything but weights.
    fn opened(
        place: Location,
        verify: &dyn Fn(&Location, &BlobRole, &Blob) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let text = verify::read_manifest(&place.folder)?;
        match &place.stored {
            Some(StoreEntry { name, manifest, .. }) if Digest::of(text.as_bytes()) != *manifest => {
                return Err(Error::DamagedName { name: name.clone() });
            }
            // Through a link, what is added to the bundle would be written elsewhere.
            None if fs::symlink_metadata(&place.blobs).is_ok_and(|found| found.is_symlink()) => {
                let (path, reason) = (place.folder, "its blobs are in another folder, behind a link");
                return Err(Error::NotABundle { path, reason, checkpoint: false });
            }
            _ => {}
        }
        let manifest = Manifest::parse(&text)?;
        let mut seen = HashSet::new();
        for (role, blob) in manifest.code_blobs() {
            if seen.insert(blob.digest) {
                verify(&place, &role, blob)?;
            }
        }
        // Packed ones can be made again.
        for (name, blob) in &manifest.weights {
            check_file(&place, &BlobRole::Weights(name.clone()), blob)?;
        }
        Ok(Self { location: place, manifest, text, weights_verified: false })
    }

    /// The manifest's text, as it was read or written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What the bundle says about itself.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Bytes of the manifest's text.
    #[must_use]
    pub fn manifest_size(&self) -> u64 {
        self.text.len() as u64
    }

    /// The bundle's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.location.folder
    }

    /// Where it lies.
    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// What people call it: its name in the store, or its folder.
    #[must_use]
    pub fn display_name(&self) -> String {
        let name = self.location.stored.as_ref().map(|stored| stored.name.to_string());
        name.unwrap_or_else(|| self.path().display().to_string())
    }

    /// Where a blob of this bundle lies.
    #[must_use]
    pub fn blob_path(&self, blob: &Blob) -> PathBuf {
        self.location.blob_path(blob.digest)
    }

    /// Reads the blob of a module, a small file or a document into `to`, which has its size, and then verifies what is there:
    /// unlike the file it cannot become something else afterwards.
    ///
    /// # Errors
    /// When it is missing or damaged, or cannot be read.
    pub fn read_blob(&self, blob: &Blob, to: &mut [u8]) -> Result<(), Error> {
        let role = self.manifest.code_blobs().find(|(_, other)| *other == blob);
        let role = role.map_or(BlobRole::Unnamed, |(role, _)| role);
        let path = check_file(&self.location, &role, blob)?;
        let read = File::open(&path).and_then(|mut file| file.read_exact(to));
        read.map_err(Error::read(&path))?;
        check_digest(&role, Digest::of(to), blob)
    }

    /// One of the checkpoint's small files, `config.json`, `tokenizer.json`, …, as [`read_blob`](Self::read_blob) reads it;
    /// `None` when the bundle has none of that name.
    ///
    /// # Errors
    /// As [`read_blob`](Self::read_blob).
    pub fn read_file(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.manifest.files.get(name).map(|blob| self.read_small(blob)).transpose()
    }

    /// The bytes of a small file or a document, as [`read_blob`](Self::read_blob) reads them.
    pub(crate) fn read_small(&self, blob: &Blob) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; usize::try_from(blob.size).unwrap_or(usize::MAX)];
        self.read_blob(blob, &mut bytes)?;
        Ok(bytes)
    }

    /// One of the documents, `sbom.cdx.json` or `provenance.intoto.json`, in the same way.
    ///
    /// # Errors
    /// As [`read_blob`](Self::read_blob).
    pub fn read_document(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.manifest.documents.get(name).map(|blob| self.read_small(blob)).transpose()
    }

    /// The checkpoint's safetensors files, by name: none when the bundle carries no weights.
    ///
    /// # Errors
    /// When one is missing or damaged.
    pub fn weights(&self) -> Result<Vec<(&str, PathBuf)>, Error> {
        self.manifest
            .weights
            .iter()
            .map(|(name, blob)| {
                self.verified(&BlobRole::Weights(name.clone()), blob).map(|path| (name.as_str(), path))
            })
            .collect()
    }

    /// Whether it carries packed weights, for one target at least.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        let packed = |target: &TargetArtifact| target.packing.as_ref().is_some_and(|p| p.weights.is_some());
        self.manifest.targets.values().any(packed)
    }

    /// The file of the target's packed weights, where it carries them.
    ///
    /// # Errors
    /// When it is missing or damaged.
    pub fn packed_weights(&self, target: &str) -> Result<Option<PathBuf>, Error> {
        let packing = self.manifest.targets.get(target).and_then(|target| target.packing.as_ref());
        let blob = packing.and_then(|packing| packing.weights.as_ref());
        blob.map(|blob| self.verified(&BlobRole::PackedWeights(target.to_owned()), blob)).transpose()
    }

    /// Whether these safetensors files are those that the target's packed weights were made from.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn is_packed_from(&self, target: &str, files: &[PathBuf]) -> Result<bool, Error> {
        let packing = self.manifest.targets.get(target).and_then(|target| target.packing.as_ref());
        packing.map_or(Ok(false), |packing| are(files, &packing.made_from, &self.verified_files()))
    }

    /// A bundle that was just written, byte by byte, from this manifest.
    pub(crate) fn written(location: Location, manifest: Manifest, text: String) -> Self {
        Self { location, manifest, text, weights_verified: true }
    }

    /// Remembers `notes` as the store that knows of this bundle.
    pub(crate) fn with_notes(mut self, notes: Option<PathBuf>) -> Self {
        self.location.notes = notes;
        self
    }

    /// The same bundle with another manifest in its place. Weights that nobody has verified stay so.
    pub(crate) fn with_manifest(self, manifest: Manifest, text: String) -> Self {
        Self { manifest, text, ..self }
    }

    fn verified_files(&self) -> VerifiedFiles {
        VerifiedFiles::in_store(self.location.notes.as_deref())
    }

    /// Where a blob of weights lies, which is whole.
    fn verified(&self, role: &BlobRole, blob: &Blob) -> Result<PathBuf, Error> {
        if self.weights_verified {
            return check_file(&self.location, role, blob);
        }
        verify_once(&self.verified_files(), &self.location, role, blob)
    }
}

/// Files as a manifest has them.
///
/// # Errors
/// When one cannot be read.
pub(crate) fn blobs_of(files: &[PathBuf]) -> Result<BTreeMap<String, Blob>, Error> {
    let blob = |file: &PathBuf| {
        let (digest, size) = Digest::of_file(file).map_err(Error::read(file))?;
        Ok((name(file), Blob { digest, size }))
    };
    files.iter().map(blob).collect()
}

/// Whether the files are these, each under its name; a single one may have another.
fn are(files: &[PathBuf], these: &BTreeMap<String, Blob>, known: &VerifiedFiles) -> Result<bool, Error> {
    if files.is_empty() || files.len() != these.len() {
        return Ok(false);
    }
    for file in files {
        let blob = if files.len() == 1 { these.values().next() } else { these.get(&name(file)) };
        let Some(blob) = blob else { return Ok(false) };
        let size = fs::metadata(file).map_err(Error::read(file))?.len();
        if size != blob.size || known.digest(file, blob.digest).map_err(Error::read(file))? != blob.digest {
            return Ok(false);
        }
    }
    Ok(true)
}

fn name(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
