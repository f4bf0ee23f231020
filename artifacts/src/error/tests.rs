//! The hints of errors.

use super::*;

#[test]
fn a_report_is_message_cause_hint() {
    let error = Error::write("/somewhere/b")(io::Error::other("no room"));
    assert_eq!(
        report(&error),
        "error: cannot write /somewhere/b: no room\n\
         hint: check what is there with `ls -ld /somewhere/b`, then repeat the command"
    );
    assert_eq!(
        report(&Error::NewerFormat { found: 2, supported: 1 }),
        "error: the bundle has format 2, expected at most 1\n\
         hint: update this program, or compile the bundle again with this version"
    );
}

/// Returns an error of every kind.
fn every_error() -> Vec<Error> {
    let (path, name) = (PathBuf::from("/p"), "n".parse::<Name>().unwrap());
    let (role, digest) = (BlobRole::File("config.json".into()), Digest::of(b""));
    let source = || Box::<dyn error::Error + Send + Sync>::from("reason");
    let text = || String::from("text");
    vec![
        Error::NotABundle {
            path: path.clone(),
            reason: "it does not exist",
            checkpoint: false,
            nearest: vec![],
        },
        Error::NotABundle {
            path: path.clone(),
            reason: "it has no manifest.toml",
            checkpoint: true,
            nearest: vec![],
        },
        Error::NewerFormat { found: 3, supported: 2 },
        Error::ManifestTooLarge { found: 2, limit: 1 },
        Error::Syntax { line: 1, message: text() },
        Error::Invalid(text()),
        Error::MissingBlob { role: role.clone(), digest },
        Error::MissingBlob { role: BlobRole::PackedWeights("cpu".into()), digest },
        Error::NotAFile { role: role.clone(), found: "a folder", digest },
        Error::BlobSize { role: role.clone(), found: 1, expected: 2, digest },
        Error::BlobDigest { role: role.clone(), found: digest, expected: digest },
        Error::NotAdded { role, digest },
        Error::Occupied { path: path.clone(), found: "a file" },
        Error::WithinBundle { path: path.clone(), bundle: path.clone() },
        Error::StoreNotAFolder { path: path.clone() },
        Error::StoreLimit { found: text() },
        Error::StoreInUse { path: path.clone() },
        Error::StoreFull { needed: 1, others: 2, limit: 2 },
        "..".parse::<Name>().unwrap_err().into(),
        Error::NoSuchBundle { name: name.clone(), store: path.clone(), nearest: vec![] },
        Error::NoSuchBundle { name: name.clone(), store: path.clone(), nearest: vec![text()] },
        Error::DamagedName { name },
        Error::Tampered { name: text(), source: source() },
        Error::IsStored,
        Error::NothingToPack { target: text() },
        Error::NoFolderName(path.clone()),
        Error::OtherIree { found: text(), expected: "3.13.0" },
        Error::NotAModel { name: text() },
        Error::NotAProgram { name: text() },
        Error::Archive { path: path.clone(), problem: text() },
        Error::Document { name: text(), problem: text() },
        Error::Key { what: "public key", source: source() },
        Error::Key { what: "signature", source: source() },
        Error::KeyExists { path: path.clone() },
        Error::Signature { found: text(), expected: text() },
        Error::IsSigned { key: text() },
        Error::Changed { path: path.clone() },
        Error::Reference { found: text(), source: source() },
        Error::Credentials { host: text(), path: path.clone(), source: source() },
        Error::Registry { doing: "push", name: text(), hint: text(), source: source() },
        Error::NoArtifact { name: text(), problem: text() },
        Error::NoStore,
        Error::read(path.clone())(io::Error::from(io::ErrorKind::NotFound)),
        Error::read(path.clone())(io::Error::from(io::ErrorKind::PermissionDenied)),
        Error::write(path.clone())(io::Error::from(io::ErrorKind::StorageFull)),
        Error::write(path.clone())(io::Error::from(io::ErrorKind::ReadOnlyFilesystem)),
        Error::write(path)(io::Error::other("reason")),
    ]
}

#[test]
fn every_error_has_a_hint() {
    for error in every_error() {
        assert!(report(&error).contains("\nhint: "), "{error}");
    }
}

#[test]
fn no_kind_of_error_is_forgotten() {
    // Variants are indented by four spaces and begin with an upper-case letter.
    let source = include_str!("../error.rs");
    let definition = source.split_once("pub enum Error {").unwrap().1.split_once("\n}\n").unwrap().0;
    let lines = definition.lines().filter_map(|line| line.strip_prefix("    "));
    let variants = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    let list = format!("{:?}", every_error());
    for variant in variants {
        let name = variant.split([' ', '(', ',']).next().unwrap();
        assert!(list.contains(name), "{name}");
    }
}
