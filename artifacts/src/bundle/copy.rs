//! Copying a bundle to another folder or into a store.

use std::{collections::HashSet, fs::File};

use super::{
    Bundle,
    verify::check_file,
    write::{Destination, add_verified},
};
use crate::error::Error;

impl Bundle {
    /// Copies the bundle and its signature. Verifies every blob on the way, and skips blobs that the destination has.
    ///
    /// # Errors
    /// A blob is missing or damaged, or `to` cannot be written.
    pub fn copy_to(&self, mut to: Box<dyn Destination>) -> Result<Self, Error> {
        to.prepare(&self.manifest)?;
        let mut seen = HashSet::new();
        for (role, blob) in self.manifest.blobs() {
            if !seen.insert(blob.digest) || to.contains(blob) {
                continue;
            }
            let path = check_file(&self.location, &role, blob)?;
            let mut file = File::open(&path).map_err(Error::read(&path))?;
            add_verified(&mut *to, role, blob, &mut file, &path)?;
        }
        let copy = to.commit(&self.manifest, self.text.clone(), self.signature_text()?.as_deref())?;
        Ok(copy.derived_from(self))
    }
}
