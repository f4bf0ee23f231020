"""Continues a text, reads an answer piece by piece, and answers several prompts together.

    python generate.py demo.bundle
"""

import sys

import mlxcel

with mlxcel.Engine(sys.argv[1], cache_size="64MiB") as engine:
    answer = engine.generate("And it came to pass", max_tokens=12)
    print(answer.text)

    for piece in engine.stream("And it came to pass", max_tokens=24, temperature=0.7, seed=1):
        print(piece.text, end="", flush=True)
    print()

    prompts = ["In the beginning", "And the LORD said", "Blessed are"]
    for prompt, answer in zip(prompts, engine.generate(prompts, max_tokens=8)):
        print(prompt + answer.text)
