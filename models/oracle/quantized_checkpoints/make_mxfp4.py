#!/usr/bin/env python3
"""Makes the fixtures of gpt-oss with experts in MXFP4, as OpenAI publishes it.

    oracle/bin/python models/oracle/quantized_checkpoints/make_mxfp4.py [--check] [CASE…]

There is no public tool that makes them; gpt_oss.py does.
"""

import sys

import torch
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import common
import gpt_oss
import mixtures
from common import Case

VERSIONS = {"transformers": "5.23.0", "torch": "2.15.0"}

CASES = [
    Case("mxfp4-gpt-oss", "blocks and scales of stacked experts, gate and up interleaved", gpt_oss.CONFIG,
         storage="BF16", gains=mixtures.ROUTER),
]  # fmt: skip


def write(case, source, folder):
    gpt_oss.write(source, folder)


def read(case, folder, mistake=""):
    tensors = common.stored(folder)
    found = {}
    for name, tensor in tensors.items():
        if name.endswith("_scales"):
            continue
        if not name.endswith("_blocks"):
            found[name] = tensor
            continue
        name = name.removesuffix("_blocks")
        scales = torch.exp2(tensors[f"{name}_scales"].float() - (128 if mistake == "bias 128 of scales" else 127))
        pairs = (tensor.long() & 15, tensor.long() >> 4)
        elements = gpt_oss.E2M1[torch.stack(pairs[::-1] if mistake == "high nibble first" else pairs, -1).flatten(-2)]
        rows = (elements * scales[..., None]).flatten(-2)
        if mistake == "gate before up" and "gate_up" in name:
            rows = rows.unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)
        if mistake == "rows in reverse" and "down" in name:
            rows = rows.flip(1)
        found[name] = rows.transpose(1, 2)
    return found


def mistakes(case):
    yield "high nibble first"
    yield "bias 128 of scales"
    yield "gate before up"
    yield "rows in reverse"


def verify(case, folder, tensors):
    """Compares with the conversion of transformers, in f32."""
    stored = common.stored(folder)
    for name, tensor in tensors.items():
        if f"{name}_blocks" in stored:
            blocks, scales = stored[f"{name}_blocks"], stored[f"{name}_scales"]
            found = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
            assert torch.equal(tensor, found), f"{case.name}: {name}"


if __name__ == "__main__":
    common.main(sys.modules[__name__])
