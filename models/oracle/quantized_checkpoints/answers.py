"""Answers questions of common.py, one JSON object a line, by transformers in f32.

It runs in an environment of its own, because some tools need another version of transformers.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import transformers

import family_case
import make_fixtures

VERSION = "5.23.0"  # of transformers, as for the other fixtures
PROMPT_LENGTHS = [1, 2, 17, 64, 150]


def rerun(folder, entries):
    """Returns the greedy tokens of another checkpoint for the prompts of `entries`."""
    model = make_fixtures.load(folder)
    return [make_fixtures.greedy(model, entry["prompt"])[0] for entry in entries]


def idle_mistakes(folder, mistakes, entries):
    """Returns the mistakes that change no token."""
    tokens = [entry["tokens"] for entry in entries]
    return [m for i, m in enumerate(mistakes) if rerun(folder / str(i), entries) == tokens]


def make(folder, seed, covers, vocab, mistakes):
    model, exact = make_fixtures.load(folder / "plain"), make_fixtures.load(folder / "plain").double()
    doubt = family_case.Case.doubt
    generator = torch.Generator().manual_seed(seed)
    entries, noises, refused = [], [], []
    for length in PROMPT_LENGTHS:
        for _ in range(12):
            prompt = torch.randint(vocab, (length,), generator=generator).tolist()
            entry, note = make_fixtures.answer(model, exact, prompt)
            if entry and (near := doubt(None, exact, entry)):
                entry, note = None, near
            if entry:
                entries.append(entry)
                noises.append(note)
                break
            refused.append(note)
        else:
            return None, f"{length} tokens: {refused[-12:]}"
    if idle := idle_mistakes(folder, mistakes, entries):
        return None, f"mistakes that change no token: {idle}"
    expected = {"covers": covers, "transformers": transformers.__version__, "seed": seed, "prompts": entries}
    return expected, f"noise {max(noises):.1e}, {len(mistakes)} mistakes found"


def check(folder, expected, mistakes):
    """Returns what is wrong with expected.json; nothing if it holds."""
    model = make_fixtures.load(folder / "plain")
    for entry in expected["prompts"]:
        tokens, logits = make_fixtures.greedy(model, entry["prompt"])
        if tokens != entry["tokens"]:
            return f"{len(entry['prompt'])} tokens: other tokens"
        for row, best in zip(logits, entry["best"], strict=True):
            for i, value in best:
                if abs(row[i].item() - value) > make_fixtures.MOST_NOISE + 5e-6 * abs(value):
                    return f"{len(entry['prompt'])} tokens: logit {i}"
    idle = idle_mistakes(folder, mistakes, expected["prompts"])
    return f"mistakes that change no token: {idle}" if idle else ""


def main():
    assert transformers.__version__ == VERSION, f"found transformers {transformers.__version__}, expected {VERSION}"
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for line in sys.stdin:
        question = json.loads(line)
        folder = Path(question.pop("folder"))
        if "expected" in question:
            print(json.dumps({"note": check(folder, **question)}), flush=True)
        else:
            expected, note = make(folder, **question)
            print(json.dumps({"expected": expected, "note": note}), flush=True)


if __name__ == "__main__":
    main()
