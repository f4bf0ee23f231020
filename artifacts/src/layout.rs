//! Names of the files and folders of bundles and of the store.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The manifest in a bundle's folder.
pub(crate) const MANIFEST: &str = "manifest.toml";

/// The signature beside the manifest, named as minisign names it.
pub(crate) const SIGNATURE: &str = "manifest.toml.minisig";

/// The folder of blobs in a bundle's folder.
pub(crate) const BLOBS: &str = "blobs";

/// The file in a staging folder that its writer keeps locked. An unlocked one was left by a writer that died.
pub(crate) const STAGING_LOCK: &str = "lock";

/// The file in the store that writers and readers lock shared, and garbage collection exclusively.
pub(crate) const STORE_LOCK: &str = "lock";

/// The extension of an unfinished download.
#[cfg(feature = "registry")]
pub(crate) const DOWNLOAD_EXTENSION: &str = "part";

/// The file of the key beside the notes on verified files.
pub(crate) const NOTES_KEY: &str = "key";

/// The environment variable with the store's folder.
const STORE_VARIABLE: &str = "MLXCEL_STORE";

/// A folder of the store. If the format of its files changes, it gets another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreFolder {
    /// Blobs by digest.
    Blobs,
    /// Manifests, each in a folder named by its digest.
    Bundles,
    /// The digest of a manifest for each name.
    Names,
    /// Signatures by name and digest of the manifest.
    Signatures,
    /// The digest of a compiled module for each build key.
    Built,
    /// Files that are not complete.
    Incoming,
    /// Notes on the manifests that the user with this number compiled here.
    BuiltHere(u32),
    /// The key of the user with this number, by which notes are known as this user's, and notes on verified files.
    OfUser(u32),
}

impl StoreFolder {
    /// Returns the folder's path in the store at `store`.
    pub(crate) fn path(self, store: &Path) -> PathBuf {
        match self {
            Self::Blobs => store.join(BLOBS),
            Self::Bundles => store.join("bundles"),
            Self::Names => store.join("names"),
            Self::Signatures => store.join("signatures"),
            Self::Built => store.join("built"),
            Self::Incoming => store.join("incoming"),
            Self::BuiltHere(user) => store.join(format!("notes/built-{user}")),
            Self::OfUser(user) => store.join(format!("notes/whole-{user}")),
        }
    }
}

/// Returns the store's folder by the environment.
///
/// An empty variable counts as unset, and so does a relative `XDG_CACHE_HOME`, as its specification has it.
pub(crate) fn default_store(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable(STORE_VARIABLE)
        .or_else(|| variable("XDG_CACHE_HOME").filter(|path| path.is_absolute()).map(|p| p.join("mlxcel")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/mlxcel")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_store() {
        let path = |set: &[(&str, &str)]| {
            default_store(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into()))
        };
        let all = [("MLXCEL_STORE", "/s"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(path(&all), Some("/s".into()));
        assert_eq!(path(&all[1..]), Some("/x/mlxcel".into()));
        assert_eq!(path(&all[2..]), Some("/h/.cache/mlxcel".into()));
        assert_eq!(
            path(&[("MLXCEL_STORE", ""), ("XDG_CACHE_HOME", "r"), ("HOME", "/h")]),
            Some("/h/.cache/mlxcel".into())
        );
        assert_eq!(path(&[]), None);
    }
}
