//! The origin of a bundle's code, and what is required of it before the code runs.

use std::path::{Component, Path, PathBuf};

use mlxcel_artifacts::{Bundle, Error, PublicKey, SignatureInfo, Store};

/// What is required of a bundle's origin before its code runs.
#[derive(Debug, Default)]
pub struct OriginRules {
    /// The store of named bundles, which also knows what was compiled here.
    pub store: Option<Store>,
    /// The folder of the bundles that came with the programs, as `NAME.bundle`.
    pub shipped: Option<PathBuf>,
    /// The key that must have signed the bundle.
    pub require_signature: Option<PublicKey>,
}

impl OriginRules {
    /// Opens a bundle without reading its weights: a folder, a name in the store, or a name of those that came with the
    /// programs.
    ///
    /// # Errors
    /// There is no such bundle, or it is damaged.
    pub fn open(&self, bundle: &Path) -> Result<Bundle, Error> {
        let opened = match &self.store {
            Some(store) => store.open_without_weights(bundle),
            None => Bundle::open_without_weights(bundle),
        };
        match (opened, self.find_shipped(bundle)) {
            (Err(Error::NotABundle { .. }), Some(shipped)) => Bundle::open_without_weights(&shipped),
            (opened, _) => opened,
        }
    }

    /// Returns the folder of a bundle that came with the programs.
    fn find_shipped(&self, name: &Path) -> Option<PathBuf> {
        let is_name = matches!(name.components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
        let folder = self.shipped.as_ref().filter(|_| is_name)?;
        let mut file = name.as_os_str().to_owned();
        file.push(".bundle");
        Some(folder.join(file)).filter(|folder| folder.is_dir())
    }

    /// Checks the signature that is required, and returns it.
    ///
    /// # Errors
    /// The bundle is not signed by the key.
    pub fn check(&self, bundle: &Bundle) -> Result<Option<SignatureInfo>, Error> {
        self.require_signature.as_ref().map(|key| bundle.verify_signature(key)).transpose()
    }

    /// Returns a note if the code about to run was neither compiled here nor signed as required.
    ///
    /// # Errors
    /// The signature cannot be read.
    pub fn note(&self, bundle: &Bundle) -> Result<Option<String>, Error> {
        if self.require_signature.is_some() || bundle.was_built_here() {
            return Ok(None);
        }
        let origin =
            bundle.signature_info()?.map_or("is not signed".into(), |SignatureInfo { key, .. }| {
                format!("says that the key {key} signed it, which was not checked")
            });
        let bundle = bundle.display_name();
        Ok(Some(format!(
            "the bundle {bundle} was not compiled here and {origin}: its code runs with your rights"
        )))
    }
}
