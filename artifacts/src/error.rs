//! Errors of bundles and of the store. A message is one line, then lines that begin with `hint:`.

mod hints;
mod report;

use std::{error, io, path::PathBuf};

use bytesize::ByteSize;

use self::hints::{BAD_MANIFEST, bundle_hint, io_hint, key_hint, remedy, suggest};
pub use self::report::{Report, report};
use crate::{
    blob::BlobRole,
    digest::Digest,
    name::{Name, ParseNameError},
};

/// An error of a bundle or of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A path that is not a bundle.
    #[error("{} is not a bundle: {reason}\nhint: {}", path.display(), bundle_hint(path, *checkpoint, nearest))]
    NotABundle {
        /// The path.
        path: PathBuf,
        /// Why it is not a bundle.
        reason: &'static str,
        /// Whether it is the folder of a checkpoint.
        checkpoint: bool,
        /// Names in the store that are similar to the path.
        nearest: Vec<String>,
    },

    /// The bundle's format is newer than this program's.
    #[error(
        "the bundle has format {found}, expected at most {supported}\n\
         hint: update this program, or compile the bundle again with this version"
    )]
    NewerFormat {
        /// The bundle's format.
        found: i64,
        /// The newest format that this crate reads.
        supported: u32,
    },

    /// `manifest.toml` is too long.
    #[error("manifest.toml has {found} bytes, expected at most {limit}\n{BAD_MANIFEST}")]
    ManifestTooLarge {
        /// Its length.
        found: u64,
        /// The limit.
        limit: u64,
    },

    /// `manifest.toml` is not TOML, or not a manifest.
    #[error("manifest.toml line {line}: {message}\n{BAD_MANIFEST}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// What was found and expected.
        message: String,
    },

    /// A manifest that contradicts itself.
    #[error("invalid manifest: {0}\n{BAD_MANIFEST}")]
    Invalid(String),

    /// A blob is missing.
    #[error("{role} is missing: expected blobs/{}\n{}", digest.hex(), remedy(role))]
    MissingBlob {
        /// The blob's purpose.
        role: BlobRole,
        /// The blob's digest.
        digest: Digest,
    },

    /// A blob is not a regular file.
    #[error("{role} is {found}, expected a regular file: blobs/{}\n{}", digest.hex(), remedy(role))]
    NotAFile {
        /// The blob's purpose.
        role: BlobRole,
        /// What it is.
        found: &'static str,
        /// The blob's digest.
        digest: Digest,
    },

    /// A blob does not have the manifest's size.
    #[error("{role} has {found} bytes, expected {expected}: blobs/{}\n{}", digest.hex(), remedy(role))]
    BlobSize {
        /// The blob's purpose.
        role: BlobRole,
        /// Its length.
        found: u64,
        /// The manifest's size.
        expected: u64,
        /// The blob's digest.
        digest: Digest,
    },

    /// A blob does not have the manifest's digest.
    #[error("{role} has digest {found}, expected {expected}\n{}", remedy(role))]
    BlobDigest {
        /// The blob's purpose.
        role: BlobRole,
        /// The digest of its bytes.
        found: Digest,
        /// The manifest's digest.
        expected: Digest,
    },

    /// A manifest names a blob that was not added to the writer.
    #[error(
        "{role} was not added to the bundle: expected blobs/{}\n\
         hint: add it with `add_bytes` or `add_file` before `finish`",
        digest.hex()
    )]
    NotAdded {
        /// The blob's purpose.
        role: BlobRole,
        /// The blob's digest.
        digest: Digest,
    },

    /// The destination exists and is not a bundle.
    #[error(
        "{} exists and is {found}, expected a bundle or nothing\n\
         hint: choose another folder, or remove this one",
        path.display()
    )]
    Occupied {
        /// The destination.
        path: PathBuf,
        /// The file.
        found: &'static str,
    },

    /// The destination is in another bundle.
    #[error(
        "{} is in the bundle {}, expected a path outside of bundles\n\
         hint: choose another folder",
        path.display(), bundle.display()
    )]
    WithinBundle {
        /// The destination.
        path: PathBuf,
        /// The other bundle.
        bundle: PathBuf,
    },

    /// The store's path is a file.
    #[error(
        "the store {} is a file, expected a folder\n\
         hint: set --store or MLXCEL_STORE to a folder",
        path.display()
    )]
    StoreNotAFolder {
        /// The path.
        path: PathBuf,
    },

    /// The store's limit is not a size.
    #[error(
        "MLXCEL_STORE_LIMIT is `{found}`, expected a size\nhint: set it to a size such as 20GB or 500MiB"
    )]
    StoreLimit {
        /// The variable's value.
        found: String,
    },

    /// Another process uses the store, so nobody knows which files it needs.
    #[error(
        "the store {} is in use by another process, expected none\n\
         hint: repeat the command when builds, downloads and running models have ended",
        path.display()
    )]
    StoreInUse {
        /// The store.
        path: PathBuf,
    },

    /// A bundle does not fit into the store.
    #[error(
        "the bundle needs {} and the store's other bundles have {}, expected at most {} in total\n\
         hint: remove bundles with `mlxcel-bundle remove NAME`, or raise MLXCEL_STORE_LIMIT",
        ByteSize(*needed), ByteSize(*others), ByteSize(*limit)
    )]
    StoreFull {
        /// Bytes that the bundle would add.
        needed: u64,
        /// Bytes of the other bundles.
        others: u64,
        /// The limit.
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

    /// A name in the store, or its manifest, is damaged.
    #[error(
        "{name} in the store is damaged, expected a bundle's manifest\n\
         hint: add the bundle again with `mlxcel-bundle copy BUNDLE --name {name}`, or run `mlxcel-bundle remove {name}`"
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

    /// A bundle in the store cannot be changed.
    #[error(
        "the bundle is in the store, whose bundles share their files, expected one in a folder\n\
         hint: copy it to a folder with `mlxcel-bundle copy NAME --out FOLDER`"
    )]
    IsStored,

    /// The bundle has no such target, or the target packs nothing.
    #[error(
        "target {target} has nothing to pack: it reads the weights as they are\nhint: run the bundle without packing"
    )]
    NothingToPack {
        /// The target.
        target: String,
    },

    /// The path for a bundle has no last component.
    #[error("`{}` is not the name of a folder to write\nhint: use a path that ends with a name, such as demo.bundle", .0.display())]
    NoFolderName(PathBuf),

    /// The bundle was compiled by another version of IREE.
    #[error(
        "the bundle was compiled by iree {found}, expected iree {expected}\n\
         hint: compile the bundle again with this version"
    )]
    OtherIree {
        /// The bundle's compiler version.
        found: String,
        /// The version that this program runs.
        expected: &'static str,
    },

    /// A model is needed, and the bundle has a program.
    #[error(
        "found the program {name}, expected a language model\n\
         hint: `mlxcel-bundle inspect BUNDLE` shows its inputs, and `mlxcel-run BUNDLE --input NAME=@FILE` runs it"
    )]
    NotAModel {
        /// The program.
        name: String,
    },

    /// A program is needed, and the bundle has a model.
    #[error(
        "found the language model {name}, expected a program\nhint: run it with `mlxcel-run BUNDLE -p TEXT`"
    )]
    NotAProgram {
        /// The model.
        name: String,
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

    /// A key or a signature is invalid.
    #[error("invalid {what}\nhint: {}", key_hint(what))]
    Key {
        /// `public key`, `secret key`, `signature`.
        what: &'static str,
        /// Why.
        source: Box<dyn error::Error + Send + Sync>,
    },

    /// The file of a new key exists.
    #[error(
        "{} exists, expected a new file\nhint: choose another file: a key that is overwritten is lost",
        path.display()
    )]
    KeyExists {
        /// What is there.
        path: PathBuf,
    },

    /// The bundle does not have the required signature.
    #[error(
        "found {found}, expected a signature of this bundle by the key {expected}\n\
         hint: do not run this bundle, and get it again from its maker"
    )]
    Signature {
        /// What was found instead.
        found: String,
        /// The id of the key.
        expected: String,
    },

    /// A signed bundle cannot be changed.
    #[error(
        "the bundle is signed by the key {key}, expected an unsigned one: a change invalidates the signature\n\
         hint: remove manifest.toml.minisig, repeat the command, and sign the bundle again"
    )]
    IsSigned {
        /// The id of the key.
        key: String,
    },

    /// Another process changed the bundle since it was opened.
    #[error(
        "{} changed while this command ran, expected no change\nhint: repeat the command",
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

    /// The environment does not name the store's folder.
    #[error(
        "no folder for the store: neither HOME, XDG_CACHE_HOME nor MLXCEL_STORE is set\n\
         hint: set MLXCEL_STORE to a folder"
    )]
    NoStore,

    /// Reading or writing failed.
    #[error("cannot {doing} {}{}", path.display(), io_hint(source, path))]
    Io {
        /// `read` or `write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// Returns the function that `map_err` of a read takes.
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { doing: "read", path, source }
    }

    /// Returns the function that `map_err` of a write takes.
    pub(crate) fn write(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { doing: "write", path, source }
    }
}

#[cfg(test)]
mod tests;
