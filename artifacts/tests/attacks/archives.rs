//! Archives that are not a bundle's, are incomplete, or have more than a bundle.

use std::{fs, io::Write as _, path::Path};

use mlxcel_artifacts::{Bundle, BundleWriter, Digest, SecretKey, report};
use tar::{Builder, EntryType, Header};

use crate::{CONFIG, VMFB, Victim, WEIGHTS};

/// A victim and its archive.
pub(crate) struct Exported {
    victim: Victim,
    bytes: Vec<u8>,
}

/// An entry: its name, its type and its bytes.
pub(crate) type Part = (String, EntryType, Vec<u8>);

impl Exported {
    pub(crate) fn new() -> Self {
        let victim = Victim::new();
        let mut bytes = Vec::new();
        victim.open().unwrap().export_to(&mut bytes, Path::new("b.tar")).unwrap();
        Self { victim, bytes }
    }

    /// Returns the entries in order.
    fn parts(&self) -> Vec<Part> {
        let mut archive = tar::Archive::new(self.bytes.as_slice());
        let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            std::io::copy(&mut entry, &mut bytes).unwrap();
            (String::from_utf8(entry.path_bytes().into_owned()).unwrap(), entry.header().entry_type(), bytes)
        };
        archive.entries().unwrap().map(read).collect()
    }

    fn out(&self) -> std::path::PathBuf {
        self.victim.folder.path().join("imported")
    }

    fn import(&self, bytes: &[u8]) -> Result<Bundle, String> {
        let imported = Bundle::import(
            &mut &*bytes,
            Path::new("b.tar"),
            Box::new(BundleWriter::create(&self.out()).unwrap()),
        );
        imported.map_err(|error| report(&error))
    }

    /// Returns the message for the archive with changed entries. Checks that the import leaves nothing behind.
    pub(crate) fn refused(&self, change: impl FnOnce(&mut Vec<Part>)) -> String {
        let mut parts = self.parts();
        change(&mut parts);
        let refused = self.import(&archive(&parts)).unwrap_err();
        assert!(!self.out().exists());
        let left = fs::read_dir(self.victim.folder.path()).unwrap().count();
        assert_eq!(left, 1, "something was left behind after {refused}");
        refused
    }
}

fn archive(parts: &[Part]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, bytes) in parts {
        let mut header = Header::new_ustar();
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        // Written directly, because the crate refuses some of these names.
        let field = &mut header.as_old_mut().name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, bytes.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn blob(bytes: &[u8]) -> Part {
    (format!("blobs/{}", Digest::of(bytes).hex()), EntryType::Regular, bytes.to_vec())
}

const HINT: &str = "\nhint: copy the archive again, or create it again with `mlxcel-bundle export`";

#[test]
fn an_imported_bundle_is_exported_as_it_was() {
    let exported = Exported::new();
    let imported = exported.import(&exported.bytes).unwrap();
    assert_eq!(*imported.manifest(), exported.victim.manifest);
    let mut again = Vec::new();
    imported.export_to(&mut again, Path::new("b.tar")).unwrap();
    assert!(again == exported.bytes, "another archive of the same bundle");
    // The archive depends on nothing of the machine.
    let mut archive = tar::Archive::new(exported.bytes.as_slice());
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 0));
        assert_eq!(header.mode().unwrap(), 0o644);
        assert!(header.username().unwrap().is_none_or(str::is_empty));
    }
}

#[test]
fn an_archive_has_the_signature() {
    let exported = Exported::new();
    let at = |name: &str| exported.victim.folder.path().join(name);
    let key = SecretKey::generate(&at("k"), &at("k.pub"), None).unwrap();
    let secret = SecretKey::open(&at("k"), || unreachable!("the key has no password")).unwrap();
    let bundle = exported.victim.open().unwrap();
    bundle.sign(&secret, "release").unwrap();
    let file = at("b.tar");
    bundle.export(&file).unwrap();
    let imported = exported.import(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(imported.verify_signature(&key).unwrap().comment, "release");
}

#[test]
fn unexpected_entries() {
    let exported = Exported::new();
    let bad = |problem: &str| format!("error: b.tar is not an exported bundle: {problem}{HINT}");
    let unlisted = |name: &str| bad(&format!("it has {name}, expected only files that manifest.toml lists"));
    let twice = |name: &str| bad(&format!("it has {name} twice, expected it once"));
    for name in
        ["../escape", "/etc/passwd", "blobs/../../escape", "blobs/", "blobs", "README", "blobs/x\u{1b}"]
    {
        let added = |parts: &mut Vec<Part>| parts.push((name.into(), EntryType::Regular, vec![1]));
        assert_eq!(exported.refused(added), unlisted(&name.escape_debug().to_string()), "{name}");
    }
    let other = blob(b"not of this bundle");
    let name = other.0.clone();
    assert_eq!(exported.refused(|parts| parts.push(other)), unlisted(&name));
    let config = blob(CONFIG).0;
    assert_eq!(exported.refused(|parts| parts.push(blob(CONFIG))), twice(&config));
    for kind in [EntryType::Symlink, EntryType::Link, EntryType::Directory, EntryType::Fifo, EntryType::Block]
    {
        let added = |parts: &mut Vec<Part>| parts.insert(1, ("blobs/x".into(), kind, vec![]));
        assert_eq!(
            exported.refused(added),
            bad("blobs/x is not a regular file, expected only regular files")
        );
    }
    // Extended headers, which change the next entry's name or size.
    for kind in [EntryType::GNULongName, EntryType::XHeader, EntryType::XGlobalHeader, EntryType::GNUSparse] {
        let added =
            |parts: &mut Vec<Part>| parts.insert(1, ("x".into(), kind, b"17 path=../other\n".to_vec()));
        assert_eq!(exported.refused(added), bad("x is not a regular file, expected only regular files"));
    }
}

#[test]
fn wrong_and_missing_blobs() {
    let exported = Exported::new();
    let place = |parts: &[Part], bytes: &[u8]| parts.iter().position(|part| part.2 == bytes).unwrap();
    let digest = |bytes: &[u8]| Digest::of(bytes).hex();
    let damaged = crate::DAMAGED;
    assert_eq!(
        exported.refused(|parts| {
            let at = place(parts, VMFB);
            parts.remove(at);
        }),
        format!("error: vmfb of target cpu is missing: expected blobs/{}{damaged}", digest(VMFB))
    );
    let longer = [VMFB, b"!"].concat();
    assert_eq!(
        exported.refused(|parts| {
            let at = place(parts, VMFB);
            parts[at].2 = longer;
        }),
        format!("error: vmfb of target cpu has 11 bytes, expected 10: blobs/{}{damaged}", digest(VMFB))
    );
    let swapped = b"the modulE".to_vec();
    let found = Digest::of(&swapped);
    assert_eq!(
        exported.refused(|parts| {
            let at = place(parts, VMFB);
            parts[at].2 = swapped;
        }),
        format!("error: vmfb of target cpu has digest {found}, expected {}{damaged}", Digest::of(VMFB))
    );
    // Two blobs with exchanged names.
    let refused = exported.refused(|parts| {
        let (a, b) = (place(parts, CONFIG), place(parts, WEIGHTS));
        let name = parts[a].0.clone();
        parts[a].0 = std::mem::replace(&mut parts[b].0, name);
    });
    assert!(refused.contains(" bytes, expected "), "{refused}");
}

#[test]
fn malformed_manifests_and_signatures() {
    let exported = Exported::new();
    let bad = |problem: &str| format!("error: b.tar is not an exported bundle: {problem}{HINT}");
    assert_eq!(exported.refused(Vec::clear), bad("it is empty, expected manifest.toml as its first entry"));
    let first = exported.refused(|parts| parts.rotate_left(1));
    assert!(
        first.starts_with("error: b.tar is not an exported bundle: its first entry is blobs/"),
        "{first}"
    );
    let twice = exported.refused(|parts| parts.push(parts[0].clone()));
    assert_eq!(twice, bad("it has manifest.toml twice, expected it once"));
    let newer = exported.refused(|parts| parts[0].2 = b"format = 99\n".to_vec());
    assert!(newer.starts_with("error: the bundle has format 99, "), "{newer}");
    let garbage = exported.refused(|parts| parts[0].2 = vec![0xff; 100]);
    assert!(garbage.starts_with("error: b.tar is not an exported bundle: manifest.toml: "), "{garbage}");
    let signature = ("manifest.toml.minisig".to_owned(), EntryType::Regular, vec![b'x'; 5000]);
    let long = exported.refused(|parts| parts.insert(1, signature.clone()));
    assert_eq!(long, bad("manifest.toml.minisig has more than 4096 bytes"));
    let small = ("manifest.toml.minisig".to_owned(), EntryType::Regular, b"x".to_vec());
    let twice = exported.refused(|parts| parts.extend([small.clone(), small]));
    assert_eq!(twice, bad("it has manifest.toml.minisig twice, expected it once"));
}

#[test]
fn truncations_and_garbage() {
    let exported = Exported::new();
    // The import does not need the two blocks of zeros at an archive's end.
    for length in (0..exported.bytes.len() - 1024).step_by(4001) {
        exported.import(&exported.bytes[..length]).unwrap_err();
        assert!(!exported.out().exists(), "cut after {length}");
    }
    for garbage in [vec![0x41; 10_000], vec![0xff; 512], b"PK\x03\x04".to_vec()] {
        exported.import(&garbage).unwrap_err();
    }
    let message = |bytes: &[u8]| exported.import(bytes).unwrap_err();
    let bad = |problem: &str| format!("error: b.tar is not an exported bundle: {problem}{HINT}");
    assert_eq!(message(&exported.bytes[..600]), bad("it ends within manifest.toml"));
    let weights = exported.bytes.windows(WEIGHTS.len()).position(|bytes| bytes == WEIGHTS).unwrap();
    assert_eq!(message(&exported.bytes[..weights + 1]), bad("it ends within weights file model.safetensors"));
    assert_eq!(
        message(b"\x1f\x8b\x08\0"),
        bad(
            "it is compressed with gzip, expected an uncompressed archive\nhint: decompress it with `gunzip`"
        )
    );
    // A size beyond any disk.
    let mut huge = exported.bytes.clone();
    huge[124..136].copy_from_slice(b"77777777777\0");
    let mut header = Header::new_ustar();
    header.as_mut_bytes().copy_from_slice(&huge[..512]);
    header.set_cksum();
    huge[..512].copy_from_slice(header.as_bytes());
    // The manifest then swallows the other entries, which are not UTF-8.
    exported.import(&huge).unwrap_err();
}

#[test]
fn a_failed_import_or_export_keeps_the_old_file() {
    let exported = Exported::new();
    exported.import(&exported.bytes).unwrap();
    let before = Bundle::open(&exported.out()).unwrap();
    exported.import(&exported.bytes[..exported.bytes.len() / 2]).unwrap_err();
    assert_eq!(Bundle::open(&exported.out()).unwrap(), before);
    // Exporting a damaged bundle keeps the old archive.
    let file = exported.victim.folder.path().join("b.tar");
    fs::File::create(&file).unwrap().write_all(b"older").unwrap();
    let bundle = exported.victim.open().unwrap();
    fs::write(exported.victim.blob(CONFIG), b"{\"model_type\": \"lambda\"}").unwrap();
    let error = bundle.export(&file).unwrap_err().to_string();
    assert!(error.starts_with("file config.json has digest "), "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"older");
}
