//! llama.cpp's architectures: the family of each, and the config.json that its keys make.

use serde_json::{Map, Value, json};

use super::{
    keys::{Keys, object},
    rope::{self, Ends},
};
use crate::error::Error;

type Config = Map<String, Value>;

/// An architecture.
#[derive(Debug)]
pub(super) struct Architecture {
    /// llama.cpp's name, the first word of its keys.
    pub(super) name: &'static str,
    /// Whether rows of queries and keys are permuted.
    pub(super) is_permuted: bool,
    /// Whether `post_attention_layernorm` has its name in files too, and not that of the norm before the MLP.
    pub(super) keeps_norm_names: bool,
    /// Whether norms are stored with the 1 that the family adds to them.
    pub(super) has_whole_norms: bool,
    /// Returns the config.json.
    pub(super) config: fn(&Keys<'_>) -> Result<Config, Error>,
}

const fn plain(name: &'static str, config: fn(&Keys<'_>) -> Result<Config, Error>) -> Architecture {
    Architecture { name, is_permuted: false, keeps_norm_names: false, has_whole_norms: false, config }
}

const fn permuted(architecture: Architecture) -> Architecture {
    Architecture { is_permuted: true, ..architecture }
}

const fn norm_names(architecture: Architecture) -> Architecture {
    Architecture { keeps_norm_names: true, ..architecture }
}

const fn whole_norms(architecture: Architecture) -> Architecture {
    Architecture { has_whole_norms: true, ..architecture }
}

/// All architectures, sorted by name.
pub(super) const ARCHITECTURES: &[Architecture] = &[
    plain("cohere2", cohere2),
    plain("command-r", command_r),
    plain("ernie4_5", ernie4_5),
    norm_names(plain("exaone4", exaone4)),
    whole_norms(plain("gemma", gemma)),
    whole_norms(norm_names(plain("gemma2", gemma2))),
    whole_norms(norm_names(plain("gemma3", gemma3))),
    plain("glm4", glm4),
    norm_names(plain("gpt-oss", gpt_oss)),
    plain("gpt2", gpt2),
    plain("gptneox", gpt_neox),
    permuted(plain("granite", granite)),
    permuted(plain("granitemoe", granite_moe)),
    permuted(plain("llama", llama)),
    norm_names(plain("olmo2", olmo2)),
    plain("olmoe", olmoe),
    plain("phi3", phi3),
    plain("qwen2", qwen2),
    plain("qwen2moe", qwen2_moe),
    plain("qwen3", qwen3),
    plain("qwen3moe", qwen3_moe),
    norm_names(plain("seed_oss", seed_oss)),
    permuted(plain("smollm3", smollm3)),
    plain("stablelm", stablelm),
    plain("starcoder2", starcoder2),
];

/// Returns the config of families whose keys are Llama's.
fn like_llama(keys: &Keys<'_>, family: &str) -> Result<Config, Error> {
    let mut config = keys.standard(family)?;
    keys.rms_epsilon(&mut config)?;
    rope::add(keys, &mut config)?;
    config.insert("attention_bias".into(), keys.has_tensor("blk.0.attn_q.bias").into());
    Ok(config)
}

fn llama(keys: &Keys<'_>) -> Result<Config, Error> {
    if keys.size_or_zero("expert_count")?.is_some() {
        let mut config = like_llama(keys, "mixtral")?;
        keys.experts(&mut config, "num_local_experts")?;
        return Ok(config);
    }
    keys.size_or_zero("expert_used_count")?;
    let mut config = like_llama(keys, "llama")?;
    config.insert("mlp_bias".into(), keys.has_tensor("blk.0.ffn_gate.bias").into());
    Ok(config)
}

fn smollm3(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = like_llama(keys, "smollm3")?;
    config.insert("mlp_bias".into(), keys.has_tensor("blk.0.ffn_gate.bias").into());
    Ok(config)
}

fn seed_oss(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = like_llama(keys, "seed_oss")?;
    config.insert("attention_out_bias".into(), keys.has_tensor("blk.0.attn_output.bias").into());
    config.insert("mlp_bias".into(), keys.has_tensor("blk.0.ffn_gate.bias").into());
    Ok(config)
}

fn qwen2(keys: &Keys<'_>) -> Result<Config, Error> {
    like_llama(keys, "qwen2")
}

fn qwen3(keys: &Keys<'_>) -> Result<Config, Error> {
    like_llama(keys, "qwen3")
}

fn ernie4_5(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = like_llama(keys, "ernie4_5")?;
    config.insert("use_bias".into(), keys.has_tensor("blk.0.attn_q.bias").into());
    Ok(config)
}

/// Returns the config of a Qwen mixture, whose weights of experts are normalized if no key says otherwise.
fn qwen_mixture(keys: &Keys<'_>, family: &str, normalized: bool) -> Result<Config, Error> {
    let mut config = like_llama(keys, family)?;
    keys.experts(&mut config, "num_experts")?;
    let is_dense = |layer: &usize| !keys.has_tensor(&format!("blk.{layer}.ffn_gate_inp.weight"));
    let dense: Vec<_> = (0..keys.layers()?).filter(is_dense).collect();
    let width = match keys.size("expert_feed_forward_length")? {
        Some(width) => width,
        None => keys.tensor_size("blk.0.ffn_gate_exps.weight", 1)?,
    };
    config.extend(object(json!({
        "moe_intermediate_size": width,
        "mlp_only_layers": dense,
        "norm_topk_prob": keys.flag("expert_weights_norm")?.unwrap_or(normalized),
    })));
    Ok(config)
}

fn qwen2_moe(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = qwen_mixture(keys, "qwen2_moe", false)?;
    config.insert("qkv_bias".into(), keys.has_tensor("blk.0.attn_q.bias").into());
    let width = match keys.size("expert_shared_feed_forward_length")? {
        Some(width) => width,
        None => keys.tensor_size("blk.0.ffn_gate_shexp.weight", 0)?,
    };
    config.insert("shared_expert_intermediate_size".into(), width.into());
    Ok(config)
}

fn qwen3_moe(keys: &Keys<'_>) -> Result<Config, Error> {
    qwen_mixture(keys, "qwen3_moe", true)
}

fn olmoe(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = like_llama(keys, "olmoe")?;
    keys.experts(&mut config, "num_experts")?;
    let normalized = keys.flag("expert_weights_norm")?.unwrap_or(false);
    config.insert("norm_topk_prob".into(), normalized.into());
    keys.optional(&mut config, "attention.clamp_kqv", "clip_qkv")?;
    Ok(config)
}

fn gemma(keys: &Keys<'_>) -> Result<Config, Error> {
    like_llama(keys, "gemma")
}

/// Adds what scores are divided by the square root of. No key has it: it is the width of heads, except in the largest model,
/// which has so many layers.
fn add_score_scale(keys: &Keys<'_>, config: &mut Config, largest: usize) -> Result<(), Error> {
    let [hidden, heads] = [keys.needed("embedding_length")?, keys.heads()?[0]];
    let scale = if keys.layers()? == largest { hidden / heads } else { keys.head_dim()? };
    config.insert("query_pre_attn_scalar".into(), scale.into());
    Ok(())
}

fn gemma2(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = like_llama(keys, "gemma2")?;
    add_score_scale(keys, &mut config, 46)?;
    // Files of the first days have none of these keys, and the family's caps.
    for key in ["attn_logit_softcapping", "final_logit_softcapping"] {
        keys.optional(&mut config, key, key)?;
    }
    config.insert("sliding_window".into(), keys.needed("attention.sliding_window")?.into());
    add_windows(keys, &mut config, |layer| layer % 2 == 0)?;
    Ok(config)
}

fn gemma3(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = like_llama(keys, "gemma3_text")?;
    add_score_scale(keys, &mut config, 62)?;
    config.extend(object(json!({
        "final_logit_softcapping": keys.number("final_logit_softcapping")?,
        "sliding_window": keys.size_or_zero("attention.sliding_window")?,
        "rope_local_base_freq": keys.number("rope.freq_base_swa")?.unwrap_or(10_000.0),
    })));
    add_windows(keys, &mut config, |layer| !(layer + 1).is_multiple_of(6))?;
    Ok(config)
}

/// Adds which layers have a window: as the key says, otherwise by the family's default.
fn add_windows(keys: &Keys<'_>, config: &mut Config, default: impl Fn(usize) -> bool) -> Result<(), Error> {
    let has_windows = config.get("sliding_window").is_some_and(|window| !window.is_null());
    let listed = keys.flags("attention.sliding_window_pattern")?;
    let slides = match listed {
        Some(slides) => slides,
        None => (0..keys.layers()?).map(|layer| has_windows && default(layer)).collect(),
    };
    let name = |slides: &bool| if *slides { "sliding_attention" } else { "full_attention" };
    config.insert("layer_types".into(), slides.iter().map(name).collect());
    Ok(())
}

fn phi3(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = keys.standard("phi3")?;
    keys.rms_epsilon(&mut config)?;
    rope::add_partial(keys, &mut config, "partial_rotary_factor")?;
    config.insert("sliding_window".into(), keys.size_or_zero("attention.sliding_window")?.into());
    let original = config.get("rope_scaling").and_then(|scaling| scaling.get(ORIGINAL)).cloned();
    config.extend(original.map(|original| (ORIGINAL.to_owned(), original)));
    Ok(config)
}

/// The key of LongRoPE's original context, which Phi has at the top.
const ORIGINAL: &str = "original_max_position_embeddings";

fn granite(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = like_llama(keys, "granite")?;
    config.insert("mlp_bias".into(), keys.has_tensor("blk.0.ffn_gate.bias").into());
    add_multipliers(keys, &mut config)?;
    Ok(config)
}

fn granite_moe(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = like_llama(keys, "granitemoe")?;
    keys.experts(&mut config, "num_local_experts")?;
    add_multipliers(keys, &mut config)?;
    Ok(config)
}

fn add_multipliers(keys: &Keys<'_>, config: &mut Config) -> Result<(), Error> {
    for (key, name) in [
        ("attention.scale", "attention_multiplier"),
        ("embedding_scale", "embedding_multiplier"),
        ("residual_scale", "residual_multiplier"),
        ("logit_scale", "logits_scaling"),
    ] {
        keys.optional(config, key, name)?;
    }
    Ok(())
}

/// OLMo 2, or OLMo 3 if there are windows.
fn olmo2(keys: &Keys<'_>) -> Result<Config, Error> {
    let Some(window) = keys.size_or_zero("attention.sliding_window")? else {
        return like_llama(keys, "olmo2");
    };
    let mut config = like_llama(keys, "olmo3")?;
    let theta = config.remove("rope_theta");
    let local = json!(keys.number("rope.freq_base_swa")?.or(theta.as_ref().and_then(Value::as_f64)));
    let mut global = match config.remove("rope_scaling") {
        Some(scaling) => object(scaling),
        None => object(json!({ "rope_type": "default" })),
    };
    global.insert("rope_theta".into(), theta.into());
    let local = json!({ "rope_type": "default", "rope_theta": local });
    config.insert("rope_parameters".into(), json!({ "full_attention": global, "sliding_attention": local }));
    config.insert("sliding_window".into(), window.into());
    add_windows(keys, &mut config, |layer| !(layer + 1).is_multiple_of(4))?;
    Ok(config)
}

fn exaone4(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = like_llama(keys, "exaone4")?;
    config.insert("sliding_window".into(), keys.size_or_zero("attention.sliding_window")?.into());
    add_windows(keys, &mut config, |layer| !(layer + 1).is_multiple_of(4))?;
    Ok(config)
}

fn glm4(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = keys.standard("glm4")?;
    keys.rms_epsilon(&mut config)?;
    rope::add_partial(keys, &mut config, "partial_rotary_factor")?;
    config.insert("attention_bias".into(), keys.has_tensor("blk.0.attn_q.bias").into());
    Ok(config)
}

fn gpt_oss(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = keys.standard("gpt_oss")?;
    keys.rms_epsilon(&mut config)?;
    let width = keys.head_dim()?;
    keys.require("rope.dimension_count", "the width of heads", |value| value.as_u64() == Some(width as u64))?;
    rope::add_with(keys, &mut config, Ends::Exact)?;
    keys.experts(&mut config, "num_local_experts")?;
    let width = match keys.size("expert_feed_forward_length")? {
        Some(width) => width,
        None => keys.needed("feed_forward_length")?,
    };
    config.extend(object(json!({
        "intermediate_size": width,
        "sliding_window": keys.needed("attention.sliding_window")?,
        "attention_bias": keys.has_tensor("blk.0.attn_q.bias"),
    })));
    add_windows(keys, &mut config, |layer| layer % 2 == 0)?;
    Ok(config)
}

fn starcoder2(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = keys.standard("starcoder2")?;
    keys.epsilon(&mut config, "norm_epsilon")?;
    rope::add(keys, &mut config)?;
    config.insert("use_bias".into(), keys.has_tensor("blk.0.attn_q.bias").into());
    config.insert("sliding_window".into(), Value::Null);
    Ok(config)
}

fn stablelm(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = keys.standard("stablelm")?;
    keys.epsilon(&mut config, "layer_norm_eps")?;
    rope::add_partial(keys, &mut config, "partial_rotary_factor")?;
    // The key says what is missing from older config.json files; the tensors know.
    keys.flag("use_parallel_residual")?;
    config.extend(object(json!({
        "use_qkv_bias": keys.has_tensor("blk.0.attn_q.bias"),
        "qk_layernorm": keys.has_tensor("blk.0.attn_q_norm.weight"),
        "use_parallel_residual": !keys.has_tensor("blk.0.ffn_norm.weight"),
    })));
    Ok(config)
}

fn command_r(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = keys.standard("cohere")?;
    keys.epsilon(&mut config, "layer_norm_eps")?;
    rope::add(keys, &mut config)?;
    keys.optional(&mut config, "logit_scale", "logit_scale")?;
    config.extend(object(json!({
        "attention_bias": keys.has_tensor("blk.0.attn_q.bias"),
        "use_qk_norm": keys.has_tensor("blk.0.attn_q_norm.weight"),
    })));
    Ok(config)
}

fn cohere2(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = keys.standard("cohere2")?;
    keys.epsilon(&mut config, "layer_norm_eps")?;
    rope::add(keys, &mut config)?;
    keys.optional(&mut config, "logit_scale", "logit_scale")?;
    config.insert("sliding_window".into(), keys.needed("attention.sliding_window")?.into());
    add_windows(keys, &mut config, |layer| !(layer + 1).is_multiple_of(4))?;
    Ok(config)
}

fn gpt_neox(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = keys.standard("gpt_neox")?;
    keys.epsilon(&mut config, "layer_norm_eps")?;
    rope::add_partial(keys, &mut config, "rotary_pct")?;
    config.insert("rotary_emb_base".into(), rope::theta(keys)?.into());
    config.insert("attention_bias".into(), keys.has_tensor("blk.0.attn_qkv.bias").into());
    if let Some(parallel) = keys.flag("use_parallel_residual")? {
        config.insert("use_parallel_residual".into(), parallel.into());
    }
    Ok(config)
}

fn gpt2(keys: &Keys<'_>) -> Result<Config, Error> {
    let mut config = keys.basic("gpt2")?;
    keys.epsilon(&mut config, "layer_norm_epsilon")?;
    config.extend(object(json!({
        "n_embd": keys.needed("embedding_length")?,
        "n_layer": keys.layers()?,
        "n_head": keys.heads()?[0],
        "n_positions": keys.needed("context_length")?,
        "n_inner": keys.size("feed_forward_length")?,
    })));
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_sorted() {
        assert!(ARCHITECTURES.is_sorted_by(|one, other| one.name < other.name));
    }
}
