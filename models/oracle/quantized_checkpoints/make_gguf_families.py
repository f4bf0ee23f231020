#!/usr/bin/env python3
"""Makes fixtures of GGUF files of several architectures with llama.cpp's converter and llama-quantize.

    LLAMA_CPP=llama.cpp ORACLE_PYTHON=oracle/bin/python gguf/bin/python \\
        models/oracle/quantized_checkpoints/make_gguf_families.py [--check] [CASE…]

LLAMA_CPP is the source of llama.cpp (the one in llama-cpp-python 0.3.36), with build/bin/llama-quantize.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

LLAMA_CPP = Path(os.environ.get("LLAMA_CPP", "llama.cpp"))
sys.path[:0] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]

import conversion
import gguf
import numpy
import torch

import common
import family_case
from common import LLAMA, QWEN3_MOE, Case

VERSIONS = {"gguf": "0.19.0", "llama-cpp-python": "0.3.36", "transformers": "5.23.0", "torch": "2.15.0"}

WIDE = {"hidden_size": 256, "intermediate_size": 256, "head_dim": 32, "num_hidden_layers": 1}
LLAMA3 = {
    "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
}  # fmt: skip
MIXTRAL = {key: value for key, value in LLAMA.items() if key not in ("attention_bias", "mlp_bias", "head_dim")} | {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "intermediate_size": 64,
    "num_local_experts": 3,
    "num_experts_per_tok": 2,
    "output_router_logits": False,
    "router_aux_loss_coef": 0.02,
    "sliding_window": None,
}
GEMMA3 = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0,
    "sliding_window": 20,
    "sliding_window_pattern": 6,
    "query_pre_attn_scalar": 16,
    "final_logit_softcapping": None,
    "attn_logit_softcapping": None,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "vocab_size": 131,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
PHI3 = {
    "architectures": ["Phi3ForCausalLM"],
    "model_type": "phi3",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_act": "silu",
    "max_position_embeddings": 1024,
    "original_max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "rope_scaling": {
        "type": "longrope",
        "short_factor": [1.0, 1.1, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0],
        "long_factor": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
    },
    "sliding_window": None,
    "tie_word_embeddings": False,
    "vocab_size": 131,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
GPT_OSS = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "hidden_act": "silu",
    "max_position_embeddings": 512,
    "initial_context_length": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 150000.0,
    "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 128,
    },
    "sliding_window": 20,
    "layer_types": ["sliding_attention", "full_attention"],
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "experts_per_token": 2,
    "swiglu_limit": 7.0,
    "attention_bias": True,
    "output_router_logits": False,
    "router_aux_loss_coef": 0.9,
    "tie_word_embeddings": False,
    "vocab_size": 131,
    "eos_token_id": 2,
    "pad_token_id": 0,
}  # fmt: skip

GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "n_ctx": 192,
    "n_embd": 64,
    "n_head": 4,
    "n_layer": 1,
    "n_positions": 192,
    "layer_norm_epsilon": 1e-5,
    "vocab_size": 83,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
GPT_NEOX = {
    "architectures": ["GPTNeoXForCausalLM"],
    "model_type": "gpt_neox",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "layer_norm_eps": 1e-5,
    "rotary_emb_base": 10000,
    "rotary_pct": 0.25,
    "use_parallel_residual": True,
    "tie_word_embeddings": False,
    "vocab_size": 83,
    "bos_token_id": 0,
    "eos_token_id": 0,
}

CASES = [
    Case("gguf-q4-k-m", "Q4_K_M: Q4_K and Q6_K, and Q5_0 or Q8_0 where rows are no multiple of 256; Llama 3's rope",
         LLAMA | WIDE | LLAMA3, options={"quantize": ["Q4_K_M"]}),
    Case("gguf-biases", "Q8_0, with biases of q and k that are permuted too",
         LLAMA | {"attention_bias": True, "mlp_bias": True}, options={"quantize": ["Q8_0"]}),
    Case("gguf-f16", "F16: nothing but names and the order of rows; beside a config.json", LLAMA,
         options={"outtype": "f16", "config": True}),
    Case("gguf-split", "BF16 in two files", LLAMA, storage="BF16", options={"outtype": "bf16", "split": 8}),
    Case("gguf-qwen3-moe", "Q4_0; experts in stacks", QWEN3_MOE, options={"quantize": ["Q4_0"]}),
    Case("gguf-mixtral", "Q5_1; experts in stacks, and permuted rows; gate and up of different types", MIXTRAL,
         options={"quantize": ["--tensor-type", "ffn_up_exps=q8_0", "Q5_1"]}),
    Case("gguf-gemma3", "Q8_0; norms with 1 added, a pattern of windows that no key has", GEMMA3, norm_mean=0.0,
         embedding_std=0.06, gains={"q_norm": 2.5}, options={"quantize": ["Q8_0"]}),
    Case("gguf-phi3", "Q4_1; fused projections, LongRoPE's factors in tensors", PHI3, options={"quantize": ["Q4_1"]}),
    Case("gguf-gpt-oss", "MXFP4 and Q8_0; gate and up interleaved, sinks, YaRN", GPT_OSS,
         gains={"router": 4.0}, options={"quantize": ["MXFP4_MOE"]}),
    Case("gguf-gpt2", "Q8_0 by the converter; layers that the checkpoint has with inputs first", GPT2,
         embedding_std=0.5, options={"outtype": "q8_0"}),
    Case("gguf-gpt-neox", "Q8_0 by the converter; fused projections, which the checkpoint has head by head", GPT_NEOX,
         options={"outtype": "q8_0"}),
]  # fmt: skip


def convert(source, outfile, outtype, split=0):
    """Converts a checkpoint without a tokenizer, which the fixtures do not need."""
    hparams = conversion.ModelBase.load_hparams(source, False)
    architecture = conversion.get_model_architecture(hparams, conversion.ModelType.TEXT)
    kind = conversion.get_model_class(architecture)

    types = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16,
             "bf16": gguf.LlamaFileType.MOSTLY_BF16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}  # fmt: skip
    if architecture == "GPTNeoXForCausalLM":
        # transformers 5 calls it something else, which the converter does not read.
        hparams["rotary_pct"] = hparams["rope_parameters"]["partial_rotary_factor"]
    with torch.inference_mode():
        converter = kind(source, types[outtype], outfile, split_max_tensors=split, hparams=hparams)
        converter.set_vocab = lambda: None
        converter.modify_tensors = changes(architecture, converter, converter.modify_tensors)
        converter.write()


def changes(architecture, converter, usual):
    """Returns the changes of tensors that the converter makes, without what it cannot do to a fixture."""

    def gemma3(tensor, name, layer):
        # Its own cuts rows off that its tokenizer has no tokens for.
        return [(converter.map_tensor_name(name), tensor)] if "embed_tokens" in name else usual(tensor, name, layer)

    def gpt2(tensor, name, layer):
        # It fails on the masks of old checkpoints.
        return [] if name.endswith((".attn.bias", ".attn.masked_bias")) else usual(tensor, name, layer)

    norms = {}

    def stablelm(tensor, name, layer):
        # It collects the norms of heads, but returns where it has to yield their stack.
        found = re.search(r"([qk]_layernorm)\.norms\.\d+\.weight$", name)
        if not found:
            return usual(tensor, name, layer)
        heads = norms.setdefault((layer, found[1]), {}) | {name: tensor}
        norms[layer, found[1]] = heads
        count = converter.hparams["num_attention_heads" if found[1][0] == "q" else "num_key_value_heads"]
        return converter._stack_qk_norm(layer, count, heads, found[1]) if len(heads) == count else []

    special = {"Gemma3ForCausalLM": gemma3, "GPT2LMHeadModel": gpt2, "StableLmForCausalLM": stablelm}
    return special.get(architecture, usual)


def write(case, source, folder):
    folder.mkdir(parents=True, exist_ok=True)
    quantize, split = case.options.get("quantize"), case.options.get("split", 0)
    outtype = case.options.get("outtype", "f32")
    whole = folder / "model.gguf"
    convert(source, folder / "float.bin" if quantize else whole, outtype, split)
    if quantize:
        program = LLAMA_CPP / "build/bin/llama-quantize"
        *options, kind = quantize
        subprocess.run([program, *options, folder / "float.bin", whole, kind], check=True, capture_output=True)
        (folder / "float.bin").unlink()
    if case.options.get("config"):
        shutil.copyfile(source / "config.json", folder / "config.json")
    originals = common.stored(source)
    for name, tensor in read(case, folder).items():
        near = torch.nn.functional.cosine_similarity(tensor.flatten(), originals[name].float().flatten(), dim=0)
        assert near > 0.9, f"{case.name}: {name}: {near}"


def files(folder):
    """Returns the tensors of all files as numbers, with their types, and the architecture."""
    tensors, architecture = {}, None
    for path in sorted(folder.glob("*.gguf")):
        reader = gguf.GGUFReader(path)
        if (field := reader.get_field("general.architecture")) is not None:
            architecture = architecture or field.contents()
        for tensor in reader.tensors:
            numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            shape = [int(size) for size in reversed(tensor.shape)]
            tensors[tensor.name] = torch.from_numpy(numpy.array(numbers, numpy.float32)).reshape(shape), tensor
    return tensors, architecture


def unpermuted(tensor, heads):
    return tensor.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)


def read(case, folder, mistake=""):
    tensors, architecture = files(folder)
    arch = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    layers, heads = (case.config.get(key) for key in ("num_hidden_layers", "num_attention_heads"))
    names = gguf.get_tensor_name_map(arch, layers or case.config["n_layer"])
    kv_heads = case.config.get("num_key_value_heads")
    found = {}

    def take(name):
        mapped = names.get_name(name, (".weight", ".bias"))
        return tensors[mapped][0].clone()

    for name, shape in family_case.layout(json.dumps(case.config_json())):
        if expert := re.fullmatch(r"(.*\.experts)\.(\d+)\.(\w+)\.weight", name):
            before, index, layer = expert.groups()
            if layer.startswith("w"):
                before = before.replace("model.layers", "layers").replace("block_sparse_moe", "feed_forward")
            stack = take(f"{before}.{layer}.weight")
            found[name] = stack[-1 - int(index) if mistake == "experts in reverse" else int(index)]
        elif gate_up := re.fullmatch(r"(.*\.experts)\.gate_up_proj(_bias)?", name):
            end = ".bias" if gate_up[2] else ".weight"
            pair = [take(f"{gate_up[1]}.{part}_proj{end}") for part in ("gate", "up")]
            if mistake == "gate and up swapped":
                pair.reverse()
            both = torch.stack(pair, 2).flatten(1, 2)
            found[name] = both if gate_up[2] else both.transpose(1, 2)
        elif down := re.fullmatch(r"(.*\.experts\.down_proj)(_bias)?", name):
            tensor = take(f"{down[1]}{'.bias' if down[2] else '.weight'}")
            found[name] = tensor if down[2] else tensor.transpose(1, 2)
        elif name.endswith("sinks"):
            found[name] = take(f"{name}.weight")
        else:
            found[name] = take(name)
        if architecture == "gpt2" and family_case.has_inputs_first(name):
            if mistake != "inputs and outputs of c_proj swapped" or found[name].shape[0] != found[name].shape[1]:
                found[name] = found[name].T
        if "query_key_value" in name and mistake != "queries of all heads first":
            found[name] = found[name].unflatten(0, (3, heads, -1)).transpose(0, 1).flatten(0, 2)
        if architecture == "llama" and mistake != "rows permuted":
            if re.search(r"q_proj\.", name):
                found[name] = unpermuted(found[name], heads)
            if re.search(r"k_proj\.", name):
                found[name] = unpermuted(found[name], kv_heads)
        if architecture.startswith("gemma") and "norm" in name and mistake != "norms with 1 added":
            found[name] -= 1
        assert list(found[name].shape) == list(shape), f"{name}: {found[name].shape}, expected {shape}"
    return found


def mistakes(case):
    family = case.config["model_type"]
    if family in ("llama", "mixtral"):
        yield "rows permuted"
    if family == "gemma3_text":
        yield "norms with 1 added"
    if family in ("mixtral", "qwen3_moe"):
        yield "experts in reverse"
    if family == "gpt_oss":
        yield "gate and up swapped"
    if family == "gpt2":
        yield "inputs and outputs of c_proj swapped"
    if family == "gpt_neox":
        yield "queries of all heads first"


def verify(case, folder, tensors):
    """Numbers are the package's own; write() compares them with the checkpoint that they were made of."""


def copied(folder):
    yield from sorted([*folder.glob("*.gguf"), *folder.glob("config.json")])


if __name__ == "__main__":
    common.copied = copied
    common.main(sys.modules[__name__])
