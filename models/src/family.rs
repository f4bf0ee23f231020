//! The families: the only code that knows Hugging Face's keys and tensor names.
//!
//! A family is a file with a function from a config.json to a description, and a line in `families!`. `standard` reads the
//! keys and builds the layers that families share, `rope` reads the keys of rotary embeddings, `experts` builds mixtures.

use serde_json::Value;

use crate::{
    config::ModelConfig,
    error::{Error, displayed},
    json::Json,
    nearest::nearest,
    storage::Scheme,
};

mod experts;
mod rope;
mod standard;

/// A family: models whose config.json files and tensors share their spelling.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Name in config.json: its `model_type`.
    pub name: &'static str,
    /// Reads a config.json of the family.
    describe: fn(&Json<'_>) -> Result<ModelConfig, Error>,
}

/// Declares the module of each family and lists them. Each name is a `model_type` and a file in `family/`.
macro_rules! families {
    ($($name:ident),* $(,)?) => {
        $(mod $name;)*

        /// All families, sorted by name.
        pub const FAMILIES: &[Family] =
            &[$(Family { name: stringify!($name), describe: $name::describe }),*];
    };
}

families! {
    bert,
    cohere,
    cohere2,
    ernie4_5,
    exaone4,
    gemma,
    gemma2,
    gemma3_text,
    glm4,
    gpt2,
    gpt_neox,
    gpt_oss,
    granite,
    granitemoe,
    llama,
    mistral,
    mixtral,
    olmo2,
    olmo3,
    olmoe,
    phi3,
    qwen2,
    qwen2_moe,
    qwen3,
    qwen3_moe,
    seed_oss,
    smollm3,
    stablelm,
    starcoder2,
}

/// Largest number of parameters that is accepted. The largest models known have some 10^12.
const PARAMETERS_MAX: u64 = 1 << 44;

/// Number of families that an error suggests.
const SUGGESTIONS: usize = 3;

/// Command that lists all families.
const LIST_HINT: &str = "`mlxcel-compile families` lists all families";

impl ModelConfig {
    /// Returns the description of the checkpoint whose config.json is `text`, of any family.
    ///
    /// # Errors
    ///
    /// The text is no config.json, its family is not in [`FAMILIES`], or it needs something that a description cannot
    /// express exactly.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let mut model = describe(text)?;
        for block in &mut model.blocks {
            let window = &mut block.attention.layer.window;
            *window = window.filter(|&window| window < model.max_positions);
        }
        let parameters = model.parameters();
        if parameters > PARAMETERS_MAX {
            return Err(Error::TooLarge { parameters, limit: PARAMETERS_MAX });
        }
        Ok(model)
    }
}

/// Returns the description by the family that `model_type` names.
fn describe(text: &str) -> Result<ModelConfig, Error> {
    let value: Value =
        serde_json::from_str(text).map_err(|source| Error::Syntax { file: "config.json", source })?;
    let Value::Object(object) = &value else {
        return Err(Error::Invalid {
            key: "config.json".into(),
            found: displayed(&value),
            expected: "an object".into(),
            hint: None,
        });
    };
    let json = Json::top(object);
    let Some(name) = json.text("model_type")? else {
        return Err(json.missing("model_type", "the name of a family").with_hint(LIST_HINT));
    };
    let Some(family) = FAMILIES.iter().find(|family| family.name == name) else {
        let suggestions = nearest(name, FAMILIES.iter().map(|family| family.name), SUGGESTIONS);
        let supported = format!("a family such as {}", or_list(&suggestions));
        return Err(json.unsupported("model_type", supported).with_hint(LIST_HINT));
    };
    let model = (family.describe)(&json)?;
    Ok(ModelConfig { family: family.name.into(), scheme: Scheme::read(object)?, ..model })
}

/// Joins names as in `a, b or c`.
fn or_list(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn families_are_sorted() {
        assert!(FAMILIES.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn text_that_is_no_config_is_refused() {
        let error = describe("{\"model_type\": ").unwrap_err();
        assert_eq!(error.to_string(), "config.json is not valid JSON");
        assert!(error.source().unwrap().to_string().starts_with("EOF while parsing"));
        let message = |text| describe(text).unwrap_err().to_string();
        for (text, expected) in [
            ("[1]", "`config.json` is [1], expected an object"),
            (
                "{}",
                "`model_type` is missing from config.json, expected the name of a family\n\
                 hint: `mlxcel-compile families` lists all families",
            ),
            (
                r#"{"model_type": "qwen3_5"}"#,
                "`model_type` is \"qwen3_5\", which is not supported, expected a family such as qwen3, qwen3_moe \
                 or qwen2\nhint: `mlxcel-compile families` lists all families",
            ),
            (r#"{"model_type": 3}"#, "`model_type` is 3, expected a string"),
        ] {
            assert_eq!(message(text), expected);
        }
    }
}
