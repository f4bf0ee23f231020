#!/usr/bin/env python3
"""Converts fixtures of the oracle to GGUF with llama.cpp's converter: gguf_architectures/<fixture>.gguf.

    LLAMA_CPP=llama.cpp gguf/bin/python models/oracle/make_gguf_architectures.py            # all
    LLAMA_CPP=llama.cpp gguf/bin/python models/oracle/make_gguf_architectures.py gpt2-hub   # only these
    LLAMA_CPP=llama.cpp gguf/bin/python models/oracle/make_gguf_architectures.py --check    # compares the files

The environment is that of quantized_checkpoints/make_gguf_families.py. Numbers keep their type, so each file gives the
answers that are recorded for the fixture.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "quantized_checkpoints"))

import make_gguf_families

FIXTURES, FILES = HERE / "fixtures", HERE / "gguf_architectures"
TYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}

# One for each architecture, and a second one where checkpoints of one architecture have other tensors.
CASES = [
    "cohere-tied", "cohere2-hub", "ernie4_5-hub", "exaone4-hybrid", "exaone4-small", "gemma-tied",
    "gemma2-bare", "glm4-hub", "gpt-neox-parallel", "gpt2-hub", "granite-biases",
    "granite-tied", "granitemoe-hub", "olmo2-hub", "olmo3-hub", "olmoe-hub", "qwen2-moe-hub", "qwen2-tied",
    "seed-oss-hub", "smollm3-hub", "stablelm-biases", "stablelm-parallel", "starcoder2-bare",
]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="names; none: all")
    parser.add_argument("--check", action="store_true", help="only compare the committed files")
    options = parser.parse_args()
    if unknown := set(options.cases) - set(CASES):
        sys.exit(f"unknown cases {sorted(unknown)}, expected some of {CASES}")
    FILES.mkdir(exist_ok=True)
    for case in options.cases or CASES:
        config = json.loads((FIXTURES / case / "config.json").read_text())
        with tempfile.TemporaryDirectory() as temporary:
            made = Path(temporary) / f"{case}.gguf"
            dtype = config.get("torch_dtype") or config["dtype"]
            make_gguf_families.convert(FIXTURES / case, made, TYPES[dtype])
            bytes = made.read_bytes()
        file = FILES / made.name
        if options.check:
            assert file.read_bytes() == bytes, f"{case}: found another file"
        else:
            file.write_bytes(bytes)
        print(f"{case}: {len(bytes)} bytes", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
