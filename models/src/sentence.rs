//! Files of sentence-transformers: the modules after the transformer, and how they compute the embedding of a text.

use serde_json::{Map, Value};

use crate::{
    error::{Error, displayed},
    head::{Pooling, PoolingKind},
    json::Json,
};

/// The modules in `modules.json`, which process a text in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modules {
    /// Folder of the pooling's config.json, below that of the checkpoint.
    pub pooling_folder: String,
    /// Whether embeddings are divided by their length.
    pub normalized: bool,
}

impl Modules {
    /// Returns the modules in the text of a `modules.json`.
    ///
    /// # Errors
    /// The text is no list of modules, or they are not a transformer, a pooling and an optional normalization.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let syntax = |source| Error::Syntax { file: "modules.json", source };
        let value: Value = serde_json::from_str(text).map_err(syntax)?;
        let invalid = |key: String, found: &Value, expected: &str| Error::Invalid {
            key,
            found: displayed(found),
            expected: expected.into(),
            hint: None,
        };
        let Value::Array(list) = &value else {
            return Err(invalid("modules.json".into(), &value, "a list of modules"));
        };
        let (mut folder, mut normalized) = (None, false);
        for (index, module) in list.iter().enumerate() {
            let text = |key: &str| {
                let found = module.get(key).unwrap_or(&Value::Null);
                found
                    .as_str()
                    .ok_or_else(|| invalid(format!("modules.json[{index}].{key}"), found, "a string"))
            };
            let kind = text("type")?;
            // Classes have moved between modules of the package and kept their names.
            let class = kind.strip_prefix("sentence_transformers.").and_then(|path| path.rsplit('.').next());
            match (class, &folder) {
                (Some("Transformer"), None) if index == 0 => {}
                (Some("Pooling"), None) if index > 0 => folder = Some(text("path")?.to_owned()),
                (Some("Normalize"), Some(_)) => normalized = true,
                _ => {
                    return Err(Error::Unsupported {
                        key: format!("modules.json[{index}].type"),
                        found: displayed(&Value::from(kind)),
                        supported: "Transformer, then Pooling, then Normalize or nothing".into(),
                        hint: None,
                    });
                }
            }
        }
        let pooling_folder =
            folder.ok_or_else(|| invalid("modules.json".into(), &value, "a Pooling among the modules"))?;
        let plain =
            !pooling_folder.is_empty() && !pooling_folder.contains(['/', '\\']) && pooling_folder != "..";
        if !plain {
            let expected = "the name of a folder beside it";
            return Err(invalid("modules.json: path of Pooling".into(), &pooling_folder.into(), expected));
        }
        Ok(Self { pooling_folder, normalized })
    }
}

impl Pooling {
    /// Returns the pooling in the text of its config.json, of any version of sentence-transformers.
    ///
    /// `hidden` is the width of the model.
    ///
    /// # Errors
    /// The text is no such file, or the pooling is neither the mean nor the first token.
    pub fn from_json(text: &str, normalized: bool, hidden: usize) -> Result<Self, Error> {
        let syntax = |source| Error::Syntax { file: "config.json of the pooling", source };
        let object: Map<String, Value> = serde_json::from_str(text).map_err(syntax)?;
        let json = Json::top(&object);
        let named = |name: &str| match name {
            "mean" => Some(PoolingKind::Mean),
            "cls" => Some(PoolingKind::Cls),
            _ => None,
        };
        for key in ["embedding_dimension", "word_embedding_dimension"] {
            let is_width = |value: &Value| value.as_u64() == Some(hidden as u64);
            json.require(key, &format!("hidden_size, which is {hidden}"), is_width)?;
        }
        const SUPPORTED: &str = "mean or cls";
        if let Some(value) = json.value("pooling_mode") {
            let name = value.as_array().filter(|names| names.len() == 1).map_or(value, |names| &names[0]);
            let kind = name.as_str().and_then(named);
            let kind = kind.ok_or_else(|| json.unsupported("pooling_mode", SUPPORTED))?;
            return Ok(Self { kind, normalized });
        }
        let mut kinds = Vec::new();
        for key in object.keys().filter(|key| key.starts_with("pooling_mode_")) {
            if json.flag(key, false)? {
                let name = key.trim_start_matches("pooling_mode_").trim_end_matches("_tokens");
                let kind = named(name.trim_end_matches("_token"));
                kinds.push(
                    kind.ok_or_else(|| json.unsupported(key, format!("false, with {SUPPORTED} alone")))?,
                );
            }
        }
        match *kinds {
            [kind] => Ok(Self { kind, normalized }),
            // The default of sentence-transformers.
            [] => Ok(Self { kind: PoolingKind::Mean, normalized }),
            _ => Err(Error::Unsupported {
                key: "pooling_mode_*".into(),
                found: format!("true {} times", kinds.len()),
                supported: format!("one of {SUPPORTED}"),
                hint: None,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(kinds: &[(&str, &str)]) -> Result<Modules, String> {
        let list: Vec<_> =
            kinds.iter().map(|(kind, path)| serde_json::json!({ "type": kind, "path": path })).collect();
        Modules::from_json(&Value::from(list).to_string()).map_err(|error| error.to_string())
    }

    const TRANSFORMER: (&str, &str) = ("sentence_transformers.models.Transformer", "");
    const POOLING: (&str, &str) = ("sentence_transformers.models.Pooling", "1_Pooling");
    const NORMALIZE: (&str, &str) = ("sentence_transformers.models.Normalize", "2_Normalize");

    #[test]
    fn modules_of_an_encoder_are_read() {
        let found = modules(&[TRANSFORMER, POOLING, NORMALIZE]).unwrap();
        assert_eq!(found, Modules { pooling_folder: "1_Pooling".into(), normalized: true });
        assert!(!modules(&[TRANSFORMER, POOLING]).unwrap().normalized);
    }

    #[test]
    fn unknown_modules_are_refused() {
        assert_eq!(
            modules(&[TRANSFORMER, POOLING, ("sentence_transformers.models.Dense", "2_Dense")]).unwrap_err(),
            "`modules.json[2].type` is \"sentence_transformers.models.Dense\", which is not supported, expected \
             Transformer, then Pooling, then Normalize or nothing"
        );
        assert!(modules(&[POOLING]).unwrap_err().starts_with("`modules.json[0].type` is"));
        assert!(modules(&[TRANSFORMER]).unwrap_err().ends_with("expected a Pooling among the modules"));
        assert!(modules(&[TRANSFORMER, POOLING, POOLING]).is_err());
        for path in ["", "..", "../x", "/etc", "a\\b"] {
            let error = modules(&[TRANSFORMER, (POOLING.0, path)]).unwrap_err();
            assert!(error.ends_with("expected the name of a folder beside it"), "{error}");
        }
        let message = |text| Modules::from_json(text).unwrap_err().to_string();
        assert_eq!(message("{}"), "`modules.json` is {}, expected a list of modules");
        assert_eq!(message("[3]"), "`modules.json[0].type` is null, expected a string");
        assert_eq!(message("["), "modules.json is not valid JSON");
    }

    #[test]
    fn poolings_of_every_version_are_read() {
        let read = |text: &str| Pooling::from_json(text, true, 4).map(|pooling| pooling.kind);
        let message = |text: &str| read(text).unwrap_err().to_string();
        let mean = r#"{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}"#;
        let cls = r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#;
        assert_eq!(read(mean).unwrap(), PoolingKind::Mean);
        assert_eq!(read(cls).unwrap(), PoolingKind::Cls);
        assert_eq!(read(r#"{"pooling_mode": "cls"}"#).unwrap(), PoolingKind::Cls);
        assert_eq!(read(r#"{"pooling_mode": ["cls"]}"#).unwrap(), PoolingKind::Cls);
        assert_eq!(read(r#"{"word_embedding_dimension": 4}"#).unwrap(), PoolingKind::Mean);
        assert_eq!(read(r#"{"pooling_mode_cls_token": false}"#).unwrap(), PoolingKind::Mean);
        assert_eq!(
            message(r#"{"pooling_mode_max_tokens": true}"#),
            "`pooling_mode_max_tokens` is true, which is not supported, expected false, with mean or cls alone"
        );
        assert_eq!(
            message(r#"{"pooling_mode": "lasttoken"}"#),
            "`pooling_mode` is \"lasttoken\", which is not supported, expected mean or cls"
        );
        assert_eq!(
            message(r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}"#),
            "`pooling_mode_*` is true 2 times, which is not supported, expected one of mean or cls"
        );
        assert_eq!(
            message(r#"{"word_embedding_dimension": 768}"#),
            "`word_embedding_dimension` is 768, which is not supported, expected hidden_size, which is 4"
        );
        assert_eq!(
            message(r#"{"pooling_mode_cls_token": 1}"#),
            "`pooling_mode_cls_token` is 1, expected true or false"
        );
    }
}
