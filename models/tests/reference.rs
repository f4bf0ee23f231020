//! Compares descriptions with what transformers makes of the same config.json. `fixtures/reference.py` wrote the file.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use mlxcel_models::{Head, ModelConfig, PRESETS, Pairs, Rope, RopeScaling};
use serde_json::Value;

fn cases() -> serde_json::Map<String, Value> {
    let file: Value = serde_json::from_str(include_str!("fixtures/reference.json")).unwrap();
    file["cases"].as_object().unwrap().clone()
}

fn describe(case: &Value) -> ModelConfig {
    ModelConfig::from_json(&case["config"].to_string()).unwrap()
}

fn rope(model: &ModelConfig) -> Rope {
    model.blocks[0].attention.layer.rope.clone().unwrap()
}

/// Returns how many f32 values apart two positive values are.
fn ulps_apart(a: f32, b: f32) -> u32 {
    a.to_bits().abs_diff(b.to_bits())
}

#[test]
fn weights_have_the_names_and_shapes_of_transformers() {
    for (name, case) in cases() {
        let model = describe(&case);
        let ours = model.weights();
        let shapes: BTreeMap<_, _> = ours.iter().map(|w| (w.name.clone(), w.shape.clone())).collect();
        let theirs: BTreeMap<String, Vec<usize>> = serde_json::from_value(case["weights"].clone()).unwrap();
        assert_eq!(shapes, theirs, "{name}");
        assert_eq!(ours.len(), theirs.len(), "{name}: a weight came twice");
        let own = matches!(&model.head, Head::Logits(head) if !head.tied);
        assert_eq!(own, theirs.contains_key("lm_head.weight"), "{name}");
        let elements: usize = theirs.values().map(|shape| shape.iter().product::<usize>()).sum();
        assert_eq!(model.parameters(), elements as u64, "{name}");
    }
}

#[test]
fn numbers_are_those_of_transformers() {
    for (name, case) in cases() {
        let model = describe(&case);
        let attention = &model.blocks[0].attention.layer;
        let heads: [usize; 3] = serde_json::from_value(case["heads"].clone()).unwrap();
        assert_eq!([attention.heads, attention.kv_heads, attention.head_dim], heads, "{name}");
        assert_eq!(Some(attention.scale), case["scale"].as_f64(), "{name}");
        let epsilon = model.final_norm.as_ref().map(|norm| norm.epsilon);
        assert_eq!(epsilon, case["epsilon"].as_f64(), "{name}");
        let eos: Vec<u32> = serde_json::from_value(case["eos"].clone()).unwrap();
        assert_eq!(model.eos, eos, "{name}");
        assert_eq!(model.bos.map(u64::from), case["bos"].as_u64(), "{name}");
        // Without a type in the file, transformers uses that of the tensors, and a description f32.
        let dtype = match case["dtype"].as_str().unwrap() {
            "float16" => "F16",
            "bfloat16" => "BF16",
            _ => "F32",
        };
        assert_eq!(format!("{:?}", model.dtype), dtype, "{name}");
    }
}

#[test]
fn frequencies_are_those_of_transformers_up_to_rounding() {
    for (name, case) in cases() {
        let ours = rope(&describe(&case)).inverse_frequencies();
        let theirs: Vec<f32> = serde_json::from_value(case["inverse_frequencies"].clone()).unwrap();
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (a, b) in ours.iter().zip(&theirs) {
            assert!(ulps_apart(*a, *b) <= 2, "{name}: {a:e} here, {b:e} there");
        }
    }
}

#[test]
fn both_spellings_of_rope_mean_the_same() {
    let cases = cases();
    for (old, new) in [("theta, old", "theta, new"), ("linear, old", "linear, new")] {
        let (old, new) = (describe(&cases[old]), describe(&cases[new]));
        assert_eq!(old.blocks, new.blocks);
    }
    for preset in PRESETS {
        let mut config: serde_json::Map<String, Value> = serde_json::from_str(preset.config).unwrap();
        if config["model_type"] != "llama" {
            continue;
        }
        let mut rope = config.remove("rope_scaling").and_then(|v| v.as_object().cloned()).unwrap_or_default();
        rope.insert("rope_theta".into(), config.remove("rope_theta").unwrap());
        config.insert("rope_parameters".into(), rope.into());
        let dtype = config.remove("torch_dtype").unwrap();
        config.insert("dtype".into(), dtype);
        let new = ModelConfig::from_json(&Value::from(config).to_string()).unwrap();
        assert_eq!(new, preset.model().unwrap(), "{}", preset.name);
    }
}

#[test]
fn llama_without_keys_is_llama_2() {
    let model = ModelConfig::from_json(r#"{"model_type": "llama"}"#).unwrap();
    assert_eq!(model.parameters(), 6_738_415_616);
    assert_eq!((&model.eos, model.bos), (&vec![2], Some(1)));
    let expected = Rope { theta: 10_000.0, width: 128, pairs: Pairs::Halves, scaling: RopeScaling::Default };
    assert_eq!(rope(&model), expected);
}
