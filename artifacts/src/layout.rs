//! Names of files and folders: in a bundle, and in the store.

/// The manifest's file in a bundle.
pub(crate) const MANIFEST: &str = "manifest.toml";

/// The signature's file beside the manifest, named as minisign names it.
pub(crate) const SIGNATURE: &str = "manifest.toml.minisig";

/// The folder of blobs, in a bundle and in the store.
pub(crate) const BLOBS: &str = "blobs";

/// The store's folder of manifests.
pub(crate) const BUNDLES: &str = "bundles";

/// The store's folder of names.
pub(crate) const NAMES: &str = "names";

/// The store's folder of signatures.
pub(crate) const SIGNATURES: &str = "signatures";

/// The store's folder of files named by keys, each with the digest of what was built.
pub(crate) const BUILT: &str = "built";

/// The store's folder of what is on its way.
pub(crate) const INCOMING: &str = "incoming";

/// Held locked in a staging folder by the process that fills it: one that nobody holds was left by a process that was
/// killed.
pub(crate) const STAGING_LOCK: &str = "lock";

/// The store's folder of empty files, named by the digests of the manifests that this machine compiled.
pub(crate) const BUILT_HERE: &str = "notes/from-here";

/// The start of the name of the store's folder of verified files. The user's number follows.
pub(crate) const VERIFIED: &str = "notes/whole-";
