//! Where a model and its weights come from.

use std::{
    fmt::Display,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    str::FromStr,
};

use mlxcel_models::{ModelConfig, PRESETS, Preset};

use crate::{Error, sentence};

/// No config.json is longer.
pub(crate) const CONFIG_LIMIT_BYTES: u64 = 1 << 20;

/// Which model.
#[derive(Debug, Clone)]
pub enum ModelSource {
    /// One that this workspace knows by name.
    Preset(&'static Preset),
    /// A folder in Hugging Face's form, with a config.json.
    Folder(PathBuf),
}

/// Which weights a bundle carries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WeightSource {
    /// The model folder's own where it has some, else none.
    #[default]
    Model,
    /// None: they are named when the bundle is run.
    None,
    /// Those in a folder in Hugging Face's form.
    Folder(PathBuf),
    /// Random ones made from a seed.
    Random(u64),
}

/// A model with its description.
#[derive(Debug)]
pub(crate) struct Model {
    /// The preset's name or the folder's.
    pub(crate) name: String,
    /// The text of config.json.
    pub(crate) json: String,
    /// What it describes.
    pub(crate) config: ModelConfig,
    /// The folder, where it comes from one.
    pub(crate) folder: Option<PathBuf>,
    /// The most tokens of a text that it reads, where less than the model can.
    pub(crate) longest: Option<usize>,
    /// What a person should know of it.
    pub(crate) said: Option<String>,
}

impl ModelSource {
    /// The preset of that name, else the folder at that path. `./name` is always a folder.
    ///
    /// # Errors
    /// It is neither.
    pub fn find(text: &str) -> Result<Self, Error> {
        if let Some(preset) = Preset::find(text) {
            return Ok(Self::Preset(preset));
        }
        if Path::new(text).is_dir() {
            return Ok(Self::Folder(text.into()));
        }
        if text.contains('/') {
            return Err(Error::NoFolder { path: text.into() });
        }
        Err(Error::UnknownModel {
            found: text.to_owned(),
            known: PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", "),
        })
    }

    pub(crate) fn load(&self) -> Result<Model, Error> {
        match self {
            Self::Preset(preset) => Ok(Model {
                name: preset.name.to_owned(),
                json: preset.config.to_owned(),
                config: preset.model().map_err(model_error(format_args!("the preset {}", preset.name)))?,
                folder: None,
                longest: None,
                said: None,
            }),
            Self::Folder(folder) => {
                let path = folder.join("config.json");
                if !path.exists() {
                    return Err(Error::NoConfig { folder: folder.clone() });
                }
                let json = read_text(&path, CONFIG_LIMIT_BYTES)?;
                let mut config = ModelConfig::from_json(&json).map_err(model_error(path.display()))?;
                let (longest, said) = sentence::read(folder, &mut config)?;
                let (name, folder) = (folder_name(folder), Some(folder.clone()));
                Ok(Model { name, json, config, folder, longest, said })
            }
        }
    }
}

impl FromStr for WeightSource {
    type Err = String;

    /// `none`, `random`, `random:SEED`, else a folder; `./random` is always a folder.
    fn from_str(text: &str) -> Result<Self, String> {
        let seed = |seed: &str| {
            seed.parse().map_err(|_| format!("found seed {seed:?}, expected a number from 0 to {}", u64::MAX))
        };
        match (text, text.strip_prefix("random:")) {
            ("none", _) => Ok(Self::None),
            ("random", _) => Ok(Self::Random(0)),
            (_, Some(text)) => seed(text).map(Self::Random),
            (folder, None) => Ok(Self::Folder(folder.into())),
        }
    }
}

/// The folder's last name; that of the folder it stands for where it is `.` or `..`.
fn folder_name(folder: &Path) -> String {
    let named = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    named(folder).or_else(|| named(&folder.canonicalize().ok()?)).unwrap_or_else(|| "model".to_owned())
}

/// That a file, or whatever is at `origin`, describes no model.
pub(crate) fn model_error(origin: impl Display) -> impl FnOnce(mlxcel_models::Error) -> Error {
    move |source| Error::Model { origin: origin.to_string(), source: Box::new(source) }
}

/// The text of a regular file of at most `limit` bytes.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, Error> {
    let bytes = read_limited(path, limit)?;
    String::from_utf8(bytes)
        .map_err(|error| Error::Damaged { path: path.to_owned(), reason: error.to_string() })
}

/// All of a regular file of at most `limit` bytes: a pipe would never end, and a huge file is not what its name says.
pub(crate) fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let read = || {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(Error::io("read", path))?;
    if bytes.len() as u64 > limit {
        let reason = format!("found more than {limit} bytes, expected fewer");
        return Err(Error::Damaged { path: path.to_owned(), reason });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_by_name() {
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
    fn models_by_name() {
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
                "found no config.json in {path}, expected a checkpoint in Hugging Face's form\n\
                 hint: --model names the folder that config.json and the weights lie in"
            )
        );
        assert_eq!(
            ModelSource::find("/no/model").unwrap_err().to_string(),
            "found no folder /no/model, expected one with a config.json\n\
             hint: --list-models lists the presets, which need none"
        );
        assert_eq!(
            ModelSource::find("gpt\u{1b}-5").unwrap_err().to_string(),
            format!(
                "found no model `gpt\\u{{1b}}-5`, expected a folder with a config.json or one of {}\n\
                 hint: --list-models lists the presets",
                PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
            )
        );
    }

    #[test]
    fn a_folder_is_called_by_its_last_name() {
        assert_eq!(folder_name(Path::new("models/tiny/")), "tiny");
        let here = std::env::current_dir().unwrap();
        assert_eq!(folder_name(Path::new(".")), here.file_name().unwrap().to_str().unwrap());
        assert_eq!(folder_name(Path::new("/")), "model");
    }
}
