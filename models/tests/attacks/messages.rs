//! Messages for refused files, word for word.

use mlxcel_models::ModelConfig;
use serde_json::{Value, json};

use crate::changed;

/// Returns the message for a valid config.json with these changes.
fn message(changes: &Value) -> String {
    ModelConfig::from_json(&changed(changes)).unwrap_err().to_string()
}

fn check(cases: &[(Value, &str)]) {
    for (changes, expected) in cases {
        assert_eq!(message(changes), *expected, "{changes}");
    }
}

#[test]
fn values_that_no_description_can_express() {
    check(&[
        (
            json!({"hidden_act": "relu"}),
            "`hidden_act` is \"relu\", which is not supported, \
             expected one of silu, swish, gelu, gelu_fast, gelu_new or gelu_pytorch_tanh",
        ),
        (json!({"is_causal": false}), "`is_causal` is false, which is not supported, expected true"),
        (
            json!({"pretraining_tp": 2}),
            "`pretraining_tp` is 2, which is not supported, expected 1\n\
             hint: set it to 1, as transformers 5 assumes; other values split sums and round differently",
        ),
        (
            json!({"architectures": ["LlamaForSequenceClassification"]}),
            "`architectures` is [\"LlamaForSequenceClassification\"], which is not supported, \
             expected a name that ends in ForCausalLM or LMHeadModel",
        ),
        (
            json!({"dtype": "float8_e4m3fn"}),
            "`dtype` is \"float8_e4m3fn\", which is not supported, expected one of float32, bfloat16 or float16",
        ),
        (
            json!({"dtype": null, "torch_dtype": "float64"}),
            "`torch_dtype` is \"float64\", which is not supported, expected one of float32, bfloat16 or float16",
        ),
        (
            json!({"sliding_window": 128}),
            "`sliding_window` is 128, which is not supported, expected null, or max_position_embeddings (512) or more",
        ),
        (
            json!({"layer_types": ["full_attention", "sliding_attention"]}),
            "`layer_types` is [\"full_attention\",\"sliding_attention\"], which is not supported, \
             expected null, or \"full_attention\" for every layer",
        ),
    ]);
}

#[test]
fn ropes_that_are_not_supported() {
    for name in ["su", "mrope", "proportional"] {
        for (key, kind) in
            [("rope_scaling", "type"), ("rope_scaling", "rope_type"), ("rope_parameters", "rope_type")]
        {
            let mut changes = json!({"rope_scaling": null});
            changes[key] = json!({kind: name, "factor": 4.0, "rope_theta": 10000.0});
            assert_eq!(
                message(&changes),
                format!(
                    "`{key}.{kind}` is \"{name}\", which is not supported, \
                     expected one of default, linear, dynamic, llama3, yarn or longrope"
                )
            );
        }
    }
    check(&[
        (
            json!({"partial_rotary_factor": 0.5}),
            "`partial_rotary_factor` is 0.5, which is not supported, expected 1.0",
        ),
        (
            json!({"rope_scaling": {"partial_rotary_factor": 0.25}}),
            "`rope_scaling.partial_rotary_factor` is 0.25, which is not supported, expected 1.0",
        ),
        (
            json!({"rope_scaling": null, "rope_parameters": {"full_attention": {"rope_type": "default"}}}),
            "`rope_parameters.full_attention` is {\"rope_type\":\"default\"}, which is not supported, \
             expected one rope for all layers",
        ),
        (
            json!({"rope_scaling": {"type": "linear"}}),
            "`rope_scaling.factor` is missing from config.json, expected a positive number",
        ),
        (
            json!({"rope_scaling": {"type": "linear", "factor": 0}}),
            "`rope_scaling.factor` is 0, expected a positive number that an f32 can hold",
        ),
        (
            json!({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}}),
            "`rope_scaling.high_freq_factor` is 4, expected more than low_freq_factor, which is 4.0",
        ),
        (json!({"rope_scaling": "llama3"}), "`rope_scaling` is \"llama3\", expected an object or null"),
        (
            json!({"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {"rope_type": "default"}}),
            "`rope_parameters` is {\"rope_type\":\"default\"}, expected the same as `rope_scaling` with `rope_theta`\n\
             hint: keep the one that the checkpoint was trained with",
        ),
        (
            json!({"rope_theta": "1e4"}),
            "`rope_theta` is \"1e4\", expected a positive number that an f32 can hold",
        ),
        (
            json!({"rope_theta": null, "rope_scaling": null}),
            "`rope_theta` is null, expected a positive number",
        ),
        (
            json!({"rope_theta": 1e-30, "rope_scaling": {"type": "linear", "factor": 1e-30}}),
            "`rope_theta` is 1e-30, expected a number that gives finite f32 frequencies with its scaling",
        ),
    ]);
}

#[test]
fn sizes_out_of_range_or_in_conflict() {
    check(&[
        (json!({"hidden_size": 0}), "`hidden_size` is 0, expected an integer from 1 to 1048576"),
        (json!({"hidden_size": "32"}), "`hidden_size` is \"32\", expected an integer from 1 to 1048576"),
        (json!({"hidden_size": 32.0}), "`hidden_size` is 32.0, expected an integer from 1 to 1048576"),
        (json!({"hidden_size": null}), "`hidden_size` is null, expected an integer from 1 to 1048576"),
        (json!({"num_hidden_layers": -1}), "`num_hidden_layers` is -1, expected an integer from 1 to 4096"),
        (json!({"vocab_size": 1e30}), "`vocab_size` is 1e+30, expected an integer from 1 to 16777216"),
        (
            json!({"num_key_value_heads": 3}),
            "`num_key_value_heads` is 3, expected a divisor of num_attention_heads, which is 4",
        ),
        (
            json!({"num_key_value_heads": 8}),
            "`num_key_value_heads` is 8, expected a divisor of num_attention_heads, which is 4",
        ),
        (
            json!({"hidden_size": 30, "head_dim": null}),
            "`hidden_size` is 30, expected an even multiple of num_attention_heads, which is 4\nhint: or set head_dim",
        ),
        (json!({"head_dim": 7}), "`head_dim` is 7, expected an even number, because rope rotates pairs"),
        (json!({"head_dim": 0}), "`head_dim` is 0, expected null or an integer from 1 to 65536"),
        (
            json!({"hidden_size": 1 << 20, "intermediate_size": 1 << 24, "num_hidden_layers": 4096}),
            "config.json describes a model of 216173203222953984 parameters, expected at most 17592186044416",
        ),
    ]);
}

#[test]
fn values_of_the_wrong_type() {
    check(&[
        (json!({"attention_bias": 0}), "`attention_bias` is 0, expected true or false"),
        (json!({"tie_word_embeddings": "true"}), "`tie_word_embeddings` is \"true\", expected true or false"),
        (json!({"hidden_act": null}), "`hidden_act` is null, expected a string"),
        (
            json!({"rms_norm_eps": -1e-5}),
            "`rms_norm_eps` is -0.00001, expected 0 or a positive number that an f32 can hold",
        ),
        (json!({"eos_token_id": -1}), "`eos_token_id` is -1, expected a token id, a list of them or null"),
        (
            json!({"eos_token_id": [2, "3"]}),
            "`eos_token_id` is [2,\"3\"], expected a token id, a list of them or null",
        ),
        (json!({"bos_token_id": 4294967296u64}), "`bos_token_id` is 4294967296, expected a token id or null"),
        (json!({"model_type": ["llama"]}), "`model_type` is [\"llama\"], expected a string"),
    ]);
}

/// Returns the message for `config`, of any family.
fn refused(config: &Value) -> String {
    ModelConfig::from_json(&config.to_string()).unwrap_err().to_string()
}

#[test]
fn families_and_their_options() {
    check(&[(
        json!({"model_type": "deepseek_v3"}),
        "`model_type` is \"deepseek_v3\", which is not supported, expected a family such as seed_oss, starcoder2 or ernie4_5\n\
         hint: `mlxcel-compile families` lists all families",
    )]);
    for (config, expected) in [
        (
            json!({"model_type": "gemma3_text", "attn_logit_softcapping": 50.0}),
            "`attn_logit_softcapping` is 50.0, which is not supported, expected null",
        ),
        (
            json!({"model_type": "gemma", "use_bidirectional_attention": true}),
            "`use_bidirectional_attention` is true, which is not supported, expected false",
        ),
        (
            json!({"model_type": "gpt2", "num_attention_heads": 16}),
            "`num_attention_heads` is 16, which is not supported, expected 12, as GPT-2's own key has it",
        ),
        (
            json!({"model_type": "bert", "is_causal": true, "architectures": ["BertModel"]}),
            "`is_causal` is true, which is not supported, expected false",
        ),
        (
            json!({"model_type": "stablelm", "qk_layernorm": true, "num_attention_heads": 65_536,
                "num_key_value_heads": 65_536, "hidden_size": 131_072, "num_hidden_layers": 4096,
                "partial_rotary_factor": 1.0}),
            "`num_attention_heads` is 65536, expected an integer from 1 to 16",
        ),
        (
            json!({"model_type": "gemma3_text", "rope_parameters": {"rope_type": "default"}}),
            "`rope_parameters.rope_type` is \"default\", which is not supported, \
             expected an object for each of full_attention and sliding_attention",
        ),
        (
            json!({"model_type": "qwen2", "num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]}),
            "`sliding_window` is absent, expected a number of positions, because `layer_types` has sliding_attention",
        ),
        (
            json!({"model_type": "mistral", "sliding_window": 0}),
            "`sliding_window` is 0, expected null or an integer from 1 to 1073741824",
        ),
        (
            json!({"model_type": "smollm3", "num_hidden_layers": 2, "no_rope_layers": [1]}),
            "`no_rope_layers` is [1], expected a list of 2 ones, or zeros where there is no rope",
        ),
        (
            json!({"model_type": "phi3", "rope_scaling": {"type": "longrope", "short_factor": [1.0]}}),
            "`rope_scaling.short_factor` is [1.0], expected a list of 48 positive numbers",
        ),
        (
            json!({"model_type": "gpt_neox", "rotary_pct": 0.01}),
            "`rotary_pct` is 0.01, expected a fraction of head_dim, which is 96, that gives an even number",
        ),
    ] {
        assert_eq!(refused(&config), expected, "{config}");
    }
}
