"""The dense cases of make_family_fixtures.py.

Every family has one that leaves out the keys whose defaults a small model can have.
"""

import torch

from family_case import Case
from hub_configs import (
    COHERE, COHERE2, ERNIE4_5, EXAONE4, FULL, GEMMA, GEMMA2, GEMMA3, GLM4, GPT2, GPT_NEOX, GRANITE, LLAMA, LONG_CONTEXT,
    LONGROPE, MISTRAL, OLMO2, OLMO3, PHI3, QWEN2, QWEN3, SEED_OSS, SLIDING, SMOLLM3, STABLELM, STARCODER2, neox_stale,
    sized,
)  # fmt: skip

# Gains of branches that end in a norm, and of scores. They avoid repetitions, which are common with tied embeddings.
LIVELY = {"post_attention": 4.0, "post_feedforward": 4.0, "q_norm": 2.0, "k_norm": 2.0, "v_proj.weight": 5.0}
# Large logits, so that variants of GELU, which differ by less than 5e-4, give logits that differ by 0.02.
GELU = {"lm_head": 26.0, "embed_out": 26.0, "mlp.c_proj": 5.0, "down_proj": 5.0, "dense_4h_to_h": 3.0}
SMALL = {"embedding_std": 0.003}  # so that the epsilon of the first norm matters


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


def theta(value):
    """Returns a change that shows that the default of rope_theta matters."""
    return {"default rope_theta": {"rope_theta": value}}


CASES = [
    Case("mistral-window", "Mistral 7B v0.1: a window", MISTRAL, storage="BF16"),
    Case(
        "mistral-nemo", "Mistral Nemo: no window, head_dim",
        MISTRAL | {
            "hidden_size": 36, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 16, "rope_theta": 1e6,
            "sliding_window": None,
        },
        spelling="saved",
    ),
    Case(
        "mistral-bare", "defaults: eight key/value heads, a long window",
        without(sized(MISTRAL, num_attention_heads=8), "num_key_value_heads"),
        **SMALL, matters=theta(15000.0) | {"default eps": {"rms_norm_eps": 1e-5}},
    ),

    Case(
        "qwen2-tied", "biases of q, k and v, tied, a window that is off", QWEN2, storage="BF16",
        matters={"use_sliding_window": {"use_sliding_window": True}}, idle=("sliding_window", "sliding_window + 1"),
    ),
    Case(
        "qwen2-window", "windows from the layer max_window_layers on",
        QWEN2 | {
            "num_hidden_layers": 3, "sliding_window": 19, "use_sliding_window": True, "tie_word_embeddings": False,
            "intermediate_size": 50,
        },
        storage="F16", matters={"max_window_layers": {"max_window_layers": 2}},
    ),
    Case(
        "qwen2-layer-types", "layer_types; defaults",
        sized(
            QWEN2, num_hidden_layers=3, layer_types=[FULL, SLIDING, FULL], sliding_window=24, use_sliding_window=True
        ),
        **SMALL, storage="BF16", spelling="saved",
        matters=theta(15000.0) | {
            "layer_types": {"layer_types": [SLIDING, FULL, FULL]}, "default eps": {"rms_norm_eps": 1e-5},
        },
    ),

    Case("qwen3-tied", "norms of each head of q and k, head_dim, tied", QWEN3, storage="BF16"),
    Case(
        "qwen3-biases", "biases of q, k, v and o; windows by layer_types; untied",
        QWEN3 | {
            "attention_bias": True, "layer_types": [FULL, SLIDING], "num_key_value_heads": 3, "sliding_window": 24,
            "tie_word_embeddings": False, "use_sliding_window": True,
        },
        spelling="saved", matters={"layer_types": {"layer_types": [SLIDING, FULL]}},
    ),
    Case(
        "qwen3-bare", "defaults: head_dim 128",
        sized(QWEN3, hidden_size=24, num_attention_heads=2, intermediate_size=50), storage="BF16", **SMALL,
        matters=theta(15000.0) | {"default eps": {"rms_norm_eps": 1e-5}},
    ),

    Case("olmo2-hub", "norms after attention and MLP, norms of all heads of q and k together", OLMO2, storage="BF16"),
    Case(
        "olmo2-biases", "biases of q, k, v and o; tied",
        OLMO2 | {"attention_bias": True, "tie_word_embeddings": True, "num_key_value_heads": 1},
        storage="F16", spelling="saved", embedding_std=0.5, gains=LIVELY,
    ),
    Case(
        "olmo2-bare", "defaults: as many key/value heads as query heads",
        without(sized(OLMO2), "num_key_value_heads"), storage="F16", matters=theta(15000.0),
    ),

    Case(
        "granite-tied", "four multipliers, tied", GRANITE, storage="BF16", embedding_std=0.1,
        gains={"q_proj": 4.0, "o_proj": 6.0, "down_proj": 4.0},
    ),
    Case(
        "granite-biases", "biases of attention and MLP, untied",
        GRANITE | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False, "num_key_value_heads": 1},
        spelling="saved", embedding_std=0.1,
    ),
    Case(
        "granite-bare", "defaults: multipliers of 1, also of the scores",
        without(sized(GRANITE), "num_key_value_heads"), storage="BF16", **SMALL, gain=1.3,
        matters=theta(15000.0) | {
            "default eps": {"rms_norm_eps": 1e-5},
            "default attention_multiplier": {"attention_multiplier": 8**-0.5},
            "default embedding_multiplier": {"embedding_multiplier": 2.0},
            "default residual_multiplier": {"residual_multiplier": 0.8},
            "default logits_scaling": {"logits_scaling": 2.0},
        },
    ),

    Case("phi3-window", "fused q, k and v, fused gate and up, a window", PHI3),
    Case(
        "phi3-longrope", "Phi-3 128k: longrope by its short factors, no window",
        PHI3 | LONG_CONTEXT | {
            "hidden_size": 36, "num_attention_heads": 3, "num_key_value_heads": 3, "rope_scaling": LONGROPE,
            "sliding_window": None,
        },
        storage="BF16", idle=("rope_scaling.long_factor",),
        matters={
            "rope_scaling": {"rope_scaling": None},
            "scale of rope": {"max_position_embeddings": 1536},
        },
    ),
    Case(
        "phi4-mini", "longrope of a part of each head, tied, grouped heads",
        PHI3 | LONG_CONTEXT | {
            "full_attn_mod": 1, "hidden_size": 64, "interpolate_factor": 1, "lm_head_bias": False, "mlp_bias": False,
            "num_key_value_heads": 2, "partial_rotary_factor": 0.75, "rope_scaling": LONGROPE, "sliding_window": 4096,
            "tie_word_embeddings": True,
        },
        storage="BF16", spelling="saved", idle=("sliding_window", "sliding_window + 1", "rope_scaling.long_factor"),
    ),
    Case(
        "phi3-bare", "defaults", without(sized(PHI3), "num_key_value_heads"), storage="F16",
        **SMALL, matters=theta(15000.0) | {"default eps": {"rms_norm_eps": 1e-6}},
    ),

    Case(
        "starcoder2-window", "norms and biases as in GPT, tied, grouped heads, a window", STARCODER2, storage="BF16",
        embedding_std=0.5, idle=("scale_attn_weights",),
    ),
    Case(
        "starcoder2-no-biases", "use_bias false, untied, no window",
        STARCODER2 | {
            "num_key_value_heads": 1, "rope_theta": 100000, "sliding_window": None, "tie_word_embeddings": False,
            "use_bias": False,
        },
        storage="BF16", spelling="saved", idle=("scale_attn_weights",), gains=GELU | {"q_proj": 3.0},
        matters={"kind of gelu": {"hidden_act": "gelu"}},
    ),
    Case(
        "starcoder2-bare", "defaults: two key/value heads, biases, tied",
        without(sized(STARCODER2), "num_key_value_heads"), storage="F16",
        embedding_std=0.5, matters=theta(15000.0) | {"default activation": {"hidden_act": "relu"}},
    ),

    Case(
        "gemma-tied", "norms by 1 + w, embeddings times the square root of their width, 'gelu' that means the tanh",
        GEMMA, storage="BF16", norm_mean=0.0, embedding_std=0.3,
    ),
    Case(
        "gemma-biases", "biases of q, k, v and o, untied",
        GEMMA | {
            "attention_bias": True, "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
            "num_key_value_heads": 2, "tie_word_embeddings": False,
        },
        storage="F16", spelling="saved", norm_mean=0.0, embedding_std=0.3, idle=("hidden_activation",), gains=GELU,
        matters={"kind of gelu": {"hidden_act": "gelu_python"}},
    ),
    Case(
        "gemma-bare", "defaults: head_dim 256, tied",
        sized(GEMMA, hidden_size=24, intermediate_size=50, num_attention_heads=1),
        storage="BF16", norm_mean=0.0, embedding_std=0.3,
        matters=theta(15000.0) | {"default activation": {"hidden_act": "relu"}},
    ),

    Case(
        "gemma2-hub", "caps of scores and logits, four norms, every second layer with a window, query_pre_attn_scalar",
        GEMMA2 | {"num_hidden_layers": 3, "intermediate_size": 50}, storage="BF16", norm_mean=0.0, embedding_std=0.3,
        idle=("hidden_act",), gains=LIVELY | {"q_proj": 5.0},
    ),
    Case(
        "gemma2-no-caps", "no caps, layer_types, biases, untied",
        GEMMA2 | {
            "attention_bias": True, "attn_logit_softcapping": None, "final_logit_softcapping": None,
            "intermediate_size": 50, "layer_types": [FULL, SLIDING], "num_key_value_heads": 1,
            "tie_word_embeddings": False,
        },
        storage="BF16", spelling="saved", norm_mean=0.0, embedding_std=0.3, idle=("hidden_act",), gains=GELU,
        matters={"layer_types": {"layer_types": [SLIDING, FULL]}, "kind of gelu": {"hidden_activation": "gelu"}},
    ),
    Case(
        "gemma2-bare", "defaults: head_dim 256, query_pre_attn_scalar 256, caps 50 and 30",
        sized(
            GEMMA2, hidden_size=24, intermediate_size=50, num_attention_heads=1, num_key_value_heads=1,
            sliding_window=50,
        ),
        storage="BF16", norm_mean=0.0, embedding_std=0.3, gains=LIVELY | {"q_proj": 9.0},
        matters=theta(15000.0) | {
            "default cap of scores": {"attn_logit_softcapping": None},
            "default cap of logits": {"final_logit_softcapping": None},
            "default activation": {"hidden_activation": "relu"},
        },
    ),

    Case(
        "gemma3-hub", "five layers with a window and their own rope, one without and with linear rope; q and k normed",
        GEMMA3, storage="BF16", norm_mean=0.0, embedding_std=0.3, gains={"q_norm": 2.5},
    ),
    Case(
        "gemma3-layer-types", "layer_types, biases, untied, a large cap of logits",
        GEMMA3 | {
            "attention_bias": True, "final_logit_softcapping": 200.0,
            "layer_types": [SLIDING, FULL, SLIDING], "num_hidden_layers": 3, "rope_local_base_freq": 137.0,
            "tie_word_embeddings": False,
        },
        storage="F16", spelling="saved", norm_mean=0.0, embedding_std=0.3, gains=GELU,
        matters={
            "layer_types": {"layer_types": [FULL, SLIDING, SLIDING]}, "kind of gelu": {"hidden_activation": "gelu"},
        },
    ),
    Case(
        "gemma3-bare", "defaults: a sixth layer without a window, both thetas",
        sized(
            GEMMA3, head_dim=16, query_pre_attn_scalar=16, sliding_window=19,
        ),
        storage="F16", norm_mean=0.0, embedding_std=0.3, gains={"q_norm": 2.5},
        matters=theta(1500.0) | {
            "default rope_local_base_freq": {"rope_local_base_freq": 15000.0},
            "default sliding_window_pattern": {"sliding_window_pattern": 3},
            "default activation": {"hidden_activation": "relu"},
        },
    ),

    Case(
        "cohere-tied", "attention beside the MLP, one norm, logit_scale, interleaved rope, tied", COHERE,
        storage="F16", embedding_std=0.5,
    ),
    Case(
        "cohere-qk-norm", "Command R+: norms of each head of q and k; biases; untied",
        COHERE | {
            "attention_bias": True, "logit_scale": 0.8, "num_key_value_heads": 4, "rope_theta": 75000.0,
            "tie_word_embeddings": False, "use_qk_norm": True,
        },
        storage="BF16", spelling="saved",
    ),
    Case(
        "cohere-bare", "defaults: logit_scale 0.0625, rope_theta 500000",
        without(sized(COHERE), "num_key_value_heads"), storage="BF16", embedding_std=0.5,
        matters=theta(10000.0) | {"default logit_scale": {"logit_scale": 0.08}},
    ),

    Case(
        "cohere2-hub", "three layers with a window and rope, the fourth without both",
        COHERE2, storage="BF16", embedding_std=0.5, idle=("rotary_pct",),
        matters={"sliding_window_pattern": {"sliding_window_pattern": 2}},
    ),
    Case(
        "cohere2-layer-types", "layer_types, biases, untied",
        COHERE2 | {
            "attention_bias": True, "layer_types": [FULL, SLIDING, FULL], "num_hidden_layers": 3,
            "num_key_value_heads": 3, "tie_word_embeddings": False,
        },
        spelling="saved", matters={"layer_types": {"layer_types": [SLIDING, SLIDING, FULL]}}, idle=("rotary_pct",),
    ),
    Case(
        "cohere2-bare", "defaults: logit_scale 0.0625, every fourth layer without a window",
        without(sized(COHERE2, sliding_window=50, num_hidden_layers=5), "num_key_value_heads"),
        storage="F16", embedding_std=0.5,
        matters=theta(15000.0) | {
            "default logit_scale": {"logit_scale": 0.08},
            "default sliding_window_pattern": {"sliding_window_pattern": 3},
        },
    ),

    Case(
        "glm4-hub", "interleaved rope of half a head, four norms, biases of q, k and v, fused gate and up", GLM4,
        storage="BF16",
    ),
    Case(
        "glm4-no-biases", "no biases, rope of a quarter, tied",
        GLM4 | {
            "attention_bias": False, "partial_rotary_factor": 0.25, "tie_word_embeddings": True,
            "num_key_value_heads": 1, "eos_token_id": 3,
        },
        storage="F16", spelling="saved", embedding_std=0.3,
    ),
    Case(
        "glm4-bare", "defaults: head_dim 128, two key/value heads, biases, half of the rope",
        without(sized(GLM4, hidden_size=24, intermediate_size=50, num_attention_heads=2), "num_key_value_heads"),
        storage="BF16", embedding_std=0.0003,
        matters=theta(15000.0) | {
            "default partial_rotary_factor": {"partial_rotary_factor": 0.25},
            "default eps": {"rms_norm_eps": 1e-6},
        },
    ),

    Case(
        "exaone4-small", "EXAONE 4 1.2B: norms after attention and MLP, norms of q and k, llama3 rope, no window, tied",
        EXAONE4 | {
            "layer_types": [FULL, FULL], "sliding_window": None, "sliding_window_pattern": None, "rope_theta": 137,
            "rope_scaling": {
                "factor": 16.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                "original_max_position_embeddings": 64, "rope_type": "llama3",
            },
        },
        storage="BF16", embedding_std=0.3, matters={"rope_scaling": {"rope_scaling": None}},
    ),
    Case(
        "exaone4-hybrid", "EXAONE 4 32B: three layers with a window and rope, the fourth without both; untied",
        EXAONE4 | {
            "layer_types": [SLIDING, SLIDING, SLIDING, FULL], "num_hidden_layers": 4, "num_key_value_heads": 3,
            "sliding_window": 24, "sliding_window_pattern": "LLLG", "tie_word_embeddings": False,
        },
        storage="F16", spelling="saved", matters={"layer_types": {"layer_types": [SLIDING, SLIDING, FULL, FULL]}},
    ),
    Case(
        "exaone4-bare", "defaults: every fourth layer without a window and rope",
        sized(EXAONE4, num_hidden_layers=4, sliding_window=19, num_attention_heads=2, num_key_value_heads=2),
        storage="F16", matters=theta(15000.0) | {
            "default sliding_window_pattern": {"sliding_window_pattern": 2},
        },
    ),

    Case(
        "gpt-neox-parallel", "Pythia: attention beside the MLP, rope of a quarter, fused q, k and v of each head",
        GPT_NEOX, storage="F16", stale=neox_stale(2), gains=GELU | {"query_key_value": 2.2},
        matters={"kind of gelu": {"hidden_act": "gelu_new"}},
    ),
    Case(
        "gpt-neox-sequential", "no parallel residual, rope of the whole head, no biases of attention, tied",
        GPT_NEOX | {
            "attention_bias": False, "num_attention_heads": 4, "rotary_emb_base": 137, "rotary_pct": 1.0,
            "tie_word_embeddings": True, "use_parallel_residual": False, "num_hidden_layers": 3,
        },
        spelling="saved", storage="BF16", embedding_std=0.3,
        matters={"use_parallel_residual": {"use_parallel_residual": True}},
    ),
    Case(
        "gpt-neox-bare", "defaults: parallel, a quarter of the rope, biases",
        sized(GPT_NEOX), **SMALL,
        matters={
            "default rotary_emb_base": {"rotary_emb_base": 15000}, "default rotary_pct": {"rotary_pct": 1.0},
            "default parallel": {"use_parallel_residual": False}, "default activation": {"hidden_act": "relu"},
            "default eps": {"layer_norm_eps": 1e-6},
        },
    ),

    Case("stablelm-biases", "StableLM 2 1.6B: rope of a quarter, biases of q, k and v", STABLELM, storage="F16"),
    Case(
        "stablelm-parallel", "StableLM 2 12B: norms for each head of q and k, attention beside the MLP",
        STABLELM | {
            "num_attention_heads": 4, "num_key_value_heads": 2, "partial_rotary_factor": 0.5, "qk_layernorm": True,
            "use_parallel_residual": True, "use_qkv_bias": False,
        },
        spelling="saved",
    ),
    Case(
        "stablelm-bare", "defaults: a quarter of the rope, no biases",
        sized(STABLELM), storage="BF16", **SMALL,
        matters=theta(15000.0) | {
            "default partial_rotary_factor": {"partial_rotary_factor": 1.0},
            "default eps": {"layer_norm_eps": 1e-6},
        },
    ),

    Case(
        "smollm3-hub", "the fourth layer without rope, tied", SMOLLM3, storage="BF16", embedding_std=0.3,
        matters={"no_rope_layers": {"no_rope_layers": [1, 1, 0, 1]}},
    ),
    Case(
        "smollm3-interval", "every second layer without rope and with a window; biases; untied",
        without(SMOLLM3, "layer_types", "no_rope_layers") | {
            "attention_bias": True, "mlp_bias": True, "no_rope_layer_interval": 2, "num_hidden_layers": 2,
            "num_key_value_heads": 1, "sliding_window": 24, "tie_word_embeddings": False, "use_sliding_window": True,
        },
        spelling="saved",
        matters={"use_sliding_window": {"use_sliding_window": False}},
    ),
    Case(
        "smollm3-bare", "defaults: rope_theta 2000000, every fourth layer without rope, four key/value heads",
        without(sized(SMOLLM3), "num_key_value_heads"), storage="F16", embedding_std=0.3,
        matters=theta(10000.0) | {"default no_rope_layer_interval": {"no_rope_layer_interval": 2}},
    ),

    Case(
        "olmo3-hub", "three layers with a window and plain rope, the fourth without and with yarn", OLMO3,
        storage="BF16",
        matters={
            "layer_types": {"layer_types": [SLIDING, SLIDING, FULL, FULL]}, "rope_scaling": {"rope_scaling": None},
        },
    ),
    Case(
        "olmo3-bare", "defaults: every fourth layer without a window, rope_theta 500000",
        sized(OLMO3, hidden_size=24, num_hidden_layers=5, num_key_value_heads=1, sliding_window=50), storage="F16",
        matters=theta(10000.0) | {
            "default layer_types": {"layer_types": [SLIDING, FULL, SLIDING, FULL, SLIDING]},
        },
    ),
    Case(
        "olmo3-biases", "biases of q, k, v and o; plain rope; tied",
        OLMO3 | {
            "attention_bias": True, "layer_types": [FULL, SLIDING], "num_hidden_layers": 2, "rope_scaling": None,
            "tie_word_embeddings": True, "rope_theta": 10000,
        },
        storage="F16", spelling="saved", embedding_std=0.5, gains=LIVELY,
    ),

    Case("seed-oss-hub", "biases of q, k and v, head_dim", SEED_OSS, storage="BF16"),
    Case(
        "seed-oss-biases", "biases of o and of the MLP too, tied",
        SEED_OSS | {"attention_out_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
        storage="F16", spelling="saved", embedding_std=0.3,
    ),
    Case(
        "seed-oss-bare", "defaults: head_dim 128, biases",
        sized(SEED_OSS, hidden_size=24, intermediate_size=50, num_attention_heads=2, num_key_value_heads=1),
        storage="BF16", **SMALL, matters=theta(15000.0) | {"default eps": {"rms_norm_eps": 1e-5}},
    ),

    Case("ernie4_5-hub", "interleaved rope, head_dim, tied", ERNIE4_5, storage="BF16", embedding_std=0.3),
    Case(
        "ernie4_5-biases", "biases of everything, untied", ERNIE4_5 | {"use_bias": True, "tie_word_embeddings": False},
        storage="F16", spelling="saved",
    ),
    Case(
        "ernie4_5-bare", "defaults but for the head: head_dim 128, two key/value heads, no biases",
        without(sized(ERNIE4_5, hidden_size=24, intermediate_size=50, num_attention_heads=2), "num_key_value_heads")
        | {"tie_word_embeddings": False},
        storage="BF16", **SMALL, matters=theta(15000.0) | {"default eps": {"rms_norm_eps": 1e-6}},
    ),

    Case(
        "llama-yarn", "yarn with the usual betas",
        LLAMA | {"rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 300, "rope_type": "yarn"}},
        storage="BF16",
        matters={
            "rope_scaling": {"rope_scaling": None},
            "default betas": {"rope_scaling": {
                "beta_fast": 8, "beta_slow": 3, "factor": 4.0, "original_max_position_embeddings": 300,
                "rope_type": "yarn",
            }},
            "default truncate": {"rope_scaling": {
                "factor": 4.0, "original_max_position_embeddings": 300, "rope_type": "yarn", "truncate": False,
            }},
        },
    ),
    Case(
        "llama-yarn-exact", "yarn with its own betas and factor of attention, not truncated",
        LLAMA | {
            "rope_scaling": {
                "attention_factor": 1.3, "beta_fast": 4.0, "beta_slow": 0.5, "factor": 4.0,
                "original_max_position_embeddings": 128, "rope_type": "yarn", "truncate": False,
            },
        },
        spelling="saved", storage="F16",
    ),
    Case(
        "llama-yarn-mscale", "yarn with mscale and mscale_all_dim, 'type' for rope_type",
        LLAMA | {
            "rope_scaling": {
                "beta_fast": 6, "beta_slow": 1, "factor": 8.0, "mscale": 1.2, "mscale_all_dim": 0.5,
                "original_max_position_embeddings": 96, "type": "yarn",
            },
        },
        storage="BF16",
    ),
    Case(
        "llama-dynamic", "dynamic rope, which changes nothing within max_position_embeddings",
        LLAMA | {"rope_scaling": {"factor": 2.0, "type": "dynamic"}}, storage="BF16", idle=("rope_scaling.factor",),
    ),

    Case(
        "gpt2-hub", "learned positions, weights with inputs before outputs, names without a prefix, tied", GPT2,
        without_prefix="transformer.", embedding_std=0.5, storage="F16",
        stale={f"h.{layer}.attn.bias": torch.ones(1, 1, 8, 8) for layer in range(2)},
    ),
    Case(
        "gpt2-inverse-layers", "scores divided by the layer's number, n_inner, names with a prefix",
        GPT2 | {"n_inner": 50, "n_layer": 3, "scale_attn_by_inverse_layer_idx": True, "activation_function": "gelu"},
        spelling="saved", embedding_std=0.5,
    ),
    Case(
        "gpt2-unscaled", "scores that are not divided by the root of head_dim; untied; defaults",
        {
            "architectures": ["GPT2LMHeadModel"], "bos_token_id": 0, "eos_token_id": 0, "model_type": "gpt2",
            "n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 344, "scale_attn_weights": False,
            "tie_word_embeddings": False, "vocab_size": 97,
        },
        storage="BF16", gains=GELU, matters={"default activation": {"activation_function": "gelu"}},
    ),
]  # fmt: skip
