#!/usr/bin/env python3
"""Prints what Hugging Face transformers generates in f32 for a checkpoint of any size.

    python3 models/oracle/full_shape.py FOLDER --tokens 1,2,3 -n 48

FOLDER contains config.json and safetensors of any element type. Weights are widened to f32, 4 bytes per parameter in
memory (5 GB at the shape of Llama 3.2 1B). Output is one JSON object: prompt_tokens, tokens, least_gap, and best (five
[id, logit] per step). least_gap is the smallest gap between the two best logits of a step; below 2e-3 another exact
implementation may choose other tokens. End-of-text ids are ignored.
"""

import argparse
import json
import sys

import torch
import transformers


def read_tokens(text):
    tokens = [int(word) for word in text.split(",")]
    if min(tokens) < 0:
        raise ValueError(text)
    return tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the checkpoint")
    parser.add_argument("--tokens", type=read_tokens, required=True, help="the prompt: ids with commas between them")
    parser.add_argument("-n", type=int, default=48, help="how many tokens to generate")
    parser.add_argument("--threads", type=int, help="default: torch's own choice")
    options = parser.parse_args()

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if options.threads:
        torch.set_num_threads(options.threads)
    # `dtype=` widens the parameters. Rotary tables are computed in f32 anyway.
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        options.folder, dtype=torch.float32, output_loading_info=True
    )
    if wrong := report["missing_keys"] or report["mismatched_keys"]:
        sys.exit(f"missing or misshapen tensors: {sorted(map(str, wrong))}")
    if max(options.tokens) >= model.config.vocab_size:
        sys.exit(f"found token id {max(options.tokens)}, expected ids below {model.config.vocab_size}")
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    with torch.no_grad():
        out = model.eval().generate(
            torch.tensor([options.tokens]),
            attention_mask=torch.ones(1, len(options.tokens), dtype=torch.long),
            max_new_tokens=options.n,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
    best = torch.cat(out.logits).topk(5)
    result = {
        "transformers": transformers.__version__,
        "prompt_tokens": options.tokens,
        "tokens": out.sequences[0, len(options.tokens) :].tolist(),
        "least_gap": (best.values[:, 0] - best.values[:, 1]).min().item(),
        "best": [
            [[i, float(f"{v:.6g}")] for i, v in zip(ids, values, strict=True)]
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
