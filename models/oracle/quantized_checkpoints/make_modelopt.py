#!/usr/bin/env python3
"""Makes the fixtures of checkpoints of NVIDIA's Model Optimizer, as its export_hf_checkpoint writes them.

    ORACLE_PYTHON=oracle/bin/python modelopt/bin/python models/oracle/quantized_checkpoints/make_modelopt.py [--check] [CASE…]

It calibrates on random prompts. INT4_AWQ, NVFP4_AWQ and NVFP4 caches need a GPU, or rows of 128 inputs and more.
"""

import json
import os
import sys
from dataclasses import dataclass

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import modelopt.torch.quantization as mtq
import torch
import transformers
from modelopt.torch.export import export_hf_checkpoint
from modelopt.torch.quantization.qtensor import FP8QTensor, MXFP4QTensor, MXFP8QTensor, NVFP4QTensor

import common
from common import LLAMA, QWEN3, QWEN3_MOE

VERSIONS = {"nvidia-modelopt": "0.47.0", "transformers": "5.14.1", "torch": "2.15.0"}

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
BLOCK = 128


@dataclass(frozen=True)
class Case(common.Case):
    storage: str = "BF16"

    def scaled(self, name, tensor):
        """Returns random weights that are larger in some rows and groups, so that scales differ."""
        tensor = super().scaled(name, tensor)
        if name.endswith("_proj.weight"):
            rows, columns = (torch.arange(size) for size in tensor.shape)
            tensor = tensor * 0.6 * 2.0 ** ((rows[:, None] + columns // 16) % 3 - 1)
        return tensor


def with_parts(config, part, of):
    """Returns a configuration whose quantizers of some modules are those of another one."""
    return config | {"quant_cfg": config["quant_cfg"] + [e for e in of["quant_cfg"] if part in e["quantizer_name"]]}


CASES = [
    Case("modelopt-fp8", "FP8: a scale for a tensor; a cache in 8 bits", LLAMA,
         options={"config": mtq.FP8_DEFAULT_CFG | {
             "quant_cfg": mtq.FP8_DEFAULT_CFG["quant_cfg"] + mtq.FP8_KV_CFG["quant_cfg"]}}),
    Case("modelopt-fp8-rows", "FP8_PER_CHANNEL_PER_TOKEN: a scale for each output; biases",
         QWEN3 | {"attention_bias": True}, options={"config": mtq.FP8_PER_CHANNEL_PER_TOKEN_CFG}),
    Case("modelopt-fp8-blocks", "fp8_pb_wo: blocks of 128 × 128 with ragged ends, in four dimensions",
         QWEN3 | {"hidden_size": 136, "intermediate_size": 144},
         options={"config": mtq.FP8_2D_BLOCKWISE_WEIGHT_ONLY_CFG}),
    Case("modelopt-nvfp4", "NVFP4: scales of 16 in E4M3, and weight_scale_2; tied",
         LLAMA | {"num_hidden_layers": 2, "tie_word_embeddings": True}, gain=2.8,
         options={"config": mtq.NVFP4_DEFAULT_CFG}),
    Case("modelopt-nvfp4-moe", "NVFP4 experts one by one; the router is ignored", QWEN3_MOE,
         options={"config": mtq.NVFP4_DEFAULT_CFG}),
    Case("modelopt-nvfp4-fp8", "W4A8_NVFP4_FP8: groups of 32", LLAMA, options={"config": mtq.W4A8_NVFP4_FP8_CFG}),
    Case("modelopt-mixed", "MIXED_PRECISION: NVFP4 in the MLP, FP8 elsewhere", LLAMA | {"num_hidden_layers": 2},
         options={"config": with_parts(mtq.FP8_DEFAULT_CFG, "mlp*", mtq.NVFP4_MLP_ONLY_CFG)}),
    Case("modelopt-mxfp8", "MXFP8: powers of two of 32", LLAMA, options={"config": mtq.MXFP8_DEFAULT_CFG}),
    Case("modelopt-mxfp4", "mxfp4: powers of two of 32", LLAMA, options={"config": mtq.MXFP4_DEFAULT_CFG}),
    Case("modelopt-int8", "W8A16: int8 with a scale for each output", LLAMA,
         options={"config": mtq.INT8_WEIGHT_ONLY_CFG}),
]  # fmt: skip


def write(case, source, folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16, device_map="cpu").eval()
    prompts = common.random_rows(case, count=4)
    mtq.quantize(model, case.options["config"], lambda model: model(prompts))
    with torch.inference_mode():
        export_hf_checkpoint(model, export_dir=folder)


def modules(tensors):
    return [name.removesuffix("_scale") for name in tensors if name.endswith(".weight_scale")]


def dequantized(tensors, name, mistake):
    weight, scales = tensors[name], tensors[f"{name}_scale"]
    second = tensors.get(f"{name}_scale_2", torch.tensor(1.0))
    if mistake == "scales divide":
        scales, second = 1 / scales.float(), 1 / second
    if mistake == "weight_scale_2 left out":
        second = torch.tensor(1.0)
    if weight.dtype == torch.uint8:
        low, high = weight.long() & 15, weight.long() >> 4
        weight = E2M1[torch.stack((high, low) if mistake == "high nibble first" else (low, high), -1).flatten(1)]
    rows, columns = weight.shape
    if scales.dtype == torch.uint8:
        scales = torch.exp2(scales.float() - (126 if mistake == "bias 126 of scales" else 127))
    scales = scales.float()
    if scales.ndim == 4:
        scales = scales.squeeze(3).squeeze(1)
        if mistake == "blocks transposed":
            scales = scales.flatten().reshape(scales.shape[::-1]).T
        scales = scales.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[:rows, :columns]
    elif scales.ndim == 1:
        scales = scales.roll(int(mistake == "scales of the next row"))[:, None]
    elif scales.ndim == 2:
        scales = (scales * second).repeat_interleave(columns // scales.shape[1], 1)
    return weight.float() * scales


def read(case, folder, mistake=""):
    tensors = common.stored(folder)
    parts = ("_scale", "_scale_2")
    found = {name: tensor for name, tensor in tensors.items() if not name.endswith(parts)}
    return found | {name: dequantized(tensors, name, mistake) for name in modules(tensors)}


def mistakes(case):
    kind = case.name.removeprefix("modelopt-")
    if "nvfp4" in kind or kind in ("mixed", "mxfp4"):
        yield "high nibble first"
    if "nvfp4" in kind or kind == "mixed":
        yield "weight_scale_2 left out"
    if kind in ("mxfp8", "mxfp4"):
        yield "bias 126 of scales"
    else:
        yield "scales divide"
    if kind in ("fp8-rows", "int8"):
        yield "scales of the next row"
    if kind == "fp8-blocks":
        yield "blocks transposed"


def verify(case, folder, tensors):
    """Compares with modelopt's own tensors, in f32."""
    stored = common.stored(folder)
    names = modules(stored)
    for name in names:
        weight, scales, shape = stored[name], stored[f"{name}_scale"], tensors[name].shape
        if f"{name}_scale_2" in stored:
            blocks = {-1: shape[1] // scales.shape[1]}
            of = {"scale": scales, "double_scale": stored[f"{name}_scale_2"], "block_sizes": blocks}
            found = NVFP4QTensor(shape, torch.float32, weight).dequantize(torch.float32, **of)
        elif weight.dtype == torch.int8:
            found = weight.float() * scales[:, None]  # modelopt has no code for it
        elif scales.dtype == torch.uint8:
            tool = MXFP4QTensor if weight.dtype == torch.uint8 else MXFP8QTensor
            of = {"scale": scales if tool is MXFP8QTensor else scales.reshape(-1, 1), "block_sizes": {-1: 32}}
            found = tool(shape, torch.float32, weight).dequantize(torch.float32, **of)
        elif scales.ndim == 4:
            of = {"scale": scales.squeeze(3).squeeze(1), "block_sizes": {-1: BLOCK, -2: BLOCK}}
            found = FP8QTensor(shape, torch.float32, weight).dequantize(torch.float32, **of)
        else:
            scales = scales[:, None] if scales.ndim else scales
            found = FP8QTensor(shape, torch.float32, weight).dequantize(torch.float32, scale=scales)
        assert torch.equal(tensors[name], found.reshape(shape)), f"{case.name}: {name}"
    algorithm = json.loads((folder / "config.json").read_text())["quantization_config"]["quant_algo"]
    print(f"{case.name}: {algorithm}, {len(names)} modules", file=sys.stderr)


if __name__ == "__main__":
    common.main(sys.modules[__name__])
