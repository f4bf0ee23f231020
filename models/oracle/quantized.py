#!/usr/bin/env python3
"""Measures a checkpoint in Hugging Face transformers, quantized like --quant and --cache-type do it.

    python3 models/oracle/quantized.py models/demo models/demo/held_out.txt           # a table
    python3 models/oracle/quantized.py models/demo models/demo/held_out.txt --record  # also writes quantized.json

Every linear layer, embedding and head is replaced by its quantized form in double precision, to measure only the
formulas. transformers computes everything else in f32.

    q8     compressed-tensors' W8A8: int8 weights with a scale per output (largest magnitude / 127.5), int8 inputs with
           a scale per row (largest magnitude / 127)
    q4     ggml's Q4_0 weights by Q8_0 inputs, in groups of 32; the package gguf quantizes the weights
    kv-q8  unquantized weights, keys and values in ggml's Q8_0: groups of 32 with a half-precision scale

The table has the perplexity on the text in windows, and the mean and 99th percentile of the Kullback-Leibler divergence
from f32. Single predictions cannot be compared: inputs are rounded to 8 bits, so a change of 1e-7 in a norm changes them
almost as much as quantization.
"""

import argparse
import json
import math
from pathlib import Path

import gguf
import numpy
import tokenizers
import torch
import transformers

GROUP = 32


def rows_q8(x):
    largest = x.abs().amax(-1, keepdim=True)
    inverse = torch.where(largest > 0, 127 / largest, 0)
    return (x * inverse).round().double(), (largest / 127).double()


class Q8(torch.nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        scale = weight.abs().amax(1, keepdim=True) / 127.5
        scale = torch.where(scale == 0, torch.finfo(torch.float32).eps, scale)
        self.steps = (weight / scale).round().clamp(-128, 127).double()
        self.scale, self.bias = scale.double(), bias

    def rows(self, ids):
        return (self.steps[ids] * self.scale[ids]).float()

    def product(self, x):
        steps, scale = rows_q8(x)
        return ((steps @ self.steps.T) * scale * self.scale.T).float()


class Q4(torch.nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        blocks = gguf.quants.quantize(weight.numpy(), gguf.GGMLQuantizationType.Q4_0)
        self.weight = torch.from_numpy(gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q4_0)).double()
        self.bias = bias

    def rows(self, ids):
        return self.weight[ids].float()

    def product(self, x):
        steps, scale = rows_q8(x.reshape(*x.shape[:-1], -1, GROUP))
        return ((steps * scale).reshape(x.shape) @ self.weight.T).float()


class Layer(torch.nn.Module):
    """A quantized weight as a linear layer or as an embedding."""

    def __init__(self, quantized, is_table):
        super().__init__()
        self.quantized, self.is_table = quantized, is_table

    def forward(self, x):
        if self.is_table:
            return self.quantized.rows(x)
        y = self.quantized.product(x)
        return y if self.quantized.bias is None else y + self.quantized.bias


def quantize(model, kind):
    for name, module in list(model.named_modules()):
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
            bias = getattr(module, "bias", None)
            parent = model.get_submodule(name.rpartition(".")[0])
            layer = Layer(kind(module.weight.detach(), bias), isinstance(module, torch.nn.Embedding))
            setattr(parent, name.rpartition(".")[2], layer)
    return model


class Q8Cache(transformers.DynamicCache):
    def update(self, keys, values, *args, **kwargs):
        return super().update(*(self.quantized(x) for x in (keys, values)), *args, **kwargs)

    @staticmethod
    def quantized(x):
        steps, scale = rows_q8(x.reshape(*x.shape[:-1], -1, GROUP))
        return (steps * scale.half().double()).float().reshape(x.shape)


def load(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    return model.eval()


@torch.no_grad()
def log_probabilities(model, windows, cache):
    logits = (model(input_ids=w[None], past_key_values=cache()).logits[0, :-1] for w in windows)
    return [torch.log_softmax(x.double(), -1) for x in logits]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--window", type=int, default=256)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    tokenizer = tokenizers.Tokenizer.from_file(str(options.folder / "tokenizer.json"))
    ids = torch.tensor(tokenizer.encode(options.text.read_text()).ids)
    windows = [w for w in ids.split(options.window) if len(w) > 1]
    plain = transformers.DynamicCache
    kinds = {"none": (None, plain), "q8": (Q8, plain), "q4": (Q4, plain), "kv-q8": (None, Q8Cache)}
    recorded, exact = {}, None
    print("quant  perplexity  mean_kl   p99_kl")
    for name, (kind, cache) in kinds.items():
        model = load(options.folder)
        found = log_probabilities(quantize(model, kind) if kind else model, windows, cache)
        exact = exact or found
        taken = [p.gather(1, w[1:, None])[:, 0] for p, w in zip(found, windows, strict=True)]
        perplexity = math.exp(-torch.cat(taken).mean())
        kl = torch.cat([(e.exp() * (e - p)).sum(-1) for e, p in zip(exact, found, strict=True)]).numpy()
        worst = numpy.sort(kl)[math.ceil(len(kl) * 0.99) - 1]
        print(f"{name:5}  {perplexity:10.4f}  {kl.mean():.6f}  {worst:.6f}")
        recorded[name] = {"perplexity": round(perplexity, 6), "mean_kl": round(float(kl.mean()), 6)}
    if options.record:
        found = {"transformers": transformers.__version__, "window": options.window, "of": recorded}
        (options.folder / "quantized.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    main()
