//! What sentence-transformers saves in a checkpoint's folder: how an encoder's embeddings are made, and of how many tokens.

use std::path::Path;

use mlxcel_models::{Head, ModelConfig, Modules, Pooling};
use serde_json::{Map, Value};

use crate::{
    Error,
    source::{CONFIG_LIMIT_BYTES, model_error, read_text},
};

/// Which modules a text goes through.
const MODULES: &str = "modules.json";

/// Where the most tokens of a text that are read may be said: as older versions of sentence-transformers have it, then as
/// newer ones have.
const LIMITS: [(&str, &str); 2] =
    [("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length")];

/// What a file of the folder may not ask for: its key, the values that change nothing, and what to do instead.
const REFUSED: [(&str, &str, &[&str], &str); 3] = [
    (
        "config_sentence_transformers.json",
        "default_prompt_name",
        &["null"],
        "write the prompt before every text, and set this to null",
    ),
    (
        "sentence_bert_config.json",
        "do_lower_case",
        &["null", "false"],
        "set this to false, and give texts in lower case",
    ),
    ("tokenizer_config.json", "truncation_side", &["null", "\"right\""], "set this to \"right\""),
];

/// Gives the encoder `config` the pooling of its folder. Gives the most tokens of a text that are read, where that is said,
/// and what a person should know.
///
/// # Errors
/// A file of it cannot be read, or asks for what is not supported.
pub(crate) fn read(
    folder: &Path,
    config: &mut ModelConfig,
) -> Result<(Option<usize>, Option<String>), Error> {
    let Head::Pooling(pooling) = &mut config.head else { return Ok((None, None)) };
    let lowers = object(folder, "tokenizer_config.json")?.get("do_lower_case") == Some(&Value::Bool(true));
    for (file, key, harmless, hint) in REFUSED {
        let object = object(folder, file)?;
        let Some(value) = object.get(key) else { continue };
        // A tokenizer that does it anyway makes no difference.
        let is_harmless = harmless.contains(&value.to_string().as_str()) || key == "do_lower_case" && lowers;
        if !is_harmless {
            return Err(unsupported(folder, file, key, value, &harmless.join(" or "), hint));
        }
    }
    let said = if folder.join(MODULES).exists() {
        let path = folder.join(MODULES);
        let text = read_text(&path, CONFIG_LIMIT_BYTES)?;
        let modules = Modules::from_json(&text).map_err(model_error(path.display()))?;
        let path = folder.join(&modules.pooling_folder).join("config.json");
        let text = read_text(&path, CONFIG_LIMIT_BYTES)?;
        *pooling = Pooling::from_json(&text, modules.normalised, config.hidden)
            .map_err(model_error(path.display()))?;
        None
    } else {
        let Pooling { kind, normalised } = *pooling;
        let length = if normalised { ", normalised" } else { "" };
        Some(format!(
            "found no {MODULES}: an embedding is the {kind} of a text's tokens{length} (sentence-transformers would not \
             normalise it)"
        ))
    };
    for (file, key) in LIMITS {
        let object = object(folder, file)?;
        let Some(value) = object.get(key).filter(|value| !value.is_null()) else { continue };
        return match value.as_f64() {
            // Written as 10^30 where there is no limit.
            Some(tokens) if tokens >= 1.0 && tokens.fract() == 0.0 => Ok((Some(tokens as usize), said)),
            _ => Err(unsupported(
                folder,
                file,
                key,
                value,
                "a number of tokens",
                "correct it, or take the key out",
            )),
        };
    }
    Ok((None, said))
}

/// The object in a file of the folder; an empty one where there is no such file.
fn object(folder: &Path, file: &str) -> Result<Map<String, Value>, Error> {
    let path = folder.join(file);
    if !path.exists() {
        return Ok(Map::new());
    }
    // Chat templates can be long.
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
