"""Embeds the lines of a file with sentence-transformers on the CPU, and prints the seconds that it takes.

    python3 embed.py CHECKPOINT LINES BATCH THREADS OUT.f32

Loading and a first batch are not counted. The vectors are written as they follow each other, in f32.
"""

import json
import sys
import time

import torch
from sentence_transformers import SentenceTransformer


def main():
    checkpoint, lines, batch, threads, out = sys.argv[1:]
    torch.set_num_threads(int(threads))
    with open(lines, encoding="utf-8") as file:
        texts = file.read().splitlines()
    model = SentenceTransformer(checkpoint, device="cpu")
    model.encode(texts[: int(batch)], batch_size=int(batch))
    start = time.perf_counter()
    vectors = model.encode(texts, batch_size=int(batch))
    seconds = time.perf_counter() - start
    vectors.astype("<f4").tofile(out)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
