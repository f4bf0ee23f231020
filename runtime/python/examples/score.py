"""Tells which of several endings a model finds most likely.

    python score.py demo.bundle
"""

import sys

import mlxcel

engine = mlxcel.Engine(sys.argv[1])
context = "And it came to"
endings = [" pass", " the city", " table"]
scores = {
    ending: sum(token.token for token in engine.score(ending, context=context)) for ending in endings
}
for ending, score in sorted(scores.items(), key=lambda pair: -pair[1]):
    print(f"{score:8.3f} {context}{ending}")
