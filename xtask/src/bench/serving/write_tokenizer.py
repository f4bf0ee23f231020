"""Writes a byte-level BPE for a checkpoint with random weights.

    python3 write_tokenizer.py FOLDER

Beside the bytes, tokens are words of small letters, so that almost everything that such a model writes is text.
"""

import itertools
import json
import string
import sys
from pathlib import Path


def letters_of_bytes():
    """Returns GPT-2's letter for each byte."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + at) for at, byte in enumerate(others)}


def words():
    """Yields pairs to merge: a word, or a space and a word, and its next letter."""
    letters = [*string.ascii_lowercase]
    space = letters_of_bytes()[ord(" ")]
    yield from ((space, letter) for letter in letters)
    for length in itertools.count(2):
        for word in itertools.product(letters, repeat=length):
            yield "".join(word[:-1]), word[-1]
            yield space + "".join(word[:-1]), word[-1]


def main():
    folder = Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text())
    begin, end, size = (config.get(name) for name in ("bos_token_id", "eos_token_id", "vocab_size"))
    # A model with several tokens that end a text lists them.
    end = end[0] if isinstance(end, list) and end else end
    for name, found in {"bos_token_id": begin, "eos_token_id": end, "vocab_size": size}.items():
        if not isinstance(found, int):
            sys.exit(f"{folder / 'config.json'}: found {name} {found}, expected a number\nhint: choose another --model")
    if begin == end or size < 512:
        sys.exit(f"{folder / 'config.json'}: found tokens {begin} and {end} of {size}, expected two of at least 512")
    special = {begin: "<|begin|>", end: "<|end|>"}
    ids = (id for id in range(size) if id not in special)
    vocab = {letter: next(ids) for letter in letters_of_bytes().values()}
    merges = []
    for id, (word, letter) in zip(ids, words()):
        vocab[word + letter] = id
        merges.append([word, letter])
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False) | {"special": True}
    first = {"SpecialToken": {"id": special[begin], "type_id": 0}}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": id, "content": text} | flags for id, text in special.items()],
        "pre_tokenizer": level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [first, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {special[begin]: {"id": special[begin], "ids": [begin], "tokens": [special[begin]]}},
        },
        "decoder": level,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": special[begin], "eos_token": special[end]}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(names))


if __name__ == "__main__":
    main()
