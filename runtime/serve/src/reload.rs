//! Reloads of models: what is asked for, and what comes of it.

use std::{error::Error, path::PathBuf};

use mlxcel_artifacts::Digest;

/// The error of a bundle that cannot be served.
pub type LoadError = Box<dyn Error + Send + Sync>;

/// What to do when a model is reloaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reload {
    /// Another bundle; `None` is what the model was loaded from, which may have changed since.
    pub bundle: Option<PathBuf>,
    /// The digest that the bundle must have.
    pub digest: Option<Digest>,
}

/// The result of a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reloaded {
    /// The digest that was served before.
    pub previous: Digest,
    /// The digest that is served now.
    pub digest: Digest,
    /// Whether the bundle was loaded. One that is served already is not, unless its engine has failed.
    pub is_loaded: bool,
}

/// The error of a reload. The model that was served still is.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// There is no model with this name.
    #[error("the model `{name}` is not served, expected one of {}", .served.join(", "))]
    NotServed {
        /// The name that was asked for.
        name: String,
        /// All names.
        served: Vec<String>,
    },
    /// No model is named, and there are several.
    #[error("found no model, expected one of {}", .served.join(", "))]
    NotNamed {
        /// All names.
        served: Vec<String>,
    },
    /// The model is being reloaded already.
    #[error("the model `{0}` is being reloaded already, expected one reload at a time")]
    Busy(String),
    /// The bundle is another one than was asked for.
    #[error("the bundle has the digest {found}, expected {expected}")]
    OtherDigest {
        /// The digest of the bundle.
        found: Digest,
        /// The digest that was asked for.
        expected: Digest,
    },
    /// The bundle cannot be served.
    #[error("cannot load {}", .bundle.display())]
    Load {
        /// Where the bundle is.
        bundle: PathBuf,
        /// Why not.
        source: LoadError,
    },
}
