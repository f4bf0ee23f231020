//! Remembering which bundles were compiled on this machine. Other bundles bring code of somebody else.

use std::{fs, io, path::Path};

use super::Bundle;
use crate::{digest::Digest, layout::BUILT_HERE};

impl Bundle {
    /// Returns whether this machine compiled the bundle, as the store remembers that it was opened with.
    #[must_use]
    pub fn was_built_here(&self) -> bool {
        let notes = self.location().notes.as_ref();
        notes.is_some_and(|store| store.join(BUILT_HERE).join(self.note()).is_file())
    }

    /// Notes in the store at `store` that this machine compiled the bundle.
    pub(crate) fn note_built(&self, store: &Path) -> io::Result<()> {
        let folder = store.join(BUILT_HERE);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(self.note()), "")
    }

    /// Returns this bundle, which was made of `source`, with what the store remembers of `source`.
    pub(crate) fn derived_from(self, source: &Self) -> Self {
        let notes = self.location().notes.clone().or_else(|| source.location().notes.clone());
        if let Some(store) = &notes
            && source.was_built_here()
        {
            // Without a note the bundle counts as one from elsewhere.
            _ = self.note_built(store);
        }
        self.with_notes(notes)
    }

    /// Returns the name of the note.
    fn note(&self) -> String {
        Digest::of(self.text().as_bytes()).hex()
    }
}
