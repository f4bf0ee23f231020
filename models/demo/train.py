#!/usr/bin/env python3
"""Trains the demo model of this folder: a small Llama on the King James Bible.

Needs the Debian packages `bible-kjv` and `bible-kjv-text` (4.38), and from PyPI torch 2.15, transformers 5.23,
tokenizers 0.23 and safetensors 0.8. No GPU: about half an hour on one core.

    python3 models/demo/train.py                 # trains; writes checkpoint, expected.json and held-out text
    python3 models/demo/train.py --steps 100 --out DIR
    python3 models/demo/train.py --record        # records expected.json anew, without training

With one seed, one number of threads, one version of torch and one kind of CPU, two runs give the same bytes.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

HERE = Path(__file__).resolve().parent
BOS, EOS = "<|begin|>", "<|end|>"
VOCAB = 1536
CONTEXT = 512
HELD_OUT_EVERY = 40  # of 1,189 chapters
HELD_OUT_TEXT = [2, 14, 26]  # held-out chapters that are written to held_out.txt
CALIBRATION = slice(50, None, 100)  # learned chapters that are written to calibration.txt

# The first five of these without a near tie go into expected.json.
PROMPTS = [
    "In the beginning",
    "The LORD is my shepherd;",
    "And Jesus answered and said unto them,",
    "And the children of Israel",
    "O give thanks unto the LORD;",
    "And it came to pass",
    "Blessed are they that",
    "Then said the king unto",
    "Now these are the generations of",
    "And David said",
]
NEW_TOKENS = 48
LEAST_GAP = 2e-3


def chapters():
    """Returns the chapters of the Bible in order: one verse per line, without headings and verse numbers."""
    command = ["bible", "-l", "100000", "gen1:1-rev22:21"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = []
    for line in text.splitlines():
        if verse := re.fullmatch(r" +\d+ (.+)", line):
            found[-1].append(verse[1].strip())
        elif line.strip():
            found.append([])
    found = ["\n".join(verses) + "\n" for verses in found]
    assert len(found) == 1189, f"expected 1189 chapters, found {len(found)}"
    return found


def train_tokenizer(texts):
    """Returns a byte-level BPE tokenizer, which encodes a text with BOS before it."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=[BOS, EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B", special_tokens=[(BOS, 0)]),
        ]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=EOS,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )


def stream(tokenizer, texts):
    """Returns every text with BOS before and EOS after it, as one row of ids."""
    rows = tokenizer(texts)["input_ids"]
    return torch.tensor([token for row in rows for token in (*row, tokenizer.eos_token_id)])


def new_model(tokenizer):
    config = transformers.LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.02,
    )
    return transformers.LlamaForCausalLM(config)


class Muon(torch.optim.Optimizer):
    """Muon: momentum with orthogonalized updates (Jordan et al., 2024), which needs fewer steps than AdamW."""

    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.1):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @staticmethod
    def orthogonal(matrix):
        tall = matrix.size(0) > matrix.size(1)
        x = matrix.T if tall else matrix
        x = x / (x.norm() + 1e-7)
        for _ in range(5):  # Newton-Schulz: pushes every singular value towards 1
            gram = x @ x.T
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        return x.T if tall else x

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                momentum.lerp_(p.grad, 1 - group["momentum"])
                update = self.orthogonal(p.grad.lerp(momentum, group["momentum"]))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(update, alpha=-group["lr"] * 0.2 * math.sqrt(max(p.shape)))


def optimizers(model):
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    return [
        Muon(matrices, lr=5e-3),
        torch.optim.AdamW(rest, lr=5e-3, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def loss_of(logits, targets):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def schedule(step, steps):
    """Returns the fraction of the full learning rate: linear warm-up, constant, then linear decay to 0 from 60 % on."""
    return min(1, (step + 1) / 60, (steps - step) / (0.4 * steps))


def train(model, ids, held_out, steps, batch):
    optimizer_list = optimizers(model)
    bases = [group["lr"] for o in optimizer_list for group in o.param_groups]
    generator = torch.Generator().manual_seed(1)
    begun = time.time()
    recent = None
    for step in range(steps):
        groups = [group for o in optimizer_list for group in o.param_groups]
        for group, base in zip(groups, bases, strict=True):
            group["lr"] = base * schedule(step, steps)
        starts = torch.randint(len(ids) - CONTEXT - 1, (batch,), generator=generator)
        rows = torch.stack([ids[s : s + CONTEXT + 1] for s in starts.tolist()])
        loss = loss_of(model(input_ids=rows[:, :-1], use_cache=False).logits, rows[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for o in optimizer_list:
            o.step()
            o.zero_grad()
        recent = loss.item() if recent is None else 0.95 * recent + 0.05 * loss.item()
        if step % 20 == 0 or step + 1 == steps:
            note = f" held-out {evaluate(model, held_out):.4f}" if step % 200 == 0 else ""
            print(f"step {step} loss {recent:.4f}{note} {time.time() - begun:.0f} s", file=sys.stderr, flush=True)


@torch.no_grad()
def evaluate(model, ids):
    """Returns the mean loss per token, in windows of the whole context."""
    rows = ids[: len(ids) // (CONTEXT + 1) * (CONTEXT + 1)].view(-1, CONTEXT + 1)
    losses = [
        loss_of(model(input_ids=part[:, :-1], use_cache=False).logits, part[:, 1:]) * len(part)
        for part in rows.split(8)
    ]
    return (sum(losses) / len(rows)).item()


def round_to_bf16(model):
    """Rounds the parameters to bf16. `model.to(bfloat16)` would round rotary tables too, and compute in bf16."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.to(torch.bfloat16))


def save(model, tokenizer, out):
    """Writes the checkpoint in Hugging Face form, with parameters in bf16."""
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(out)
    state = transformers.LlamaForCausalLM(model.config)
    state.load_state_dict(model.state_dict())
    state.to(torch.bfloat16).save_pretrained(out)
    (out / "model.safetensors").chmod(0o644)  # safetensors lets only the owner read it


@torch.no_grad()
def greedy(model, prompt, count):
    """Returns the `count` greedy tokens after `prompt`, and the least gap between the two best logits."""
    tokens, gap = list(prompt), math.inf
    for _ in range(count):
        best = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1].topk(2)
        gap = min(gap, (best.values[0] - best.values[1]).item())
        tokens.append(best.indices[0].item())
    return tokens[len(prompt) :], gap


def record(out):
    """Writes expected.json: the output of transformers in f32 for five prompts."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    model = transformers.AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32).eval()
    kept = []
    for prompt in PROMPTS:
        prompt_tokens = tokenizer(prompt)["input_ids"]
        tokens, gap = greedy(model, prompt_tokens, NEW_TOKENS)
        text = tokenizer.decode(tokens)
        good = gap > LEAST_GAP and tokenizer.eos_token_id not in tokens
        print(f"{'kept' if good else 'left out'}: gap {gap:.4f}: {prompt}{text!r}", file=sys.stderr)
        if good and len(kept) < 5:
            kept.append(
                {
                    "prompt": prompt,
                    "prompt_tokens": prompt_tokens,
                    "tokens": tokens,
                    "text": text,
                    "least_gap": round(gap, 6),
                }
            )
    if len(kept) < 5:
        print(f"warning: expected 5 prompts without a near tie, found {len(kept)}", file=sys.stderr)
    rows = ",\n    ".join(json.dumps(entry) for entry in kept)
    version = json.dumps(transformers.__version__)
    (out / "expected.json").write_text(f'{{\n  "transformers": {version},\n  "cases": [\n    {rows}\n  ]\n}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--steps", type=int, default=2800)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="only record expected.json anew")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if options.record:
        record(options.out)
        return

    torch.manual_seed(options.seed)
    texts = chapters()
    held_out = texts[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY]
    learnt = [t for i, t in enumerate(texts) if i % HELD_OUT_EVERY != HELD_OUT_EVERY - 1]
    tokenizer = train_tokenizer(learnt)
    ids, held_out_ids = stream(tokenizer, learnt), stream(tokenizer, held_out)
    model = new_model(tokenizer)
    count = sum(p.numel() for p in model.parameters())
    print(f"{count} parameters, {len(ids)} tokens to learn, {len(held_out_ids)} held out", file=sys.stderr)

    train(model, ids, held_out_ids, options.steps, options.batch)
    characters = sum(len(t) for t in held_out) / len(held_out_ids)
    print(f"held-out loss, f32: {evaluate(model, held_out_ids):.4f}", file=sys.stderr)
    round_to_bf16(model)
    loss = evaluate(model, held_out_ids)
    bits = loss / math.log(2) / characters
    print(f"held-out loss, parameters rounded to bf16: {loss:.4f} ({bits:.3f} bits per character)", file=sys.stderr)
    save(model, tokenizer, options.out)
    (options.out / "held_out.txt").write_text("\n".join(held_out[i] for i in HELD_OUT_TEXT))
    (options.out / "calibration.txt").write_text("\n".join(learnt[CALIBRATION]))
    record(options.out)


if __name__ == "__main__":
    main()
