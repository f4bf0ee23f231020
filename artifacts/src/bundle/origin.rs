//! Remembering which bundles this machine compiled. Every other bundle contains somebody else's code.

use std::{fs, io, path::Path};

use super::Bundle;
use crate::{digest::Digest, layout::StoreFolder};

impl Bundle {
    /// Returns whether this machine compiled the bundle, as the store remembers that opened it.
    #[must_use]
    pub fn was_built_here(&self) -> bool {
        let notes = self.location().notes.as_ref();
        notes.is_some_and(|store| StoreFolder::BuiltHere.path(store).join(self.note_name()).is_file())
    }

    /// Remembers in the store at `store` that this machine compiled the bundle.
    pub(crate) fn remember_built(&self, store: &Path) -> io::Result<()> {
        let folder = StoreFolder::BuiltHere.path(store);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(self.note_name()), "")
    }

    /// Returns this bundle, which was made of `source`, with the origin of `source`.
    pub(crate) fn derived_from(self, source: &Self) -> Self {
        let notes = self.location().notes.clone().or_else(|| source.location().notes.clone());
        if let Some(store) = &notes
            && source.was_built_here()
        {
            // On failure the bundle counts as compiled elsewhere.
            _ = self.remember_built(store);
        }
        self.with_notes(notes)
    }

    /// Returns the name of the note on this bundle.
    fn note_name(&self) -> String {
        Digest::of(self.text().as_bytes()).hex()
    }
}
