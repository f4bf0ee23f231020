//! Media types and annotations of a bundle's artifact.

/// The artifact type of a bundle.
pub(super) const ARTIFACT_TYPE: &str = "application/vnd.mlxcel.bundle.v1";

/// The media type of the manifest's layer.
pub(super) const MANIFEST_LAYER_TYPE: &str = "application/vnd.mlxcel.bundle.manifest.v1+toml";

/// The media type of every other file's layer.
pub(super) const FILE_LAYER_TYPE: &str = "application/vnd.mlxcel.bundle.file.v1";

/// The annotation that holds a layer's path.
pub(super) const TITLE: &str = "org.opencontainers.image.title";

/// The media type that the image specification gives to a missing configuration.
pub(super) const EMPTY_CONFIG_TYPE: &str = "application/vnd.oci.empty.v1+json";

/// The content of a missing configuration.
pub(super) const EMPTY_CONFIG: &[u8] = b"{}";
