//! Checkpoints of Model Optimizer whose tensors are not those of the algorithm, and files beside config.json that are not its.

use mlxcel_models::{ModelConfig, with_hf_quant_config};
use safetensors::Dtype::{self, BF16, F8_E4M3, F32, U8};
use serde_json::{Value, json};

use crate::{changed, storage::storage};

#[test]
fn tensors_that_are_not_those_of_the_algorithm() {
    let modelopt = |name: &str| {
        let config = json!({ "quant_method": "modelopt", "quant_algo": name });
        json!({ "quantization_config": config })
    };
    let mixed = json!({ "quantization_config": { "quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
        "quantized_layers": { "b": { "quant_algo": "FP8" } } } });
    let refused = |config: &Value, tensors: &[(&str, Dtype, &[usize])]| storage(config, tensors).unwrap_err();
    insta::assert_snapshot!(
        [
            refused(&mixed, &[("weight", F8_E4M3, &[32, 64]), ("weight_scale", F32, &[])]),
            refused(&modelopt("FP8"), &[("weight", U8, &[32, 32]), ("weight_scale", F8_E4M3, &[32, 4])]),
            refused(&modelopt("FP8"), &[("weight", F8_E4M3, &[32, 64]), ("weight_scale", F32, &[32])]),
            refused(&modelopt("NVFP4"), &[("weight", F8_E4M3, &[32, 64]), ("weight_scale", F32, &[])]),
            refused(&modelopt("NVFP4"), &[("weight", U8, &[32, 32]), ("weight_scale", F8_E4M3, &[32, 8])]),
            refused(&modelopt("NVFP4"), &[("weight", U8, &[32, 32]), ("weight_scale", F8_E4M3, &[32, 4])]),
            refused(
                &modelopt("NVFP4_AWQ"),
                &[
                    ("weight", U8, &[32, 32]),
                    ("weight_scale", F8_E4M3, &[32, 4]),
                    ("weight_scale_2", F32, &[]),
                    ("pre_quant_scale", BF16, &[64])
                ]
            ),
            refused(
                &modelopt("fp8_pb_wo"),
                &[("weight", F8_E4M3, &[32, 64]), ("weight_scale", F32, &[1, 1])]
            ),
            refused(&modelopt("MXFP8"), &[("weight", F8_E4M3, &[32, 64]), ("weight_scale", F32, &[32, 2])]),
        ]
        .join("\n"),
        @"
    a.weight: quantized, but `quantized_layers` does not have its module
    a.weight: shape [32, 32], expected [32, 64]
    a.weight_scale: shape [32], expected []
    a.weight: shape [32, 64], expected [32, 32]
    a.weight_scale: shape [32, 8], expected a scale for 16 or 32 of 64 columns
    a.weight_scale_2: missing, expected shape []
    a.pre_quant_scale: found, expected none: what changes inputs or adds to outputs is not supported
    a.weight_scale: shape [1, 1], expected [1, 1, 1, 1]
    a.weight_scale: dtype F32, expected U8
    "
    );
}

#[test]
fn settings_in_a_file_of_their_own_are_read() {
    let config = changed(&json!({}));
    let read =
        |config: &str, file: &str| with_hf_quant_config(config, file).map_err(|error| error.to_string());
    let file = json!({ "producer": { "name": "modelopt" }, "quantization": {
        "quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"] } });
    let found = read(&config, &file.to_string()).unwrap();
    let scheme = ModelConfig::from_json(&found).unwrap().scheme.unwrap();
    assert_eq!((scheme.name(), scheme.warning().is_some()), ("modelopt", true));
    // What config.json says goes first.
    let own =
        changed(&json!({ "quantization_config": { "quant_method": "modelopt", "quant_algo": "NVFP4" } }));
    assert_eq!(read(&own, &file.to_string()).unwrap(), own);
    let refused = |file: Value| read(&config, &file.to_string()).unwrap_err();
    insta::assert_snapshot!(
        [
            refused(json!([])),
            refused(json!({})),
            refused(json!({ "quantization": "FP8" })),
            refused(json!({ "producer": { "name": "quark" }, "quantization": { "quant_algo": "FP8" } })),
            read("[]", &file.to_string()).unwrap_err(),
        ]
        .join("\n"),
        @r#"
    hf_quant_config.json is not valid JSON
    `quantization` is missing from hf_quant_config.json, expected an object
    `quantization` is "FP8", expected an object or null
    `producer.name` is "quark", which is not supported, expected modelopt
    config.json is not valid JSON
    "#
    );
}
