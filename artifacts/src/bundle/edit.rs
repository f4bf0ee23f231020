//! Changing a bundle in place: packed weights and self-test cases.
//!
//! New blobs are written first, then the manifest that names them, each by an atomic rename. So a process that dies leaves a
//! valid bundle, with at most a file that nothing names. The folder is locked from the first rename to the last removal.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::Write,
    mem,
    path::{Path, PathBuf},
};

use super::{
    Bundle, documents::with_file_list, location::Location, sign::SignatureInfo, verify::read_manifest,
};
use crate::{
    blob::Blob,
    digest::{Digest, HashedWriter},
    error::Error,
    files::{replace_file, staging, sync_folder},
    identity::is_at,
    layout::MANIFEST,
    manifest::{CalibratedBy, Manifest, SelfTestCase},
};

impl Bundle {
    /// Adds packed weights for `target`, which `write` makes from the safetensors files `made_from`.
    ///
    /// They replace earlier packed weights of the target. None of `made_from` may be the bundle's own file. Names are those of
    /// [`Manifest::listed_name`]. `calibrated_by` is the text by which the weights were rounded. Documents that list the
    /// bundle's files list the packed weights too. After an error the bundle is as it was.
    ///
    /// # Errors
    /// Errors of `write`, the target packs nothing, the bundle is signed or stored, another process changed it, or it cannot be
    /// written.
    pub fn with_packed_weights<E: From<Error>>(
        self,
        target: &str,
        made_from: BTreeMap<String, Blob>,
        calibrated_by: Option<CalibratedBy>,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<Self, E> {
        let path = self.writable_path()?;
        let mut manifest = self.manifest().clone();
        let packing = manifest.targets.get_mut(target).and_then(|target| target.packing.as_mut());
        let packing = packing.ok_or_else(|| Error::NothingToPack { target: target.to_owned() })?;
        let (staging, _staging_lock) = staging(&path)?;
        let staged = staging.path().join("packed");
        let mut to = HashedWriter::new(File::create(&staged).map_err(Error::write(&path))?);
        write(&mut to)?;
        let (digest, size) = to.finish().map_err(Error::write(&path))?;
        let blob = Blob { digest, size };
        packing.weights = Some(blob);
        packing.made_from = made_from;
        packing.calibrated_by = calibrated_by;
        // Before anything enters the bundle.
        manifest.validate()?;
        let put = |own: &Self| own.put_packed(staging.path(), (staged.as_path(), blob), manifest);
        Ok(self.while_locked(&path, put)?)
    }

    /// Replaces the bundle's self-test cases.
    ///
    /// # Errors
    /// The cases do not fit the model, the bundle is signed or stored, another process changed it, or it cannot be written.
    pub fn with_replays(self, replays: Vec<SelfTestCase>) -> Result<Self, Error> {
        let path = self.writable_path()?;
        let (staging, _staging_lock) = staging(&path)?;
        let manifest = Manifest { replays, ..self.manifest().clone() };
        self.while_locked(&path, |own| own.replace_manifest(staging.path(), manifest))
    }

    /// Returns the folder's canonical path, if the manifest may change. It has a last component, unlike `.`.
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

    /// Changes the bundle with its folder locked from the checks to the end.
    ///
    /// `change` gets the bundle at `path`, its canonical path: a link that led there may lead elsewhere by now.
    fn while_locked(
        &self,
        path: &Path,
        change: impl FnOnce(&Self) -> Result<Self, Error>,
    ) -> Result<Self, Error> {
        let notes = self.location.notes.clone();
        let location = Location { notes, ..Location::folder(path.to_path_buf()) };
        let own = Self { location, ..self.clone() };
        let _lock = own.lock_unchanged(path)?;
        // Another process may have signed the bundle before the lock.
        own.writable_path()?;
        let changed = change(&own)?;
        Ok(Self { location: self.location.clone(), ..changed })
    }

    /// Puts the file `staged` into the locked bundle as `blob`, then the manifest that names it. Removes what is then unnamed.
    fn put_packed(
        &self,
        staging: &Path,
        (staged, blob): (&Path, Blob),
        mut manifest: Manifest,
    ) -> Result<Self, Error> {
        let documents = mem::take(&mut manifest.documents);
        let mut added = vec![blob.digest];
        let replace = || -> Result<Self, Error> {
            fs::rename(staged, self.blob_path(&blob)).map_err(Error::write(self.path()))?;
            manifest.documents = self.update_documents(&documents, &manifest, staging, &mut added)?;
            self.replace_manifest(staging, manifest)
        };
        let replaced = replace();
        match &replaced {
            Ok(packed) => {
                let before = self.manifest().blobs().map(|(_, blob)| blob.digest);
                self.remove_unnamed(before, packed.manifest());
            }
            // Otherwise the new manifest is in place, and only syncing failed.
            Err(_) if read_manifest(self.path()).is_ok_and(|text| text == self.text()) => {
                self.remove_unnamed(added, self.manifest());
            }
            Err(_) => {}
        }
        replaced
    }

    /// Writes this bundle's documents with the files of `manifest`, which has no documents yet. Returns their blobs, whose
    /// digests `added` gets.
    fn update_documents(
        &self,
        documents: &BTreeMap<String, Blob>,
        manifest: &Manifest,
        staging: &Path,
        added: &mut Vec<Digest>,
    ) -> Result<BTreeMap<String, Blob>, Error> {
        let folder = &self.location().blobs;
        let document = |(name, old): (&String, &Blob)| {
            let bytes = with_file_list(name, self.read_small(old)?, manifest)?;
            let blob = Blob::of(&bytes);
            added.push(blob.digest);
            replace_file(folder, staging, &blob.digest.hex(), &bytes).map_err(Error::write(folder))?;
            Ok((name.clone(), blob))
        };
        documents.iter().map(document).collect()
    }

    /// Replaces the locked bundle's manifest by one whose blobs are all written.
    fn replace_manifest(&self, staging: &Path, manifest: Manifest) -> Result<Self, Error> {
        let text = manifest.render()?;
        let replaced = sync_folder(&self.location().blobs)
            .and_then(|()| replace_file(self.path(), staging, MANIFEST, text.as_bytes()));
        replaced.map_err(Error::write(self.path()))?;
        Ok(self.clone().with_manifest(manifest, text).derived_from(self))
    }

    /// Removes those of these blobs that `manifest` does not name. A file that cannot be removed does no harm.
    fn remove_unnamed(&self, blobs: impl IntoIterator<Item = Digest>, manifest: &Manifest) {
        let named: HashSet<_> = manifest.blobs().map(|(_, blob)| blob.digest).collect();
        for digest in blobs.into_iter().filter(|digest| !named.contains(digest)) {
            _ = fs::remove_file(self.location().blob_path(digest));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, os::unix::fs::symlink};

    use super::*;
    use crate::{
        BundleWriter, Packing, SecretKey,
        bundle::{documents::SBOM, verify::verify},
        manifest::{
            entry::{PackStep, Parameter},
            tests::manifest,
        },
    };

    /// Writes a bundle whose target `cpu` packs weights.
    fn bundle(out: &Path) -> Bundle {
        bundle_with(out, &[])
    }

    /// Writes a bundle that also has these documents.
    fn bundle_with(out: &Path, documents: &[(&str, &str)]) -> Bundle {
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
        for (name, text) in documents {
            let blob = writer.add_bytes(text.as_bytes()).unwrap();
            manifest.documents.insert((*name).to_owned(), blob);
        }
        writer.finish(&manifest).unwrap()
    }

    /// Returns the names in the folder of blobs.
    fn blobs(out: &Path) -> Vec<String> {
        let entries = fs::read_dir(out.join("blobs")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    fn with(bundle: Bundle, bytes: &[u8]) -> Result<Bundle, Error> {
        let write = |to: &mut dyn Write| to.write_all(bytes).map_err(Error::write("there"));
        bundle.with_packed_weights("cpu", BTreeMap::new(), None, write)
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
            let refused =
                Bundle::open(&out).unwrap().with_packed_weights("cpu", BTreeMap::new(), None, |to| {
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
    fn the_first_of_two_who_pack_wins() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("b");
        // Packing replaces this document, which the second would miss.
        bundle_with(&out, &[(SBOM, r#"{"components": []}"#)]);
        let second = Bundle::open(&out).unwrap().with_packed_weights("cpu", BTreeMap::new(), None, |to| {
            with(Bundle::open(&out).unwrap(), b"first").unwrap();
            to.write_all(b"second").map_err(Error::write("there"))
        });
        assert!(matches!(second, Err(Error::Changed { .. })), "{second:?}");
        let bundle = Bundle::open(&out).unwrap();
        assert!(bundle.is_packed());
        let named: Vec<_> = bundle.manifest().distinct_blobs().into_keys().collect();
        assert_eq!(blobs(&out), named);
    }

    #[test]
    fn a_failure_after_the_first_rename_removes_what_was_added() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("b");
        let before = bundle_with(&out, &[("notes.txt", "kept"), (SBOM, "no JSON")]);
        let files = blobs(&out);
        assert!(matches!(with(before.clone(), b"packed"), Err(Error::Document { .. })));
        assert_eq!(blobs(&out), files);
        // A file that the bundle has under another name stays.
        assert!(matches!(with(before.clone(), b"vmfb"), Err(Error::Document { .. })));
        assert_eq!(blobs(&out), files);
        assert_eq!(Bundle::open(&out).unwrap(), before);
    }

    #[test]
    fn a_link_that_moves_does_not_mix_two_bundles() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other, link] = ["one", "other", "link"].map(|name| folder.path().join(name));
        for out in [&one, &other] {
            bundle_with(out, &[(SBOM, r#"{"components": []}"#)]);
        }
        symlink(&one, &link).unwrap();
        let packed = Bundle::open(&link).unwrap().with_packed_weights("cpu", BTreeMap::new(), None, |to| {
            fs::remove_file(&link).unwrap();
            symlink(&other, &link).unwrap();
            to.write_all(b"packed").map_err(Error::write("there"))
        });
        assert_eq!(packed.unwrap().path(), link);
        assert!(Bundle::open(&one).unwrap().is_packed());
        assert!(!Bundle::open(&other).unwrap().is_packed());
        assert_eq!((blobs(&one).len(), blobs(&other).len()), (4, 3));
    }

    #[test]
    fn a_bundle_that_is_packed_while_it_is_opened_is_opened_anew() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("b");
        with(bundle(&out), b"first").unwrap();
        let attempts = Cell::new(0);
        let open = |meanwhile: &dyn Fn(u64)| {
            attempts.set(0);
            let location = Location::folder(out.clone());
            Bundle::open_settled(&location, |text| {
                let bundle = Bundle::open_with(location.clone(), text, &verify)?;
                attempts.set(attempts.get() + 1);
                meanwhile(attempts.get());
                bundle.packed_weights("cpu")?;
                Ok(bundle)
            })
        };
        let pack = |number: u64| _ = with(Bundle::open(&out).unwrap(), &number.to_le_bytes()).unwrap();
        let opened = open(&|attempt| {
            if attempt == 1 {
                pack(1)
            }
        })
        .unwrap();
        assert_eq!((opened.text(), attempts.get()), (Bundle::open(&out).unwrap().text(), 2));
        // Another process never stops, or the file is missing for good.
        assert!(matches!(open(&|attempt| pack(attempt + 1)), Err(Error::MissingBlob { .. })));
        assert_eq!(attempts.get(), 5);
        let missing = Bundle::open(&out).unwrap().packed_weights("cpu").unwrap().unwrap();
        fs::remove_file(missing).unwrap();
        assert!(matches!(open(&|_| ()), Err(Error::MissingBlob { .. })));
        assert_eq!(attempts.get(), 1);
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
        let failed = before.clone().with_packed_weights("cpu", BTreeMap::new(), None, |to| {
            to.write_all(b"half").map_err(Error::write("there"))?;
            Err(Error::NoStore)
        });
        assert!(matches!(failed, Err(Error::NoStore)));
        assert_eq!(Bundle::open(&out).unwrap(), before);
        // A manifest with this name would be refused when it is read.
        let made_from = [("qwen2.5:7b.gguf".to_owned(), Blob::of(b"weights"))].into();
        let unlisted = before.clone().with_packed_weights("cpu", made_from, None, |_| Ok::<_, Error>(()));
        assert!(matches!(unlisted, Err(Error::Invalid(_))), "{unlisted:?}");
        assert_eq!(blobs(&out).len(), 2);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let nothing = before.with_packed_weights("cuda", BTreeMap::new(), None, |_| Err(Error::NoStore));
        assert_eq!(
            nothing.unwrap_err().to_string(),
            "target cuda has nothing to pack: it reads the weights as they are\nhint: run the bundle without packing"
        );
    }
}
