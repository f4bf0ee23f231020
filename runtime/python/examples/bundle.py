"""Looks at a bundle: what it is, whether its files are intact, and which targets run here.

    python bundle.py demo.bundle
"""

import sys

import mlxcel

bundle = mlxcel.Bundle(sys.argv[1])
print(bundle.model, bundle.kind, bundle.digest)
print("signed by", bundle.verify())
for target in bundle.check():
    print(target.name, target.verdict, "on", target.device, *target.reasons)
