"""The base of the cases in families.py: a config.json of each family with the keys and values of the hub, but small sizes
and windows."""

import torch

SIZES = {
    "bos_token_id": 1, "eos_token_id": 2, "hidden_size": 32, "initializer_range": 0.02, "intermediate_size": 72,
    "max_position_embeddings": 512, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
    "use_cache": True, "vocab_size": 113,
}  # fmt: skip
SLIDING, FULL = "sliding_attention", "full_attention"


def hub(architecture, model_type, version, **keys):
    """Returns a config.json with the keys of the hub, except torch_dtype."""
    return SIZES | {
        "architectures": [architecture], "model_type": model_type, "transformers_version": version, **keys
    }  # fmt: skip


def sized(family, **keys):
    """Returns a config.json without the keys that have defaults."""
    kept = ("architectures", "bos_token_id", "eos_token_id", "model_type", "pad_token_id", *SIZES)
    left_out = ("initializer_range", "use_cache")
    return {key: family[key] for key in kept if key in family and key not in left_out} | keys


MISTRAL = hub(
    "MistralForCausalLM", "mistral", "4.34.0", hidden_act="silu", rms_norm_eps=1e-5, rope_theta=10000.0,
    sliding_window=24, tie_word_embeddings=False,
)  # fmt: skip
QWEN2 = hub(
    "Qwen2ForCausalLM", "qwen2", "4.40.1", attention_dropout=0.0, hidden_act="silu", max_window_layers=1,
    rms_norm_eps=1e-6, rope_theta=1000000.0, sliding_window=50, tie_word_embeddings=True, use_sliding_window=False,
)  # fmt: skip
QWEN3 = hub(
    "Qwen3ForCausalLM", "qwen3", "4.51.0", attention_bias=False, attention_dropout=0.0, head_dim=12, hidden_act="silu",
    hidden_size=30, num_attention_heads=3, num_key_value_heads=1, intermediate_size=70, max_window_layers=2,
    rms_norm_eps=1e-6, rope_scaling=None, rope_theta=1000000.0, sliding_window=None, tie_word_embeddings=True,
    use_sliding_window=False,
)  # fmt: skip
OLMO2 = hub(
    "Olmo2ForCausalLM", "olmo2", "4.47.0", attention_bias=False, attention_dropout=0.0, hidden_act="silu",
    pad_token_id=0, rms_norm_eps=1e-6, rope_scaling=None, rope_theta=500000.0, tie_word_embeddings=False,
)  # fmt: skip
GRANITE = hub(
    "GraniteForCausalLM", "granite", "4.45.0", attention_bias=False, attention_dropout=0.1, attention_multiplier=0.21,
    embedding_multiplier=12.0, hidden_act="silu", logits_scaling=3.0, mlp_bias=False, pad_token_id=0,
    residual_multiplier=0.22, rms_norm_eps=1e-5, rope_scaling=None, rope_theta=10000000.0, tie_word_embeddings=True,
)  # fmt: skip
PHI3 = hub(
    "Phi3ForCausalLM", "phi3", "4.41.0", attention_bias=False, attention_dropout=0.0, embd_pdrop=0.0,
    hidden_act="silu", num_key_value_heads=4, original_max_position_embeddings=512, pad_token_id=0, resid_pdrop=0.0,
    rms_norm_eps=1e-5, rope_scaling=None, rope_theta=10000.0, sliding_window=50, tie_word_embeddings=False,
)  # fmt: skip
STARCODER2 = hub(
    "Starcoder2ForCausalLM", "starcoder2", "4.37.0", attention_dropout=0.1, attention_softmax_in_fp32=True,
    embedding_dropout=0.1, hidden_act="gelu_pytorch_tanh", mlp_type="default", norm_epsilon=1e-5,
    norm_type="layer_norm", residual_dropout=0.1, rope_theta=999999.4420358813, scale_attention_softmax_in_fp32=True,
    scale_attn_weights=True, sliding_window=19, use_bias=True,
)  # fmt: skip
GEMMA = hub(
    "GemmaForCausalLM", "gemma", "4.38.0", attention_bias=False, attention_dropout=0.0, bos_token_id=2, eos_token_id=1,
    head_dim=16, hidden_act="gelu", hidden_activation=None, num_key_value_heads=1, pad_token_id=0, rms_norm_eps=1e-6,
    rope_scaling=None, rope_theta=10000.0,
)  # fmt: skip
GEMMA2 = hub(
    "Gemma2ForCausalLM", "gemma2", "4.42.4", attention_bias=False, attention_dropout=0.0, attn_logit_softcapping=4.0,
    bos_token_id=2, cache_implementation="hybrid", eos_token_id=1, final_logit_softcapping=6.0, head_dim=16,
    hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh", pad_token_id=0, query_pre_attn_scalar=24,
    rms_norm_eps=1e-6, rope_theta=10000.0, sliding_window=24,
)  # fmt: skip
GEMMA3 = hub(
    "Gemma3ForCausalLM", "gemma3_text", "4.50.0", attention_bias=False, attention_dropout=0.0,
    attn_logit_softcapping=None, bos_token_id=2, cache_implementation="hybrid", eos_token_id=[1, 106],
    final_logit_softcapping=None, head_dim=16, hidden_activation="gelu_pytorch_tanh", hidden_size=24,
    intermediate_size=50, num_attention_heads=3, num_hidden_layers=6, num_key_value_heads=1, pad_token_id=0,
    query_pre_attn_scalar=24, rms_norm_eps=1e-6, rope_local_base_freq=10000.0,
    rope_scaling={"factor": 8.0, "rope_type": "linear"}, rope_theta=1000000.0, sliding_window=19,
    sliding_window_pattern=6,
)  # fmt: skip
COHERE = hub(
    "CohereForCausalLM", "cohere", "4.38.2", attention_bias=False, attention_dropout=0.0, bos_token_id=5,
    eos_token_id=7, hidden_act="silu", layer_norm_eps=1e-5, logit_scale=0.0625, model_max_length=512, pad_token_id=0,
    rope_theta=8000000.0, use_qk_norm=False,
)  # fmt: skip
COHERE2 = hub(
    "Cohere2ForCausalLM", "cohere2", "4.48.0", attention_bias=False, attention_dropout=0.0, bos_token_id=5,
    cache_implementation="hybrid", eos_token_id=7, head_dim=8, hidden_act="silu", hidden_size=24,
    intermediate_size=58, layer_norm_eps=1e-5, layer_switch=4, logit_scale=0.25, num_attention_heads=3,
    num_hidden_layers=4, num_key_value_heads=1, order_of_interleaved_layers="local_attn_first", pad_token_id=0,
    position_embedding_type="rope_gptj", rope_scaling=None, rope_theta=50000.0, rotary_pct=1.0, sliding_window=24,
    sliding_window_pattern=4, use_embedding_sharing=True, use_gated_activation=True, use_parallel_block=True,
    use_parallel_embedding=True,
)  # fmt: skip
GLM4 = hub(
    "Glm4ForCausalLM", "glm4", "4.52.0", attention_bias=True, attention_dropout=0.0, eos_token_id=[3, 4, 5],
    head_dim=16, hidden_act="silu", pad_token_id=3, partial_rotary_factor=0.5, rms_norm_eps=1e-5, rope_theta=10000.0,
    tie_word_embeddings=False,
)  # fmt: skip
EXAONE4 = hub(
    "Exaone4ForCausalLM", "exaone4", "4.54.0", attention_dropout=0.0, head_dim=10, hidden_act="silu", hidden_size=24,
    intermediate_size=58, num_attention_heads=3, num_key_value_heads=1, pad_token_id=0, rms_norm_eps=1e-5,
    rope_theta=1000000, tie_word_embeddings=True,
)  # fmt: skip
GPT_NEOX = hub(
    "GPTNeoXForCausalLM", "gpt_neox", "4.24.0", bos_token_id=0, eos_token_id=0, hidden_act="gelu", hidden_size=32,
    intermediate_size=100, layer_norm_eps=1e-5, num_attention_heads=2, rotary_emb_base=10000, rotary_pct=0.25,
    tie_word_embeddings=False, use_parallel_residual=True,
)  # fmt: skip
del GPT_NEOX["num_key_value_heads"]
STABLELM = hub(
    "StableLmForCausalLM", "stablelm", "4.38.0", bos_token_id=0, eos_token_id=0, hidden_act="silu",
    layer_norm_eps=1e-5, num_attention_heads=2, num_key_value_heads=2, partial_rotary_factor=0.25, rope_theta=10000,
    tie_word_embeddings=False, use_qkv_bias=True,
)  # fmt: skip
SMOLLM3 = hub(
    "SmolLM3ForCausalLM", "smollm3", "4.54.0", attention_bias=False, attention_dropout=0.0, hidden_act="silu",
    hidden_size=24, intermediate_size=58, layer_types=[FULL] * 4, max_window_layers=28, mlp_bias=False,
    no_rope_layer_interval=4, no_rope_layers=[1, 1, 1, 0], num_hidden_layers=4, num_key_value_heads=2, pad_token_id=0,
    pretraining_tp=2, rms_norm_eps=1e-6, rope_scaling=None, rope_theta=5000000.0, sliding_window=None,
    use_sliding_window=False,
)  # fmt: skip
OLMO3 = hub(
    "Olmo3ForCausalLM", "olmo3", "4.57.0", attention_bias=False, attention_dropout=0.0, hidden_act="silu",
    intermediate_size=58, layer_types=[SLIDING, SLIDING, SLIDING, FULL], num_attention_heads=2, num_hidden_layers=4,
    num_key_value_heads=2, pad_token_id=0, rms_norm_eps=1e-6, rope_theta=137,
    rope_scaling={
        "attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0, "factor": 8.0,
        "original_max_position_embeddings": 512, "rope_type": "yarn",
    },
    sliding_window=24, tie_word_embeddings=False,
)  # fmt: skip
SEED_OSS = hub(
    "SeedOssForCausalLM", "seed_oss", "4.55.0", attention_bias=True, attention_dropout=0.1, attention_out_bias=False,
    bos_token_id=0, head_dim=10, hidden_act="silu", mlp_bias=False, pad_token_id=1, residual_dropout=0.1,
    rms_norm_eps=1e-6, rope_scaling={"rope_type": "default"}, rope_theta=10000000.0, tie_word_embeddings=False,
)  # fmt: skip
ERNIE4_5 = hub(
    "Ernie4_5ForCausalLM", "ernie4_5", "4.54.0", bos_token_id=1, head_dim=10, hidden_act="silu", pad_token_id=0,
    rms_norm_eps=1e-5, rope_theta=500000.0, tie_word_embeddings=True, use_bias=False,
)  # fmt: skip
LLAMA = hub(
    "LlamaForCausalLM", "llama", "4.45.0", attention_bias=False, head_dim=16, hidden_act="silu", mlp_bias=False,
    pretraining_tp=1, rms_norm_eps=1e-5, rope_theta=100.0, tie_word_embeddings=False,
)  # fmt: skip
GPT2 = {
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 0,
    "embd_pdrop": 0.1, "eos_token_id": 0, "initializer_range": 0.02, "layer_norm_epsilon": 1e-5, "model_type": "gpt2",
    "n_ctx": 344, "n_embd": 24, "n_head": 3, "n_layer": 2, "n_positions": 344, "resid_pdrop": 0.1,
    "summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True,
    "summary_type": "cls_index", "summary_use_proj": True,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "vocab_size": 113,
}  # fmt: skip
LONGROPE = {  # 6 and 4 factors, for 12 and 8 rotated elements of a head
    "long_factor": [1.5, 2.5, 4.0, 9.0, 13.5, 20.0],
    "short_factor": [1.0, 1.05, 1.2, 1.35, 1.9, 2.6],
    "type": "longrope",
}
LONG_CONTEXT = {"max_position_embeddings": 768, "original_max_position_embeddings": 384}


def neox_stale(layers):
    """Returns stale tensors that Pythia on the hub has in every layer."""
    return {
        f"gpt_neox.layers.{layer}.attention.{name}": tensor
        for layer in range(layers)
        for name, tensor in {
            "bias": torch.ones(1, 1, 8, 8, dtype=torch.uint8),
            "masked_bias": torch.tensor(-1e9),
            "rotary_emb.inv_freq": 10000.0 ** -(torch.arange(0, 4, 2) / 4),
        }.items()
    }
