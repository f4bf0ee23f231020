#!/usr/bin/env python3
"""Writes expanded.json: every fixture's config.json as transformers reads it, with each default spelled out.

    python3 models/oracle/expand_configs.py            # writes it
    python3 models/oracle/expand_configs.py --check    # compares the committed one

`models/tests/expanded.rs` requires that both spellings describe the same model.
"""

import argparse
import json
import pathlib

import transformers

FOLDER = pathlib.Path(__file__).parent
EXPANDED = FOLDER / "expanded.json"

# Keys that name the file, its reader or training: no description depends on them.
IRRELEVANT = {
    "_name_or_path", "architectures", "chunk_size_feed_forward", "id2label", "initializer_range",
    "is_encoder_decoder", "label2id", "output_attentions", "output_hidden_states", "output_router_logits",
    "problem_type", "return_dict", "router_aux_loss_coef", "transformers_version",
}  # fmt: skip


def expanded(folder):
    config = transformers.AutoConfig.from_pretrained(folder).to_dict()
    return {key: value for key, value in sorted(config.items()) if key not in IRRELEVANT}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    folders = sorted(path for path in (FOLDER / "fixtures").iterdir() if path.is_dir())
    cases = {folder.name: expanded(folder) for folder in folders}
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(config)}" for name, config in cases.items())
    text = f'{{"transformers": "{transformers.__version__}", "cases": {{\n{rows}\n}}}}\n'
    if check:
        assert EXPANDED.read_text() == text, "transformers reads some config.json differently"
    else:
        EXPANDED.write_text(text)


if __name__ == "__main__":
    main()
