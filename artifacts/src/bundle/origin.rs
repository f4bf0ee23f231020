//! Remembering which bundles this machine compiled. Every other bundle contains somebody else's code.

use std::{fs, io, path::Path};

use rustix::process::geteuid;

use super::{
    Bundle,
    user_key::{UserKey, write_note},
};
use crate::{digest::Digest, layout::StoreFolder};

impl Bundle {
    /// Returns whether this user compiled the bundle on this machine, as the store remembers that opened it.
    #[must_use]
    pub fn was_built_here(&self) -> bool {
        let is_noted = |store: &Path| -> io::Result<bool> {
            let name = self.note_name();
            let note = StoreFolder::BuiltHere(geteuid().as_raw()).path(store).join(&name);
            Ok(fs::read_to_string(note)? == note_of(&UserKey::in_store(store)?, &name))
        };
        self.location().notes.as_ref().is_some_and(|store| is_noted(store).unwrap_or(false))
    }

    /// Remembers in the store at `store` that this user compiled the bundle.
    pub(crate) fn remember_built(&self, store: &Path) -> io::Result<()> {
        let folder = StoreFolder::BuiltHere(geteuid().as_raw()).path(store);
        fs::create_dir_all(&folder)?;
        let name = self.note_name();
        write_note(&folder, &name, &note_of(&UserKey::in_store(store)?, &name))
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

/// Returns the note that a user compiled the bundle whose manifest has this digest. Nobody else can write it.
fn note_of(key: &UserKey, manifest: &str) -> String {
    key.seal(&format!("compiled here {manifest}\n"))
}
