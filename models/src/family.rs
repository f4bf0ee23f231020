//! The families: who knows which Hugging Face keys and tensor names.
//!
//! A family is one file with a function from a config.json to a description, and one line in [`FAMILIES`]. Keys are
//! read through `json`, which names the key, the value and what was expected in every error; `rope` reads the rotary
//! keys that families share.

use serde_json::Value;

use crate::{Error, ModelConfig, error::shown, family::json::Json};

mod json;
mod llama;
mod rope;

/// Models whose config.json and tensors are spelled alike.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// What config.json calls it: `model_type`.
    pub name: &'static str,
    /// Reads a config.json of that `model_type`.
    describe: fn(&Json<'_>) -> Result<ModelConfig, Error>,
}

/// All families.
pub const FAMILIES: &[Family] = &[Family { name: "llama", describe: llama::describe }];

/// The description of config.json `text`, by the family that its `model_type` names.
pub(crate) fn describe(text: &str) -> Result<ModelConfig, Error> {
    let value: Value = serde_json::from_str(text).map_err(Error::Syntax)?;
    let Value::Object(object) = &value else {
        return Err(Error::Invalid {
            key: "config.json".into(),
            found: shown(&value),
            expected: "an object".into(),
            hint: None,
        });
    };
    let json = Json::top(object);
    let names = || FAMILIES.iter().map(|family| family.name).collect::<Vec<_>>().join(" or ");
    let Some(name) = json.text("model_type")? else {
        return Err(json.missing("model_type", names()));
    };
    match FAMILIES.iter().find(|family| family.name == name) {
        Some(family) => (family.describe)(&json),
        None => Err(json.unsupported("model_type", names())),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn what_is_no_config_is_named() {
        let error = describe("{\"model_type\": ").unwrap_err();
        assert_eq!(error.to_string(), "config.json is not valid JSON");
        assert!(error.source().unwrap().to_string().starts_with("EOF while parsing"));
        assert_eq!(describe("[1]").unwrap_err().to_string(), "`config.json` is [1], expected an object");
        assert_eq!(
            describe("{}").unwrap_err().to_string(),
            "`model_type` is missing from config.json, expected llama"
        );
        assert_eq!(
            describe(r#"{"model_type": "mamba"}"#).unwrap_err().to_string(),
            "`model_type` is \"mamba\", which is not supported, expected llama"
        );
        assert_eq!(
            describe(r#"{"model_type": 3}"#).unwrap_err().to_string(),
            "`model_type` is 3, expected a string"
        );
    }
}
