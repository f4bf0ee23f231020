//! A checkpoint's small files, in a bundle or in the folder of its weights.

use std::{fs, path::Path};

use mlxcel_artifacts::Bundle;

use crate::error::Error;

/// The places where `tokenizer.json`, `generation_config.json` and a checkpoint's other small files are looked up.
///
/// The bundle's files take precedence over the folder's, because the bundle was compiled with them.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointFiles<'a> {
    bundle: &'a Bundle,
    folder: Option<&'a Path>,
}

impl<'a> CheckpointFiles<'a> {
    /// Looks files up in a bundle, then in a folder.
    #[must_use]
    pub fn new(bundle: &'a Bundle, folder: Option<&'a Path>) -> Self {
        Self { bundle, folder }
    }

    /// Reads the first file of this name.
    pub(crate) fn find(&self, name: &str) -> Result<Option<CheckpointFile>, Error> {
        for source in self.sources() {
            if let Some(file) = source.read(name)? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Returns the places to look in, in order.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Source<'a>> {
        [Source::Bundle(self.bundle)].into_iter().chain(self.folder.map(Source::Folder))
    }

    /// Returns the bundle and the folder as messages name them: `my.bundle or checkpoint`.
    pub(crate) fn locations(&self) -> String {
        let paths: Vec<String> = self.sources().map(|source| source.path().display().to_string()).collect();
        paths.join(" or ")
    }
}

/// One place with a checkpoint's files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    Bundle(&'a Bundle),
    Folder(&'a Path),
}

impl Source<'_> {
    /// Reads the file of this name; `None` if there is none.
    pub(crate) fn read(self, name: &str) -> Result<Option<CheckpointFile>, Error> {
        let bytes = match self {
            Self::Bundle(bundle) => bundle.read_file(name)?,
            Self::Folder(folder) => {
                let path = folder.join(name);
                // Checked before reading, because reading a pipe waits for its writer.
                let bytes = path.is_file().then(|| fs::read(&path).map_err(Error::read(&path)));
                bytes.transpose()?
            }
        };
        // The path of a blob is a digest, which tells a reader nothing.
        let display_name = format!("{name} in {}", self.path().display());
        Ok(bytes.map(|bytes| CheckpointFile { display_name, bytes }))
    }

    /// Returns the bundle's folder, or the folder.
    fn path(&self) -> &Path {
        match self {
            Self::Bundle(bundle) => bundle.path(),
            Self::Folder(folder) => folder,
        }
    }
}

/// A small file of a checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct CheckpointFile {
    /// Name and place, for messages: `tokenizer.json in my.bundle`.
    pub(crate) display_name: String,
    pub(crate) bytes: Vec<u8>,
}

impl CheckpointFile {
    /// Returns the file as text.
    pub(crate) fn into_text(self) -> Result<String, Error> {
        let Self { display_name: file, bytes } = self;
        String::from_utf8(bytes)
            .map_err(|error| Error::NotUtf8 { file, offset: error.utf8_error().valid_up_to() })
    }
}
