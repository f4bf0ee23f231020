//! Llama 1, 2, 3, 3.1, 3.2 and what was made in their image: TinyLlama, SmolLM2 and others of `model_type` llama.
//!
//! The keys and their defaults are those of transformers' `LlamaConfig`, the tensor names and shapes those of its
//! `LlamaForCausalLM`.

use safetensors::Dtype;
use serde_json::Value;

use crate::{
    Activation, Attention, Block, Embedding, Error, Linear, Mlp, ModelConfig, Norm, Rope, Weight,
    family::{json::Json, rope},
};

/// The sizes of a config.json, and whether its layers have biases.
struct Shape {
    hidden: usize,
    intermediate: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    attention_bias: bool,
    mlp_bias: bool,
    epsilon: f64,
}

pub(super) fn describe(json: &Json<'_>) -> Result<ModelConfig, Error> {
    refuse(json)?;
    let shape = Shape::read(json)?;
    let activation = activation(json)?;
    let vocab = json.size("vocab_size", 32_000, 1 << 24)?;
    let layers = json.size("num_hidden_layers", 32, 4096)?;
    // Up to 2^24 an f32 holds every position exactly.
    let max_positions = json.size("max_position_embeddings", 2048, 1 << 24)?;
    let rope = rope::read(json, shape.head_dim, 10_000.0, max_positions)?;
    windows(json, max_positions)?;

    let embedding = Embedding { weight: weight("model.embed_tokens.weight", [vocab, shape.hidden]) };
    let head = if json.flag("tie_word_embeddings", false)? {
        embedding.weight.clone()
    } else {
        weight("lm_head.weight", [vocab, shape.hidden])
    };
    Ok(ModelConfig {
        family: "llama".into(),
        vocab,
        hidden: shape.hidden,
        max_positions,
        dtype: dtype(json)?,
        embedding,
        blocks: (0..layers).map(|layer| shape.block(layer, &rope, activation)).collect(),
        final_norm: shape.norm("model.norm"),
        head: Linear { weight: head, bias: None },
        eos: json.tokens("eos_token_id", 2)?,
        bos: json.token("bos_token_id", 1)?,
    })
}

/// Refuses the keys that change what a model computes and have no place in a description.
fn refuse(json: &Json<'_>) -> Result<(), Error> {
    json.only("architectures", "[\"LlamaForCausalLM\"]", |value| {
        let causal = |name: &Value| name.as_str().is_some_and(|name| name.contains("ForCausalLM"));
        value.as_array().is_some_and(|names| names.is_empty() || names.iter().any(causal))
    })?;
    json.only("quantization_config", "null", |_| false)
        .map_err(|error| error.with_hint("take the checkpoint that it was quantised from"))?;
    json.only("pretraining_tp", "1", |value| value.as_u64() == Some(1)).map_err(|error| {
        error.with_hint("it splits sums, which rounds differently; transformers 5 ignores it, as 1 would")
    })?;
    json.only("per_layer_config", "null", |_| false)
}

/// Refuses attention that does not reach back to the first token, as long as a sequence can be so long.
fn windows(json: &Json<'_>, max_positions: usize) -> Result<(), Error> {
    for key in ["sliding_window", "attention_chunk_size"] {
        let supported = format!("null, or max_position_embeddings ({max_positions}) or more");
        json.only(key, &supported, |value| {
            value.as_u64().is_some_and(|window| window >= max_positions as u64)
        })?;
    }
    json.only("layer_types", "null, or \"full_attention\" for every layer", |value| {
        let full = |name: &Value| name.as_str() == Some("full_attention");
        value.as_array().is_some_and(|names| names.iter().all(full))
    })
}

fn activation(json: &Json<'_>) -> Result<Activation, Error> {
    match json.text("hidden_act")? {
        None | Some("silu" | "swish") => Ok(Activation::Silu),
        Some(_) => Err(json.unsupported("hidden_act", "silu or swish")),
    }
}

/// The element type of the weights. transformers 5 writes `dtype`, and takes that where both are there.
fn dtype(json: &Json<'_>) -> Result<Dtype, Error> {
    let Some(key) = ["dtype", "torch_dtype"].into_iter().find(|key| json.value(key).is_some()) else {
        return Ok(Dtype::F32);
    };
    match json.text(key)? {
        Some("float32") => Ok(Dtype::F32),
        Some("bfloat16") => Ok(Dtype::BF16),
        Some("float16") => Ok(Dtype::F16),
        _ => Err(json.unsupported(key, "float32, bfloat16 or float16")),
    }
}

impl Shape {
    fn read(json: &Json<'_>) -> Result<Self, Error> {
        let hidden = json.size("hidden_size", 4096, 1 << 20)?;
        let heads = json.size("num_attention_heads", 32, 1 << 16)?;
        let kv_heads = json.optional_size("num_key_value_heads", 1 << 16)?.unwrap_or(heads);
        if !heads.is_multiple_of(kv_heads) {
            let expected = format!("a divisor of num_attention_heads, which is {heads}");
            return Err(json.invalid("num_key_value_heads", expected));
        }
        let head_dim = match json.optional_size("head_dim", 1 << 16)? {
            Some(head_dim) if head_dim.is_multiple_of(2) => head_dim,
            Some(_) => return Err(json.invalid("head_dim", "an even number, for rope turns pairs")),
            None if hidden.is_multiple_of(2 * heads) => hidden / heads,
            None => {
                let expected = format!("an even multiple of num_attention_heads, which is {heads}");
                return Err(json.invalid("hidden_size", expected).with_hint("or give head_dim"));
            }
        };
        Ok(Self {
            hidden,
            intermediate: json.size("intermediate_size", 11_008, 1 << 24)?,
            heads,
            kv_heads,
            head_dim,
            attention_bias: json.flag("attention_bias", false)?,
            mlp_bias: json.flag("mlp_bias", false)?,
            epsilon: json.not_negative("rms_norm_eps", 1e-6)?,
        })
    }

    fn block(&self, layer: usize, rope: &Rope, activation: Activation) -> Block {
        let (queries, keys) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let linear = |part: &str, inputs, outputs, bias: bool| {
            let name = format!("model.layers.{layer}.{part}");
            Linear {
                weight: weight(format!("{name}.weight"), [outputs, inputs]),
                bias: bias.then(|| weight(format!("{name}.bias"), [outputs])),
            }
        };
        let attention = |part, inputs, outputs| linear(part, inputs, outputs, self.attention_bias);
        let mlp = |part, inputs, outputs| linear(part, inputs, outputs, self.mlp_bias);
        Block {
            attention_norm: self.norm(&format!("model.layers.{layer}.input_layernorm")),
            attention: Attention {
                heads: self.heads,
                kv_heads: self.kv_heads,
                head_dim: self.head_dim,
                scale: (self.head_dim as f64).powf(-0.5),
                rope: rope.clone(),
                query: attention("self_attn.q_proj", self.hidden, queries),
                key: attention("self_attn.k_proj", self.hidden, keys),
                value: attention("self_attn.v_proj", self.hidden, keys),
                output: attention("self_attn.o_proj", queries, self.hidden),
            },
            mlp_norm: self.norm(&format!("model.layers.{layer}.post_attention_layernorm")),
            mlp: Mlp {
                activation,
                gate: mlp("mlp.gate_proj", self.hidden, self.intermediate),
                up: mlp("mlp.up_proj", self.hidden, self.intermediate),
                down: mlp("mlp.down_proj", self.intermediate, self.hidden),
            },
        }
    }

    fn norm(&self, name: &str) -> Norm {
        Norm { epsilon: self.epsilon, weight: weight(format!("{name}.weight"), [self.hidden]) }
    }
}

fn weight<const RANK: usize>(name: impl Into<String>, shape: [usize; RANK]) -> Weight {
    Weight { name: name.into(), shape: shape.to_vec() }
}
