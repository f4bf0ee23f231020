use serde_json::json;

use super::*;
use crate::{
    error::Error,
    storage::{StoredTensor, StoredTensors},
};

fn metadata(changes: &Value) -> Map<String, Value> {
    let mut metadata = json!({
        "general.architecture": "llama",
        "llama.block_count": 1,
        "llama.context_length": 128,
        "llama.embedding_length": 64,
        "llama.feed_forward_length": 96,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": 16,
        "llama.vocab_size": 100,
    });
    for (key, value) in changes.as_object().into_iter().flatten() {
        // Null removes a key.
        if value.is_null() {
            metadata.as_object_mut().unwrap().remove(key);
        } else {
            metadata[key] = value.clone();
        }
    }
    metadata.as_object().cloned().unwrap()
}

fn tensor(name: &str, ty: &str, shape: &[usize]) -> GgufTensorInfo {
    let in_blocks = !["F32", "F16", "BF16"].contains(&ty);
    GgufTensorInfo { name: name.into(), ty: ty.into(), in_blocks, shape: shape.to_vec() }
}

fn model(changes: &Value, tensors: &[GgufTensorInfo]) -> Result<GgufModel, Error> {
    let embedding = tensor("token_embd.weight", "Q8_0", &[100, 64]);
    let tensors = tensors.iter().cloned().chain([embedding]);
    let numbers = match changes.get("factors") {
        Some(_) => {
            BTreeMap::from([(rope::FREQUENCIES.to_owned(), vec![1.0f32, 1.5, 2.0, 8.0, 8.0, 8.0, 8.0, 8.0])])
        }
        None => BTreeMap::new(),
    };
    GgufModel::new(metadata(changes), tensors, numbers)
}

fn config(changes: &Value, tensors: &[GgufTensorInfo]) -> Result<String, Error> {
    let json = model(changes, tensors)?.config_json()?;
    ModelConfig::from_json(&json)?;
    Ok(json)
}

#[test]
fn a_config() {
    let changes = json!({
        "factors": true,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 2_000_000_000,
        "tokenizer.ggml.eot_token_id": 3,
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "<|eot_id|>", "<|im_end|>", "<|end|>"],
        "tokenizer.ggml.token_type": [2, 3, 3, 3, 3, 1],
    });
    let found: Value = serde_json::from_str(&config(&changes, &[]).unwrap()).unwrap();
    let factors = [1.0, 1.5, 2.0, 8.0, 8.0, 8.0, 8.0, 8.0];
    assert_eq!(
        found,
        json!({
            "model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
            "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
            "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
            "rope_scaling": {
                "rope_type": "longrope", "short_factor": factors, "long_factor": factors, "factor": 1.0,
                "attention_factor": 1.0, "original_max_position_embeddings": 128,
            },
            "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
            "bos_token_id": 1, "eos_token_id": [2, 3, 4],
        })
    );
}

#[test]
fn metadata_that_is_refused() {
    let refused = |changes: Value| config(&changes, &[]).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            refused(json!({ "general.architecture": null })),
            refused(json!({ "general.architecture": 3 })),
            refused(json!({ "general.architecture": "mamba" })),
            refused(json!({ "llama.block_count": null })),
            refused(json!({ "llama.block_count": 0 })),
            refused(json!({ "llama.block_count": "1" })),
            refused(json!({ "llama.attention.head_count": [4, 4] })),
            refused(json!({ "llama.attention.layer_norm_rms_epsilon": null })),
            refused(json!({ "llama.attention.value_length": 8 })),
            refused(json!({ "llama.rope.dimension_count": 8 })),
            refused(json!({ "llama.rope.freq_base": -1.0 })),
            refused(json!({ "llama.rope.scaling.type": "su" })),
            refused(json!({ "llama.rope.scaling.type": "linear" })),
            refused(json!({ "llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 2.0,
                "llama.rope.scaling.yarn_ext_factor": 2.0 })),
            refused(json!({ "llama.expert_count": 4 })),
            refused(json!({ "llama.attention.clamp_kqv": 8.0 })),
            refused(json!({ "tokenizer.ggml.bos_token_id": "1" })),
            refused(json!({ "tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.tokens": ["a", "b"] })),
            refused(json!({ "tokenizer.ggml.suppress_tokens": [1] })),
            refused(json!({ "general.type": "adapter" })),
            refused(json!({ "llama.rope.scaling.attn_factor": 1.2 })),
            refused(json!({ "llama.rope.scaling.attn_factor": 1.2, "factors": true })),
        ]
        .join("\n"),
        @r#"
    `general.architecture` is missing from the GGUF metadata, expected the name of an architecture
    `general.architecture` is 3, expected a string
    `general.architecture` is "mamba", which is not supported, expected one of llama, gemma2, gemma3, gemma, command-r, stablelm, glm4, olmo2, olmoe, exaone4, granite, smollm3, qwen2moe, qwen3moe, granitemoe, starcoder2, cohere2, ernie4_5, gpt-oss, gpt2, gptneox, phi3, qwen2, qwen3, seed_oss
    `llama.block_count` is missing from the GGUF metadata, expected an integer from 1 to 4096
    `llama.block_count` is 0, expected an integer from 1 to 4096
    `llama.block_count` is "1", expected an integer from 1 to 4096
    `llama.attention.head_count` is [4,4], expected an integer from 1 to 4294967296
    `llama.attention.layer_norm_rms_epsilon` is missing from the GGUF metadata, expected a number
    `llama.attention.value_length` is 8, which is not supported, expected 16, the width of keys
    `llama.rope.dimension_count` is 8, which is not supported, expected 16, the width of heads
    `llama.rope.freq_base` is -1.0, expected a positive number that an f32 can hold
    `llama.rope.scaling.type` is "su", which is not supported, expected one of none, linear or yarn
    `llama.rope.scaling.factor` is missing from the GGUF metadata, expected a positive number
    `llama.rope.scaling.yarn_ext_factor` is 2.0, which is not supported, expected 1.0
    `llama.expert_used_count` is missing from the GGUF metadata, expected a size
    `llama.attention.clamp_kqv` is 8.0, which is not supported, expected no such key, because it may change what is computed
    `tokenizer.ggml.bos_token_id` is "1", expected a token id or null
    `tokenizer.ggml.bos_token_id` is 2, expected a token id below 2
    `tokenizer.ggml.suppress_tokens` is [1], which is not supported, expected no tokens that are never chosen
    `general.type` is "adapter", which is not supported, expected model
    `llama.rope.scaling.attn_factor` is 1.2, which is not supported, expected 1.0 without factors of long texts
    `llama.rope.scaling.attn_factor` is 1.2, which is not supported, expected 1.0 beside rope_freqs.weight
    "#
    );
}

/// Returns how a weight is stored in a file with these tensors.
fn storage(weight: (&str, &[usize]), tensors: &[GgufTensorInfo]) -> Result<crate::Storage, String> {
    let gguf = model(&json!({}), tensors).unwrap();
    let described = ModelConfig::from_json(&gguf.config_json().unwrap()).unwrap();
    let scheme = gguf.adapt(described).unwrap().scheme;
    let stored = tensors.iter().map(|GgufTensorInfo { name, ty, shape, .. }| {
        let mut shape = shape.clone();
        let dtype = match ty.as_str() {
            "F32" => safetensors::Dtype::F32,
            "F64" => safetensors::Dtype::F64,
            "Q4_0" => {
                *shape.last_mut().unwrap() = shape.last().unwrap() / 32 * 18;
                safetensors::Dtype::U8
            }
            _ => safetensors::Dtype::U8,
        };
        StoredTensor { name: name.clone(), dtype, shape }
    });
    let stored: StoredTensors = stored.collect();
    let (name, shape) = weight;
    let weight = crate::Weight { name: name.into(), shape: shape.to_vec() };
    let tensors = crate::CheckpointTensors { tensors: &stored, scheme: scheme.as_ref() };
    tensors.storage(&weight).map_err(|wrong| format!("{}: {}", wrong.tensor, wrong.problem))
}

#[test]
fn tensors_that_are_not_those_of_the_model() {
    let query: (&str, &[usize]) = ("model.layers.0.self_attn.q_proj.weight", &[64, 64]);
    let expert: (&str, &[usize]) = ("model.layers.0.block_sparse_moe.experts.3.w1.weight", &[96, 64]);
    let refused = |weight, tensors: &[GgufTensorInfo]| storage(weight, tensors).unwrap_err();
    storage(query, &[tensor("blk.0.attn_q.weight", "Q4_0", &[64, 64])]).unwrap();
    storage(expert, &[tensor("blk.0.ffn_gate_exps.weight", "Q4_0", &[4, 96, 64])]).unwrap();
    storage(expert, &[tensor("blk.0.ffn_gate.3.weight", "Q4_0", &[96, 64])]).unwrap();
    insta::assert_snapshot!(
        [
            refused(query, &[]),
            refused(query, &[tensor("blk.0.attn_q.weight", "Q4_0", &[32, 64])]),
            refused(query, &[tensor("blk.0.attn_q.weight", "IQ1_S", &[64, 64])]),
            refused(query, &[tensor("blk.0.attn_q.weight", "Q4_K", &[64, 64])]),
            refused(query, &[tensor("blk.0.attn_q.weight", "F32", &[64, 32])]),
            refused((query.0, &[60, 64]), &[tensor("blk.0.attn_q.weight", "F32", &[60, 64])]),
            refused(("model.norm.weight", &[64]), &[tensor("output_norm.weight", "F32", &[32])]),
            refused(("model.norm.weight", &[64]), &[tensor("output_norm.weight", "Q4_0", &[64])]),
            refused(expert, &[tensor("blk.0.ffn_gate_exps.weight", "Q4_0", &[3, 96, 64])]),
            refused(("classifier.weight", &[64, 64]), &[]),
        ]
        .join("\n"),
        @r"
    blk.0.attn_q.weight: missing, expected shape [64, 64]
    blk.0.attn_q.weight: shape [32, 36], expected [64, 36]
    blk.0.attn_q.weight: type IQ1_S, expected F32, F16, BF16, IQ4_NL, IQ4_XS, MXFP4, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0
    blk.0.attn_q.weight: rows of 64 elements, expected a multiple of 256 for Q4_K
    blk.0.attn_q.weight: shape [64, 32], expected [64, 64]
    model.layers.0.self_attn.q_proj.weight: 60 rows, expected a multiple of 8
    output_norm.weight: shape [32], expected [64]
    output_norm.weight: a vector of type Q4_0, expected F32, F16 or BF16
    blk.0.ffn_gate_exps.weight: shape [3, 96, 36], expected a stack of more than 3
    classifier.weight: no tensor of a GGUF file has this weight
    "
    );
}

/// Returns metadata of another architecture.
fn of_architecture(name: &str) -> Map<String, Value> {
    let renamed = |(key, value): (String, Value)| (key.replacen("llama.", &format!("{name}."), 1), value);
    let mut found: Map<String, Value> = metadata(&json!({})).into_iter().map(renamed).collect();
    found.insert(ARCHITECTURE.into(), name.into());
    found
}

/// Returns the config of this metadata.
fn config_of(metadata: Map<String, Value>) -> Value {
    let embedding = tensor("token_embd.weight", "Q8_0", &[100, 64]);
    let json = GgufModel::new(metadata, [embedding], BTreeMap::new()).unwrap().config_json().unwrap();
    ModelConfig::from_json(&json).unwrap();
    serde_json::from_str(&json).unwrap()
}

#[test]
fn a_file_without_soft_caps_has_those_of_the_family() {
    let mut metadata = of_architecture("gemma2");
    metadata.insert("gemma2.attention.sliding_window".into(), json!(16));
    let cap = |config: &Value| config.get("attn_logit_softcapping").cloned();
    assert_eq!(cap(&config_of(metadata.clone())), None);
    metadata.insert("gemma2.attn_logit_softcapping".into(), json!(30.0));
    assert_eq!(cap(&config_of(metadata)), Some(json!(30.0)));
}

#[test]
fn old_files_of_olmo_3_have_their_own_key_of_yarn() {
    let mut metadata = of_architecture("olmo2");
    metadata.insert("olmo2.attention.sliding_window".into(), json!(16));
    metadata.insert("olmo2.rope.scaling.type".into(), "yarn".into());
    metadata.insert("olmo2.rope.scaling.factor".into(), json!(8.0));
    metadata.insert("olmo2.rope.scaling.attn_factor".into(), json!(1.25));
    let factor =
        |metadata| config_of(metadata)["rope_parameters"]["full_attention"]["attention_factor"].clone();
    assert_eq!(factor(metadata.clone()), json!(1.25));
    metadata.insert("olmo2.rope.scaling.yarn_attn_factor".into(), json!(1.5));
    assert_eq!(factor(metadata), json!(1.5));
}

#[test]
fn sentence_pieces_have_the_first_ids() {
    let mut metadata = of_architecture("llama");
    metadata.insert("tokenizer.ggml.model".into(), "llama".into());
    metadata.insert("tokenizer.ggml.tokens".into(), json!(["<unk>", "<s>", "</s>", "a"]));
    metadata.insert("tokenizer.ggml.scores".into(), json!([0.0, 0.0, 0.0, -1.0]));
    metadata.insert("tokenizer.ggml.token_type".into(), json!([2, 3, 3, 1]));
    let ids = |config: Value| [config["bos_token_id"].clone(), config["eos_token_id"].clone()];
    assert_eq!(ids(config_of(metadata.clone())), [json!(1), json!([2])]);
    let embedding = || tensor("token_embd.weight", "Q8_0", &[100, 64]);
    let files =
        |metadata| GgufModel::new(metadata, [embedding()], BTreeMap::new()).unwrap().small_files().unwrap();
    let tokenizer: Value = serde_json::from_str(&files(metadata.clone()).texts["tokenizer.json"]).unwrap();
    assert_eq!(tokenizer["post_processor"]["single"][0]["SpecialToken"]["id"], "<s>");
    metadata.insert("tokenizer.ggml.tokens".into(), json!(["<unk>", "<s>", "</s>", "a".repeat(513)]));
    assert_eq!(
        files(metadata).warnings,
        [
            "the bundle has no tokenizer, because a token has 513 bytes, expected at most 512: give token ids, or a \
          folder with the original tokenizer.json"
        ]
    );
}

#[test]
fn factors_for_long_texts_alone_are_refused() {
    let embedding = tensor("token_embd.weight", "Q8_0", &[100, 64]);
    let numbers = BTreeMap::from([(rope::LONG.to_owned(), vec![1.0f32; 8])]);
    let file = GgufModel::new(of_architecture("phi3"), [embedding], numbers).unwrap();
    assert_eq!(
        file.config_json().unwrap_err().to_string(),
        "`rope_factors_short.weight` is missing from the GGUF file's tensors, expected it beside \
         rope_factors_long.weight"
    );
}

#[test]
fn no_metadata_panics() {
    // The largest size that is read is a count of layers that no memory holds a list of.
    let sizes = [json!(0), json!(1u64 << 32), json!(1u64 << 40)];
    let others = [json!(null), json!(-1), json!(1e300), json!("x"), json!([]), json!({})];
    let strange = [sizes.as_slice(), &others].concat();
    for architecture in ARCHITECTURES {
        let name = architecture.name;
        let mut base = of_architecture(name);
        base.insert(format!("{name}.attention.layer_norm_epsilon"), json!(1e-5));
        base.insert(format!("{name}.attention.sliding_window"), json!(16));
        let keys: Vec<_> = base.keys().cloned().collect();
        for (key, value) in keys.iter().flat_map(|key| strange.iter().map(move |value| (key, value))) {
            let mut changed = base.clone();
            changed.insert(key.clone(), value.clone());
            let embedding = tensor("token_embd.weight", "Q8_0", &[100, 64]);
            let Ok(gguf) = GgufModel::new(changed, [embedding], BTreeMap::new()) else { continue };
            let _ = gguf.small_files();
            if let Ok(json) = gguf.config_json()
                && let Ok(described) = ModelConfig::from_json(&json)
            {
                let _ = gguf.adapt(described);
            }
        }
    }
}
