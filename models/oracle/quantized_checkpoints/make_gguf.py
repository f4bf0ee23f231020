#!/usr/bin/env python3
"""Makes the fixtures of GGUF files with llama.cpp: convert_hf_to_gguf.py, then llama-quantize.

    LLAMA_CPP=FOLDER oracle/bin/python models/oracle/quantized_checkpoints/make_gguf.py [--check] [CASE…]

FOLDER is llama.cpp with build/bin/llama-quantize. The converter knows pre-tokenizers by a hash, so this claims llama-bpe.
"""

import os
import runpy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

LLAMA_CPP = Path(os.environ.get("LLAMA_CPP", "llama.cpp")).resolve()
sys.path[:0] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]

import gguf
import numpy
import torch

import common
from common import LLAMA, QWEN3

VERSIONS = {"llama.cpp": "of the sdist llama-cpp-python 0.3.36", "transformers": "5.23.0", "torch": "2.15.0"}

LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
SUPER_BLOCKS = LLAMA | {
    "hidden_size": 256, "intermediate_size": 256, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
}  # fmt: skip
NAMES = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


@dataclass(frozen=True)
class Case(common.Case):
    storage: str = "BF16"
    kind: str = ""  # of llama-quantize
    types: tuple = ()  # of some tensors

    @property
    def is_permuted(self):
        return self.config["model_type"] == "llama"


CASES = [
    Case("gguf-q4-0", "llama: q and k are permuted; Q4_0, the head in Q8_0", LLAMA, kind="Q4_0"),
    Case("gguf-q8-0", "llama 3's rope as rope_freqs.weight; tied; Q8_0", kind="Q8_0",
         config=LLAMA | {"num_hidden_layers": 2, "rope_scaling": LLAMA3, "tie_word_embeddings": True}),
    Case("gguf-legacy", "qwen3: q and k are not permuted; Q4_1, Q5_0, Q5_1 and IQ4_NL", QWEN3, kind="Q4_1",
         types=("attn_q=q5_0", "attn_k=q5_1", "ffn_up=iq4_nl", "ffn_down=q5_1")),
    Case("gguf-k", "Q2_K, Q3_K, Q4_K, Q5_K, Q6_K and IQ4_XS; rows of o that are no multiple of 256 in Q5_0",
         SUPER_BLOCKS, kind="Q4_K_S",
         types=("attn_q=q3_k", "attn_k=q2_k", "attn_v=q6_k", "ffn_gate=q4_k", "ffn_up=q5_k", "ffn_down=iq4_xs")),
]  # fmt: skip


def write(case, source, folder):
    import conversion.base  # of llama.cpp; reading needs none of it

    common.write_tokenizer(case, source)
    folder.mkdir()
    whole = folder / "whole"
    arguments = [str(LLAMA_CPP / "convert_hf_to_gguf.py"), str(source), "--outfile", str(whole), "--outtype", "bf16"]
    pre = mock.patch.object(conversion.base.TextModel, "get_vocab_base_pre", lambda self, tokenizer: "llama-bpe")
    with pre, mock.patch.object(sys, "argv", arguments):
        runpy.run_path(arguments[0], run_name="__main__")
    command = [str(LLAMA_CPP / "build/bin/llama-quantize")]
    for of in case.types:
        command += ["--tensor-type", of]
    subprocess.run([*command, str(whole), str(folder / "model.gguf"), case.kind], check=True)


def hub_name(name):
    parts = name.removesuffix(".weight").split(".")
    return f"model.layers.{parts[1]}.{NAMES[parts[2]]}.weight" if parts[0] == "blk" else f"{NAMES[parts[0]]}.weight"


def read(case, folder, mistake=""):
    found = {}
    for tensor in gguf.GGUFReader(folder / "model.gguf").tensors:
        if tensor.name == "rope_freqs.weight":
            continue
        data = numpy.array(tensor.data)
        if mistake == "nibbles swapped" and tensor.tensor_type.name == "Q4_0":
            blocks = data.reshape(-1, 18)
            blocks[:, 2:] = blocks[:, 2:] << 4 | blocks[:, 2:] >> 4
        value = torch.from_numpy(gguf.dequantize(data, tensor.tensor_type).copy()).float()
        value = value.reshape(list(map(int, reversed(tensor.shape))))
        heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}.get(tensor.name.split(".")[-2])
        if heads and case.is_permuted != (mistake == "q and k permuted, or not"):
            value = value.unflatten(0, (case.config[heads], -1, 2)).transpose(1, 2).reshape(value.shape)
        found[hub_name(tensor.name)] = value
    return found


def mistakes(case):
    yield "q and k permuted, or not"
    if case.kind == "Q4_0":
        yield "nibbles swapped"


def verify(case, folder, tensors):
    """Checks that the file has the types that the case names. gguf, which read() uses, is the tool's own code."""
    types = {t.name.split(".")[-2]: t.tensor_type.name for t in gguf.GGUFReader(folder / "model.gguf").tensors}
    for of in case.types:
        name, _, kind = of.partition("=")
        assert types[name] == kind.upper(), f"{case.name}: {name}: found {types[name]}"
    print(f"{case.name}: {types}", file=sys.stderr)


if __name__ == "__main__":
    common.main(sys.modules[__name__])
