//! Which bundles were compiled on this machine: theirs is code that its owner had made, not somebody else's.

use std::{fs, io};

use crate::{bundle::Bundle, digest::Digest, store::Store};

/// The folder in the store, of empty files named by the digests of manifests.
const FOLDER: &str = "notes/from-here";

impl Store {
    /// Remembers that `bundle` was compiled here. What cannot be remembered is taken for a bundle from elsewhere.
    pub fn remember_built(&self, bundle: &Bundle) {
        let note = || {
            let folder = self.path().join(FOLDER);
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(Digest::of(bundle.text().as_bytes()).hex()), "")?;
            Ok::<_, io::Error>(())
        };
        _ = note();
    }

    fn has_built(&self, bundle: &Bundle) -> bool {
        self.path().join(FOLDER).join(Digest::of(bundle.text().as_bytes()).hex()).is_file()
    }
}

impl Bundle {
    /// Whether it was compiled here, as the default store remembers.
    #[must_use]
    pub fn is_from_here(&self) -> bool {
        Store::open(None).is_ok_and(|store| store.has_built(self))
    }

    /// Makes this a bundle from here if `other`, of which it was made, is one.
    pub(crate) fn inherit_origin(&self, other: &Self) {
        if let Ok(store) = Store::open(None)
            && store.has_built(other)
        {
            store.remember_built(self);
        }
    }
}
