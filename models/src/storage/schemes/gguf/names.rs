//! Where Hugging Face's tensors are in a GGUF file.

use crate::storage::StoredTensors;

/// What depends on the architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Whether the rows of queries and keys are permuted, so that the pairs of rope are adjacent.
    pub(crate) is_permuted: bool,
    /// Whether `post_attention_layernorm` is a norm of that name in a file too, and not the norm before the MLP.
    pub(crate) keeps_norm_names: bool,
    /// Heads of queries, and those of keys.
    pub(crate) heads: [usize; 2],
}

/// Where a weight is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// The tensors, each with an equal share of the rows.
    pub(super) tensors: Vec<String>,
    /// The place in a stack, of which there is one matrix more than others.
    pub(super) index: Option<usize>,
    pub(super) order: Order,
    /// Whether the weight has rows and columns swapped.
    pub(super) transposed: bool,
    /// Whether the last dimension are rows.
    pub(super) is_vector: bool,
}

/// The order of rows, which has to be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    AsStored,
    /// Rows of the two halves of each head take turns.
    Halves {
        heads: usize,
    },
    /// All queries come first, then keys and values, where the weight has those of each head together.
    HeadByHead {
        heads: usize,
    },
    /// The rows of two tensors take turns in the weight.
    Interleaved,
}

/// Tensors of the whole model: their names in a description, and in a file.
const WHOLE: &[(&str, &str)] = &[
    ("model.embed_tokens.weight", "token_embd.weight"),
    ("model.norm.weight", "output_norm.weight"),
    ("model.norm.bias", "output_norm.bias"),
    ("lm_head.weight", "output.weight"),
    ("transformer.wte.weight", "token_embd.weight"),
    ("transformer.wpe.weight", "position_embd.weight"),
    ("transformer.ln_f.weight", "output_norm.weight"),
    ("transformer.ln_f.bias", "output_norm.bias"),
    ("gpt_neox.embed_in.weight", "token_embd.weight"),
    ("gpt_neox.final_layer_norm.weight", "output_norm.weight"),
    ("gpt_neox.final_layer_norm.bias", "output_norm.bias"),
    ("embed_out.weight", "output.weight"),
    ("embed_out.bias", "output.bias"),
];

/// What the names of layers' tensors begin with.
const LAYERS: &[&str] = &["model.layers.", "transformer.h.", "gpt_neox.layers."];

/// Modules of a layer: their names in a description, and in a file.
const MODULES: &[(&str, &str)] = &[
    ("input_layernorm", "attn_norm"),
    ("ln_1", "attn_norm"),
    ("ln_2", "ffn_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("post_self_attn_layernorm", "post_attention_norm"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
    ("post_mlp_layernorm", "post_ffw_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.qkv_proj", "attn_qkv"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("attn.c_attn", "attn_qkv"),
    ("attn.c_proj", "attn_output"),
    ("attention.query_key_value", "attn_qkv"),
    ("attention.dense", "attn_output"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("mlp.gate_up_proj", "ffn_up"),
    ("mlp.c_fc", "ffn_up"),
    ("mlp.c_proj", "ffn_down"),
    ("mlp.dense_h_to_4h", "ffn_up"),
    ("mlp.dense_4h_to_h", "ffn_down"),
    ("mlp.gate", "ffn_gate_inp"),
    ("mlp.router", "ffn_gate_inp"),
    ("block_sparse_moe.gate", "ffn_gate_inp"),
    ("block_sparse_moe.router.layer", "ffn_gate_inp"),
    ("block_sparse_moe.output_linear", "ffn_down_exps"),
    ("mlp.shared_expert.gate_proj", "ffn_gate_shexp"),
    ("mlp.shared_expert.up_proj", "ffn_up_shexp"),
    ("mlp.shared_expert.down_proj", "ffn_down_shexp"),
    ("mlp.shared_expert_gate", "ffn_gate_inp_shexp"),
    ("experts.gate_proj", "ffn_gate"),
    ("experts.up_proj", "ffn_up"),
    ("experts.down_proj", "ffn_down"),
    ("mlp.experts.down_proj", "ffn_down_exps"),
];

/// Mixtral's names of an expert's layers.
const MIXTRAL: &[(&str, &str)] = &[("w1", "ffn_gate"), ("w3", "ffn_up"), ("w2", "ffn_down")];

impl Source {
    fn of(tensor: String) -> Self {
        let is_vector = tensor.ends_with(".bias");
        Self { tensors: vec![tensor], index: None, order: Order::AsStored, transposed: false, is_vector }
    }

    /// Returns the only tensor, if the weight has its rows in their order.
    pub(super) fn as_it_is(&self) -> Option<&str> {
        match (self.tensors.as_slice(), self.index, self.order, self.transposed) {
            ([only], None, Order::AsStored, false) => Some(only),
            _ => None,
        }
    }
}

impl Layout {
    /// Returns where a weight is; `None` if it has no name in GGUF files.
    pub(super) fn source(&self, name: &str, tensors: &StoredTensors) -> Option<Source> {
        if let Some((_, tensor)) = WHOLE.iter().find(|(known, _)| *known == name) {
            return Some(Source::of((*tensor).to_owned()));
        }
        let rest = LAYERS.iter().find_map(|start| name.strip_prefix(start))?;
        let (layer, rest) = rest.split_once('.')?;
        layer.parse::<usize>().ok()?;
        let block = |tensor: &str| format!("blk.{layer}.{tensor}");
        if rest == "self_attn.sinks" {
            return Some(Source::of(block("attn_sinks.weight")));
        }
        if let Some(source) = stacked(rest, &block) {
            return Some(source);
        }
        let (module, part) = rest.rsplit_once('.')?;
        if let Some(source) = of_expert(module, part, &block, tensors) {
            return Some(source);
        }
        if let Some((which, head)) = module.split_once("_layernorm.norms.") {
            let norm = match which {
                "self_attn.q" => "attn_q_norm",
                "self_attn.k" => "attn_k_norm",
                _ => return None,
            };
            let source = Source::of(block(&format!("{norm}.{part}")));
            return Some(Source { index: Some(head.parse().ok()?), is_vector: true, ..source });
        }
        let (_, tensor) = MODULES.iter().find(|(known, _)| *known == module)?;
        let tensor = match module {
            "post_attention_layernorm" if self.keeps_norm_names => "post_attention_norm",
            _ => tensor,
        };
        let source = Source::of(block(&format!("{tensor}.{part}")));
        let [heads, kv_heads] = self.heads;
        let order = match module {
            "self_attn.q_proj" if self.is_permuted => Order::Halves { heads },
            "self_attn.k_proj" if self.is_permuted => Order::Halves { heads: kv_heads },
            "attention.query_key_value" => Order::HeadByHead { heads },
            _ => Order::AsStored,
        };
        // GPT-2's layers have inputs first.
        let transposed = part == "weight"
            && [".c_attn", ".c_proj", ".c_fc"]
                .iter()
                .any(|end| name.starts_with("transformer.") && module.ends_with(end));
        Some(Source { order, transposed, ..source })
    }
}

/// Returns where a stack of all experts is that a description has in one tensor.
fn stacked(rest: &str, block: &impl Fn(&str) -> String) -> Option<Source> {
    let both = |part: &str| ["gate", "up"].map(|one| block(&format!("ffn_{one}_exps.{part}"))).to_vec();
    let pair = |part: &str, order, transposed| {
        let is_vector = part == "bias";
        Source { tensors: both(part), index: None, order, transposed, is_vector }
    };
    match rest {
        "mlp.experts.gate_up_proj" => Some(pair("weight", Order::Interleaved, true)),
        "mlp.experts.gate_up_proj_bias" => Some(pair("bias", Order::Interleaved, false)),
        "mlp.experts.down_proj" => {
            Some(Source { transposed: true, ..Source::of(block("ffn_down_exps.weight")) })
        }
        "mlp.experts.down_proj_bias" => Some(Source::of(block("ffn_down_exps.bias"))),
        "block_sparse_moe.input_linear.weight" => Some(pair("weight", Order::AsStored, false)),
        _ => None,
    }
}

/// Returns where an expert's layer is: in a stack, or in old files by itself.
fn of_expert(
    module: &str,
    part: &str,
    block: &impl Fn(&str) -> String,
    tensors: &StoredTensors,
) -> Option<Source> {
    let (_, rest) = module.split_once(".experts.")?;
    let (expert, layer) = rest.split_once('.')?;
    let index = expert.parse().ok()?;
    let known = |name: &str| MODULES.iter().find(|(known, _)| known.strip_prefix("experts.") == Some(name));
    let (_, tensor) = MIXTRAL.iter().find(|(name, _)| *name == layer).or_else(|| known(layer))?;
    let alone = block(&format!("{tensor}.{expert}.{part}"));
    if tensors.has(&alone) {
        return Some(Source::of(alone));
    }
    Some(Source { index: Some(index), ..Source::of(block(&format!("{tensor}_exps.{part}"))) })
}
