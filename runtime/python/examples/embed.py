"""Finds the text that is nearest to a question, by their embeddings.

    python embed.py minilm.bundle
"""

import sys

import mlxcel

engine = mlxcel.Engine(sys.argv[1])
texts = ["A cat sleeps on the sofa.", "The stock market fell today.", "Rust has no garbage collector."]
rows = engine.embed(texts)
question = engine.embed("Which animal is resting?")
similarity = rows @ question
for text, value in sorted(zip(texts, similarity), key=lambda pair: -pair[1]):
    print(f"{value:6.3f} {text}")
