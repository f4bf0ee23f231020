//! Settings that sentence-transformers keeps in an encoder's folder: pooling, and the length of texts.

use std::path::Path;

use mlxcel_artifacts::CONFIG_FILE;
use mlxcel_models::{Head, ModelConfig, Modules, Pooling};
use serde_json::{Map, Value};

use crate::{
    error::Error,
    model::files::{CONFIG_LIMIT_BYTES, read_text},
};

/// The list of modules that a text passes through.
const MODULES: &str = "modules.json";

/// Files and keys that may give the maximum sequence length: older versions of sentence-transformers write the first,
/// newer ones the second.
const LENGTH_KEYS: [(&str, &str); 2] =
    [("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length")];

/// A key that would change what is done with texts.
struct RefusedKey {
    file: &'static str,
    key: &'static str,
    /// The values that change nothing, as JSON.
    harmless: &'static [&'static str],
    hint: &'static str,
}

const REFUSED_KEYS: [RefusedKey; 3] = [
    RefusedKey {
        file: "config_sentence_transformers.json",
        key: "default_prompt_name",
        harmless: &["null"],
        hint: "write the prompt before every text, and set this to null",
    },
    RefusedKey {
        file: "sentence_bert_config.json",
        key: "do_lower_case",
        harmless: &["null", "false"],
        hint: "set this to false, and give texts in lower case",
    },
    RefusedKey {
        file: "tokenizer_config.json",
        key: "truncation_side",
        harmless: &["null", "\"right\""],
        hint: "set this to \"right\"",
    },
];

/// Settings of an encoder besides its pooling.
#[derive(Debug, Default)]
pub(crate) struct EncoderSettings {
    /// Tokens after which a text is cut.
    pub(crate) max_seq_length: Option<usize>,
    /// A warning for the user.
    pub(crate) warning: Option<String>,
}

/// Reads an encoder's settings in `folder`, and puts the pooling into `config`. Other models have no such settings.
///
/// # Errors
/// A file cannot be read, or asks for something unsupported.
pub(crate) fn read(folder: &Path, config: &mut ModelConfig) -> Result<EncoderSettings, Error> {
    let Head::Pooling(pooling) = &mut config.head else { return Ok(EncoderSettings::default()) };
    check_refused_keys(folder)?;
    let warning = if folder.join(MODULES).exists() {
        *pooling = read_pooling(folder, config.hidden)?;
        None
    } else {
        let Pooling { kind, normalized } = *pooling;
        let length = if normalized { ", normalized" } else { "" };
        Some(format!(
            "found no {MODULES}: an embedding is the {kind} of a text's tokens{length} \
             (sentence-transformers would not normalize it)"
        ))
    };
    Ok(EncoderSettings { max_seq_length: max_seq_length(folder)?, warning })
}

fn check_refused_keys(folder: &Path) -> Result<(), Error> {
    let tokenizer_lowers =
        read_object(folder, "tokenizer_config.json")?.get("do_lower_case") == Some(&Value::Bool(true));
    for RefusedKey { file, key, harmless, hint } in REFUSED_KEYS {
        let object = read_object(folder, file)?;
        let Some(value) = object.get(key) else { continue };
        // Lowering twice is lowering once.
        let is_harmless =
            harmless.contains(&value.to_string().as_str()) || key == "do_lower_case" && tokenizer_lowers;
        if !is_harmless {
            return Err(unsupported(folder, file, key, value, &harmless.join(" or "), hint));
        }
    }
    Ok(())
}

/// Reads the pooling of an encoder whose embeddings have `width` numbers.
fn read_pooling(folder: &Path, width: usize) -> Result<Pooling, Error> {
    let path = folder.join(MODULES);
    let text = read_text(&path, CONFIG_LIMIT_BYTES)?;
    let modules = Modules::from_json(&text).map_err(Error::model(path.display()))?;
    let path = folder.join(&modules.pooling_folder).join(CONFIG_FILE);
    let text = read_text(&path, CONFIG_LIMIT_BYTES)?;
    Pooling::from_json(&text, modules.normalized, width).map_err(Error::model(path.display()))
}

fn max_seq_length(folder: &Path) -> Result<Option<usize>, Error> {
    for (file, key) in LENGTH_KEYS {
        let object = read_object(folder, file)?;
        let Some(value) = object.get(key).filter(|value| !value.is_null()) else { continue };
        return match value.as_f64() {
            // No limit is written as 10^30, which the cast saturates.
            Some(tokens) if tokens >= 1.0 && tokens.fract() == 0.0 => Ok(Some(tokens as usize)),
            _ => {
                let hint = "correct it, or remove the key";
                Err(unsupported(folder, file, key, value, "a number of tokens", hint))
            }
        };
    }
    Ok(None)
}

/// Reads the JSON object in a file. A file that does not exist counts as an empty object.
fn read_object(folder: &Path, file: &str) -> Result<Map<String, Value>, Error> {
    let path = folder.join(file);
    if !path.exists() {
        return Ok(Map::new());
    }
    // Larger than config.json, because chat templates can be long.
    let text = read_text(&path, 16 * CONFIG_LIMIT_BYTES)?;
    serde_json::from_str(&text).map_err(|error| Error::Damaged { path, reason: error.to_string() })
}

fn unsupported(
    folder: &Path,
    file: &str,
    key: &str,
    value: &Value,
    supported: &str,
    hint: &'static str,
) -> Error {
    let found: String = value.to_string().chars().take(80).filter(|c| !c.is_control()).collect();
    let problem = format!("`{key}` is {found}, which is not supported, expected {supported}");
    Error::EncoderOption { path: folder.join(file), problem, hint }
}
