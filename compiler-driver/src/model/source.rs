//! Sources of models and weights.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    str::FromStr,
};

use mlxcel_artifacts::{CONFIG_FILE, Cancel};
use mlxcel_models::{
    HF_QUANT_CONFIG_FILE, ModelConfig, PRESETS, Preset, SmallFiles, nearest, with_hf_quant_config,
};

use crate::{
    build::event::Progress,
    error::{Error, SUGGESTIONS},
    hub::{error::HubError, fetch::fetch, name::HubName, settings::HubSettings, snapshot::Snapshot},
    model::{
        files::{CONFIG_LIMIT_BYTES, SmallFile, find_small_files, read_text},
        gguf::GgufParts,
        sentence::{self, EncoderSettings},
        tensor_file::is_gguf,
    },
};

/// Where a model's description comes from.
#[derive(Debug, Clone)]
pub enum ModelSource {
    /// A model that this workspace knows by name.
    Preset(&'static Preset),
    /// A folder in Hugging Face's format, with a config.json.
    Folder(PathBuf),
    /// A GGUF file, or one part of it.
    Gguf(PathBuf),
    /// A repository of the hub, in the cache.
    Hub(Box<Snapshot>),
}

/// Where a bundle's weights come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WeightSource {
    /// The model's folder or file. The bundle has no weights if that has none.
    #[default]
    Model,
    /// Nowhere: whoever runs the bundle names its weights.
    None,
    /// A folder in Hugging Face's format.
    Folder(PathBuf),
    /// A GGUF file, or one part of it.
    Gguf(PathBuf),
    /// Random numbers of this seed.
    Random(u64),
}

/// A model and its description.
#[derive(Debug)]
pub(crate) struct Model {
    /// The preset's name, or the folder's.
    pub(crate) name: String,
    /// Text of config.json.
    pub(crate) json: String,
    /// Description that config.json gives.
    pub(crate) config: ModelConfig,
    /// Folder of the model, if it has one.
    pub(crate) folder: Option<PathBuf>,
    /// GGUF file of the model, if it is one.
    pub(crate) gguf: Option<PathBuf>,
    /// Small files that the metadata of the GGUF file makes.
    pub(crate) texts: BTreeMap<&'static str, String>,
    /// Tokens after which sentence-transformers cuts a text, if the folder says so.
    pub(crate) max_seq_length: Option<usize>,
    /// A warning for the user.
    pub(crate) warning: Option<String>,
    /// Where it is on the hub, and what was verified of it.
    pub(crate) snapshot: Option<Snapshot>,
}

impl ModelSource {
    /// Finds the preset called `text`, otherwise the folder or the GGUF file at that path. `./name` is always a folder.
    ///
    /// # Errors
    /// Neither exists.
    pub fn find(text: &str) -> Result<Self, Error> {
        if let Some(preset) = Preset::find(text) {
            return Ok(Self::Preset(preset));
        }
        if Path::new(text).is_dir() {
            return Ok(Self::Folder(text.into()));
        }
        if is_gguf(Path::new(text)) {
            return match Path::new(text).is_file() {
                true => Ok(Self::Gguf(text.into())),
                false => Err(Error::NoFile { path: text.into() }),
            };
        }
        if text.contains('/') {
            return Err(Error::NoFolder { path: text.into() });
        }
        let names = PRESETS.iter().map(|preset| preset.name);
        Err(Error::UnknownModel { found: text.to_owned(), nearest: nearest(text, names, SUGGESTIONS) })
    }

    /// Finds `text` as [`ModelSource::find`] does, otherwise the repository of the hub with this name, and downloads what
    /// is not in the cache. `revision` is a branch, a tag or a commit.
    ///
    /// Without `with_weights` only small files are downloaded, and weights if config.json says that their headers are
    /// needed.
    ///
    /// # Errors
    /// There is no such model here or on the hub, or it cannot be downloaded.
    pub fn find_or_download(
        text: &str,
        revision: Option<&str>,
        with_weights: bool,
        hub: &HubSettings,
        cancel: &Cancel,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Error> {
        let is_here = Preset::find(text).is_some() || Path::new(text).exists();
        let Some(name) = HubName::parse(text).filter(|_| !is_here) else {
            return match revision {
                Some(_) => Err(HubError::NotOnHub { model: text.to_owned() }.into()),
                None => Self::find(text),
            };
        };
        let name = match revision {
            Some(found) => {
                let error = || HubError::Revision { name: name.clone(), found: found.to_owned() };
                let is_other = text.contains('@') && name.revision() != found;
                name.clone().at(found).filter(|_| !is_other).ok_or_else(error)?
            }
            None => name,
        };
        let fetch = |with_weights, progress: &mut Progress<'_>| {
            fetch(&name, with_weights, hub, cancel, progress).map(|snapshot| Self::Hub(snapshot.into()))
        };
        let source = fetch(with_weights, progress)?;
        let needs_headers = !with_weights && name.file().is_none() && source.load()?.config.scheme.is_some();
        Ok(if needs_headers { fetch(true, progress)? } else { source })
    }

    /// Reads the model's description.
    pub(crate) fn load(&self) -> Result<Model, Error> {
        match self {
            Self::Preset(preset) => Ok(Model {
                name: preset.name.to_owned(),
                json: preset.config.to_owned(),
                config: preset.model().map_err(Error::model(format_args!("the preset {}", preset.name)))?,
                folder: None,
                gguf: None,
                texts: BTreeMap::new(),
                max_seq_length: None,
                warning: None,
                snapshot: None,
            }),
            Self::Folder(folder) => Model::of_folder(folder),
            Self::Gguf(path) => Model::of_gguf(path),
            Self::Hub(snapshot) => {
                let model = match snapshot.gguf() {
                    Some(path) => Model::of_gguf(&path)?,
                    // The folder's name is that of a commit.
                    None => Model {
                        name: snapshot.name.model().to_owned(),
                        ..Model::of_folder(&snapshot.folder)?
                    },
                };
                Ok(Model { snapshot: Some((**snapshot).clone()), ..model })
            }
        }
    }
}

impl Model {
    /// Reads the description in a folder.
    fn of_folder(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(CONFIG_FILE);
        if !path.exists() {
            return Err(Error::NoConfig { folder: folder.to_owned() });
        }
        let mut json = read_text(&path, CONFIG_LIMIT_BYTES)?;
        let beside = folder.join(HF_QUANT_CONFIG_FILE);
        if beside.is_file() {
            let text = read_text(&beside, CONFIG_LIMIT_BYTES)?;
            json = with_hf_quant_config(&json, &text).map_err(Error::model(folder.display()))?;
        }
        let mut config = ModelConfig::from_json(&json).map_err(Error::model(path.display()))?;
        let EncoderSettings { max_seq_length, warning } = sentence::read(folder, &mut config)?;
        Ok(Self {
            name: folder_name(folder),
            json,
            config,
            folder: Some(folder.to_owned()),
            gguf: None,
            texts: BTreeMap::new(),
            max_seq_length,
            warning,
            snapshot: None,
        })
    }

    /// Reads the description that the metadata of a GGUF file makes.
    fn of_gguf(path: &Path) -> Result<Self, Error> {
        let GgufParts { model, .. } = GgufParts::open(path)?;
        let wrong = || Error::model(path.display());
        let json = model.config_json().map_err(wrong())?;
        let SmallFiles { texts, warnings } = model.small_files().map_err(wrong())?;
        Ok(Self {
            name: folder_name(&path.with_extension("")),
            config: ModelConfig::from_json(&json).map_err(wrong())?,
            json,
            folder: None,
            gguf: Some(path.to_owned()),
            texts,
            max_seq_length: None,
            warning: (!warnings.is_empty()).then(|| warnings.join("; ")),
            snapshot: None,
        })
    }

    /// Finds the small files in the model's folder or file, otherwise in the folder of its weights or among their texts.
    pub(crate) fn small_files(
        &self,
        weights: Option<&Path>,
        texts: BTreeMap<&'static str, String>,
    ) -> Vec<(&'static str, SmallFile)> {
        let folders: Vec<&Path> = self.folder.as_deref().into_iter().chain(weights).collect();
        let own = if self.gguf.is_some() { self.texts.clone() } else { texts };
        let mut files: BTreeMap<_, _> = find_small_files(&folders).into_iter().collect();
        for (name, text) in own {
            files.entry(name).or_insert(SmallFile::Text(text));
        }
        files.into_iter().collect()
    }
}

impl FromStr for WeightSource {
    type Err = String;

    /// Parses `none`, `random`, `random:SEED`, a GGUF file or a folder. `./random` is always a folder.
    fn from_str(text: &str) -> Result<Self, String> {
        let seed = |seed: &str| {
            seed.parse().map_err(|_| format!("found seed {seed:?}, expected a number from 0 to {}", u64::MAX))
        };
        match (text, text.strip_prefix("random:")) {
            ("none", _) => Ok(Self::None),
            ("random", _) => Ok(Self::Random(0)),
            (_, Some(text)) => seed(text).map(Self::Random),
            (file, None) if is_gguf(Path::new(file)) => Ok(Self::Gguf(file.into())),
            (folder, None) => Ok(Self::Folder(folder.into())),
        }
    }
}

/// Returns the last component of a path, after resolving a path such as `.` that has none.
fn folder_name(folder: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    name(folder).or_else(|| name(&folder.canonicalize().ok()?)).unwrap_or_else(|| "model".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_parsed() {
        let parse = |text: &str| text.parse::<WeightSource>().unwrap();
        assert_eq!(parse("none"), WeightSource::None);
        assert_eq!(parse("random"), WeightSource::Random(0));
        assert_eq!(parse("random:18446744073709551615"), WeightSource::Random(u64::MAX));
        assert_eq!(parse("./random:-1"), WeightSource::Folder("./random:-1".into()));
        assert_eq!(
            "random:-1".parse::<WeightSource>().unwrap_err(),
            "found seed \"-1\", expected a number from 0 to 18446744073709551615"
        );
        assert_eq!(parse("./random"), WeightSource::Folder("./random".into()));
    }

    #[test]
    fn models_are_found_by_name_or_folder() {
        assert!(
            matches!(ModelSource::find("llama-3.2-1b"), Ok(ModelSource::Preset(preset)) if preset.name == "llama-3.2-1b")
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let source = ModelSource::find(path).unwrap();
        assert!(matches!(&source, ModelSource::Folder(found) if found == folder.path()));
        assert_eq!(
            source.load().unwrap_err().to_string(),
            format!(
                "found no config.json in {path}, expected a checkpoint in Hugging Face's format\n\
                 hint: pass the folder that contains config.json and the weights to --model"
            )
        );
        assert_eq!(
            ModelSource::find("/no/model").unwrap_err().to_string(),
            "found no folder /no/model, expected one with a config.json\n\
             hint: `mlxcel-compile models` lists the presets, which need none"
        );
        assert_eq!(
            ModelSource::find("gpt\u{1b}-5").unwrap_err().to_string(),
            "found no model `gpt\\u{1b}-5`, expected a folder with a config.json or a preset such as gpt2, gpt2-xl or gpt2-large\n\
             hint: `mlxcel-compile models` lists the presets"
        );
    }

    #[test]
    fn a_folder_gives_its_last_component_as_name() {
        assert_eq!(folder_name(Path::new("models/tiny/")), "tiny");
        let here = std::env::current_dir().unwrap();
        assert_eq!(folder_name(Path::new(".")), here.file_name().unwrap().to_str().unwrap());
        assert_eq!(folder_name(Path::new("/")), "model");
    }
}
