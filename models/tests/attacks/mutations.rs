//! Mechanically broken files: none causes a panic, and errors name the changed key.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use mlxcel_models::{Error, FAMILIES, ModelConfig};
use serde_json::{Map, Value, json};

use crate::{changed, check_consistent, complete};

/// Returns values that a key is unlikely to expect.
fn hostile_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-0.0),
        json!(1),
        json!(-1),
        json!(2),
        json!(0.5),
        json!(3),
        json!(65536),
        json!(u32::MAX),
        json!(i64::MIN),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(f64::MAX),
        json!(f64::MIN_POSITIVE),
        json!(f32::MIN_POSITIVE),
        json!(""),
        json!("llama"),
        json!("default"),
        json!("\u{0}\u{7f}\u{9b}"),
        json!("x".repeat(100_000)),
        json!([]),
        json!([null]),
        json!([[[[]]]]),
        json!(vec![1; 10_000]),
        json!({}),
        json!({"factor": {"factor": {}}}),
    ]
}

/// Checks that `text` gives a consistent description, or a short message that names one of `keys`.
fn check_outcome(text: &str, keys: &[&str]) {
    match ModelConfig::from_json(text) {
        Ok(model) => check_consistent(&model),
        Err(Error::TooLarge { .. }) => {}
        Err(error) => {
            let message = error.to_string();
            assert!(message.len() < 600, "{message}");
            assert!(keys.iter().any(|key| message.contains(key)), "{message} names none of {keys:?}");
        }
    }
}

#[test]
fn the_unchanged_file_is_accepted() {
    check_consistent(&ModelConfig::from_json(&Value::from(complete()).to_string()).unwrap());
}

#[test]
fn one_value_replaced() {
    for key in complete().keys() {
        for value in hostile_values() {
            // Numbers of heads may conflict, and the two spellings of rope.
            check_outcome(&changed(&json!({key: value})), &[key, "num_key_value_heads", "rope_"]);
        }
    }
}

#[test]
fn one_value_of_any_family_replaced() {
    let folders = ["oracle/fixtures", "oracle/encoders"]
        .map(|folder| fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap());
    // The fixture of each family with the most keys.
    let mut families: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for entry in folders.into_iter().flatten() {
        let text = fs::read_to_string(entry.unwrap().path().join("config.json")).unwrap();
        let config: Map<String, Value> = serde_json::from_str(&text).unwrap();
        let known = families.entry(config["model_type"].as_str().unwrap().to_owned()).or_default();
        if config.len() > known.len() {
            *known = config;
        }
    }
    for config in families.values() {
        // The error may name another key, with which the value conflicts.
        let mut keys: Vec<_> = config.keys().map(String::as_str).collect();
        keys.extend(["sliding_window", "head_dim", "rope_", "rotary_", "per_layer_config"]);
        for key in config.keys() {
            for value in hostile_values() {
                let mut changed = config.clone();
                changed.insert(key.clone(), value);
                check_outcome(&Value::from(changed).to_string(), &keys);
            }
        }
    }
    let known: BTreeSet<_> = FAMILIES.iter().map(|family| family.name.to_owned()).collect();
    assert_eq!(families.into_keys().collect::<BTreeSet<_>>(), known, "every family has a fixture");
}

#[test]
fn one_value_of_a_rope_replaced() {
    let rope = complete()["rope_scaling"].as_object().cloned().unwrap();
    for kind in ["default", "linear", "dynamic", "llama3", "yarn"] {
        for object in ["rope_scaling", "rope_parameters"] {
            for key in rope.keys() {
                for value in hostile_values() {
                    let mut changes = json!({"rope_scaling": null, "original_max_position_embeddings": 64});
                    changes[object] = rope.clone().into();
                    changes[object]["rope_type"] = kind.into();
                    changes[object][key] = value;
                    check_outcome(&changed(&changes), &[key, "high_freq_factor", "rope_theta", "beta_fast"]);
                }
            }
        }
    }
}

#[test]
fn two_values_replaced() {
    // Products and quotients of sizes must not overflow or divide by zero.
    let sizes = [
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "vocab_size",
        "max_position_embeddings",
    ];
    let values = [json!(null), json!(1), json!(2), json!(300), json!(65536), json!(1 << 20), json!(1 << 24)];
    for (index, first) in sizes.iter().enumerate() {
        for second in &sizes[index + 1..] {
            for a in &values {
                for b in &values {
                    check_outcome(&changed(&json!({*first: a, *second: b})), &sizes);
                }
            }
        }
    }
}

#[test]
fn the_largest_of_everything() {
    let text = changed(&json!({
        "attention_bias": true,
        "head_dim": 1 << 16,
        "hidden_size": 1 << 20,
        "intermediate_size": 1 << 24,
        "max_position_embeddings": 1 << 24,
        "mlp_bias": true,
        "num_attention_heads": 1 << 16,
        "num_hidden_layers": 4096,
        "num_key_value_heads": 1 << 16,
        "vocab_size": 1 << 24,
    }));
    let error = ModelConfig::from_json(&text).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[test]
fn truncated_files() {
    let text = Value::from(complete()).to_string();
    for end in 0..text.len() {
        let error = ModelConfig::from_json(&text[..end]).unwrap_err();
        assert_eq!(error.to_string(), "config.json is not valid JSON");
    }
}

#[test]
fn one_byte_replaced() {
    let text = Value::from(complete()).to_string();
    for position in 0..text.len() {
        for byte in *b"\0\"{}[]:,-0e9 \\x" {
            let mut bytes = text.clone().into_bytes();
            bytes[position] = byte;
            if let Ok(model) = ModelConfig::from_json(&String::from_utf8(bytes).unwrap()) {
                check_consistent(&model);
            }
        }
    }
}

#[test]
fn text_that_is_no_object() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    for text in ["", " ", "\u{feff}{}", "NaN", "{\"rope_theta\": NaN}", "{\"rope_theta\": 1e999}", &deep] {
        assert_eq!(ModelConfig::from_json(text).unwrap_err().to_string(), "config.json is not valid JSON");
    }
    for text in ["null", "0", "\"llama\"", "[]"] {
        let message = ModelConfig::from_json(text).unwrap_err().to_string();
        assert_eq!(message, format!("`config.json` is {text}, expected an object"));
    }
}
