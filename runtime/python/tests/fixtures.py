"""Checks that answers are those recorded of Hugging Face: `fixtures.py CASES.json COUNT`.

Each case has a bundle, and prompts with the tokens that follow them.
"""

import json
import sys
import warnings

import mlxcel

warnings.simplefilter("ignore", mlxcel.OriginWarning)


def differing(case: dict) -> list[str]:
    """Returns a line for each prompt whose answer is another one."""
    lines = []
    with mlxcel.Engine(case["bundle"], cache_size="64MiB") as engine:
        options = {"max_tokens": len(case["prompts"][0]["tokens"]), "ignore_eos": True}
        together = engine.generate([one["prompt"] for one in case["prompts"]], **options)
        for number, (one, answer) in enumerate(zip(case["prompts"], together)):
            alone = [piece.token for piece in engine.stream(one["prompt"], **options) if piece.token is not None]
            for found in (answer.tokens, alone):
                if found != one["tokens"]:
                    lines.append(f"{case['name']}: prompt {number}: found {found}, expected {one['tokens']}")
    return lines


cases = json.load(open(sys.argv[1]))
assert len(cases) == int(sys.argv[2]) > 0
lines = [line for case in cases for line in differing(case)]
print(f"{len(cases)} fixtures, {sum(len(case['prompts']) for case in cases)} prompts")
sys.exit("\n".join(lines) or 0)
