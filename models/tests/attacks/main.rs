//! Hostile and mistaken config.json files: each gives an error that names the key, or a consistent description.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod messages;
mod modelopt;
mod mutations;
mod storage;

use mlxcel_models::ModelConfig;
use serde_json::{Map, Value, json};

/// Returns a small config.json of Llama with every key that is read.
fn complete() -> Map<String, Value> {
    let config = json!({
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": false,
        "attention_chunk_size": null,
        "bos_token_id": 1,
        "dtype": "float32",
        "eos_token_id": [2],
        "head_dim": 8,
        "hidden_act": "silu",
        "hidden_size": 32,
        "intermediate_size": 48,
        "layer_types": null,
        "max_position_embeddings": 512,
        "mlp_bias": false,
        "model_type": "llama",
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "original_max_position_embeddings": 64,
        "partial_rotary_factor": 1.0,
        "per_layer_config": null,
        "pretraining_tp": 1,
        "quantization_config": null,
        "rms_norm_eps": 1e-5,
        "rope_parameters": null,
        "rope_scaling": {
            "factor": 8.0,
            "high_freq_factor": 4.0,
            "low_freq_factor": 1.0,
            "original_max_position_embeddings": 64,
            "partial_rotary_factor": 1.0,
            "rope_theta": 500000.0,
            "rope_type": "llama3",
        },
        "rope_theta": 500000.0,
        "sliding_window": null,
        "tie_word_embeddings": false,
        "torch_dtype": "float32",
        "vocab_size": 96,
    });
    config.as_object().cloned().unwrap()
}

/// Returns `complete()` with these changes.
fn changed(changes: &Value) -> String {
    let mut config = complete();
    config.extend(changes.as_object().cloned().unwrap());
    Value::from(config).to_string()
}

/// Checks what must be true of every description.
fn check_consistent(model: &ModelConfig) {
    let family = &model.family;
    assert!(model.vocab > 0 && model.hidden > 0 && model.max_positions > 0 && !model.blocks.is_empty());
    assert!(model.parameters() <= 1 << 44);
    assert!(model.cache_elements_per_token().values().all(|&elements| elements > 0));
    for block in &model.blocks {
        let attention = &block.attention.layer;
        assert!(attention.kv_heads > 0 && attention.heads.is_multiple_of(attention.kv_heads));
        assert!(attention.head_dim > 0 && attention.head_dim.is_multiple_of(2));
        assert_eq!(attention.query.outputs(), attention.heads * attention.head_dim, "{family}");
        assert_eq!(attention.output.inputs(), attention.heads * attention.head_dim, "{family}");
        assert_eq!(attention.key.outputs(), attention.kv_heads * attention.head_dim, "{family}");
        assert!(attention.scale.is_finite() && model.norms().all(|norm| norm.epsilon.is_finite()));
    }
    for rope in model.blocks.iter().filter_map(|block| block.attention.layer.rope.as_ref()) {
        let frequencies = rope.inverse_frequencies();
        assert_eq!(frequencies.len(), rope.width / 2);
        assert!(frequencies.iter().all(|frequency| frequency.is_finite()) && rope.amplitude().is_finite());
    }
}
