#!/usr/bin/env python3
"""Makes the fixtures of torchao's 8-bit integers with transformers, on a CPU.

    python models/oracle/quantized_checkpoints/make_torchao.py [--check] [CASE…]
"""

import sys
from dataclasses import dataclass

import torch
import transformers
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, PerGroup, PerRow

import common
from common import LLAMA, QWEN3

VERSIONS = {"torchao": "0.18.0", "transformers": "5.23.0", "torch": "2.15.0"}
CONFIGS = {
    "row": lambda: Int8WeightOnlyConfig(granularity=PerRow()),
    "group": lambda: Int8WeightOnlyConfig(granularity=PerGroup(32)),
    "inputs": lambda: Int8DynamicActivationInt8WeightConfig(),
}


@dataclass(frozen=True)
class Case(common.Case):
    def scaled(self, name, tensor):
        """Returns random weights that are larger in some rows and groups, so that scales differ."""
        tensor = super().scaled(name, tensor)
        if name.endswith("_proj.weight"):
            rows, columns = (torch.arange(size) for size in tensor.shape)
            tensor = tensor * 0.6 * 2.0 ** ((rows[:, None] + columns // 32) % 3 - 1)
        return tensor


CASES = [
    Case("torchao-int8", "Int8WeightOnlyConfig: a scale for each output", LLAMA, storage="BF16", options={"config": "row"}),
    Case("torchao-int8-group", "Int8WeightOnlyConfig in groups of 32; biases", QWEN3 | {"attention_bias": True},
         storage="BF16", options={"config": "group"}),
    Case("torchao-w8a8", "Int8DynamicActivationInt8WeightConfig", LLAMA, storage="BF16", options={"config": "inputs"}),
]  # fmt: skip


def write(case, source, folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source, dtype=torch.bfloat16, device_map="cpu",
        quantization_config=transformers.TorchAoConfig(CONFIGS[case.options["config"]]()),
    )  # fmt: skip
    model.save_pretrained(folder)


def read(case, folder, mistake=""):
    tensors = common.stored(folder)
    found = {name: tensor for name, tensor in tensors.items() if "._weight_" not in name}
    for name, codes in tensors.items():
        if not name.endswith("._weight_qdata"):
            continue
        module = name.removesuffix("._weight_qdata")
        scales, zeros = tensors[f"{module}._weight_scale"].float(), tensors[f"{module}._weight_zero_point"]
        if mistake == "unsigned":
            codes = codes.view(torch.uint8)
        if mistake == "scales of the next row":
            scales = scales.roll(1, 0)
        if mistake == "scales of the next group":
            scales = scales.roll(1, 1)
        size = codes.shape[1] // scales.shape[1]
        spread = lambda of: of.float().repeat_interleave(size, 1)
        found[f"{module}.weight"] = (codes.float() - spread(zeros)) * spread(scales)
    return found


def mistakes(case):
    yield "unsigned"
    yield "scales of the next row"
    if case.options["config"] == "group":
        yield "scales of the next group"


def verify(case, folder, tensors):
    """Compares with torchao's own tensors in f32."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, device_map="cpu")
    compared = 0
    for name, parameter in model.named_parameters():
        if hasattr(parameter, "qdata"):
            found = parameter.dequantize(torch.float32)
            assert torch.equal(found, tensors[name]), f"{case.name}: {name}"
            compared += 1
    assert compared, case.name


if __name__ == "__main__":
    common.main(sys.modules[__name__])
