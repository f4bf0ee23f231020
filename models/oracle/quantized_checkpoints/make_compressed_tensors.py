#!/usr/bin/env python3
"""Makes the fixtures of compressed-tensors checkpoints with llmcompressor, calibrated with random tokens on a CPU.

    ORACLE_PYTHON=oracle/bin/python ct/bin/python models/oracle/quantized_checkpoints/make_compressed_tensors.py \\
        [--check] [CASE…]

llmcompressor 0.14 refuses actorder 'group'. Cases with `old` are made and checked by version 0.6, which runs this
script too; each version leaves the cases of the other out.
"""

import contextlib
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version

import compressed_tensors
import datasets
import llmcompressor
import torch
import transformers
from compressed_tensors.quantization import QuantizationConfig
from llmcompressor.modifiers.quantization import QuantizationModifier

import common
from common import LLAMA, MIXTRAL

VERSIONS = {"llmcompressor": "0.14.0.1", "compressed-tensors": "0.19.0", "transformers": "5.17.0", "torch": "2.15.0"}
OLD_VERSIONS = {"llmcompressor": "0.6.0", "compressed-tensors": "0.10.2", "transformers": "4.52.4", "torch": "2.15.0"}
IS_OLD = version("llmcompressor").startswith("0.6")

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


@dataclass(frozen=True)
class Case(common.Case):
    storage: str = "BF16"
    ignore: tuple = ("lm_head",)
    gptq: bool = False
    old: bool = False
    model_free: bool = False


def weights(bits, group_size=None, **other):
    """Returns options of one group of modules with integer weights."""
    strategy = {"strategy": "group", "group_size": group_size} if group_size else {"strategy": "channel"}
    return {"targets": ["Linear"], "weights": {"num_bits": bits, "type": "int", "symmetric": True} | strategy | other}


BLOCKS = {
    "targets": ["Linear"],
    "weights": {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [32, 32], "symmetric": True},
    "input_activations": {"num_bits": 8, "type": "float", "strategy": "group", "group_size": 32, "dynamic": True,
                          "symmetric": True},
}  # fmt: skip
MIXED = [
    weights(4, 32) | {"targets": ["re:.*mlp.(gate|up)_proj"]},
    weights(8) | {"targets": ["re:.*self_attn.[qko]_proj$", "model.layers.1.mlp.down_proj"]},
]

CASES = [
    Case("ct-w4a16", "pack-quantized: 4 bits in groups of 32, symmetric", LLAMA, options={"groups": [weights(4, 32)]}),
    Case("ct-w4a16-asym", "zero points, packed along rows", LLAMA,
         options={"groups": [weights(4, 32, symmetric=False)]}),
    Case("ct-w4a16-actorder", "GPTQ with actorder 'weight': no g_idx", LLAMA, gptq=True,
         options={"groups": [weights(4, 32, actorder="weight", symmetric=False)]}),
    Case("ct-w8a16", "pack-quantized: 8 bits, a scale for each output", LLAMA | {"attention_bias": True},
         storage="F16", options={"groups": [weights(8)]}),
    Case("ct-w3a16", "pack-quantized: 3 bits cross words", LLAMA, options={"groups": [weights(3, 32)]}),
    Case("ct-w8a8", "int-quantized: int8 with a scale for each output", LLAMA, options={"scheme": "W8A8"}),
    Case("ct-fp8-dynamic", "float-quantized: e4m3 with a scale for each output", LLAMA,
         options={"scheme": "FP8_DYNAMIC"}),
    Case("ct-fp8-static", "float-quantized: e4m3 with a scale for a tensor, and input_scale", LLAMA, storage="F16",
         options={"scheme": "FP8"}),
    Case("ct-fp8-block", "float-quantized: e4m3 in blocks of 32 × 32 with ragged ends",
         LLAMA | {"intermediate_size": 80}, options={"groups": [BLOCKS]}),
    Case("ct-nvfp4", "nvfp4-pack-quantized: e4m3 scales of 16 and a global scale, which divides", LLAMA,
         options={"scheme": "NVFP4A16"}),
    Case("ct-nvfp4-act", "NVFP4 with input_global_scale", LLAMA, options={"scheme": "NVFP4"}),
    Case("ct-mxfp4", "mxfp4-pack-quantized: e8m0 scales of 32", LLAMA, options={"scheme": "MXFP4A16"}),
    Case("ct-mxfp8", "mxfp8-quantized: e4m3 elements, e8m0 scales of 32", LLAMA, options={"scheme": "MXFP8A16"}),
    Case("ct-mixed", "two config_groups by 're:' patterns and names; names in ignore", LLAMA | {"num_hidden_layers": 2},
         options={"groups": MIXED}, ignore=("lm_head", "re:.*layers.0.*down_proj")),
    Case("ct-ignore", "model_free_ptq: 're:' in ignore; a group with the scheme's name", LLAMA, model_free=True,
         options={"scheme": "FP8_DYNAMIC"},
         ignore=("lm_head", "model.embed_tokens", "re:.*v_proj$")),
    Case("ct-mixtral", "experts with the names gate_proj, down_proj and up_proj for w1, w2 and w3", MIXTRAL,
         options={"groups": [weights(4, 32)]}, ignore=("lm_head", "re:.*gate$")),
    Case("ct-old-actorder", "actorder 'group': weight_g_idx decides the group of a column", LLAMA, gptq=True, old=True,
         options={"groups": [weights(4, 32, actorder="group")]}),
]  # fmt: skip
TABLE = CASES
CASES = [case for case in CASES if case.old == IS_OLD]


def modifier(case):
    options = {"ignore": list(case.ignore)}
    if "scheme" in case.options:
        options |= {"scheme": case.options["scheme"], "targets": ["Linear"]}
    else:
        options["config_groups"] = {f"group_{i}": group for i, group in enumerate(case.options["groups"])}
    if not case.gptq:
        return QuantizationModifier(**options)
    if IS_OLD:
        from llmcompressor.modifiers.quantization import GPTQModifier
    else:
        from llmcompressor.modifiers.gptq import GPTQModifier
    return GPTQModifier(**options)


def write(case, source, folder):
    common.write_tokenizer(case, source)
    if case.model_free:
        scheme, ignore = case.options["scheme"], list(case.ignore)
        llmcompressor.model_free_ptq(source, folder, scheme=scheme, ignore=ignore, device="cpu")
        return
    model = transformers.AutoModelForCausalLM.from_pretrained(source, torch_dtype="auto")
    rows = common.random_rows(case)
    data = datasets.Dataset.from_dict({"input_ids": rows.tolist(), "attention_mask": torch.ones_like(rows).tolist()})
    calibration = {"dataset": data, "num_calibration_samples": len(rows), "max_seq_length": rows.shape[1]}
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    name = {"tokenizer": tokenizer} if IS_OLD else {"processor": tokenizer}
    needed = case.gptq or case.options.get("scheme") in ("FP8", "NVFP4")
    llmcompressor.oneshot(model=model, recipe=modifier(case), **(calibration | name if needed else {}))
    model.save_pretrained(folder, save_compressed=True)


def quantization(folder):
    return json.loads((folder / "config.json").read_text())["quantization_config"]


def modules(folder):
    """Yields quantized modules and their group of config_groups."""
    groups = quantization(folder)["config_groups"].values()
    for name in common.stored(folder):
        if name.endswith(".weight_scale"):
            module = name.removesuffix(".weight_scale")
            yield module, next(group for group in groups if any(covers(t, module) for t in group["targets"]))


def covers(target, module):
    if target.startswith("re:"):
        return re.match(target[3:], module)
    return target in ("Linear", module)


def packed_integers(tensors, bits, mistake):
    """Returns elements of pack-quantized weights, and zero points. Both are offset by half of their range."""
    words, shape = tensors["weight_packed"], tensors["weight_shape"].tolist()
    offset = 0 if mistake == "elements not offset" else 1 << bits - 1
    elements = common.codes(words, bits, mistake)[:, : shape[1]] - offset
    zeros = tensors.get("weight_zero_point", torch.tensor(0))
    if zeros.ndim:
        zeros = common.codes(zeros.T.contiguous(), bits)[:, : shape[0]].T - (1 << bits - 1)
    return elements, zeros


def spread(values, group, columns, mistake, tensors):
    """Returns a value for each column from one for each group of columns."""
    groups = tensors.get("weight_g_idx")
    if groups is None or mistake == "weight_g_idx ignored":
        groups = torch.arange(columns) // (columns // values.shape[1])
    return values[:, groups.long()] if values.shape[1] > 1 else values


def dequantized(tensors, group, mistake):
    of = group["weights"]
    bits, strategy = of["num_bits"], of["strategy"]
    scale = tensors["weight_scale"]
    if of["type"] == "int" and "weight_packed" in tensors:
        elements, zeros = packed_integers(tensors, bits, mistake)
        if mistake == "zero points ignored":
            zeros = torch.tensor(0)
        if zeros.ndim:
            zeros = spread(zeros, of, elements.shape[1], mistake, tensors)
        return (elements - zeros).float() * spread(scale.float(), of, elements.shape[1], mistake, tensors)
    if bits == 4:
        nibbles = tensors["weight_packed"].long()
        pair = (nibbles & 15, nibbles >> 4)
        elements = E2M1[torch.stack(pair[::-1] if mistake == "high nibble first" else pair, -1).flatten(1)]
    else:
        elements = tensors["weight"].float()
    if scale.dtype == torch.uint8:
        scale = torch.exp2(scale.float() - (126 if mistake == "bias 126 of scales" else 127))
    scale = scale.float()
    if mistake == "scales ignored":
        scale = torch.full_like(scale, scale.mean())
    if mistake == "input_scale multiplies too":
        scale = scale * tensors["input_scale"].float()
    if "weight_global_scale" in tensors:
        scale = scale * tensors["weight_global_scale"] if mistake == "global scale multiplies" else (
            scale / tensors["weight_global_scale"])
    if strategy == "block":
        rows, columns = of["block_structure"]
        scale = scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
        return elements * scale[: elements.shape[0], : elements.shape[1]]
    if strategy in ("group", "tensor_group"):
        scale = scale.repeat_interleave(of["group_size"], 1)
    return elements * scale


def parts(tensors, module):
    return {name[len(module) + 1 :]: t for name, t in tensors.items() if name.rpartition(".")[0] == module}


def read(case, folder, mistake=""):
    tensors = common.stored(folder)
    found = dict(tensors)
    for module, group in modules(folder):
        of = parts(tensors, module)
        for part in of:
            if part != "bias":
                del found[f"{module}.{part}"]
        found[usual_name(module, mistake)] = dequantized(of, group, mistake)
    return found


def usual_name(module, mistake=""):
    """Returns the name of a weight in the float checkpoint. Version 0.14 names Mixtral's experts in another way."""
    names = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}
    if mistake == "gate and up swapped":
        names |= {"gate_proj": "w3", "up_proj": "w1"}
    before, _, last = module.rpartition(".")
    return f"{before}.{names.get(last, last) if 'block_sparse_moe' in before else last}.weight"


def mistakes(case):
    groups = case.options.get("groups", [{"weights": {"type": case.options.get("scheme")}}])
    kind = groups[0]["weights"]["type"]
    if kind == "int":
        yield "elements not offset"
        yield "high bits first"
        if case.name == "ct-mixtral":
            yield "gate and up swapped"
        if not groups[0]["weights"]["symmetric"]:
            yield "zero points ignored"
        if groups[0]["weights"].get("actorder") == "group":
            yield "weight_g_idx ignored"
        if case.name == "ct-w3a16":
            yield "words hold whole elements"
        return
    if "FP4" in kind:
        yield "high nibble first"
    if kind == "FP8":
        yield "input_scale multiplies too"
    else:
        yield "bias 126 of scales" if kind.startswith("MX") else "scales ignored"
    if kind.startswith("NV"):
        yield "global scale multiplies"


def theirs(of, group, kind):
    """Returns a weight by the tool's own code. Scales are widened first, but the code for NVFP4 rounds to bf16."""
    scheme = QuantizationConfig(config_groups={"group_0": group}).config_groups["group_0"]
    if not of["weight_scale"].dtype.itemsize == 1:
        of["weight_scale"] = of["weight_scale"].float()
    if IS_OLD:
        compressor = compressed_tensors.compressors.BaseCompressor.load_from_registry(kind)
        return compressor.decompress_weight(of, quantization_args=scheme.weights)
    compressor = compressed_tensors.compressors.BaseCompressor.get_value_from_registry(kind)
    return compressor.decompress(of, scheme)["weight"]


def verify(case, folder, tensors):
    stored = common.stored(folder)
    compared = 0
    for module, group in modules(folder):
        found = theirs(parts(stored, module), group, group.get("format") or quantization(folder)["format"])
        assert torch.equal(tensors[usual_name(module)].to(found.dtype), found), f"{case.name}: {module}"
        compared += 1
    assert compared, case.name


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):  # it writes logs where it runs
        common.main(sys.modules[__name__])
