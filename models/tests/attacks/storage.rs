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
            refused(&json!({ "quant_method": "awq", "version": "gemv" })),
            refused(&json!({ "quant_method": "fp8", "weight_block_size": [128] })),
            refused(&json!({ "quant_method": "bitsandbytes" })),
            refused(
                &json!({ "quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf5" })
            ),
            refused(&json!({ "quant_method": "compressed-tensors" })),
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
    let nf4 = json!({ "quantization_config": {
        "quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4" } });
    let mlx = json!({ "quantization": { "bits": 4, "group_size": 32 } });
    let words: (&str, Dtype, &[usize]) = ("qweight", I32, &[8, 32]);
    let scales: (&str, Dtype, &[usize]) = ("scales", F16, &[2, 32]);
    let zeros: (&str, Dtype, &[usize]) = ("qzeros", I32, &[2, 4]);
    storage(&gptq, &[words, scales, zeros]).unwrap();
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
