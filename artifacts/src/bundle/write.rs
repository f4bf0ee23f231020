//! Writing a bundle: stage beside the destination, sync, rename.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use tempfile::TempDir;

use crate::{
    blob::{Blob, BlobRole},
    bundle::{Bundle, location::Location, verify::check_digest},
    digest::Digest,
    error::Error,
    files::{copy_hashed, parent, staging, sync_folder},
    identity::FileIdentity,
    layout::{BLOBS, MANIFEST, SIGNATURE},
    manifest::Manifest,
};

/// Where a bundle that is there already is written to: a folder of its own, by a [`BundleWriter`], or a store, by a
/// [`StoreWriter`](crate::StoreWriter).
pub trait Destination {
    /// Told of the manifest before anything is added.
    ///
    /// # Errors
    /// When there is no room for such a bundle.
    fn begin(&mut self, manifest: &Manifest) -> Result<(), Error>;

    /// Whether a blob is there, whole, before it was added.
    fn has(&mut self, blob: &Blob) -> bool;

    /// Adds a blob of everything that `source` gives; `path` is what a failure to read it names.
    ///
    /// # Errors
    /// When reading or writing fails.
    fn add_reader(&mut self, source: &mut dyn Read, path: &Path) -> Result<Blob, Error>;

    /// Puts the bundle in its place, at once, with the text of its manifest and of its signature as they are.
    ///
    /// # Errors
    /// When a blob that the manifest names was not added, or the place cannot be written, which is then as it was.
    fn finish_as(
        self: Box<Self>,
        manifest: &Manifest,
        text: String,
        signature: Option<&str>,
    ) -> Result<Bundle, Error>;
}

/// Adds a blob of everything that `source` gives, which must be what the manifest says.
pub(crate) fn add_whole(
    to: &mut dyn Destination,
    role: BlobRole,
    blob: &Blob,
    source: &mut dyn Read,
    from: &Path,
) -> Result<(), Error> {
    let Blob { digest, size } = to.add_reader(source, from)?;
    if size != blob.size {
        return Err(Error::BlobSize { role, found: size, expected: blob.size, digest: blob.digest });
    }
    check_digest(&role, digest, blob)
}

/// A bundle in the making. Dropped before [`BundleWriter::finish`], it leaves nothing behind.
#[derive(Debug)]
pub struct BundleWriter {
    out: PathBuf,
    /// The folder that `out` goes into.
    parent: PathBuf,
    /// Holds the folder `bundle` until it is renamed. The folder within exists so that the bundle gets the user's
    /// permissions: a temporary folder is closed to others.
    staging: TempDir,
    /// Locked as long as it is open.
    _lock: File,
    sizes: HashMap<Digest, u64>,
}

impl BundleWriter {
    /// Starts a bundle that will lie at `out`. Makes `out`'s parent folders; `out` itself stays as it is until `finish`.
    /// Removes what a writer of the same bundle left that was killed.
    ///
    /// # Errors
    /// When something that is no bundle lies at `out`, `out` is within a bundle, or the folder beside it cannot be made.
    pub fn create(out: &Path) -> Result<Self, Error> {
        let parent = parent(out)?;
        occupant(out)?;
        outside_bundles(out, &parent)?;
        fs::create_dir_all(&parent).map_err(Error::write(&parent))?;
        let (staging, lock) = staging(out)?;
        let writer = Self { out: out.to_path_buf(), parent, staging, _lock: lock, sizes: HashMap::new() };
        fs::create_dir_all(writer.bundle().join(BLOBS)).map_err(Error::write(out))?;
        Ok(writer)
    }

    /// Adds a blob with these bytes.
    ///
    /// # Errors
    /// When writing fails.
    pub fn add_bytes(&mut self, bytes: &[u8]) -> Result<Blob, Error> {
        let blob = Blob::of(bytes);
        if !self.sizes.contains_key(&blob.digest) {
            self.write_synced(&self.blob_path(blob.digest), bytes)?;
            self.sizes.insert(blob.digest, blob.size);
        }
        Ok(blob)
    }

    /// Adds a copy of a file. A copy, never a hard link: later writes to the file must not reach the bundle.
    ///
    /// # Errors
    /// When `path` is not a regular file (links are followed), or reading or writing fails.
    pub fn add_file(&mut self, path: &Path) -> Result<Blob, Error> {
        let found = fs::metadata(path).map_err(Error::read(path))?;
        if !found.is_file() {
            return Err(Error::read(path)(io::Error::other("not a regular file")));
        }
        let mut source = File::open(path).map_err(Error::read(path))?;
        self.add_reader(&mut source, path)
    }

    /// Validates the manifest, writes it, brings everything to the disk and puts the bundle in its place, at once. A bundle
    /// that was there is replaced; blobs that the manifest does not name are left out.
    ///
    /// # Errors
    /// When the manifest is invalid or names a blob that was not added, when something that is no bundle lies at the
    /// destination, or when writing fails. The destination is then as it was.
    pub fn finish(self, manifest: &Manifest) -> Result<Bundle, Error> {
        let text = manifest.render()?;
        Box::new(self).finish_as(manifest, text, None)
    }

    /// A folder on the bundle's own file system that goes with this writer, for files on their way into the bundle.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        self.staging.path()
    }

    /// The staged bundle.
    fn bundle(&self) -> PathBuf {
        self.staging.path().join("bundle")
    }

    fn blob_path(&self, digest: Digest) -> PathBuf {
        self.bundle().join(BLOBS).join(digest.hex())
    }

    fn write_synced(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let write = || {
            let mut file = File::create(path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(Error::write(&self.out))
    }

    /// Renames the staged bundle to `out`. What was at `out` ends in the staging folder, and goes with it.
    fn put_in_place(&self, bundle: &Path) -> Result<(), Error> {
        // Another writer may make or take away a bundle between look and rename: look again then.
        for _ in 0..100 {
            let done = match occupant(&self.out)? {
                // Never replaces more than an empty folder.
                Occupant::Nothing => fs::rename(bundle, &self.out),
                Occupant::Bundle => self.exchange(bundle),
            };
            match done {
                Err(error) if raced(&error) => {}
                other => return other.map_err(Error::write(&self.out)),
            }
        }
        Err(Error::write(&self.out)(io::Error::other("other writers kept changing it")))
    }

    fn exchange(&self, bundle: &Path) -> io::Result<()> {
        match renameat_with(CWD, bundle, CWD, &self.out, RenameFlags::EXCHANGE) {
            // File systems without the exchange: for a moment nothing is there.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                let old = self.staging.path().join("old");
                fs::rename(&self.out, &old)?;
                fs::rename(bundle, &self.out).inspect_err(|_| _ = fs::rename(&old, &self.out))
            }
            other => other.map_err(Into::into),
        }
    }
}

impl Destination for BundleWriter {
    fn begin(&mut self, _manifest: &Manifest) -> Result<(), Error> {
        Ok(())
    }

    fn has(&mut self, blob: &Blob) -> bool {
        self.sizes.get(&blob.digest) == Some(&blob.size)
    }

    fn add_reader(&mut self, source: &mut dyn Read, path: &Path) -> Result<Blob, Error> {
        let staged = self.bundle().join(BLOBS).join("incoming");
        let mut file = File::create(&staged).map_err(Error::write(&self.out))?;
        let (digest, size) = copy_hashed(source, path, &mut file, &self.out)?;
        fs::rename(&staged, self.blob_path(digest)).map_err(Error::write(&self.out))?;
        self.sizes.insert(digest, size);
        Ok(Blob { digest, size })
    }

    fn finish_as(
        self: Box<Self>,
        manifest: &Manifest,
        text: String,
        signature: Option<&str>,
    ) -> Result<Bundle, Error> {
        all_added(manifest, &self.sizes)?;
        let bundle = self.bundle();
        let named: HashSet<_> = manifest.blobs().map(|(_, blob)| blob.digest).collect();
        for &digest in self.sizes.keys().filter(|digest| !named.contains(digest)) {
            fs::remove_file(self.blob_path(digest)).map_err(Error::write(&self.out))?;
        }
        // A failed `add_reader` may have left its part.
        _ = fs::remove_file(bundle.join(BLOBS).join("incoming"));
        self.write_synced(&bundle.join(MANIFEST), text.as_bytes())?;
        if let Some(signature) = signature {
            self.write_synced(&bundle.join(SIGNATURE), signature.as_bytes())?;
        }
        sync_folder(&bundle.join(BLOBS)).map_err(Error::write(&self.out))?;
        sync_folder(&bundle).map_err(Error::write(&self.out))?;
        self.put_in_place(&bundle)?;
        sync_folder(&self.parent).map_err(Error::write(&self.parent))?;
        Ok(Bundle::written(Location::folder(self.out.clone()), manifest.clone(), text))
    }
}

/// That everything that a manifest names was added, of the lengths that it says.
pub(crate) fn all_added(manifest: &Manifest, added: &HashMap<Digest, u64>) -> Result<(), Error> {
    for (role, &Blob { digest, size: expected }) in manifest.blobs() {
        match added.get(&digest) {
            Some(&found) if found == expected => {}
            Some(&found) => return Err(Error::BlobSize { role, found, expected, digest }),
            None => return Err(Error::NotAdded { role, digest }),
        }
    }
    Ok(())
}

/// What a bundle may be put in the place of.
enum Occupant {
    /// Nothing, or an empty folder.
    Nothing,
    Bundle,
}

/// What lies at `out`; an error when it is anything that a bundle must not replace. Replacing deletes, so this looks at
/// every name: a bundle has nothing but a manifest, its signature and blobs. It need not be whole: replacing a damaged one is a remedy.
fn occupant(out: &Path) -> Result<Occupant, Error> {
    let identity = || fs::symlink_metadata(out).map(|found| FileIdentity::of(&found)).ok();
    for _ in 0..100 {
        let before = identity();
        let found = look(out);
        // Another writer may have put a bundle in its place meanwhile, and removed what was being looked at.
        let is_same = match (before, identity()) {
            (Some(before), Some(after)) => before.is_same_file(&after),
            (before, after) => before == after,
        };
        if is_same {
            return found;
        }
    }
    Err(Error::write(out)(io::Error::other("other writers kept changing it")))
}

/// One look.
fn look(out: &Path) -> Result<Occupant, Error> {
    let occupied = |found| Err(Error::Occupied { path: out.to_path_buf(), found });
    match fs::symlink_metadata(out) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Occupant::Nothing),
        Err(error) => return Err(Error::write(out)(error)),
        Ok(found) if found.is_symlink() => return occupied("a symbolic link"),
        Ok(found) if !found.is_dir() => return occupied("a file"),
        Ok(_) => {}
    }
    let names = |folder: &Path| -> Result<Vec<PathBuf>, Error> {
        let entries = fs::read_dir(folder).map_err(Error::read(folder))?;
        entries.map(|entry| Ok(entry.map_err(Error::read(folder))?.path())).collect()
    };
    let mut manifest = false;
    let all = names(out)?;
    for path in &all {
        let kind = fs::symlink_metadata(path).map_err(Error::read(path))?;
        match path.file_name().and_then(OsStr::to_str) {
            Some(MANIFEST) if kind.is_file() => manifest = true,
            Some(SIGNATURE) if kind.is_file() => {}
            Some(BLOBS) if kind.is_dir() => {
                let blob = |p: &PathBuf| {
                    p.file_name().and_then(OsStr::to_str).is_some_and(|n| Digest::from_hex(n).is_some())
                };
                if !names(path)?.iter().all(blob) {
                    return occupied("a folder with other files");
                }
            }
            _ => return occupied("a folder with other files"),
        }
    }
    match (all.is_empty(), manifest) {
        (true, _) => Ok(Occupant::Nothing),
        (false, true) => Ok(Occupant::Bundle),
        (false, false) => occupied("a folder with other files"),
    }
}

/// Refuses an `out` that lies in a bundle: with anything else in it, that one could not be replaced any more.
fn outside_bundles(out: &Path, parent: &Path) -> Result<(), Error> {
    // What does not exist yet has no bundle above it but in what exists.
    let existing = parent.ancestors().find_map(|folder| {
        let folder = if folder == Path::new("") { Path::new(".") } else { folder };
        folder.canonicalize().ok()
    });
    let around = existing
        .as_deref()
        .unwrap_or(parent)
        .ancestors()
        .find(|folder| folder.join(MANIFEST).is_file() && folder.join(BLOBS).is_dir());
    match around {
        None => Ok(()),
        Some(bundle) => Err(Error::WithinBundle { path: out.to_path_buf(), bundle: bundle.to_path_buf() }),
    }
}

/// Whether a rename failed because the destination was no longer as it had been seen.
fn raced(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotFound};
    matches!(error.kind(), AlreadyExists | DirectoryNotEmpty | NotFound)
}

#[cfg(test)]
mod tests;
