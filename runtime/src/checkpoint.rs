//! A checkpoint's small files: those that a bundle carries, and those in the folder that its weights come from.

use std::{fs, io, path::Path};

use mlxcel_artifacts::Bundle;

use crate::error::Error;

/// Where a checkpoint's small files are looked for: `tokenizer.json`, `generation_config.json` and the like.
///
/// What a bundle carries goes before what lies in the folder: it was there when the bundle was compiled.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointFiles<'a> {
    bundle: &'a Bundle,
    folder: Option<&'a Path>,
}

impl<'a> CheckpointFiles<'a> {
    /// The files of a bundle, then those of a folder.
    #[must_use]
    pub fn new(bundle: &'a Bundle, folder: Option<&'a Path>) -> Self {
        Self { bundle, folder }
    }

    /// The first file of that name.
    pub(crate) fn find(&self, name: &str) -> Result<Option<CheckpointFile>, Error> {
        for source in self.sources() {
            if let Some(file) = source.read(name)? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Where to look, in order.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Source<'a>> {
        [Source::Bundle(self.bundle)].into_iter().chain(self.folder.map(Source::Folder))
    }

    /// The bundle and the folder, as messages name them: `my.bundle or checkpoint`.
    pub(crate) fn places(&self) -> String {
        let places: Vec<String> = self.sources().map(|source| source.path().display().to_string()).collect();
        places.join(" or ")
    }
}

/// A place where a checkpoint's files lie.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    Bundle(&'a Bundle),
    Folder(&'a Path),
}

impl Source<'_> {
    /// The file of that name; `None` when it is not there.
    pub(crate) fn read(self, name: &str) -> Result<Option<CheckpointFile>, Error> {
        let bytes = match self {
            Self::Bundle(bundle) => bundle.read_file(name)?,
            Self::Folder(folder) => {
                let path = folder.join(name);
                // Asked first: reading a pipe would wait for its writer.
                let bytes = path.is_file().then(|| fs::read(&path).map_err(Error::read(&path)));
                bytes.transpose()?
            }
        };
        // A blob's own name tells people nothing.
        let shown = format!("{name} in {}", self.path().display());
        Ok(bytes.map(|bytes| CheckpointFile { shown, bytes }))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Bundle(bundle) => bundle.path(),
            Self::Folder(folder) => folder,
        }
    }
}

/// A small file that was found.
#[derive(Debug, Clone)]
pub(crate) struct CheckpointFile {
    /// Its name and place, for messages: `tokenizer.json in my.bundle`.
    pub(crate) shown: String,
    pub(crate) bytes: Vec<u8>,
}

impl CheckpointFile {
    pub(crate) fn into_text(self) -> Result<String, Error> {
        let Self { shown, bytes } = self;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let found = format!("found bytes that are not utf-8 at offset {at}, expected text");
            Error::read(shown)(io::Error::new(io::ErrorKind::InvalidData, found))
        })
    }
}
