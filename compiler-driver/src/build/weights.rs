//! The weights of a bundle.

use std::{collections::BTreeMap, fs, path::Path};

use mlxcel_artifacts::{
    Blob, BundleWriter, Cancel, Destination as _, Digest, FileIdentity, INDEX_FILE, Manifest, SINGLE_FILE,
};
use mlxcel_models::{Coding, ModelConfig, SmallFiles, Storage, Weight};
use safetensors::Dtype;

use crate::{
    build::event::{Event, Progress},
    documents::provenance::SourceFile,
    error::Error,
    model::{
        checkpoint::Checkpoint,
        random::RandomCheckpoint,
        source::{Model, WeightSource},
        tensor_file::TensorFile,
    },
};

/// The weights to put into a bundle, found and checked.
pub(crate) enum Weights {
    None,
    /// A random checkpoint of this seed.
    Random(u64),
    Files {
        checkpoint: Checkpoint,
        /// Whether they go into the bundle, and do not just say how weights are stored.
        are_bundled: bool,
    },
}

/// The weights in a bundle.
#[derive(Default)]
pub(crate) struct BundledWeights {
    /// Blobs by file name.
    pub(crate) blobs: BTreeMap<String, Blob>,
    /// Digests of the tensors, by name.
    pub(crate) tensors: BTreeMap<String, Digest>,
    /// The files that were copied.
    pub(crate) sources: Vec<SourceFile>,
}

impl Weights {
    /// Finds the weights of `model` at `source`, and adapts the model's description to their tensors.
    pub(crate) fn find(
        source: &WeightSource,
        model: &mut Model,
        cancel: &Cancel,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Error> {
        let mut are_bundled = true;
        let found = match source {
            WeightSource::None => {
                are_bundled = false;
                match (&model.gguf, &model.folder, &model.config.scheme) {
                    (Some(path), _, _) => Some(Checkpoint::open_gguf(path)?),
                    (None, Some(folder), Some(scheme)) => {
                        let (folder, scheme) = (folder.clone(), scheme.name());
                        let found = Checkpoint::open(&folder)?;
                        Some(found.ok_or(Error::NothingStored { folder, scheme })?)
                    }
                    (None, _, _) => None,
                }
            }
            WeightSource::Random(seed) => {
                RandomCheckpoint::new(&model.config, *seed)?;
                return Ok(Self::Random(*seed));
            }
            WeightSource::Folder(folder) => {
                let no_weights = || Error::NoWeights { folder: folder.clone() };
                Some(Checkpoint::open(folder)?.ok_or_else(no_weights)?)
            }
            WeightSource::Gguf(path) => Some(Checkpoint::open_gguf(path)?),
            WeightSource::Model if let Some(path) = &model.gguf => Some(Checkpoint::open_gguf(path)?),
            WeightSource::Model => {
                let found = model.folder.as_deref().map(Checkpoint::open).transpose()?.flatten();
                if let (None, Some(folder)) = (&found, &model.folder) {
                    progress(Event::Warning(format!(
                        "found no weights in {}: the bundle will have none, name them with mlxcel-run --weights",
                        folder.display()
                    )));
                }
                found
            }
        };
        let Some(mut checkpoint) = found else { return Ok(Self::None) };
        if are_bundled {
            // Checked before the work, which takes long.
            checkpoint.files().try_for_each(|(_, path)| Manifest::listed_name(&path).map(drop))?;
        }
        let (config, warnings) = checkpoint.fit(model.config.clone(), &model.name, cancel)?;
        model.config = config;
        warnings.into_iter().for_each(|text| progress(Event::Warning(text)));
        Ok(Self::Files { checkpoint, are_bundled })
    }

    /// Returns the folder of the weights.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Files { checkpoint, .. } => checkpoint.folder(),
            Self::None | Self::Random(_) => None,
        }
    }

    /// Returns the small files that the metadata of a GGUF file makes, with warnings.
    pub(crate) fn small_files(&self) -> Result<SmallFiles, Error> {
        match self {
            Self::Files { checkpoint, .. } if let Some(gguf) = checkpoint.gguf() => {
                gguf.small_files().map_err(Error::model("the GGUF file"))
            }
            _ => Ok(SmallFiles::default()),
        }
    }

    /// Returns the element type that most elements have.
    pub(crate) fn main_dtype(&self) -> Option<Dtype> {
        match self {
            Self::Files { checkpoint, .. } => checkpoint.main_dtype(),
            Self::None | Self::Random(_) => None,
        }
    }

    /// Returns whether some weights are stored in few bits.
    pub(crate) fn are_coded(&self) -> bool {
        match self {
            Self::Files { checkpoint, .. } => {
                checkpoint.storages().filter_map(|storage| storage.coding.as_ref()).any(Coding::is_quantized)
            }
            Self::None | Self::Random(_) => false,
        }
    }

    /// Returns how a weight is stored: in the files, otherwise as the config says.
    pub(crate) fn storage(&self, weight: &Weight, config: &ModelConfig) -> Storage {
        match self {
            Self::Files { checkpoint, .. } => checkpoint.storage_or_plain(weight, config),
            Self::None | Self::Random(_) => Storage::plain(weight, config.dtype),
        }
    }

    /// Copies the weights into a bundle, or generates them there.
    pub(crate) fn write(
        &self,
        config: &ModelConfig,
        writer: &mut BundleWriter,
        cancel: &Cancel,
        progress: &mut Progress<'_>,
    ) -> Result<BundledWeights, Error> {
        let mut bundled = BundledWeights::default();
        match self {
            Self::None | Self::Files { are_bundled: false, .. } => {}
            Self::Random(seed) => {
                progress(Event::Weights { file: SINGLE_FILE.to_owned() });
                let generated = writer.scratch().join(SINGLE_FILE);
                RandomCheckpoint::new(config, *seed)?
                    .write_file(&generated, cancel)
                    .map_err(Error::io("write", &generated))?;
                bundled.add(SINGLE_FILE, &generated, writer, cancel)?;
                fs::remove_file(&generated).map_err(Error::io("write", &generated))?;
            }
            Self::Files { checkpoint, are_bundled: true } => {
                for (name, path) in checkpoint.files() {
                    progress(Event::Weights { file: name.to_owned() });
                    let before = identity(&path)?;
                    bundled.add(name, &path, writer, cancel)?;
                    let (digest, _) = Digest::of_file(&path).map_err(Error::io("read", &path))?;
                    // The copy is of the file that was opened, the digest of the one that is at the path by now.
                    if !identity(&path)?.is_same_file(&before) {
                        return Err(mlxcel_artifacts::Error::Changed { path }.into());
                    }
                    bundled.sources.push(SourceFile { name: name.to_owned(), digest });
                }
            }
        }
        Ok(bundled)
    }
}

fn identity(path: &Path) -> Result<FileIdentity, Error> {
    fs::metadata(path).map(|found| FileIdentity::of(&found)).map_err(Error::io("read", path))
}

impl BundledWeights {
    /// Adds a file of a checkpoint: tensors with aligned data, an index as it is.
    pub(crate) fn add(
        &mut self,
        name: &str,
        path: &Path,
        writer: &mut BundleWriter,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let blob = if name == INDEX_FILE {
            writer.add_file(path)?
        } else {
            let mut file = TensorFile::open(path)?;
            self.tensors.append(&mut file.digests(cancel)?);
            writer.add_reader(&mut cancel.watch(file.aligned()?), path)?
        };
        self.blobs.insert(name.to_owned(), blob);
        Ok(())
    }
}
