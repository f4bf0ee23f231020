//! Schemes of quantized checkpoints that are refused, and tensors that are not those of the scheme.

use mlxcel_models::{CheckpointTensors, ModelConfig, Storage, StoredTensor, StoredTensors, Weight};
use safetensors::Dtype::{self, BF16, F8_E4M3, F16, F32, I8, I32, U8, U32};
use serde_json::{Value, json};

use crate::changed;

/// Returns the message for a config.json with this scheme.
fn refused(config: &Value) -> String {
    ModelConfig::from_json(&changed(&json!({ "quantization_config": config }))).unwrap_err().to_string()
}

#[test]
fn schemes_that_are_refused() {
    let compressed = |changes: Value| {
        let mut weights = json!({ "num_bits": 4, "type": "int", "strategy": "group", "group_size": 32 });
        weights.as_object_mut().unwrap().extend(changes.as_object().cloned().unwrap());
        let groups = json!({ "group_0": { "targets": ["Linear"], "weights": weights } });
        refused(
            &json!({ "quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups }),
        )
    };
    let torchao =
        |config: Value| refused(&json!({ "quant_method": "torchao", "quant_type": { "default": config } }));
    insta::assert_snapshot!(
        "schemes",
        [
            refused(&json!(3)),
            refused(&json!({})),
            refused(&json!({ "quant_method": 3 })),
            refused(&json!({ "quant_method": "gpt" })),
            refused(&json!({ "quant_method": "gptq" })),
            refused(&json!({ "quant_method": "gptq", "bits": 5 })),
            refused(&json!({ "quant_method": "gptq", "bits": 4, "group_size": 0 })),
            refused(&json!({ "quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin" })),
            refused(&json!({ "quant_method": "gptq", "bits": 4, "dynamic": 3 })),
            refused(&json!({ "quant_method": "awq", "bits": 3 })),
            refused(&json!({ "quant_method": "awq", "version": "gemv_fast" })),
            refused(&json!({ "quant_method": "awq", "version": "gemv" })),
            refused(&json!({ "quant_method": "awq", "version": "gemv", "group_size": 16 })),
            refused(&json!({ "quant_method": "fp8", "weight_block_size": [128] })),
            refused(&json!({ "quant_method": "bitsandbytes" })),
            refused(
                &json!({ "quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf5" })
            ),
            refused(&json!({ "quant_method": "compressed-tensors" })),
            refused(&json!({ "quant_method": "compressed-tensors", "kv_cache_scheme": "fp8" })),
            refused(&json!({ "quant_method": "torchao" })),
            refused(&json!({ "quant_method": "torchao", "quant_type": { "default": "int8" } })),
            torchao(json!({ "_type": "Int4WeightOnlyConfig" })),
            torchao(json!({ "_type": "Int8WeightOnlyConfig", "_version": 1 })),
            compressed(json!({ "num_bits": 7 })),
            compressed(json!({ "type": "float" })),
            compressed(json!({ "strategy": "channels" })),
            compressed(json!({ "group_size": null })),
        ]
        .join("\n")
    );
    let mlx = |changes: Value| {
        ModelConfig::from_json(&changed(&json!({ "quantization": changes }))).unwrap_err().to_string()
    };
    insta::assert_snapshot!(
        "mlx",
        [
            mlx(json!(4)),
            mlx(json!({ "bits": 7 })),
            mlx(json!({ "group_size": 33 })),
            mlx(json!({ "mode": "nf4" })),
            mlx(json!({ "model.layers.0.mlp": 3 })),
            mlx(json!({ "model.layers.0.mlp": { "bits": 9 } })),
        ]
        .join("\n")
    );
}

/// Returns how a weight of `[32, 64]` is stored in these tensors.
fn storage(config: &Value, tensors: &[(&str, Dtype, &[usize])]) -> Result<Storage, String> {
    let scheme = ModelConfig::from_json(&changed(config)).unwrap().scheme;
    let tensors = tensors.iter().map(|&(name, dtype, shape)| StoredTensor {
        name: format!("a.{name}"),
        dtype,
        shape: shape.to_vec(),
    });
    let tensors: StoredTensors = tensors.collect();
    let weight = Weight { name: "a.weight".into(), shape: vec![32, 64] };
    CheckpointTensors { tensors: &tensors, scheme: scheme.as_ref() }
        .storage(&weight)
        .map_err(|wrong| format!("{}: {}", wrong.tensor, wrong.problem))
}

#[test]
fn tensors_that_are_not_those_of_the_scheme() {
    let gptq = json!({ "quantization_config": { "quant_method": "gptq", "bits": 4, "group_size": 32 } });
    let ordered = json!({ "quantization_config": { "quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": true } });
    let awq = json!({ "quantization_config": { "quant_method": "awq", "group_size": 32 } });
    let uneven = json!({ "quantization_config": { "quant_method": "awq", "group_size": 48 } });
    let fp8 = json!({ "quantization_config": { "quant_method": "fp8", "weight_block_size": [16, 48] } });
    let whole = json!({ "quantization_config": { "quant_method": "fp8", "weight_block_size": null } });
    let gemv =
        json!({ "quantization_config": { "quant_method": "awq", "version": "gemv", "group_size": 32 } });
    let torchao = json!({ "quantization_config": { "quant_method": "torchao",
        "quant_type": { "default": { "_type": "Int8WeightOnlyConfig", "_version": 2 } } } });
    let nf4 = json!({ "quantization_config": {
        "quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4" } });
    let mlx = json!({ "quantization": { "bits": 4, "group_size": 32 } });
    let words: (&str, Dtype, &[usize]) = ("qweight", I32, &[8, 32]);
    let scales: (&str, Dtype, &[usize]) = ("scales", F16, &[2, 32]);
    let zeros: (&str, Dtype, &[usize]) = ("qzeros", I32, &[2, 4]);
    storage(&gptq, &[words, scales, zeros]).unwrap();
    for scale in ["weight_scale_inv", "weight_scale"] {
        storage(&whole, &[("weight", F8_E4M3, &[32, 64]), (scale, F32, &[])]).unwrap();
        storage(&whole, &[("weight", F8_E4M3, &[32, 64]), (scale, BF16, &[1])]).unwrap();
    }
    let of_gemv = [("qweight", I32, [32, 8]), ("qzeros", I32, [32, 4]), ("scales", F16, [32, 32])];
    storage(&gemv, &of_gemv.each_ref().map(|(name, dtype, shape)| (*name, *dtype, shape.as_slice())))
        .unwrap();
    let refused = |config: &Value, tensors: &[(&str, Dtype, &[usize])]| storage(config, tensors).unwrap_err();
    insta::assert_snapshot!(
        "tensors",
        [
            refused(&gptq, &[]),
            refused(&gptq, &[words]),
            refused(&gptq, &[words, zeros]),
            refused(&gptq, &[words, zeros, ("scales", F16, &[1, 32])]),
            refused(&gptq, &[words, zeros, ("scales", I32, &[2, 32])]),
            refused(&gptq, &[("qweight", I8, &[8, 32]), zeros, scales]),
            refused(&ordered, &[words, zeros, scales]),
            refused(&awq, &[words]),
            refused(&awq, &[("qweight", I32, &[64, 4]), zeros]),
            refused(&uneven, &[("qweight", I32, &[64, 4])]),
            refused(&fp8, &[("weight", F8_E4M3, &[32, 64])]),
            refused(&fp8, &[("weight", F8_E4M3, &[32, 64]), ("weight_scale_inv", F32, &[2, 1])]),
            refused(&fp8, &[("weight", BF16, &[32, 64]), ("weight_scale_inv", F32, &[2, 2])]),
            refused(&whole, &[("weight", F8_E4M3, &[32, 64]), ("weight_scale_inv", F32, &[2, 1])]),
            refused(&whole, &[("weight", F8_E4M3, &[32, 64]), ("weight_scale", F32, &[32, 1])]),
            refused(&whole, &[("weight", BF16, &[32, 64]), ("weight_scale", F32, &[])]),
            refused(&gemv, &[("qweight", I32, &[64, 4])]),
            refused(&gemv, &[("qweight", I32, &[32, 8]), ("qzeros", I32, &[32, 1])]),
            refused(
                &gemv,
                &[("qweight", I32, &[32, 8]), ("qzeros", I32, &[32, 4]), ("scales", F16, &[32, 2])]
            ),
            refused(&torchao, &[("_weight_qdata", I8, &[32, 32])]),
            refused(&torchao, &[("_weight_qdata", I8, &[32, 64]), ("_weight_scale", F32, &[32, 3])]),
            refused(
                &torchao,
                &[
                    ("_weight_qdata", I8, &[32, 64]),
                    ("_weight_scale", F32, &[32, 2]),
                    ("_weight_zero_point", I8, &[32, 1])
                ]
            ),
            refused(&nf4, &[("weight", U8, &[1024, 1]), ("weight.absmax", F32, &[32])]),
            refused(&mlx, &[("weight", U32, &[32, 8]), ("scales", F16, &[32, 2])]),
            refused(
                &mlx,
                &[("weight", U32, &[32, 16]), ("scales", F16, &[32, 2]), ("biases", F16, &[32, 2])]
            ),
        ]
        .join("\n")
    );
}

#[test]
fn rounding_of_the_cache_is_said_and_not_done() {
    let weights = json!({ "num_bits": 8, "type": "int", "strategy": "channel" });
    let mut compressed = json!({ "quant_method": "compressed-tensors", "format": "int-quantized",
        "config_groups": { "group_0": { "targets": ["Linear"], "weights": weights } } });
    let mut fp8 = json!({ "quant_method": "fp8" });
    let warning = |config: &Value| {
        let model = ModelConfig::from_json(&changed(&json!({ "quantization_config": config }))).unwrap();
        let scheme = model.scheme.unwrap();
        assert!(scheme.ignores("model.layers.0.self_attn.k_scale"));
        scheme.warning()
    };
    assert_eq!([&compressed, &fp8].map(warning), [None; 2]);
    compressed["kv_cache_scheme"] = json!({ "num_bits": 8, "type": "float" });
    fp8["kv_cache_scheme"] = "static".into();
    for found in [&compressed, &fp8].map(warning) {
        assert!(found.unwrap().starts_with("`kv_cache_scheme` rounds keys and values"));
    }
}

#[test]
fn a_head_in_few_bits_is_stored_as_other_weights_are() {
    let gptq = json!({ "quantization_config": { "quant_method": "gptq", "bits": 4, "group_size": 32, "lm_head": true } });
    let scheme = ModelConfig::from_json(&changed(&gptq)).unwrap().scheme;
    let tensors = [("qweight", I32, [8, 128]), ("qzeros", I32, [2, 16]), ("scales", F16, [2, 128])];
    let tensors: StoredTensors = tensors
        .into_iter()
        .map(|(name, dtype, shape)| StoredTensor {
            name: format!("lm_head.{name}"),
            dtype,
            shape: shape.to_vec(),
        })
        .collect();
    let tensors = CheckpointTensors { tensors: &tensors, scheme: scheme.as_ref() };
    assert!(tensors.has("lm_head.weight"));
    let weight = Weight { name: "lm_head.weight".into(), shape: vec![128, 64] };
    assert!(tensors.storage(&weight).unwrap().coding.is_some());
}
