//! Changing a bundle in place: packed weights and self-test cases.
//!
//! New blobs are written first, then the manifest that names them, each by an atomic rename. So a process that dies leaves a
//! valid bundle, with at most a file that nothing names.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::Write,
    mem,
    path::{Path, PathBuf},
};

use super::{Bundle, documents::with_file_list, hash_files, sign::SignatureInfo, verify::read_manifest};
use crate::{
    blob::Blob,
    digest::HashedWriter,
    error::Error,
    files::{replace_file, staging, sync_folder},
    identity::is_at,
    layout::{BLOBS, MANIFEST},
    manifest::{CalibratedBy, Manifest, SelfTestCase},
};

impl Bundle {
    /// Adds packed weights for `target`, which `write` makes from the safetensors files `made_from`.
    ///
    /// They replace earlier packed weights of the target. None of `made_from` may be the bundle's own file. `calibrated_by` is
    /// the text by which they were rounded. Documents that list the bundle's files list the packed weights too.
    ///
    /// # Errors
    /// Errors of `write`, the target packs nothing, the bundle is signed or stored, or it cannot be written.
    pub fn with_packed_weights<E: From<Error>>(
        self,
        target: &str,
        made_from: &[PathBuf],
        calibrated_by: Option<CalibratedBy>,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<Self, E> {
        let path = self.writable_path()?;
        let mut manifest = self.manifest().clone();
        let packing = manifest.targets.get_mut(target).and_then(|target| target.packing.as_mut());
        let packing = packing.ok_or_else(|| Error::NothingToPack { target: target.to_owned() })?;
        let made_from = hash_files(made_from)?;
        let (staging, _lock) = staging(&path)?;
        let staged = staging.path().join("packed");
        let mut to = HashedWriter::new(File::create(&staged).map_err(Error::write(&path))?);
        write(&mut to)?;
        let (digest, size) = to.finish().map_err(Error::write(&path))?;
        let blob = Blob { digest, size };
        packing.weights = Some(blob);
        packing.made_from = made_from;
        packing.calibrated_by = calibrated_by;
        fs::rename(&staged, self.blob_path(&blob)).map_err(Error::write(&path))?;
        let documents = mem::take(&mut manifest.documents);
        manifest.documents = self.update_documents(&documents, &manifest, staging.path())?;
        let packed = self.replace_manifest(&path, staging.path(), manifest)?;
        let named: HashSet<_> = packed.manifest().blobs().map(|(_, blob)| blob.digest).collect();
        for (_, old) in self.manifest().blobs().filter(|(_, old)| !named.contains(&old.digest)) {
            // The bundle is valid with and without the file.
            _ = fs::remove_file(packed.blob_path(old));
        }
        Ok(packed)
    }

    /// Writes this bundle's documents with the files of `manifest`, which has no documents yet. Returns their blobs.
    fn update_documents(
        &self,
        documents: &BTreeMap<String, Blob>,
        manifest: &Manifest,
        staging: &Path,
    ) -> Result<BTreeMap<String, Blob>, Error> {
        let document = |(name, old): (&String, &Blob)| {
            let bytes = with_file_list(name, self.read_small(old)?, manifest)?;
            let blob = Blob::of(&bytes);
            let folder = self.path().join(BLOBS);
            replace_file(&folder, staging, &blob.digest.hex(), &bytes).map_err(Error::write(folder))?;
            Ok((name.clone(), blob))
        };
        documents.iter().map(document).collect()
    }

    /// Replaces the bundle's self-test cases.
    ///
    /// # Errors
    /// The cases do not fit the model, the bundle is signed or stored, or it cannot be written.
    pub fn with_replays(self, replays: Vec<SelfTestCase>) -> Result<Self, Error> {
        let path = self.writable_path()?;
        let (staging, _lock) = staging(&path)?;
        let manifest = Manifest { replays, ..self.manifest().clone() };
        self.replace_manifest(&path, staging.path(), manifest)
    }

    /// Returns the folder's path, if the manifest may change. The path has a last component, unlike `.`.
    fn writable_path(&self) -> Result<PathBuf, Error> {
        if self.location().stored.is_some() {
            return Err(Error::IsStored);
        }
        if let Some(SignatureInfo { key, .. }) = self.signature_info()? {
            return Err(Error::IsSigned { key });
        }
        self.path().canonicalize().map_err(Error::read(self.path()))
    }

    /// Locks the folder against other processes that change the bundle. The manifest must be unchanged since it was read.
    pub(crate) fn lock_unchanged(&self, path: &Path) -> Result<File, Error> {
        let folder = File::open(path).map_err(Error::read(path))?;
        // On a file system without locks, two processes that check at the same moment do not notice each other.
        _ = folder.lock();
        // A writer may have put another folder there while this one waited.
        if !is_at(&folder, path) || read_manifest(path)? != self.text() {
            return Err(Error::Changed { path: path.to_path_buf() });
        }
        Ok(folder)
    }

    /// Replaces the manifest by one whose blobs are all written.
    fn replace_manifest(&self, path: &Path, staging: &Path, manifest: Manifest) -> Result<Self, Error> {
        let text = manifest.render()?;
        let _lock = self.lock_unchanged(path)?;
        // Another process may have signed the bundle before the lock.
        self.writable_path()?;
        let replaced = sync_folder(&path.join(BLOBS))
            .and_then(|()| replace_file(path, staging, MANIFEST, text.as_bytes()));
        replaced.map_err(Error::write(path))?;
        Ok(self.clone().with_manifest(manifest, text).derived_from(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BundleWriter, Digest, Packing, SecretKey,
        manifest::{
            entry::{PackStep, Parameter},
            tests::manifest,
        },
    };

    /// Writes a bundle whose target `cpu` packs weights.
    fn bundle(out: &Path) -> Bundle {
        let mut writer = BundleWriter::create(out).unwrap();
        let vmfb = writer.add_bytes(b"vmfb").unwrap();
        writer.add_bytes(b"{}").unwrap();
        let mut manifest = manifest();
        let Parameter { name, dtype, shape, source, aliases } = manifest.parameters[0].clone();
        let results = vec![Parameter { name: format!("{name}.panels"), dtype, shape, source, aliases }];
        let steps = vec![PackStep::whole("panels_0", vec![name], results)];
        let (build_key, made_from) = (Digest::of(b"packing"), BTreeMap::new());
        let packing = Packing {
            build_key,
            vmfb,
            weights: None,
            made_from,
            calibrated_by: None,
            calibration: None,
            steps,
        };
        manifest.targets.get_mut("cpu").unwrap().packing = Some(packing);
        writer.finish(&manifest).unwrap()
    }

    fn with(bundle: Bundle, bytes: &[u8]) -> Result<Bundle, Error> {
        let write = |to: &mut dyn Write| to.write_all(bytes).map_err(Error::write("there"));
        bundle.with_packed_weights("cpu", &[], None, write)
    }

    #[test]
    fn packing_again_replaces_packed_weights() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("b");
        let mut blobs = Vec::new();
        for bytes in [b"first", b"later"] {
            let bundle = with(Bundle::open(&out).unwrap_or_else(|_| bundle(&out)), bytes).unwrap();
            assert_eq!(Bundle::open(&out).unwrap(), bundle);
            assert!(bundle.is_packed());
            let blob = bundle.manifest().targets["cpu"].packing.as_ref().unwrap().weights.unwrap();
            assert_eq!(fs::read(bundle.blob_path(&blob)).unwrap(), bytes);
            blobs.push(bundle.blob_path(&blob));
        }
        assert!(!blobs[0].exists() && blobs[1].exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left behind");
    }

    #[test]
    fn concurrent_changes_are_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("b");
        let before = bundle(&out);
        let replay = SelfTestCase { prompt: vec![1], tokens: vec![2], gaps: vec![0.5], embedding: vec![] };
        let meanwhile = |change: &dyn Fn(Bundle)| {
            let refused = Bundle::open(&out).unwrap().with_packed_weights("cpu", &[], None, |to| {
                change(Bundle::open(&out).unwrap());
                to.write_all(b"packed").map_err(Error::write("there"))
            });
            refused.unwrap_err().to_string()
        };
        let changed = meanwhile(&|bundle| _ = bundle.with_replays(vec![replay.clone()]).unwrap());
        assert_eq!(
            changed,
            format!(
                "{} changed while this command ran, expected no change\n\
                 hint: repeat the command",
                out.display()
            )
        );
        assert_eq!(Bundle::open(&out).unwrap().manifest().replays, std::slice::from_ref(&replay));
        let key = folder.path().join("key");
        SecretKey::generate(&key, &key.with_extension("pub"), None).unwrap();
        let key = SecretKey::open(&key, || unreachable!("it has no password")).unwrap();
        // Signing is refused too.
        assert!(matches!(before.sign(&key, ""), Err(Error::Changed { .. })));
        let signed = meanwhile(&|bundle| _ = bundle.sign(&key, "").unwrap());
        assert!(signed.starts_with("the bundle is signed by the key "), "{signed}");
        assert!(!Bundle::open(&out).unwrap().is_packed());
    }

    #[test]
    fn packing_does_not_count_as_verifying() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("b");
        bundle(&out);
        let packed = with(Bundle::open_without_weights(&out).unwrap(), b"packed").unwrap();
        let file = packed.packed_weights("cpu").unwrap().unwrap();
        fs::write(&file, b"pocked").unwrap();
        let damaged = packed.packed_weights("cpu").unwrap_err().to_string();
        assert!(damaged.starts_with("packed weights of target cpu has digest "), "{damaged}");
    }

    #[test]
    fn failures_leave_the_bundle_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("b");
        let before = bundle(&out);
        let failed = before.clone().with_packed_weights("cpu", &[], None, |to| {
            to.write_all(b"half").map_err(Error::write("there"))?;
            Err(Error::NoStore)
        });
        assert!(matches!(failed, Err(Error::NoStore)));
        assert_eq!(Bundle::open(&out).unwrap(), before);
        assert_eq!(fs::read_dir(out.join("blobs")).unwrap().count(), 2);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let nothing = before.with_packed_weights("cuda", &[], None, |_| Err(Error::NoStore));
        assert_eq!(
            nothing.unwrap_err().to_string(),
            "target cuda has nothing to pack: it reads the weights as they are\nhint: run the bundle without packing"
        );
    }
}
