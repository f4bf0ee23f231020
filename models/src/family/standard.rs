//! Keys and layers that families share.
//!
//! Keys have the names of transformers' `LlamaConfig`, and tensors those of its `LlamaForCausalLM`. A family's file states
//! where it differs.

use safetensors::Dtype;
use serde_json::Value;

use super::rope;
use crate::{
    aliases::Aliases,
    block::{Attention, Block, Branch},
    config::ModelConfig,
    error::Error,
    feed_forward::{Activation, FeedForward, Mlp},
    head::{Head, Logits},
    json::Json,
    layers::{Embedding, Linear, MOST_LAYERS, Norm, NormKind, Part, Weight},
    rope::Rope,
};

/// The names of a family's keys, and the values of keys that are absent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    /// Accepted endings of class names in `architectures`.
    pub(super) architectures: &'static [&'static str],
    pub(super) vocab: usize,
    pub(super) hidden: (&'static str, usize),
    pub(super) intermediate: usize,
    pub(super) layers: (&'static str, usize),
    pub(super) heads: (&'static str, usize),
    /// Whether the family has the keys `num_key_value_heads` and `head_dim`.
    pub(super) heads_have_keys: bool,
    /// As many as query heads if `None`, which is also the meaning of null.
    pub(super) kv_heads: Option<usize>,
    /// The hidden width divided by the number of heads if `None`, which is also the meaning of null.
    pub(super) head_dim: Option<usize>,
    pub(super) max_positions: (&'static str, usize),
    pub(super) norm: NormKind,
    pub(super) epsilon: (&'static str, f64),
    /// Whether a token attends to earlier ones alone.
    pub(super) causal: bool,
    /// Whether norms have biases.
    pub(super) norm_bias: bool,
    /// Value of [`Norm::offset`].
    pub(super) norm_offset: f64,
    pub(super) activation: (&'static str, Activation),
    pub(super) tied: bool,
    pub(super) bos: Option<u32>,
    pub(super) eos: &'static [u32],
}

/// Defaults of `LlamaConfig`.
pub(super) const LLAMA: Defaults = Defaults {
    architectures: &["ForCausalLM", "LMHeadModel"],
    vocab: 32_000,
    hidden: ("hidden_size", 4096),
    intermediate: 11_008,
    layers: ("num_hidden_layers", 32),
    heads: ("num_attention_heads", 32),
    heads_have_keys: true,
    kv_heads: None,
    head_dim: None,
    max_positions: ("max_position_embeddings", 2048),
    norm: NormKind::Rms,
    epsilon: ("rms_norm_eps", 1e-6),
    causal: true,
    norm_bias: false,
    norm_offset: 0.0,
    activation: ("hidden_act", Activation::Silu),
    tied: false,
    bos: Some(1),
    eos: &[2],
};

/// The sizes in a config.json, which builds layers of a description from them.
pub(super) struct Standard<'j> {
    pub(super) json: &'j Json<'j>,
    defaults: Defaults,
    pub(super) vocab: usize,
    pub(super) hidden: usize,
    pub(super) intermediate: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) max_positions: usize,
    pub(super) activation: Activation,
    epsilon: f64,
    notes: Vec<String>,
}

impl<'j> Standard<'j> {
    /// Reads the keys that families share, and refuses those that no description can express.
    pub(super) fn read(json: &'j Json<'j>, defaults: Defaults) -> Result<Self, Error> {
        refuse(json, defaults.architectures, defaults.causal)?;
        let size = |(key, default), largest| json.size(key, default, largest);
        let hidden = size(defaults.hidden, 1 << 20)?;
        let heads = size(defaults.heads, 1 << 16)?;
        let head_size = |key, default| match defaults.heads_have_keys {
            true => json.size_or_null(key, default, 1 << 16),
            false => Ok(None),
        };
        let kv_heads = head_size("num_key_value_heads", defaults.kv_heads)?.unwrap_or(heads);
        if !heads.is_multiple_of(kv_heads) {
            let expected = format!("a divisor of {}, which is {heads}", defaults.heads.0);
            return Err(json.invalid("num_key_value_heads", expected));
        }
        let head_dim = match head_size("head_dim", defaults.head_dim)? {
            Some(head_dim) if head_dim.is_multiple_of(2) => head_dim,
            Some(_) => return Err(json.invalid("head_dim", "an even number, because rope rotates pairs")),
            None if hidden.is_multiple_of(2 * heads) => hidden / heads,
            None => {
                let expected = format!("an even multiple of {}, which is {heads}", defaults.heads.0);
                let error = json.invalid(defaults.hidden.0, expected);
                return Err(if defaults.heads_have_keys {
                    error.with_hint("or set head_dim")
                } else {
                    error
                });
            }
        };
        Ok(Self {
            json,
            defaults,
            vocab: json.size("vocab_size", defaults.vocab, 1 << 24)?,
            hidden,
            intermediate: json.size("intermediate_size", defaults.intermediate, 1 << 24)?,
            layers: size(defaults.layers, MOST_LAYERS)?,
            heads,
            kv_heads,
            head_dim,
            // Up to 2^24 an f32 holds every position exactly.
            max_positions: size(defaults.max_positions, 1 << 24)?,
            activation: activation(json, defaults.activation)?,
            epsilon: json.not_negative(defaults.epsilon.0, defaults.epsilon.1)?,
            notes: Vec::new(),
        })
    }

    /// Returns the rope, and limits the model's positions to those that the rope is exact for.
    pub(super) fn rope(&mut self, defaults: &rope::Defaults) -> Result<Rope, Error> {
        let read = rope::read(self.json, defaults, self.head_dim, self.max_positions)?;
        self.max_positions = read.max_positions;
        self.notes.extend(read.note);
        Ok(read.rope)
    }

    /// Refuses keys of sliding windows that have an effect, for a family without windows.
    pub(super) fn refuse_windows(&self) -> Result<(), Error> {
        let json = self.json;
        for key in ["sliding_window", "attention_chunk_size"] {
            let supported = format!("null, or max_position_embeddings ({}) or more", self.max_positions);
            json.require(key, &supported, |value| {
                value.as_u64().is_some_and(|window| window >= self.max_positions as u64)
            })?;
        }
        json.require("layer_types", "null, or \"full_attention\" for every layer", |value| {
            let full = |name: &Value| name.as_str() == Some("full_attention");
            value.as_array().is_some_and(|names| names.iter().all(full))
        })
    }

    /// Returns the window, `sliding_window`; `default` if it is absent.
    pub(super) fn window(&self, default: Option<usize>) -> Result<Option<usize>, Error> {
        self.json.size_or_null("sliding_window", default, 1 << 30)
    }

    /// Returns whether each layer has a window: all but every n-th one, where n is `sliding_window_pattern`, or `default` if it is
    /// absent. Beside `layer_types`, which takes precedence, the pattern is not read: some checkpoints have letters there.
    pub(super) fn slides_by_pattern(
        &self,
        window: Option<usize>,
        default: usize,
    ) -> Result<Vec<bool>, Error> {
        let is_listed = self.json.value("layer_types").is_some();
        let period =
            if is_listed { 1 } else { self.json.size("sliding_window_pattern", default, 1 << 16)? };
        self.slides(window, |layer| !(layer + 1).is_multiple_of(period))
    }

    /// Returns whether each layer has a window, according to `layer_types`, or to `default` if it is absent.
    pub(super) fn slides(
        &self,
        window: Option<usize>,
        default: impl Fn(usize) -> bool,
    ) -> Result<Vec<bool>, Error> {
        let json = self.json;
        if json.value("layer_types").is_none() {
            return Ok((0..self.layers).map(|layer| window.is_some() && default(layer)).collect());
        }
        let slides = json.list(
            "layer_types",
            self.layers,
            "sliding_attention or full_attention",
            |value| match value.as_str()? {
                "sliding_attention" => Some(true),
                "full_attention" => Some(false),
                _ => None,
            },
        )?;
        if window.is_none() && slides.contains(&true) {
            let expected = "a number of positions, because `layer_types` has sliding_attention";
            return Err(json.invalid("sliding_window", expected));
        }
        Ok(slides)
    }

    /// Returns the window of all layers, which `use_sliding_window` has to enable.
    pub(super) fn optional_window(&self, default: Option<usize>) -> Result<Option<usize>, Error> {
        // transformers writes a window of 0 where there is none.
        if !self.json.flag("use_sliding_window", false)? { Ok(None) } else { self.window(default) }
    }

    /// Returns the window of each layer, which `use_sliding_window` has to enable, as in the Qwen families.
    pub(super) fn optional_windows(
        &self,
        window: Option<usize>,
        default: impl Fn(usize) -> bool,
    ) -> Result<Vec<Option<usize>>, Error> {
        let window = self.optional_window(window)?;
        let slides = self.slides(window, default)?;
        Ok(slides.into_iter().map(|slides| window.filter(|_| slides)).collect())
    }

    /// Returns attention with the projections `q_proj`, `k_proj`, `v_proj` and `o_proj` below `name`.
    ///
    /// The first of `biases` is about the first three projections, the second about `o_proj`.
    pub(super) fn attention(&self, name: &str, biases: [bool; 2], rope: Option<Rope>) -> Attention {
        let (queries, keys) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let linear = |part, inputs, outputs, bias| linear(format!("{name}.{part}"), [outputs, inputs], bias);
        self.attention_from(
            [
                linear("q_proj", self.hidden, queries, biases[0]),
                linear("k_proj", self.hidden, keys, biases[0]),
                linear("v_proj", self.hidden, keys, biases[0]),
                linear("o_proj", queries, self.hidden, biases[1]),
            ],
            rope,
        )
    }

    /// Returns attention with these projections: query, key, value and output.
    pub(super) fn attention_from(&self, layers: [Linear; 4], rope: Option<Rope>) -> Attention {
        let [query, key, value, output] = layers;
        Attention {
            causal: self.defaults.causal,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            scale: (self.head_dim as f64).powf(-0.5),
            soft_cap: None,
            window: None,
            clip: None,
            sinks: None,
            rope,
            query_norm: None,
            key_norm: None,
            query,
            key,
            value,
            output,
        }
    }

    /// Returns a gated MLP with the layers `gate_proj`, `up_proj` and `down_proj` below `name`.
    pub(super) fn mlp(&self, name: &str, bias: bool) -> Mlp {
        self.mlp_with_width(name, self.intermediate, bias)
    }

    /// Returns a gated MLP like [`Self::mlp`] with another intermediate width.
    pub(super) fn mlp_with_width(&self, name: &str, width: usize, bias: bool) -> Mlp {
        let linear = |part, shape| linear(format!("{name}.{part}"), shape, bias);
        let [gate, up] = ["gate_proj", "up_proj"].map(|part| linear(part, [width, self.hidden]));
        self.gated_mlp(gate, up, linear("down_proj", [self.hidden, width]))
    }

    /// Returns a gated MLP without biases that fuses gate and up into the tensor `gate_up_proj` below `name`.
    pub(super) fn fused_mlp(&self, name: &str) -> Mlp {
        let both = linear(format!("{name}.gate_up_proj"), [2 * self.intermediate, self.hidden], false);
        let [gate, up] = split_fused(&both, 1, [self.intermediate; 2]);
        let down = linear(format!("{name}.down_proj"), [self.hidden, self.intermediate], false);
        self.gated_mlp(gate, up, down)
    }

    /// Returns a gated MLP of these layers.
    pub(super) fn gated_mlp(&self, gate: Linear, up: Linear, down: Linear) -> Mlp {
        Mlp { activation: self.activation, limit: None, up_offset: 0.0, gate: Some(gate), up, down }
    }

    /// Returns a block with norms before the branches: `input_layernorm` and `post_attention_layernorm` below `name`.
    pub(super) fn block(&self, name: &str, attention: Attention, mlp: impl Into<FeedForward>) -> Block {
        let norm = |part| Some(self.norm(format!("{name}.{part}")));
        Block {
            attention: Branch { before: norm("input_layernorm"), ..Branch::of(attention) },
            mlp: Branch { before: norm("post_attention_layernorm"), ..Branch::of(mlp.into()) },
            parallel: false,
        }
    }

    /// Returns a block with norms after the branches: `post_attention_layernorm` and `post_feedforward_layernorm`.
    pub(super) fn post_norm_block(
        &self,
        name: &str,
        attention: Attention,
        mlp: impl Into<FeedForward>,
    ) -> Block {
        let norm = |part| Some(self.norm(format!("{name}.{part}")));
        Block {
            attention: Branch { after: norm("post_attention_layernorm"), ..Branch::of(attention) },
            mlp: Branch { after: norm("post_feedforward_layernorm"), ..Branch::of(mlp.into()) },
            parallel: false,
        }
    }

    /// Returns a parallel block whose branches share a norm, `input_layernorm`.
    pub(super) fn parallel_block(
        &self,
        name: &str,
        attention: Attention,
        mlp: impl Into<FeedForward>,
    ) -> Block {
        let before = Some(self.norm(format!("{name}.input_layernorm")));
        Block {
            attention: Branch { before: before.clone(), ..Branch::of(attention) },
            mlp: Branch { before, ..Branch::of(mlp.into()) },
            parallel: true,
        }
    }

    /// Returns a norm of the residual stream.
    pub(super) fn norm(&self, name: String) -> Norm {
        self.norm_with_shape(name, vec![self.hidden])
    }

    /// Adds norms of queries and keys with these names and shapes.
    pub(super) fn norm_heads(&self, attention: &mut Attention, names: [String; 2], shapes: [Vec<usize>; 2]) {
        let ([query, key], [query_shape, key_shape]) = (names, shapes);
        attention.query_norm = Some(self.norm_with_shape(query, query_shape));
        attention.key_norm = Some(self.norm_with_shape(key, key_shape));
    }

    /// Adds norms of each query and key head, `q_norm` and `k_norm` below `name`, whose weight all heads share.
    pub(super) fn norm_each_head(&self, attention: &mut Attention, name: &str) {
        let names = ["q_norm", "k_norm"].map(|part| format!("{name}.{part}"));
        self.norm_heads(attention, names, [vec![self.head_dim], vec![self.head_dim]]);
    }

    /// Adds norms of all query heads and of all key heads as one vector, `q_norm` and `k_norm` below `name`.
    pub(super) fn norm_all_heads(&self, attention: &mut Attention, name: &str) {
        let names = ["q_norm", "k_norm"].map(|part| format!("{name}.{part}"));
        let width = |heads| vec![heads * self.head_dim];
        self.norm_heads(attention, names, [width(self.heads), width(self.kv_heads)]);
    }

    /// Adds norms of each query and key head, `q_layernorm` and `k_layernorm` below `name`, with a weight per head and no
    /// bias.
    pub(super) fn norm_heads_separately(&self, attention: &mut Attention, name: &str) {
        let norms = |part: &str, heads| {
            let weight = |head| weight(format!("{name}.{part}.norms.{head}.weight"), [self.head_dim]);
            let weights = (0..heads).map(weight).collect();
            Some(Norm { weights, bias: None, ..self.norm_with_shape(String::new(), vec![]) })
        };
        attention.query_norm = norms("q_layernorm", self.heads);
        attention.key_norm = norms("k_layernorm", self.kv_heads);
    }

    fn norm_with_shape(&self, name: String, shape: Vec<usize>) -> Norm {
        let Defaults { norm: kind, norm_bias, norm_offset: offset, .. } = self.defaults;
        let bias = norm_bias.then(|| Weight { name: format!("{name}.bias"), shape: shape.clone() });
        let weight = Weight { name: format!("{name}.weight"), shape };
        Norm { kind, epsilon: self.epsilon, offset, weights: vec![weight], bias }
    }

    /// Returns the decoder of these blocks, whose other tensors are `model.embed_tokens`, `model.norm` and `lm_head`.
    ///
    /// The registry fills in the family.
    pub(super) fn build(self, blocks: Vec<Block>) -> Result<ModelConfig, Error> {
        let final_norm = Some(self.norm("model.norm".into()));
        let Self { json, defaults, vocab, hidden, max_positions, .. } = self;
        Ok(ModelConfig {
            family: String::new(),
            vocab,
            hidden,
            max_positions,
            dtype: dtype(json)?,
            embedding: Embedding {
                weight: weight("model.embed_tokens.weight", [vocab, hidden]),
                scale: 1.0,
                positions: None,
                token_types: None,
                norm: None,
            },
            blocks,
            final_norm,
            head: Head::Logits(Box::new(Logits {
                linear: linear("lm_head", [vocab, hidden], false),
                tied: json.flag("tie_word_embeddings", defaults.tied)?,
                scale: 1.0,
                soft_cap: None,
            })),
            eos: json.tokens("eos_token_id", defaults.eos)?,
            bos: json.token("bos_token_id", defaults.bos)?,
            aliases: Aliases::default(),
            scheme: None,
            ignored_prefixes: &[],
            notes: self.notes,
        })
    }
}

/// Returns the prefix of a layer's tensor names in most families.
pub(super) fn layer_name(layer: usize) -> String {
    format!("model.layers.{layer}")
}

/// Returns a linear layer of the shape `[outputs, inputs]`.
pub(super) fn linear(name: impl Into<String>, shape: [usize; 2], bias: bool) -> Linear {
    let name = name.into();
    Linear {
        bias: bias.then(|| weight(format!("{name}.bias"), [shape[0]])),
        weight: weight(format!("{name}.weight"), shape),
        part: None,
        matrix: None,
        transposed: false,
    }
}

/// Splits a fused layer into layers with these numbers of outputs, one after the other in each of `groups` groups.
pub(super) fn split_fused<const N: usize>(fused: &Linear, groups: usize, sizes: [usize; N]) -> [Linear; N] {
    let mut next = 0;
    sizes.map(|size| {
        let first = next;
        next += size;
        Linear { part: Some(Part { groups, first, size }), ..fused.clone() }
    })
}

/// Returns the weight `name` of this shape.
pub(super) fn weight<const RANK: usize>(name: impl Into<String>, shape: [usize; RANK]) -> Weight {
    Weight { name: name.into(), shape: shape.to_vec() }
}

/// Refuses keys that change what a model computes and that a description cannot express.
fn refuse(json: &Json<'_>, architectures: &[&str], causal: bool) -> Result<(), Error> {
    let supported = format!("a name that ends in {}", architectures.join(" or "));
    json.require("architectures", &supported, |value| {
        let fits = |name: &Value| {
            name.as_str().is_some_and(|name| architectures.iter().any(|end| name.ends_with(end)))
        };
        value.as_array().is_some_and(|names| names.is_empty() || names.iter().any(fits))
    })?;
    json.require("use_bidirectional_attention", "false", |value| value.as_bool() == Some(false))?;
    json.require("is_causal", &causal.to_string(), |value| value.as_bool() == Some(causal))?;
    json.require("per_layer_config", "null", |_| false)
}

/// Returns the activation that `key` names. Several names mean GELU approximated with `tanh`.
fn activation(json: &Json<'_>, (key, default): (&str, Activation)) -> Result<Activation, Error> {
    match json.text(key)? {
        None => Ok(default),
        Some("silu" | "swish") => Ok(Activation::Silu),
        Some("gelu" | "gelu_python") => Ok(Activation::Gelu),
        Some("gelu_accurate" | "gelu_fast" | "gelu_new" | "gelu_python_tanh" | "gelu_pytorch_tanh") => {
            Ok(Activation::GeluTanh)
        }
        Some(_) => {
            Err(json.unsupported(key, "one of silu, swish, gelu, gelu_fast, gelu_new or gelu_pytorch_tanh"))
        }
    }
}

/// Returns the element type of the weights. transformers 5 writes `dtype`, and prefers it if both keys are present.
fn dtype(json: &Json<'_>) -> Result<Dtype, Error> {
    let Some(key) = ["dtype", "torch_dtype"].into_iter().find(|key| json.value(key).is_some()) else {
        return Ok(Dtype::F32);
    };
    match json.text(key)? {
        Some("float32") => Ok(Dtype::F32),
        Some("bfloat16") => Ok(Dtype::BF16),
        Some("float16") => Ok(Dtype::F16),
        _ => Err(json.unsupported(key, "one of float32, bfloat16 or float16")),
    }
}
