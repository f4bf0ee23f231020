#!/usr/bin/env python3
"""Measures what a tool's own kernels lose of a checkpoint that the tool quantized.

    python3 divergence.py CASE SOURCE FOLDER TEXT     # `cargo xtask quantized` calls it
    python3 divergence.py CASE SOURCE FOLDER          # quantizes only

SOURCE is a float checkpoint. Its quantized form goes to FOLDER/quantized, and the exact reading of that, in f32, to
FOLDER/plain; a GGUF file is there already, as FOLDER/quantized/model.gguf. The tool then predicts TEXT in windows, and
transformers in f32 with the exact weights. One JSON object on stdout:

    bytes        of the tensors of the quantized checkpoint
    perplexity   of the tool's predictions
    mean_kl      mean Kullback-Leibler divergence of the tool's predictions from transformers', in nats

Tools run on the CPU, in the element type of the checkpoint. What transformers has no kernel for on a CPU (fp8), it
decodes to that type, as it does by itself.
"""

import argparse
import importlib
import json
import math
import os
import shutil
import sys
from pathlib import Path

import numpy
import tokenizers
import torch
import transformers

import common
import make_fixtures

WINDOW = 256  # tokens


def mlx_logits(folder):
    import mlx.core
    import mlx_lm.utils

    model, _ = mlx_lm.utils.load_model(folder)
    return lambda window: numpy.array(model(mlx.core.array(window)[None])[0].astype(mlx.core.float32))


def transformers_logits(folder, **options):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto", device_map="cpu", **options).eval()
    return lambda window: model(input_ids=torch.tensor([window]), use_cache=False).logits[0].float().numpy()


def fp8_logits(folder):
    of = json.loads((folder / "config.json").read_text())["quantization_config"]
    of = {key: of[key] for key in ("activation_scheme", "weight_block_size", "modules_to_not_convert")}
    return transformers_logits(folder, quantization_config=transformers.FineGrainedFP8Config(**of, dequantize=True))


def llama_cpp_logits(folder):
    import llama_cpp

    model = llama_cpp.Llama(str(folder / "model.gguf"), n_ctx=WINDOW, logits_all=True, n_threads=2, verbose=False)

    def logits(window):
        model.reset()
        model.eval(window)
        return numpy.array(model.scores[: len(window)])

    return logits


# The script that makes the checkpoint, its options there, and how the tool's own kernels run it.
FOUR_BITS = {"load_in_4bit": True, "bnb_4bit_compute_dtype": "bfloat16"}
CASES = {
    "mlx-4bit": ("make_mlx", {"bits": 4, "group_size": 64}, mlx_logits),
    "mlx-8bit": ("make_mlx", {"bits": 8, "group_size": 64}, mlx_logits),
    "mlx-mxfp4": ("make_mlx", {"mode": "mxfp4"}, mlx_logits),
    "mlx-nvfp4": ("make_mlx", {"mode": "nvfp4"}, mlx_logits),
    "bnb-nf4": ("make_bitsandbytes", FOUR_BITS | {"bnb_4bit_quant_type": "nf4"}, transformers_logits),
    "bnb-nf4-double": (
        "make_bitsandbytes",
        FOUR_BITS | {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
        transformers_logits,
    ),
    "bnb-fp4": ("make_bitsandbytes", FOUR_BITS | {"bnb_4bit_quant_type": "fp4"}, transformers_logits),
    "bnb-int8": ("make_bitsandbytes", {"load_in_8bit": True}, transformers_logits),
    # transformers misreads matrices that blocks do not divide, such as 192 inputs in blocks of 128.
    "fp8-block": ("make_fp8", {"weight_block_size": [64, 64]}, fp8_logits),
    "gguf-q4_0": ("make_gguf", {}, llama_cpp_logits),
    "gguf-q8_0": ("make_gguf", {}, llama_cpp_logits),
    "gguf-q4_k_m": ("make_gguf", {}, llama_cpp_logits),
}


def tensor_bytes(folder):
    """Returns the bytes of all tensors, without headers and metadata."""
    if (file := folder / "model.gguf").exists():
        import gguf

        return sum(int(tensor.n_bytes) for tensor in gguf.GGUFReader(file).tensors)
    return sum(tensor.numel() * tensor.element_size() for tensor in common.stored(folder).values())


def windows(source, text):
    tokenizer = tokenizers.Tokenizer.from_file(str(source / "tokenizer.json"))
    ids = tokenizer.encode(text.read_text()).ids
    cut = [ids[start : start + WINDOW] for start in range(0, len(ids), WINDOW)]
    return [window for window in cut if len(window) > 1]


@torch.no_grad()
def predictions(logits, text):
    """Returns log-probabilities of every token but the first of each window."""
    rows = (torch.from_numpy(logits(window)[:-1]).double() for window in text)
    return [torch.log_softmax(row, -1) for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    for name in ("source", "folder"):
        parser.add_argument(name, type=Path)
    parser.add_argument("text", type=Path, nargs="?")
    options = parser.parse_args()
    script, of, kernels = CASES[options.case]
    tool = importlib.import_module(script)
    config = json.loads((options.source / "config.json").read_text())
    config.pop("dtype", None)  # write_plain adds its own
    case = tool.Case(options.case, "", config, options=of)
    quantized, plain = options.folder / "quantized", options.folder / "plain"
    options.folder.mkdir(parents=True, exist_ok=True)
    if script != "make_gguf":
        shutil.rmtree(quantized, ignore_errors=True)
        torch.manual_seed(0)
        tool.write(case, options.source, quantized)
    if not options.text:
        return {"bytes": tensor_bytes(quantized)}
    shutil.rmtree(plain, ignore_errors=True)
    tensors = tool.read(case, quantized)
    tool.verify(case, quantized, tensors)
    common.write_plain(case, tensors, plain)
    for folder in (quantized, plain):
        shutil.copyfile(options.source / "tokenizer.json", folder / "tokenizer.json")
    text = windows(options.source, options.text)
    exact = make_fixtures.load(plain)
    expected = predictions(lambda window: exact(input_ids=torch.tensor([window])).logits[0].numpy(), text)
    found = predictions(kernels(quantized), text)
    taken = [row.gather(1, torch.tensor(w)[1:, None])[:, 0] for row, w in zip(found, text, strict=True)]
    divergences = [(e.exp() * (e - f)).sum(-1) for e, f in zip(expected, found, strict=True)]
    return {
        "bytes": tensor_bytes(quantized),
        "perplexity": math.exp(-torch.cat(taken).mean()),
        "mean_kl": float(torch.cat(divergences).mean()),
    }


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    transformers.logging.set_verbosity_error()
    sys.stdout, stdout = sys.stderr, sys.stdout  # tools print on stdout
    print(json.dumps(main()), file=stdout)
