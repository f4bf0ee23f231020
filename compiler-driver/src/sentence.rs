//! What sentence-transformers saves in a checkpoint's folder: how an encoder's embeddings are made, and of how many tokens.

use std::path::Path;

use mlxcel_models::{Head, ModelConfig, Modules, Pooling};
use serde::Deserialize;

use crate::{
    Error,
    source::{CONFIG_LIMIT_BYTES, model_error, read_text},
};

/// Which modules a text goes through.
const MODULES: &str = "modules.json";

/// Where the most tokens of a text that are read may be said: as older versions of sentence-transformers have it, then as
/// newer ones have.
const LIMITS: [&str; 2] = ["sentence_bert_config.json", "tokenizer_config.json"];

/// The parts of those files that are needed.
#[derive(Deserialize)]
struct Limits {
    #[serde(default)]
    max_seq_length: Option<f64>,
    /// 10^30 where there is no limit.
    #[serde(default)]
    model_max_length: Option<f64>,
}

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
    let path = folder.join(MODULES);
    let said = if path.exists() {
        let text = read_text(&path, CONFIG_LIMIT_BYTES)?;
        let modules = Modules::from_json(&text).map_err(model_error(path.display()))?;
        let path = folder.join(&modules.pooling_folder).join("config.json");
        let text = read_text(&path, CONFIG_LIMIT_BYTES)?;
        *pooling = Pooling::from_json(&text, modules.normalised).map_err(model_error(path.display()))?;
        None
    } else {
        let Pooling { kind, normalised } = *pooling;
        let length = if normalised { ", normalised" } else { "" };
        Some(format!("found no {MODULES}: an embedding is the {kind} of a text's tokens{length}"))
    };
    for name in LIMITS {
        let path = folder.join(name);
        if !path.exists() {
            continue;
        }
        let text = read_text(&path, CONFIG_LIMIT_BYTES)?;
        let limits: Limits = serde_json::from_str(&text)
            .map_err(|error| Error::Damaged { path: path.clone(), reason: error.to_string() })?;
        if let Some(tokens) = limits.max_seq_length.or(limits.model_max_length)
            && tokens >= 1.0
        {
            return Ok((Some(tokens as usize), said));
        }
    }
    Ok((None, said))
}
