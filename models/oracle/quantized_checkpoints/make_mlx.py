#!/usr/bin/env python3
"""Makes the fixtures of MLX checkpoints with mlx-lm, as `mlx_lm.convert -q` writes them.

    ORACLE_PYTHON=oracle/bin/python mlx/bin/python models/oracle/quantized_checkpoints/make_mlx.py [--check] [CASE…]

mlx_lm.convert needs a tokenizer, so this calls its parts: load_model, quantize_model, save_model and save_config.
"""

import json
import sys

import mlx.core as mx
import mlx_lm.utils
import numpy
import torch
from mlx_lm.convert import mixed_quant_predicate_builder

import common
import gpt_oss
import mixtures
from common import LLAMA, MIXTRAL, QWEN3_MOE, Case

VERSIONS = {"mlx": "0.32.4", "mlx-lm": "0.32.2", "transformers": "5.24.0", "torch": "2.15.0"}

TIED = LLAMA | {"num_hidden_layers": 2, "tie_word_embeddings": True}  # with one layer, answers are loops
GPT_OSS = gpt_oss.CONFIG | {  # mlx-lm wants a layer of each kind
    "intermediate_size": 32, "layer_types": ["sliding_attention", "full_attention"], "num_hidden_layers": 2,
}  # fmt: skip
WIDE = {"intermediate_size": 128}  # a multiple of the group size of 64
TWO_LAYERS = LLAMA | WIDE | {"num_hidden_layers": 2}


def overrides(path, module):
    """Chooses bits by module, and leaves one module as it is."""
    if path.endswith("v_proj"):
        return {"group_size": 32, "bits": 8}
    if path.endswith("layers.1.mlp.down_proj"):
        return {"group_size": 64, "bits": 6}
    return not path.endswith("layers.0.self_attn.o_proj")


CASES = [
    Case("mlx-4bit", "4 bits in groups of 64; a quantized embedding, tied", TIED | WIDE),
    Case("mlx-3bit", "3 bits, which cross words", LLAMA | WIDE, storage="BF16", options={"bits": 3}),
    Case("mlx-6bit", "6 bits, which cross words", LLAMA, options={"bits": 6, "group_size": 32}),
    Case("mlx-8bit", "8 bits in groups of 32, tied", TIED, storage="BF16", options={"bits": 8, "group_size": 32}),
    Case("mlx-5bit", "5 bits, which cross words; biases of layers beside those of groups",
         TIED | {"attention_bias": True}, options={"bits": 5, "group_size": 32}),
    Case("mlx-2bit", "2 bits in groups of 32; the MLP's rows are no multiple of the group and stay in f16",
         LLAMA | {"intermediate_size": 80}, options={"bits": 2, "group_size": 32}),
    Case("mlx-f32", "scales and biases in f32", LLAMA, storage="F32", options={"group_size": 32}),
    Case("mlx-overrides", "bits and group sizes by module, a module that is not quantized", TWO_LAYERS,
         options={"predicate": overrides}),
    Case("mlx-recipe", "the recipe mixed_3_6 of mlx_lm.convert: an entry for each module", TWO_LAYERS,
         options={"predicate": "mixed_3_6", "bits": None, "group_size": 64}),
    Case("mlx-mixtral", "switch_mlp stacks experts; w1, w2 and w3 are renamed", MIXTRAL, storage="BF16"),
    Case("mlx-qwen3-moe", "switch_mlp stacks experts; the router has 8 bits", QWEN3_MOE,
         options={"group_size": 32}),
    Case("mlx-gpt-oss", "experts in mxfp4 from OpenAI's checkpoint with biases, the rest in 8 bits: entries of modules",
         GPT_OSS, storage="BF16", gains=mixtures.ROUTER, options={"bits": 8, "group_size": 32}),
    Case("mlx-mxfp4", "mxfp4: e8m0 scales of 32, no biases", LLAMA, storage="BF16", options={"mode": "mxfp4"}),
    Case("mlx-mxfp8", "mxfp8: e4m3 elements, e8m0 scales of 32", LLAMA, storage="BF16", options={"mode": "mxfp8"}),
    Case("mlx-nvfp4", "nvfp4: e4m3 scales of 16", LLAMA, storage="BF16", options={"mode": "nvfp4"}),
]  # fmt: skip


def write(case, source, folder):
    if case.config["model_type"] == "gpt_oss":
        source = source.with_name("mxfp4")
        gpt_oss.write(source.with_name("float"), source)
    model, config = mlx_lm.utils.load_model(source)
    options = dict(case.options)
    predicate = options.pop("predicate", None)
    group_size, bits, mode = options.get("group_size"), options.get("bits"), options.get("mode", "affine")
    if isinstance(predicate, str):
        predicate = mixed_quant_predicate_builder(predicate, model, group_size)
    model, config = mlx_lm.utils.quantize_model(
        model, config, group_size, bits, mode=mode, quant_predicate=predicate
    )
    mlx_lm.utils.save_model(folder, model)
    mlx_lm.utils.save_config(config, folder / "config.json")
    (folder / "model.safetensors.index.json").unlink()  # names one file


def dequantized(tensors, module, of, mistake):
    bits, group, mode = of["bits"], of["group_size"], of.get("mode", "affine")
    scales = tensors[f"{module}.scales"]
    elements = common.codes(tensors[f"{module}.weight"], bits, mistake).unflatten(-1, (-1, group))
    if mode == "affine":
        scales = scales.float()[..., None]
        biases = tensors[f"{module}.biases"].float()[..., None]
        if mistake == "biases left out":
            biases = torch.zeros_like(biases)
        return (elements * scales + biases).flatten(-2)
    if bits == 8:
        elements = elements.to(torch.uint8).view(torch.float8_e4m3fn).float()
    else:
        elements = gpt_oss.E2M1[elements]
    if mode == "nvfp4":
        bias = {"bias 8 of scales": 8}.get(mistake, 7)
        scales = scales.view(torch.float8_e4m3fn).float() * 2.0 ** (7 - bias)
    else:
        bias = {"bias 126 of scales": 126}.get(mistake, 127)
        scales = torch.exp2(scales.float() - bias)
    return (elements * scales[..., None]).flatten(-2)


def settings(folder, tensors):
    """Yields quantized modules and how they are quantized."""
    of = json.loads((folder / "config.json").read_text())["quantization"]
    default = {key: of[key] for key in ("bits", "group_size", "mode")}
    for name in tensors:
        if name.endswith(".scales"):
            module = name.removesuffix(".scales")
            yield module, of.get(module, default)


def mistakes(case):
    mode = case.options.get("mode", "affine")
    yield "high bits first"
    if case.options.get("bits") in (3, 5, 6):
        yield "words hold whole elements"
    yield {"affine": "biases left out", "nvfp4": "bias 8 of scales"}.get(mode, "bias 126 of scales")
    if "num_experts_per_tok" in case.config:
        yield "experts in reverse"


def read(case, folder, mistake=""):
    tensors = common.stored(folder)
    found = {name: tensor for name, tensor in tensors.items() if not name.endswith((".scales", ".biases"))}
    for module, of in settings(folder, tensors):
        found[f"{module}.weight"] = dequantized(tensors, module, of, mistake)
    return unstacked(found, case.config["model_type"], mistake)


def interleaved(tensors):
    """Returns tensors of gpt-oss with gate and up together, and weights with inputs before outputs."""
    found = {}
    for name, tensor in tensors.items():
        module, _, part = name.rpartition(".")
        if ".experts." not in name:
            found[name] = tensor
        elif module.endswith("gate_proj"):
            both = torch.stack((tensor, tensors[name.replace("gate_proj", "up_proj")]), 2).flatten(1, 2)
            name = module.replace("gate_proj", "gate_up_proj")
            found[name if part == "weight" else f"{name}_bias"] = both.transpose(1, -1) if part == "weight" else both
        elif module.endswith("down_proj"):
            is_weight = part == "weight"
            found[module if is_weight else f"{module}_bias"] = tensor.transpose(1, -1) if is_weight else tensor
    return found


def unstacked(tensors, family, mistake):
    found = {}
    if family == "gpt_oss":
        if mistake == "experts in reverse":
            tensors = {name: t.flip(0) if ".experts." in name else t for name, t in tensors.items()}
        return interleaved(tensors)
    for name, tensor in tensors.items():
        before, stack, after = name.partition(".switch_mlp.")
        if not stack:
            found[name] = tensor
            continue
        if family == "mixtral":
            for old, new in (("gate_proj", "w1"), ("down_proj", "w2"), ("up_proj", "w3")):
                after = after.replace(old, new)
        if mistake == "experts in reverse":
            tensor = tensor.flip(0)
        for expert, weight in enumerate(tensor):
            found[f"{before}.experts.{expert}.{after}"] = weight
    return found


def verify(case, folder, tensors):
    """Compares with mx.dequantize. Its scales are widened first, because it computes in their element type."""
    stored = common.stored(folder)
    theirs = {name: tensor for name, tensor in stored.items() if not name.endswith((".scales", ".biases"))}
    for module, of in settings(folder, stored):
        parts = [mx.array(stored[f"{module}.{part}"].float().numpy() if part == "biases" or (
            part == "scales" and of.get("mode", "affine") == "affine") else stored[f"{module}.{part}"].numpy())
            for part in ("weight", "scales", "biases") if f"{module}.{part}" in stored]
        found = mx.dequantize(*parts, **{"mode": "affine", **of}, dtype=mx.float32)
        theirs[f"{module}.weight"] = torch.from_numpy(numpy.array(found))
    theirs = unstacked(theirs, case.config["model_type"], "")
    for name, tensor in tensors.items():
        assert torch.equal(tensor.float(), theirs[name].float()), f"{case.name}: {name}"


if __name__ == "__main__":
    common.main(sys.modules[__name__])
