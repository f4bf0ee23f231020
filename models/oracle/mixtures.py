"""The cases of make_family_fixtures.py with mixtures of experts."""

from family_case import Case
from families import SMALL, theta
from hub_configs import FULL, SLIDING, hub, sized

ROUTER = {"mlp.gate.": 4.0, "block_sparse_moe.gate.": 4.0, "router.": 4.0}  # so that choices of experts are clear
EXPERTS = {"intermediate_size": 24, "num_experts_per_tok": 2, "output_router_logits": False, "vocab_size": 97}

MIXTRAL = hub(
    "MixtralForCausalLM", "mixtral", "4.36.0", **EXPERTS, attention_dropout=0.0, hidden_act="silu",
    num_local_experts=4, rms_norm_eps=1e-5, rope_theta=1000000.0, router_aux_loss_coef=0.02, sliding_window=None,
    tie_word_embeddings=False,
)  # fmt: skip
QWEN2_MOE = hub(
    "Qwen2MoeForCausalLM", "qwen2_moe", "4.39.0", **EXPERTS | {"intermediate_size": 50}, attention_dropout=0.0,
    decoder_sparse_step=1, hidden_act="silu", max_window_layers=1, moe_intermediate_size=14, norm_topk_prob=False,
    num_experts=5, rms_norm_eps=1e-6, rope_theta=1000000.0, router_aux_loss_coef=0.001,
    shared_expert_intermediate_size=26, sliding_window=24, tie_word_embeddings=False, use_sliding_window=False,
)  # fmt: skip
QWEN3_MOE = hub(
    "Qwen3MoeForCausalLM", "qwen3_moe", "4.51.0", **EXPERTS | {"intermediate_size": 50}, attention_bias=False,
    attention_dropout=0.0, decoder_sparse_step=1, head_dim=12, hidden_act="silu", max_window_layers=2,
    mlp_only_layers=[], moe_intermediate_size=14, norm_topk_prob=True, num_experts=6, rms_norm_eps=1e-6,
    rope_scaling=None, rope_theta=1000000.0, router_aux_loss_coef=0.001, sliding_window=None,
    tie_word_embeddings=False, use_sliding_window=False,
)  # fmt: skip
OLMOE = hub(
    "OlmoeForCausalLM", "olmoe", "4.43.0", **EXPERTS, attention_bias=False, attention_dropout=0.0, clip_qkv=None,
    hidden_act="silu", norm_topk_prob=False, num_experts=6, num_key_value_heads=4, pad_token_id=1, rms_norm_eps=1e-5,
    rope_scaling=None, rope_theta=10000.0, router_aux_loss_coef=0.01, tie_word_embeddings=False,
)  # fmt: skip
GRANITEMOE = hub(
    "GraniteMoeForCausalLM", "granitemoe", "4.46.0", **EXPERTS, attention_bias=False, attention_dropout=0.1,
    attention_multiplier=0.21, embedding_multiplier=12.0, hidden_act="silu", logits_scaling=3.0, num_local_experts=4,
    pad_token_id=0, residual_multiplier=0.22, rms_norm_eps=1e-6, rope_scaling=None, rope_theta=10000,
    router_aux_loss_coef=0.0, tie_word_embeddings=True,
)  # fmt: skip
GPT_OSS = hub(
    "GptOssForCausalLM", "gpt_oss", "4.55.0", **EXPERTS | {"intermediate_size": 22}, attention_bias=True,
    attention_dropout=0.0, experts_per_token=2, head_dim=10, hidden_act="silu", initial_context_length=128,
    layer_types=[SLIDING, FULL], num_local_experts=4, pad_token_id=0, rms_norm_eps=1e-5, rope_theta=150,
    rope_scaling={
        "beta_fast": 8.0, "beta_slow": 1.0, "factor": 4.0, "original_max_position_embeddings": 128,
        "rope_type": "yarn", "truncate": False,
    },
    router_aux_loss_coef=0.9, sliding_window=24, swiglu_limit=1.5, tie_word_embeddings=False,
)  # fmt: skip

CASES = [
    Case("mixtral-hub", "two of four experts, no window", MIXTRAL, storage="BF16", gains=ROUTER),
    Case(
        "mixtral-one", "one expert for each token, a window, tied",
        MIXTRAL | {
            "num_experts_per_tok": 1, "num_key_value_heads": 1, "num_local_experts": 3, "sliding_window": 19,
            "tie_word_embeddings": True,
        },
        storage="F16", spelling="saved", gains=ROUTER, embedding_std=0.5,
    ),
    Case(
        "mixtral-bare", "defaults: two of eight experts, rope_theta 1000000",
        sized(MIXTRAL, intermediate_size=16), storage="BF16", **SMALL, gains=ROUTER,
        matters=theta(10000.0) | {
            "default eps": {"rms_norm_eps": 1e-6}, "default num_experts_per_tok": {"num_experts_per_tok": 3},
        },
    ),

    Case(
        "qwen2-moe-hub", "experts and a shared one with a gate; probabilities as they are", QWEN2_MOE,
        storage="BF16", gains=ROUTER, idle=("sliding_window", "sliding_window + 1"),
        matters={"use_sliding_window": {"use_sliding_window": True}},
    ),
    Case(
        "qwen2-moe-sparse-step", "experts in every second layer but one, without biases, a window by layer_types, tied",
        QWEN2_MOE | {
            "decoder_sparse_step": 2, "layer_types": [FULL, SLIDING, FULL, FULL], "mlp_only_layers": [1],
            "norm_topk_prob": True, "num_hidden_layers": 4, "num_key_value_heads": 1, "qkv_bias": False,
            "tie_word_embeddings": True, "use_sliding_window": True,
        },
        storage="BF16", spelling="saved", gains=ROUTER, embedding_std=0.5,
    ),
    Case(
        "qwen2-moe-all", "every expert for each token; a window in even layers below max_window_layers",
        QWEN2_MOE | {
            "intermediate_size": 40, "max_window_layers": 2, "num_experts": 3, "num_experts_per_tok": 3,
            "num_hidden_layers": 3, "use_sliding_window": True,
        },
        storage="F16", gains=ROUTER, idle=("norm_topk_prob",),
        matters={"layer_types": {"layer_types": [FULL, SLIDING, FULL]}},
    ),

    Case(
        "qwen2-moe-q4", "sizes of whole groups, and weights that --quant q4 keeps as they are",
        QWEN2_MOE | {
            "intermediate_size": 64, "moe_intermediate_size": 32, "num_experts_per_tok": 3,
            "shared_expert_intermediate_size": 64,
        },
        gains=ROUTER, idle=("sliding_window", "sliding_window + 1"), q4=True,
    ),

    Case(
        "qwen3-moe-hub", "two of six experts, norms of each head of q and k, head_dim", QWEN3_MOE, storage="BF16",
        gains=ROUTER,
    ),
    Case(
        "qwen3-moe-saved", "num_local_experts; probabilities as they are, biases, a window, tied, first layer dense",
        QWEN3_MOE | {
            "attention_bias": True, "mlp_only_layers": [0], "norm_topk_prob": False, "num_experts_per_tok": 3,
            "sliding_window": 24, "tie_word_embeddings": True, "use_sliding_window": True,
        },
        storage="F16", spelling="saved", gains=ROUTER, embedding_std=0.5,
    ),
    Case(
        "qwen3-moe-bare", "defaults: probabilities as they are, head_dim of hidden / heads",
        sized(QWEN3_MOE, moe_intermediate_size=14, num_experts=5, num_experts_per_tok=1), storage="BF16", **SMALL,
        gains=ROUTER,
        matters=theta(15000.0) | {
            "default norm_topk_prob": {"norm_topk_prob": True}, "default eps": {"rms_norm_eps": 1e-5},
        },
    ),

    Case(
        "olmoe-hub", "two of six experts, norms of all heads of q and k together", OLMOE, storage="BF16",
        gains=ROUTER,
    ),
    Case(
        "olmoe-clip", "clip_qkv, every expert for each token, grouped heads, biases",
        OLMOE | {
            "attention_bias": True, "clip_qkv": 1.1, "norm_topk_prob": True, "num_experts": 3,
            "num_experts_per_tok": 3, "num_key_value_heads": 2,
        },
        storage="F16", spelling="saved", gains=ROUTER, idle=("norm_topk_prob",),
    ),

    Case(
        "granitemoe-hub", "stacked experts, four multipliers, tied", GRANITEMOE, storage="BF16", embedding_std=0.1,
        gains=ROUTER | {"q_proj": 4.0, "o_proj": 6.0, "output_linear": 4.0},
    ),
    Case(
        "granitemoe-one", "one expert for each token, untied, multipliers of 1",
        {
            k: v for k, v in GRANITEMOE.items()
            if k not in ("embedding_multiplier", "logits_scaling", "residual_multiplier")
        } | {"attention_bias": True, "num_experts_per_tok": 1, "tie_word_embeddings": False},
        storage="F16", spelling="saved", gains=ROUTER,
    ),

    Case(
        "gpt-oss-hub", "stacked experts with biases, clipped activation, sinks, yarn, every second layer with a window",
        GPT_OSS, storage="BF16", gains=ROUTER, idle=("hidden_act",),
    ),
    Case(
        "gpt-oss-wide", "three of four experts, of a size that kernels of GPUs read",
        GPT_OSS | {"experts_per_token": 3, "intermediate_size": 24, "num_experts_per_tok": 3},
        storage="BF16", gains=ROUTER, idle=("hidden_act",),
    ),
    Case(
        "gpt-oss-q4", "sizes of whole groups, and weights that --quant q4 keeps as they are",
        GPT_OSS | {"experts_per_token": 3, "head_dim": 8, "intermediate_size": 32, "num_experts_per_tok": 3},
        gains=ROUTER, idle=("hidden_act",), q4=True,
    ),
    Case(
        "gpt-oss-one", "one expert for each token, plain rope, no biases of attention, layer_types, tied",
        GPT_OSS | {
            "attention_bias": False, "experts_per_token": 1, "layer_types": [FULL, SLIDING, SLIDING],
            "num_experts_per_tok": 1, "num_hidden_layers": 3, "num_key_value_heads": 1, "num_local_experts": 3,
            "rope_scaling": {"rope_type": "default"}, "tie_word_embeddings": True,
        },
        storage="BF16", spelling="saved", gains=ROUTER, embedding_std=0.5, idle=("hidden_act",),
        matters={"layer_types": {"layer_types": [FULL, FULL, SLIDING]}},
    ),
    Case(
        "gpt-oss-bare", "defaults: every second layer with a window, head_dim 64, yarn times 32 from 4096",
        sized(GPT_OSS, hidden_size=24, num_attention_heads=2, num_key_value_heads=1, num_local_experts=5,
              sliding_window=19),
        storage="BF16", gains=ROUTER | {"gate_up_proj": 5.0},
        matters=theta(10000.0) | {
            "default rope": {"rope_parameters": {"rope_type": "default"}},
            "default layer_types": {"layer_types": [FULL, SLIDING]},
            "default num_experts_per_tok": {"num_experts_per_tok": 3},
            "default swiglu_limit": {"swiglu_limit": 20.0},
        },
    ),
]  # fmt: skip
