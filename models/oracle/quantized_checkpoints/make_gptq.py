#!/usr/bin/env python3
"""Makes the fixtures of GPTQ checkpoints with gptqmodel, calibrated with random tokens on a CPU.

    ORACLE_PYTHON=oracle/bin/python gptq/bin/python models/oracle/quantized_checkpoints/make_gptq.py [--check] [CASE…]
"""

import json
import os
import re
import sys
from dataclasses import dataclass

os.environ |= {"CUDA_VISIBLE_DEVICES": "", "GPTQMODEL_CPU_WORKERS": "2"}  # its own choice of workers fails on two cores

import torch
from gptqmodel import BACKEND, GPTQModel, QuantizeConfig
from gptqmodel.nn_modules.qlinear import BaseQuantLinear

import common
from common import LLAMA

VERSIONS = {"gptqmodel": "7.7.0", "transformers": "5.23.0", "torch": "2.15.0"}


@dataclass(frozen=True)
class Case(common.Case):
    one_sided: str = ""  # tensors with this in their names are not negative, so that zero points are 0

    def scaled(self, name, tensor):
        tensor = super().scaled(name, tensor)
        return tensor.abs() if self.one_sided and self.one_sided in name else tensor


CASES = [
    Case("gptq-4bit", "4 bits in groups of 32, symmetric; no checkpoint_format v2", LLAMA),
    Case("gptq-act-order", "desc_act: g_idx decides the group of a column", LLAMA, options={"desc_act": True}),
    Case("gptq-asym", "asymmetric: zero points of 0, where subtracting 1 borrowed from the next of the word", LLAMA,
         options={"sym": False}, one_sided="up_proj"),
    Case("gptq-v2", "checkpoint_format gptq_v2: zero points as stored", LLAMA,
         options={"sym": False, "format": "gptq_v2"}, one_sided="up_proj"),
    Case("gptq-8bit", "8 bits in groups of 32, asymmetric", LLAMA, options={"bits": 8, "sym": False}),
    Case("gptq-3bit", "3 bits, which cross words; asymmetric", LLAMA, options={"bits": 3, "sym": False}),
    Case("gptq-2bit", "2 bits in groups of 16, act-order", LLAMA,
         options={"bits": 2, "group_size": 16, "desc_act": True}),
    Case("gptq-row", "group_size -1: one group for a row; biases", LLAMA | {"attention_bias": True},
         options={"group_size": -1, "act_group_aware": False}),
    Case("gptq-dynamic", "dynamic: modules left out, and 8 bits for some", LLAMA | {"num_hidden_layers": 2},
         options={"dynamic": {r"-:.*v_proj": {}, r"+:.*\.1\.mlp\.down_proj": {"bits": 8, "group_size": 16}}}),
]  # fmt: skip


def write(case, source, folder):
    common.write_tokenizer(case, source)
    options = {"bits": 4, "group_size": 32, "sym": True, "desc_act": False} | case.options
    rows = [{"input_ids": row[None], "attention_mask": torch.ones_like(row[None])} for row in common.random_rows(case)]
    model = GPTQModel.load(str(source), QuantizeConfig(**options, device="cpu", offload_to_disk=False))
    model.quantize(rows, batch_size=1)
    model.save(str(folder))


def layers(folder):
    """Yields quantized modules, their bits, and whether zero points are stored without the 1."""
    of = json.loads((folder / "config.json").read_text())["quantization_config"]
    dynamic = {rule.removeprefix("+:"): found["bits"] for rule, found in (of.get("dynamic") or {}).items() if found}
    for name in common.stored(folder):
        if name.endswith(".qweight"):
            module = name.removesuffix(".qweight")
            bits = next((bits for rule, bits in dynamic.items() if re.match(rule, module)), of["bits"])
            yield module, bits, of.get("checkpoint_format", "gptq") != "gptq_v2"


def zero_points(words, bits, less, mistake):
    """Returns zero points. Format 1 has 1 less, subtracted from whole words for 2, 4 and 8 bits, so with borrows."""
    less = less != (mistake == "format 1 for 2, or 2 for 1")
    if less and bits != 3 and mistake != "1 added to each zero point":
        ones = sum(1 << shift for shift in range(0, 32, bits))
        words = ((words.long() + ones) & 0xFFFFFFFF).to(torch.uint32).view(torch.int32)
        less = False
    return common.codes(words, bits) + less & (1 << bits) - 1


def read(case, folder, mistake=""):
    tensors = common.stored(folder)
    parts = (".qweight", ".qzeros", ".scales", ".g_idx")
    found = {name: tensor for name, tensor in tensors.items() if not name.endswith(parts)}
    for module, bits, less in layers(folder):
        weight, zeros, scales, groups = (tensors[module + part] for part in parts)
        elements = common.codes(weight.T.contiguous(), bits, mistake)  # words hold elements down the rows
        if mistake == "g_idx ignored":
            groups = torch.arange(elements.shape[1]) // (elements.shape[1] // scales.shape[0])
        zeros = zero_points(zeros, bits, less, mistake).T[:, groups.long()]
        if mistake == "zero points ignored":
            zeros = torch.tensor(1 << bits - 1)
        found[f"{module}.weight"] = scales.float().T[:, groups.long()] * (elements - zeros)
    return found


def mistakes(case):
    options = {"bits": 4, "sym": True} | case.options
    yield "high bits first"
    yield "format 1 for 2, or 2 for 1"
    if options.get("desc_act"):
        yield "g_idx ignored"
    if not options["sym"]:
        yield "zero points ignored"
    if options["bits"] == 3:
        yield "words hold whole elements"
    if case.one_sided and options.get("format") != "gptq_v2":
        yield "1 added to each zero point"


def verify(case, folder, tensors):
    """Compares with the modules of gptqmodel. Their scales are widened first, because f16 would round."""
    model = GPTQModel.load(str(folder), backend=BACKEND.GPTQ_TORCH, device="cpu", dtype=torch.float16)
    compared = 0
    for name, module in model.model.named_modules():
        if isinstance(module, BaseQuantLinear):
            module.scales = module.scales.float()
            assert torch.equal(module.dequantize_weight().T, tensors[f"{name}.weight"]), f"{case.name}: {name}"
            compared += 1
    assert compared == len(list(layers(folder))), case.name


if __name__ == "__main__":
    common.main(sys.modules[__name__])
