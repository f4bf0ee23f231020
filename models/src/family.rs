//! The families: who knows which Hugging Face keys and tensor names.
//!
//! A family is one file with a function from a config.json to a description, and one line in [`FAMILIES`]. Keys are
//! read through `json`, which names the key, the value and what was expected in every error; `standard` reads the keys
//! and builds the parts that families share, `rope` the rotary keys, and `experts` mixtures.

use serde_json::Value;

use crate::{Error, ModelConfig, error::shown, family::json::Json};

mod bert;
mod cohere;
mod cohere2;
mod ernie4_5;
mod exaone4;
mod experts;
mod gemma;
mod gemma2;
mod gemma3_text;
mod glm4;
mod gpt2;
mod gpt_neox;
mod gpt_oss;
mod granite;
mod granitemoe;
pub(crate) mod json;
mod llama;
mod mistral;
mod mixtral;
mod olmo2;
mod olmo3;
mod olmoe;
mod phi3;
mod qwen2;
mod qwen2_moe;
mod qwen3;
mod qwen3_moe;
mod rope;
mod seed_oss;
mod smollm3;
mod stablelm;
mod standard;
mod starcoder2;

/// Models whose config.json and tensors are spelled alike.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// What config.json calls it: `model_type`.
    pub name: &'static str,
    /// Reads a config.json of that `model_type`.
    describe: fn(&Json<'_>) -> Result<ModelConfig, Error>,
}

/// All families.
pub const FAMILIES: &[Family] = &[
    Family { name: "bert", describe: bert::describe },
    Family { name: "cohere", describe: cohere::describe },
    Family { name: "cohere2", describe: cohere2::describe },
    Family { name: "ernie4_5", describe: ernie4_5::describe },
    Family { name: "exaone4", describe: exaone4::describe },
    Family { name: "gemma", describe: gemma::describe },
    Family { name: "gemma2", describe: gemma2::describe },
    Family { name: "gemma3_text", describe: gemma3_text::describe },
    Family { name: "glm4", describe: glm4::describe },
    Family { name: "gpt2", describe: gpt2::describe },
    Family { name: "gpt_neox", describe: gpt_neox::describe },
    Family { name: "gpt_oss", describe: gpt_oss::describe },
    Family { name: "granite", describe: granite::describe },
    Family { name: "granitemoe", describe: granitemoe::describe },
    Family { name: "llama", describe: llama::describe },
    Family { name: "mistral", describe: mistral::describe },
    Family { name: "mixtral", describe: mixtral::describe },
    Family { name: "olmo2", describe: olmo2::describe },
    Family { name: "olmo3", describe: olmo3::describe },
    Family { name: "olmoe", describe: olmoe::describe },
    Family { name: "phi3", describe: phi3::describe },
    Family { name: "qwen2", describe: qwen2::describe },
    Family { name: "qwen2_moe", describe: qwen2_moe::describe },
    Family { name: "qwen3", describe: qwen3::describe },
    Family { name: "qwen3_moe", describe: qwen3_moe::describe },
    Family { name: "seed_oss", describe: seed_oss::describe },
    Family { name: "smollm3", describe: smollm3::describe },
    Family { name: "stablelm", describe: stablelm::describe },
    Family { name: "starcoder2", describe: starcoder2::describe },
];

/// The description of config.json `text`, by the family that its `model_type` names.
pub(crate) fn describe(text: &str) -> Result<ModelConfig, Error> {
    let value: Value =
        serde_json::from_str(text).map_err(|source| Error::Syntax { file: "config.json", source })?;
    let Value::Object(object) = &value else {
        return Err(Error::Invalid {
            key: "config.json".into(),
            found: shown(&value),
            expected: "an object".into(),
            hint: None,
        });
    };
    let json = Json::top(object);
    let names = || {
        let names: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
        format!("one of {}", names.join(", "))
    };
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
    fn families_are_in_order() {
        assert!(FAMILIES.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn what_is_no_config_is_named() {
        let error = describe("{\"model_type\": ").unwrap_err();
        assert_eq!(error.to_string(), "config.json is not valid JSON");
        assert!(error.source().unwrap().to_string().starts_with("EOF while parsing"));
        assert_eq!(describe("[1]").unwrap_err().to_string(), "`config.json` is [1], expected an object");
        let message = |text| describe(text).unwrap_err().to_string();
        let missing = "`model_type` is missing from config.json, expected one of bert, cohere, cohere2, ";
        assert!(message("{}").starts_with(missing), "{}", message("{}"));
        let other = message(r#"{"model_type": "mamba"}"#);
        let unsupported = "`model_type` is \"mamba\", which is not supported, expected one of bert, cohere, ";
        assert!(other.starts_with(unsupported) && other.ends_with(", starcoder2"), "{other}");
        assert_eq!(
            describe(r#"{"model_type": 3}"#).unwrap_err().to_string(),
            "`model_type` is 3, expected a string"
        );
    }
}
