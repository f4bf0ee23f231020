#!/usr/bin/env python3
"""Makes the fixtures of AWQ checkpoints with autoawq, calibrated with random tokens on a CPU.

    ORACLE_PYTHON=oracle/bin/python awq/bin/python models/oracle/quantized_checkpoints/make_awq.py [--check] [CASE…]
"""

import json
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch
import transformers
from awq import AutoAWQForCausalLM
from awq.modules.linear.gemv import WQLinear_GEMV
from awq.utils.packing_utils import dequantize_gemm

import common
from common import LLAMA, MIXTRAL, Case

VERSIONS = {"autoawq": "0.2.9", "transformers": "4.51.3", "torch": "2.15.0"}

ORDER = [0, 4, 1, 5, 2, 6, 3, 7]  # column j of eight is in this nibble of its word, from the low end
WIDE = LLAMA | {"head_dim": 32, "intermediate_size": 128}  # autoawq wants outputs in multiples of 64
BIASES = {key: value for key, value in WIDE.items() if key not in ("attention_bias", "mlp_bias", "head_dim")} | {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "use_sliding_window": False,
}
TIED = BIASES | {"num_hidden_layers": 2, "tie_word_embeddings": True}
WIDE_MIXTRAL = MIXTRAL | {"num_attention_heads": 2, "num_key_value_heads": 2}
CASES = [
    Case("awq-group-32", "groups of 32", WIDE, options={"q_group_size": 32}),
    Case("awq-group-64", "groups of 64; biases; tied: no lm_head.weight", TIED,
         options={"q_group_size": 64}),
    Case("awq-group-128", "groups of 128", WIDE | {"hidden_size": 128},
         options={"q_group_size": 128}),
    Case("awq-mixtral", "experts; modules_to_not_convert has the router", WIDE_MIXTRAL, options={"q_group_size": 32}),
    Case("awq-gemv", "version gemv: outputs first, nibbles in order, rows of zero points padded to 1024 inputs", WIDE,
         options={"q_group_size": 32, "version": "GEMV"}),
    Case("awq-gemv-128", "version gemv in groups of 128; biases", BIASES | {"hidden_size": 128, "intermediate_size": 256},
         options={"q_group_size": 128, "version": "GEMV"}),
]  # fmt: skip


def write(case, source, folder):
    common.write_tokenizer(case, source)
    model = AutoAWQForCausalLM.from_pretrained(str(source), device_map="cpu", torch_dtype=torch.float16)
    model.quantize(
        transformers.AutoTokenizer.from_pretrained(source),
        quant_config={"zero_point": True, "w_bit": 4, "version": "GEMM"} | case.options,
        calib_data=common.random_rows(case).tolist(),
        max_calib_seq_len=64,
    )
    model.save_quantized(str(folder))


def nibbles(words, mistake):
    """Returns elements [rows, 8 × words]. Eight columns of a word are interleaved."""
    found = words.long()[..., None] >> 4 * torch.arange(8) & 15
    return (found if mistake == "nibbles in order" else found[..., ORDER]).flatten(1)


def gemv(tensors, module, group, mistake):
    """Returns elements, zero points and scales of version gemv, outputs first."""
    order = ORDER if mistake == "nibbles interleaved" else list(range(8))
    unpack = lambda words: (words.long()[..., None] >> 4 * torch.arange(8) & 15)[..., order].flatten(1)
    weight, zeros = unpack(tensors[f"{module}.qweight"]), unpack(tensors[f"{module}.qzeros"])
    scales = tensors[f"{module}.scales"].float()
    groups = weight.shape[1] // group
    if mistake == "padding first":
        zeros, scales = zeros.roll(1, 1), scales.roll(1, 1)
    return weight, zeros[:, :groups], scales[:, :groups]


def is_gemv(case):
    return case.options.get("version") == "GEMV"


def layers(folder):
    return [name.removesuffix(".qweight") for name in common.stored(folder) if name.endswith(".qweight")]


def read(case, folder, mistake=""):
    tensors = common.stored(folder)
    parts = (".qweight", ".qzeros", ".scales")
    found = {name: tensor for name, tensor in tensors.items() if not name.endswith(parts)}
    group = json.loads((folder / "config.json").read_text())["quantization_config"]["group_size"]
    for module in layers(folder):
        if is_gemv(case):
            weight, zeros, scales = gemv(tensors, module, group, mistake)
            zeros = zeros + (mistake == "1 added to zero points")
            if mistake == "zero points ignored":
                zeros = torch.full_like(zeros, 8)
            elements = weight - zeros.repeat_interleave(group, 1)
            found[f"{module}.weight"] = elements * scales.repeat_interleave(group, 1)
            continue
        weight, zeros, scales = (tensors[module + part] for part in parts)
        zeros = nibbles(zeros, mistake) + (mistake == "1 added to zero points")
        if mistake == "zero points ignored":
            zeros = torch.full_like(zeros, 8)
        elements = nibbles(weight, mistake) - zeros.repeat_interleave(group, 0)
        found[f"{module}.weight"] = (elements * scales.float().repeat_interleave(group, 0)).T
    if case.config["tie_word_embeddings"]:
        found.pop("lm_head.weight", None)
    return found


def mistakes(case):
    yield "nibbles interleaved" if is_gemv(case) else "nibbles in order"
    if is_gemv(case):
        yield "padding first"
    yield "1 added to zero points"
    yield "zero points ignored"


def verify_gemv(tensors, stored, module, group):
    weight = tensors[f"{module}.weight"]
    linear = torch.nn.Linear(*weight.T.shape, bias=False)
    linear.weight.data = weight
    _, zeros, scales = gemv(stored, module, group, "")
    packed = WQLinear_GEMV.from_linear(linear, 4, group, scales=scales.half(), zeros=zeros.float())
    for part in ("qweight", "qzeros", "scales"):
        assert torch.equal(getattr(packed, part), stored[f"{module}.{part}"]), f"{module}.{part}"


def verify(case, folder, tensors):
    """Compares with dequantize_gemm. Its scales are widened first, because f16 would round.

    For gemv, autoawq has kernels for GPUs alone: packing what was read gives the same tensors.
    """
    stored = common.stored(folder)
    group = json.loads((folder / "config.json").read_text())["quantization_config"]["group_size"]
    for module in layers(folder):
        if is_gemv(case):
            verify_gemv(tensors, stored, module, group)
            continue
        weight, zeros, scales = (stored[f"{module}.{part}"] for part in ("qweight", "qzeros", "scales"))
        found = dequantize_gemm(weight, zeros, scales.float(), 4, group).T
        assert torch.equal(tensors[f"{module}.weight"], found), f"{case.name}: {module}"


if __name__ == "__main__":
    common.main(sys.modules[__name__])
