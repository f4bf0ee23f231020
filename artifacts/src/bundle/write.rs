//! Writing a bundle: staged beside its folder, synced, and put there by an atomic rename.

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

/// The temporary name of a blob that is being written.
const INCOMING: &str = "incoming";

/// Why a bundle cannot be written while many processes write it.
const BUSY: &str = "other processes keep changing it";

/// A destination for a copy of a bundle: a folder, by [`BundleWriter`], or a store, by [`StoreWriter`](crate::StoreWriter).
pub trait Destination {
    /// Checks that the bundle of this manifest fits. Called before any blob is added.
    ///
    /// # Errors
    /// The destination has no room for the bundle.
    fn prepare(&mut self, manifest: &Manifest) -> Result<(), Error>;

    /// Returns whether the destination has an undamaged copy of a blob.
    fn contains(&mut self, blob: &Blob) -> bool;

    /// Adds all of `source` as a blob. Errors of reading name `path`.
    ///
    /// # Errors
    /// Reading or writing fails.
    fn add_reader(&mut self, source: &mut dyn Read, path: &Path) -> Result<Blob, Error>;

    /// Puts the bundle in its place by an atomic rename. The texts of manifest and signature stay as they are.
    ///
    /// # Errors
    /// A blob of the manifest was not added, or the destination cannot be written. It is then unchanged.
    fn commit(
        self: Box<Self>,
        manifest: &Manifest,
        text: String,
        signature: Option<&str>,
    ) -> Result<Bundle, Error>;
}

/// Adds all of `source`, which must be the manifest's `blob`.
pub(crate) fn add_verified(
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

/// A bundle on its way into a folder. If it is dropped before [`BundleWriter::finish`], its files are removed.
#[derive(Debug)]
pub struct BundleWriter {
    out: PathBuf,
    /// The folder that contains `out`.
    parent: PathBuf,
    /// Contains the folder `bundle` until it is renamed. A temporary folder itself would be closed to other users.
    staging: TempDir,
    /// Shows that the staging folder is in use.
    _lock: File,
    sizes: HashMap<Digest, u64>,
}

impl BundleWriter {
    /// Starts a bundle. Creates the parent folders of `out`, which itself is unchanged until [`finish`](Self::finish).
    ///
    /// Removes the files of writers of the same bundle that died.
    ///
    /// # Errors
    /// `out` is something other than a bundle, or in a bundle, or a folder beside it cannot be created.
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
    /// Writing fails.
    pub fn add_bytes(&mut self, bytes: &[u8]) -> Result<Blob, Error> {
        let blob = Blob::of(bytes);
        if !self.sizes.contains_key(&blob.digest) {
            self.write_synced(&self.blob_path(blob.digest), bytes)?;
            self.sizes.insert(blob.digest, blob.size);
        }
        Ok(blob)
    }

    /// Adds a copy of a file. A hard link would let later writes to the file reach the bundle.
    ///
    /// # Errors
    /// `path` is not a regular file or a link to one, or reading or writing fails.
    pub fn add_file(&mut self, path: &Path) -> Result<Blob, Error> {
        let found = fs::metadata(path).map_err(Error::read(path))?;
        if !found.is_file() {
            return Err(Error::read(path)(io::Error::other("not a regular file")));
        }
        let mut source = File::open(path).map_err(Error::read(path))?;
        self.add_reader(&mut source, path)
    }

    /// Validates and writes the manifest, syncs all files, and puts the bundle in its place by an atomic rename.
    ///
    /// It replaces a bundle that exists. Blobs that the manifest does not name are left out.
    ///
    /// # Errors
    /// The manifest is invalid or names a blob that was not added, the destination is something other than a bundle, or writing
    /// fails. The destination is then unchanged.
    pub fn finish(self, manifest: &Manifest) -> Result<Bundle, Error> {
        let text = manifest.render()?;
        Box::new(self).commit(manifest, text, None)
    }

    /// Returns a temporary folder on the file system of the bundle. Dropping the writer removes it.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        self.staging.path()
    }

    /// Returns the folder of the staged bundle.
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

    /// Renames the staged bundle to `out`. A bundle that was there moves to the staging folder, and is removed with it.
    fn put_in_place(&self, bundle: &Path) -> Result<(), Error> {
        // Another writer may create or remove a bundle between check and rename. Then both are repeated.
        for _ in 0..100 {
            let done = match occupant(&self.out)? {
                // The rename replaces nothing but an empty folder.
                Occupant::Nothing => fs::rename(bundle, &self.out),
                Occupant::Bundle => self.exchange(bundle),
            };
            match done {
                Err(error) if raced(&error) => {}
                other => return other.map_err(Error::write(&self.out)),
            }
        }
        Err(Error::write(&self.out)(io::Error::other(BUSY)))
    }

    /// Exchanges the staged bundle with the one at `out`, which no process may be changing.
    fn exchange(&self, bundle: &Path) -> io::Result<()> {
        let occupant = File::open(&self.out)?;
        // On a file system without locks, a bundle that is being changed may lose what was added.
        _ = occupant.lock();
        match renameat_with(CWD, bundle, CWD, &self.out, RenameFlags::EXCHANGE) {
            // Not every file system can exchange folders. Then `out` does not exist for a moment.
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
    fn prepare(&mut self, _manifest: &Manifest) -> Result<(), Error> {
        Ok(())
    }

    fn contains(&mut self, blob: &Blob) -> bool {
        self.sizes.get(&blob.digest) == Some(&blob.size)
    }

    fn add_reader(&mut self, source: &mut dyn Read, path: &Path) -> Result<Blob, Error> {
        let staged = self.bundle().join(BLOBS).join(INCOMING);
        let mut file = File::create(&staged).map_err(Error::write(&self.out))?;
        let (digest, size) = copy_hashed(source, path, &mut file, &self.out)?;
        fs::rename(&staged, self.blob_path(digest)).map_err(Error::write(&self.out))?;
        self.sizes.insert(digest, size);
        Ok(Blob { digest, size })
    }

    fn commit(
        self: Box<Self>,
        manifest: &Manifest,
        text: String,
        signature: Option<&str>,
    ) -> Result<Bundle, Error> {
        check_complete(manifest, &self.sizes)?;
        let bundle = self.bundle();
        let named: HashSet<_> = manifest.blobs().map(|(_, blob)| blob.digest).collect();
        for &digest in self.sizes.keys().filter(|digest| !named.contains(digest)) {
            fs::remove_file(self.blob_path(digest)).map_err(Error::write(&self.out))?;
        }
        // A failed `add_reader` may have left it.
        _ = fs::remove_file(bundle.join(BLOBS).join(INCOMING));
        self.write_synced(&bundle.join(MANIFEST), text.as_bytes())?;
        if let Some(signature) = signature {
            self.write_synced(&bundle.join(SIGNATURE), signature.as_bytes())?;
        }
        sync_folder(&bundle.join(BLOBS)).map_err(Error::write(&self.out))?;
        sync_folder(&bundle).map_err(Error::write(&self.out))?;
        self.put_in_place(&bundle)?;
        sync_folder(&self.parent).map_err(Error::write(&self.parent))?;
        Ok(Bundle::new_verified(Location::folder(self.out.clone()), manifest.clone(), text))
    }
}

/// Checks that every blob of a manifest was added, with the manifest's size.
pub(crate) fn check_complete(manifest: &Manifest, added: &HashMap<Digest, u64>) -> Result<(), Error> {
    for (role, &Blob { digest, size: expected }) in manifest.blobs() {
        match added.get(&digest) {
            Some(&found) if found == expected => {}
            Some(&found) => return Err(Error::BlobSize { role, found, expected, digest }),
            None => return Err(Error::NotAdded { role, digest }),
        }
    }
    Ok(())
}

/// Something at a path that a bundle may replace.
enum Occupant {
    /// Nothing, or an empty folder.
    Nothing,
    /// A bundle.
    Bundle,
}

/// Returns what is at `out`. Anything that a bundle must not replace is an error.
///
/// Replacing deletes, so this checks every name: a bundle consists of a manifest, its signature and blobs. A damaged bundle may
/// be replaced.
fn occupant(out: &Path) -> Result<Occupant, Error> {
    let identity = || fs::symlink_metadata(out).map(|found| FileIdentity::of(&found)).ok();
    for _ in 0..100 {
        let before = identity();
        let found = read_occupant(out);
        // Another writer may have replaced the folder while this one was reading it.
        let is_same = match (before, identity()) {
            (Some(before), Some(after)) => before.is_same_file(&after),
            (before, after) => before == after,
        };
        if is_same {
            return found;
        }
    }
    Err(Error::write(out)(io::Error::other(BUSY)))
}

/// Reads what is at `out` once.
fn read_occupant(out: &Path) -> Result<Occupant, Error> {
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

/// Refuses an `out` in a bundle's folder. A bundle with other files in its folder cannot be replaced any more.
fn outside_bundles(out: &Path, parent: &Path) -> Result<(), Error> {
    // Folders that do not exist yet contain no bundle.
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

/// Returns whether a rename failed because another process changed the destination.
fn raced(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotFound};
    matches!(error.kind(), AlreadyExists | DirectoryNotEmpty | NotFound)
}

#[cfg(test)]
mod tests;
