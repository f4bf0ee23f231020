#!/usr/bin/env python3
"""Makes the fixtures of fp8 checkpoints in blocks, as DeepSeek and Qwen publish them, with the code of transformers.

    oracle/bin/python models/oracle/quantized_checkpoints/make_fp8.py [--check] [CASE…]

transformers quantizes to fp8 only on a GPU, so this calls its conversion of one tensor. That leaves weights as they are
whose sizes are no multiples of the block, and reads such weights wrong, but DeepSeek has them: they are padded here.
"""

import json
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import safetensors.torch
import torch
import transformers
from transformers.integrations.finegrained_fp8 import Fp8Dequantize, Fp8Quantize

import common
from common import LLAMA, QWEN3, QWEN3_MOE

VERSIONS = {"transformers": "5.23.0", "torch": "2.15.0"}


@dataclass(frozen=True)
class Case(common.Case):
    def scaled(self, name, tensor):
        """Returns random weights that are larger in some blocks, so that scales differ."""
        tensor = super().scaled(name, tensor)
        if name.endswith("_proj.weight"):
            rows, columns = (torch.arange(size) // 24 for size in tensor.shape)
            tensor = tensor * 0.6 * 2.0 ** ((rows[:, None] + 2 * columns) % 3 - 1)
        return tensor


CASES = [
    Case("fp8-ragged", "blocks of 128 × 128 with ragged ends, f32 scales", storage="BF16",
         config=QWEN3 | {"hidden_size": 136, "intermediate_size": 144},
         options={"weight_block_size": [128, 128]}),
    Case("fp8-bf16-scales", "bf16 scales; blocks of 32 × 48", storage="BF16",
         config=QWEN3, options={"weight_block_size": [32, 48], "scales": "bfloat16"}),
    Case("fp8-ue8m0", "scale_fmt ue8m0: scales are exponents (F8_E8M0)", storage="BF16",
         config=QWEN3, options={"weight_block_size": [32, 32], "scale_fmt": "ue8m0"}),
    Case("fp8-qwen3-moe", "experts one by one; modules_to_not_convert has routers and the head", storage="BF16",
         config=QWEN3_MOE, options={"weight_block_size": [32, 32], "scales": "bfloat16"}),
    Case("fp8-tensor", "weight_block_size null, static: a scale for a tensor, and activation_scale", storage="BF16",
         config=QWEN3, options={"weight_block_size": None, "activation_scheme": "static"}),
    Case("fp8-auto", "the names of AutoFP8: weight_scale, input_scale, ignored_layers; scales of the cache", storage="BF16",
         config=LLAMA, options={"weight_block_size": None, "activation_scheme": "static", "names": "AutoFP8"}),
]  # fmt: skip


def padded(tensor, block):
    block = block or tensor.shape
    rows, columns = (-size % step for size, step in zip(tensor.shape, block, strict=True))
    return torch.nn.functional.pad(tensor, (0, columns, 0, rows))


def settings(case):
    of = {key: value for key, value in case.options.items() if key not in ("scales", "names")}
    return transformers.FineGrainedFP8Config(**of)


def auto_name(name):
    return name.replace(".weight_scale_inv", ".weight_scale").replace(".activation_scale", ".input_scale")


def attentions(names):
    return {name.removesuffix(".q_proj.weight") for name in names if name.endswith(".q_proj.weight")}


def scale_of(name, tensors):
    return next((found for end in ("_inv", "") if (found := f"{name}_scale{end}") in tensors), None)


def write(case, source, folder):
    convert = Fp8Quantize(SimpleNamespace(quantization_config=settings(case)))
    found, kept = {}, ["lm_head"]
    for name, tensor in common.stored(source).items():
        module = name.removesuffix(".weight")
        if not module.endswith("_proj"):
            found[name] = tensor
            kept += [module] if module.endswith("mlp.gate") else []
            continue
        of = convert.convert({name: padded(tensor, case.options["weight_block_size"])})
        rows, columns = tensor.shape
        found[name] = of[name][:rows, :columns].clone()
        scales = of[f"{module}.weight_scale_inv"]
        if not case.options["weight_block_size"]:
            # As the parameter of FP8Linear.
            scales = scales.reshape(())
            found[f"{module}.activation_scale"] = torch.tensor(0.5)
        found[f"{module}.weight_scale_inv"] = scales.to(getattr(torch, case.options.get("scales", ""), scales.dtype))
    of = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "modules_to_not_convert": kept}
    of |= {key: value for key, value in case.options.items() if key not in ("scales", "names")}
    if case.options.get("names") == "AutoFP8":
        found = {auto_name(name): tensor for name, tensor in found.items()}
        found |= {f"{name}.{part}_scale": torch.tensor(0.25) for name in attentions(found) for part in "kv"}
        of = {"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": kept, "kv_cache_scheme": "static"}
    folder.mkdir()
    safetensors.torch.save_file(found, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": of}, indent=2) + "\n")


def read(case, folder, mistake=""):
    tensors = common.stored(folder)
    found = {}
    for name, tensor in tensors.items():
        if name.endswith(("_scale", "_scale_inv")):
            continue
        found[name] = tensor
        if not (scale := scale_of(name, tensors)):
            continue
        scales = tensors[scale]
        if mistake == "no scales":
            scales = torch.ones_like(scales)
        if mistake == "scales of activations":
            scales = tensors[scale.replace("weight_scale_inv", "activation_scale").replace("weight_scale", "input_scale")]
        rows, columns = case.options["weight_block_size"] or tensor.shape
        scales = scales.reshape(-(-tensor.shape[0] // rows), -1)
        if mistake == "scales divide":
            scales = 1 / scales.float()
        if mistake == "scales transposed":
            scales = scales.float().flatten().reshape(scales.shape[::-1]).T
        if mistake == "blocks of equal size":
            rows, columns = (-(-size // count) for size, count in zip(tensor.shape, scales.shape, strict=True))
        scales = scales.float().repeat_interleave(rows, 0).repeat_interleave(columns, 1)
        found[name] = tensor.float() * scales[: tensor.shape[0], : tensor.shape[1]]
    return found


def mistakes(case):
    yield "scales divide"
    if not case.options["weight_block_size"]:
        yield "no scales"
        yield "scales of activations"
        return
    yield "scales transposed"
    if case.name == "fp8-ragged":
        yield "blocks of equal size"


def verify(case, folder, tensors):
    """Compares with the conversion of transformers, of padded weights and in f32."""
    stored = common.stored(folder)
    convert = Fp8Dequantize(SimpleNamespace(quantization_config=settings(case)))
    for name, tensor in tensors.items():
        if scale := scale_of(name, stored):
            whole = padded(stored[name].view(torch.uint8), case.options["weight_block_size"])
            scales = stored[scale] if case.options["weight_block_size"] else stored[scale].reshape(1, 1)
            found = convert._dequantize_one(whole.view(torch.float8_e4m3fn), scales, torch.float32)
            assert torch.equal(tensor, found[: tensor.shape[0], : tensor.shape[1]]), f"{case.name}: {name}"


if __name__ == "__main__":
    common.main(sys.modules[__name__])
