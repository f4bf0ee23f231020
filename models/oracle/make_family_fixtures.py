#!/usr/bin/env python3
"""Makes the fixtures of every family but plain Llama: tiny random checkpoints, and their output by transformers.

    python3 models/oracle/make_family_fixtures.py               # all cases
    python3 models/oracle/make_family_fixtures.py gemma2-hub    # only these cases
    python3 models/oracle/make_family_fixtures.py --check       # compares the committed fixtures

Works as make_fixtures.py does. families.py and mixtures.py have the cases; their table in README.md is written too.
"""

import re

import transformers

import families
import make_fixtures
import mixtures

CASES = families.CASES + mixtures.CASES
BYTES_LIMIT = 6_800_000
README = make_fixtures.FIXTURES.parent / "README.md"
TABLE = r"(?<=<!-- by make_family_fixtures.py -->\n).*(?=<!-- end -->)"


def row(case):
    config = transformers.AutoConfig.from_pretrained(make_fixtures.FIXTURES / case.name)
    hidden, heads, layers = config.hidden_size, config.num_attention_heads, config.num_hidden_layers
    inner = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None) or 4 * hidden
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    width = getattr(config, "head_dim", None) or hidden // heads
    cells = [
        f"`{case.name}`", case.covers, f"{hidden}, {inner}, {config.vocab_size}", layers,
        f"{heads}/{kv_heads}×{width}", case.storage, case.spelling,
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |\n"


def main():
    options = make_fixtures.main(CASES, __doc__, BYTES_LIMIT)
    head = "| case | covers | sizes | layers | heads | weights | spelling |\n|---|---|---|---|---|---|---|\n"
    table = head + "".join(map(row, CASES))
    text = README.read_text()
    wanted = re.sub(TABLE, lambda _: table, text, flags=re.DOTALL)
    if options.check:
        assert wanted == text, "another table in README.md"
    README.write_text(wanted)


if __name__ == "__main__":
    main()
