//! What can go wrong with a bundle. A message is one line, then `hint:` lines where there is a remedy.

use std::{
    error, io,
    path::{Path, PathBuf},
};

use bytesize::ByteSize;

use crate::{
    blob::BlobRole,
    digest::Digest,
    name::{Name, ParseNameError},
};

/// What can go wrong with a bundle or the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path does not hold a bundle.
    #[error("{} is not a bundle: {reason}\nhint: {}", path.display(), how_to_get_a_bundle(path, *checkpoint))]
    NotABundle {
        /// The path given.
        path: PathBuf,
        /// What was found there instead.
        reason: &'static str,
        /// Whether it is a checkpoint's folder.
        checkpoint: bool,
    },

    /// The bundle is of a format that this program does not know.
    #[error(
        "bundle has format {found}, this program reads up to {supported}\n\
         hint: update this program, or compile the bundle again with this version"
    )]
    NewerFormat {
        /// The bundle's format.
        found: i64,
        /// The newest format that this crate reads.
        supported: u32,
    },

    /// `manifest.toml` is larger than any manifest.
    #[error("manifest.toml has {found} bytes, expected at most {limit}\n{BAD_MANIFEST}")]
    ManifestTooLarge {
        /// Its length.
        found: u64,
        /// The longest manifest that is read.
        limit: u64,
    },

    /// `manifest.toml` is no TOML, or not a manifest's.
    #[error("manifest.toml line {line}: {message}\n{BAD_MANIFEST}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },

    /// A manifest that contradicts itself or that no compiler can have written.
    #[error("invalid manifest: {0}\n{BAD_MANIFEST}")]
    Invalid(String),

    /// A blob is not there.
    #[error("{role} is missing: expected blobs/{}\n{}", digest.hex(), remedy(role))]
    MissingBlob {
        /// The blob's purpose.
        role: BlobRole,
        /// The blob's digest.
        digest: Digest,
    },

    /// A blob is there, but not as a file of the bundle's own.
    #[error("{role} is {found}, expected a regular file: blobs/{}\n{}", digest.hex(), remedy(role))]
    NotAFile {
        /// The blob's purpose.
        role: BlobRole,
        /// What it is instead.
        found: &'static str,
        /// The blob's digest.
        digest: Digest,
    },

    /// A blob is longer or shorter than the manifest says.
    #[error("{role} has {found} bytes, expected {expected}: blobs/{}\n{}", digest.hex(), remedy(role))]
    BlobSize {
        /// The blob's purpose.
        role: BlobRole,
        /// Its length.
        found: u64,
        /// The manifest's length.
        expected: u64,
        /// The blob's digest.
        digest: Digest,
    },

    /// A blob's bytes are not those that the manifest names.
    #[error("{role} has digest {found}, expected {expected}\n{}", remedy(role))]
    BlobDigest {
        /// The blob's purpose.
        role: BlobRole,
        /// The digest of its bytes.
        found: Digest,
        /// The manifest's digest.
        expected: Digest,
    },

    /// The manifest given to `finish` names a blob that was not added.
    #[error("{role} was not added to the bundle: blobs/{}", digest.hex())]
    NotAdded {
        /// The blob's purpose.
        role: BlobRole,
        /// The blob's digest.
        digest: Digest,
    },

    /// Something lies where the bundle should go, and it is no bundle.
    #[error(
        "{} exists and is {found}, expected a bundle or nothing\n\
         hint: name another folder, or remove this one",
        path.display()
    )]
    Occupied {
        /// Where the bundle should go.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },

    /// The bundle would lie in another one.
    #[error(
        "{} would lie in the bundle {}, expected a place outside of bundles\n\
         hint: name another folder",
        path.display(), bundle.display()
    )]
    WithinBundle {
        /// Where the bundle should go.
        path: PathBuf,
        /// The bundle around it.
        bundle: PathBuf,
    },

    /// The store's path is something else than a folder.
    #[error(
        "the store {} is a file, expected a folder or nothing\n\
         hint: --store or MLXCEL_STORE names a folder",
        path.display()
    )]
    StoreNotAFolder {
        /// The path given.
        path: PathBuf,
    },

    /// The store's limit is no size.
    #[error("MLXCEL_STORE_LIMIT is `{found}`, expected a size\nhint: such as 20GB or 500MiB")]
    StoreLimit {
        /// The variable's value.
        found: String,
    },

    /// Others use the store, and what they need is not known.
    #[error(
        "the store {} is in use, expected nobody to use it meanwhile\n\
         hint: try again when builds, downloads and what runs from it are done",
        path.display()
    )]
    StoreInUse {
        /// The store.
        path: PathBuf,
    },

    /// A bundle does not fit into the store.
    #[error(
        "the bundle needs {} and the store's other bundles have {}, expected at most {} in all\n\
         hint: remove bundles with mlxcel-bundle remove, or raise MLXCEL_STORE_LIMIT",
        ByteSize(*needed), ByteSize(*others), ByteSize(*limit)
    )]
    StoreFull {
        /// Bytes that it would add.
        needed: u64,
        /// Bytes that the others have.
        others: u64,
        /// How many there may be.
        limit: u64,
    },

    /// A text that is not a bundle's name.
    #[error(transparent)]
    Name(#[from] ParseNameError),

    /// No bundle of this name is in the store.
    #[error("the store {} has no bundle {name}\nhint: {}", store.display(), suggest(nearest))]
    NoSuchBundle {
        /// The name.
        name: Name,
        /// The store.
        store: PathBuf,
        /// The most similar names in the store.
        nearest: Vec<String>,
    },

    /// What a name in the store means cannot be read.
    #[error(
        "{name} in the store is damaged, expected a bundle's manifest\n\
         hint: put it there again, which takes what is left of it, or mlxcel-bundle remove {name}"
    )]
    DamagedName {
        /// The name.
        name: Name,
    },

    /// A registry sent bytes with other digests than its manifest lists.
    #[error(
        "{name} does not have the digests of the bundle that was pushed\n\
         hint: do not run it; push it again with `mlxcel-bundle push BUNDLE {name}`"
    )]
    Tampered {
        /// The reference.
        name: String,
        /// What is wrong with it.
        source: Box<dyn error::Error + Send + Sync>,
    },

    /// A bundle in the store would be changed.
    #[error(
        "the bundle lies in the store, expected one in a folder of its own: others share its files\n\
         hint: mlxcel-bundle copy NAME --out FOLDER gives one that can be changed"
    )]
    IsStored,

    /// A target reads the checkpoint's tensors as they are, or there is no such target.
    #[error(
        "target {target} has nothing to pack: it reads the weights as they are\nhint: run the bundle as it is"
    )]
    NothingToPack {
        /// The target.
        target: String,
    },

    /// The path for a bundle has no last component to give the folder.
    #[error("`{}` does not name a folder to write", .0.display())]
    NoName(PathBuf),

    /// The bundle was made by another IREE than the one that would run it.
    #[error(
        "bundle was compiled by iree {found}, this program runs iree {expected}\n\
         hint: compile the bundle again with this version"
    )]
    OtherIree {
        /// The bundle's compiler version.
        found: String,
        /// The version that this workspace is pinned to.
        expected: &'static str,
    },

    /// A file that is not an exported bundle.
    #[error(
        "{} is not an exported bundle: {problem}\n\
         hint: copy the archive again, or create it again with `mlxcel-bundle export`",
        path.display()
    )]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// A document that should list the bundle's files does not.
    #[error("document {name} has no list of files: {problem}\n{BAD_MANIFEST}")]
    Document {
        /// The document.
        name: String,
        /// What is wrong with it.
        problem: String,
    },

    /// A key or a signature that is none.
    #[error("bad {what}\nhint: keys and signatures are minisign's: mlxcel-bundle keygen makes keys")]
    Key {
        /// `public key`, `secret key`, `signature`.
        what: &'static str,
        /// Why.
        source: Box<dyn error::Error + Send + Sync>,
    },

    /// A key would be written over something.
    #[error("{} exists, expected nothing\nhint: a key that is lost cannot be made again: name another file", path.display())]
    KeyExists {
        /// What is there.
        path: PathBuf,
    },

    /// The bundle is not signed by whom it has to be.
    #[error(
        "found {found}, expected a signature of this bundle by the key {expected}\n\
         hint: get the bundle from its maker again, and do not run this one"
    )]
    Signature {
        /// What was found instead.
        found: String,
        /// The id of the key.
        expected: String,
    },

    /// A signed bundle would be changed.
    #[error(
        "the bundle is signed by the key {key}, expected one that is not: its signature would no longer hold\n\
         hint: pack before signing, or remove manifest.toml.minisig and sign again"
    )]
    IsSigned {
        /// The id of the key.
        key: String,
    },

    /// A bundle is another one than when it was opened.
    #[error(
        "{} was changed meanwhile, expected nobody else to change it\nhint: do it again with the bundle as it is now",
        path.display()
    )]
    Changed {
        /// The bundle.
        path: PathBuf,
    },

    /// A text that is not a reference in a registry.
    #[error(
        "`{}` is not a reference in a registry\n\
         hint: use a reference such as registry.example/models/demo:1 or localhost:5000/demo",
        found.escape_debug()
    )]
    Reference {
        /// The text.
        found: String,
        /// Why.
        source: Box<dyn error::Error + Send + Sync>,
    },

    /// Docker's configuration has credentials that cannot be read.
    #[error(
        "cannot read the credentials for {host} in {}\nhint: write them again with `docker login {host}`",
        path.display()
    )]
    Credentials {
        /// The registry.
        host: String,
        /// Docker's configuration.
        path: PathBuf,
        /// Why.
        source: Box<dyn error::Error + Send + Sync>,
    },

    /// A registry or the network fails.
    #[error("cannot {doing} {name}\nhint: {hint}")]
    Registry {
        /// `push` or `pull`.
        doing: &'static str,
        /// The reference.
        name: String,
        /// What may help.
        hint: String,
        /// What happened.
        source: Box<dyn error::Error + Send + Sync>,
    },

    /// A reference in a registry is not a bundle.
    #[error(
        "{name} is not a bundle: {problem}\nhint: push a bundle there with `mlxcel-bundle push BUNDLE {name}`"
    )]
    NoArtifact {
        /// The reference.
        name: String,
        /// What is wrong with it.
        problem: String,
    },

    /// The environment names no folder for the store.
    #[error(
        "no folder for the store: neither HOME, XDG_CACHE_HOME nor MLXCEL_STORE is set\n\
         hint: set MLXCEL_STORE to a folder"
    )]
    NoStore,

    /// Reading or writing failed.
    #[error("cannot {doing} {}{}", path.display(), io_hint(source))]
    Io {
        /// `read` or `write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

fn how_to_get_a_bundle(path: &Path, checkpoint: bool) -> String {
    if checkpoint {
        return format!("this is a checkpoint: compile it with mlxcel-compile --model {}", path.display());
    }
    "name the folder that mlxcel-compile printed as its last line, or a bundle that mlxcel-bundle list shows"
        .into()
}

/// Suggests names in the store.
fn suggest(nearest: &[String]) -> String {
    match nearest {
        [] => "the store is empty: add a bundle with `mlxcel-bundle copy BUNDLE --name NAME`".into(),
        [..] => format!("did you mean {}? `mlxcel-bundle list` shows all", nearest.join(", ")),
    }
}

/// The remedy where the system's answer has one.
fn io_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "\nhint: make room there, or name a place on another disk"
        }
        io::ErrorKind::ReadOnlyFilesystem => "\nhint: name a place that can be written",
        io::ErrorKind::PermissionDenied => "\nhint: look at who owns it and who may use it",
        _ => "",
    }
}

/// The remedy for every kind of damage.
fn remedy(role: &BlobRole) -> &'static str {
    if matches!(role, BlobRole::PackedWeights(_)) { DAMAGED_PACKED } else { DAMAGED }
}

const DAMAGED_PACKED: &str = "hint: pack the weights again with mlxcel-pack, or copy the bundle again";
const BAD_MANIFEST: &str =
    "hint: the bundle is damaged, or mlxcel-compile did not make it: get it again from where it was made";
const DAMAGED: &str = "hint: the bundle is damaged: copy it again with all of its blobs, or compile it again";

impl Error {
    /// For `map_err` of a read.
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { doing: "read", path, source }
    }

    /// For `map_err` of a write.
    pub(crate) fn write(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { doing: "write", path, source }
    }
}

/// An error as a program shows it: the message, its causes on the same line, then every `hint:` line.
#[must_use]
pub fn report(error: &(dyn error::Error + 'static)) -> String {
    let (mut message, mut hints) = (String::from("error"), String::new());
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        let (head, hint) = text.split_once("\nhint: ").unwrap_or((&text, ""));
        message.push_str(": ");
        message.push_str(head);
        if !hint.is_empty() {
            hints.push_str("\nhint: ");
            hints.push_str(hint);
        }
        next = error.source();
    }
    message + &hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_message_cause_hint() {
        let error = Error::write("/somewhere/b")(io::Error::other("no room"));
        assert_eq!(report(&error), "error: cannot write /somewhere/b: no room");
        assert_eq!(
            report(&Error::NewerFormat { found: 2, supported: 1 }),
            "error: bundle has format 2, this program reads up to 1\n\
             hint: update this program, or compile the bundle again with this version"
        );
    }
}
