#!/usr/bin/env python3
"""Makes the fixtures of bitsandbytes checkpoints with transformers on a CPU.

    oracle/bin/python models/oracle/quantized_checkpoints/make_bitsandbytes.py [--check] [CASE…]
"""

import json
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import bitsandbytes
import torch
import transformers
from bitsandbytes.backends.default.ops import _dequantize_4bit_compute

import common
from common import LLAMA, Case

VERSIONS = {"bitsandbytes": "0.50.2", "transformers": "5.23.0", "accelerate": "1.15.0", "torch": "2.15.0"}

WIDE = LLAMA | {"intermediate_size": 128}
FOUR = {"load_in_4bit": True, "bnb_4bit_compute_dtype": "bfloat16"}
CASES = [
    Case("bnb-nf4", "nf4 in blocks of 64", WIDE, storage="BF16", options=FOUR | {"bnb_4bit_quant_type": "nf4"}),
    Case("bnb-nf4-double", "double quantization: absmax in 8 bits in blocks of 256, with an offset; biases",
         LLAMA | {"attention_bias": True, "intermediate_size": 288},
         options=FOUR | {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}),
    Case("bnb-fp4", "fp4; rows that are no multiple of the block: blocks run on to the next row",
         WIDE | {"intermediate_size": 112}, storage="BF16", options=FOUR | {"bnb_4bit_quant_type": "fp4"}),
    Case("bnb-int8", "int8 with SCB for each output", LLAMA,
         options={"load_in_8bit": True}),
]  # fmt: skip


def write(case, source, folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source, dtype="auto", device_map="cpu", quantization_config=transformers.BitsAndBytesConfig(**case.options)
    )
    model.save_pretrained(folder)


def state(tensors, name):
    """Returns the kind of 4-bit elements, and the JSON object that is stored as a tensor of bytes."""
    kind = next(kind for kind in ("nf4", "fp4") if f"{name}.quant_state.bitsandbytes__{kind}" in tensors)
    return kind, json.loads(bytes(tensors[f"{name}.quant_state.bitsandbytes__{kind}"].tolist()))


def four_bits(tensors, name, mistake):
    _, of = state(tensors, name)
    pairs = tensors[name].flatten().long()
    nibbles = (pairs & 15, pairs >> 4) if mistake == "low nibble first" else (pairs >> 4, pairs & 15)
    scales = tensors[f"{name}.absmax"]
    if "nested_blocksize" in of:
        nested = tensors[f"{name}.nested_absmax"].repeat_interleave(of["nested_blocksize"])[: scales.numel()]
        scales = tensors[f"{name}.nested_quant_map"][scales.long()] * nested
        scales += 0 if mistake == "nested_offset ignored" else of["nested_offset"]
    elements = tensors[f"{name}.quant_map"][torch.stack(nibbles, -1).flatten()]
    return (elements * scales.repeat_interleave(of["blocksize"])[: elements.numel()]).reshape(of["shape"])


def read(case, folder, mistake=""):
    tensors = common.stored(folder)
    found = {}
    for name in {name.partition(".weight")[0] + ".weight" for name in tensors if ".weight" in name}:
        of = tensors[name]
        if any(key.startswith(f"{name}.quant_state") for key in tensors):
            of = four_bits(tensors, name, mistake)
        elif of.dtype == torch.int8:
            scales = tensors[name.removesuffix("weight") + "SCB"][:, None]
            of = of.float() * scales * 7.874015748031496e-3  # 1 / 127, by which bitsandbytes multiplies
            of = of.flip(0) if mistake == "rows in reverse" else of
        found[name] = of
    return found | {name: tensor for name, tensor in tensors.items() if name.endswith(".bias")}


def mistakes(case):
    if "load_in_8bit" in case.options:
        yield "rows in reverse"
        return
    yield "low nibble first"
    if "bnb_4bit_use_double_quant" in case.options:
        yield "nested_offset ignored"


def verify(case, folder, tensors):
    """Compares with the generic code of bitsandbytes, in f32.

    dequantize_4bit for CPUs is wrong if rows are no multiple of the block: it begins a block at each row.
    """
    stored = common.stored(folder)
    compared = 0
    for name, tensor in tensors.items():
        parts = {key.removeprefix(f"{name}."): t for key, t in stored.items() if key.startswith(f"{name}.")}
        if any(key.startswith("quant_state") for key in parts):
            of = bitsandbytes.functional.QuantState.from_dict(parts, device=torch.device("cpu"))
            scales = of.absmax
            if of.nested:
                scales = bitsandbytes.functional.dequantize_blockwise(scales, of.state2) + of.offset
            flat = stored[name].flatten()
            found = _dequantize_4bit_compute(flat, scales, of.code, of.blocksize, of.shape, torch.float32)
        elif stored[name].dtype == torch.int8:
            scales = stored[name.removesuffix("weight") + "SCB"]
            found = bitsandbytes.functional.int8_vectorwise_dequant(stored[name], scales)
        else:
            continue
        compared += 1
        assert torch.equal(tensor, found), f"{case.name}: {name}"
    assert compared, case.name


if __name__ == "__main__":
    common.main(sys.modules[__name__])
