#!/usr/bin/env python3
"""Makes the fixtures in encoders/: tiny random BERT checkpoints, and their sentence embeddings by transformers.

    python3 models/oracle/make_encoder_fixtures.py                    # all cases
    python3 models/oracle/make_encoder_fixtures.py bert-hub bert-cls  # only these cases
    python3 models/oracle/make_encoder_fixtures.py --check            # compares the committed fixtures

README.md says what is needed, what a fixture holds and when a case is kept; its table of the cases is written too.
"""

import argparse
import copy
import json
import re
import shutil
import sys
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import safetensors.torch
import torch
import transformers

from encoder_case import CASES

FIXTURES = Path(__file__).resolve().parent / "encoders"
README = FIXTURES.parent / "README.md"
TABLE = r"(?<=<!-- by make_encoder_fixtures.py -->\n).*?(?=<!-- end of encoders -->)"
LENGTHS = [1, 2, 17, 64, 100, 200]
MOST_NOISE = 1e-5  # difference of embeddings in f32 and f64, and effect of what must not matter
LEAST_EFFECT = 1e-2  # of omitting an option, on some embedding, relative to its norm
BYTES_LIMIT = 900_000  # of all files


def write_checkpoint(case, tensors, folder):
    for path, content in ({"config.json": case.config_json()} | case.module_files()).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(content, indent=2) + "\n")
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def load(folder):
    """Returns the encoder in f32, without its pooler."""
    model, report = transformers.AutoModel.from_pretrained(
        folder,
        dtype=torch.float32,
        attn_implementation="eager",
        add_pooling_layer=False,
        output_loading_info=True,
    )
    for kind in ("missing_keys", "mismatched_keys"):
        assert not report[kind], f"{folder.name}: {kind}: {report[kind]}"
    return model.eval()


@torch.no_grad()
def embed(case, model, texts):
    """Returns the embedding of each text, computed by itself without padding."""
    embeddings = []
    for text in texts:
        row = torch.tensor([text])
        states = model(
            input_ids=row, attention_mask=torch.ones_like(row), token_type_ids=torch.zeros_like(row)
        ).last_hidden_state[0]
        embedding = states.mean(0) if case.pooling == "mean" else states[0]
        embeddings.append(embedding / embedding.norm() if case.normalized else embedding)
    return torch.stack(embeddings)


def effects(case, tensors, model, texts):
    """Yields how much each mutant changes some embedding: (what, effect)."""
    embeddings = embed(case, model, texts)

    def effect(other, mutant):
        return ((embed(other, mutant, texts) - embeddings).norm(dim=1) / embeddings.norm(dim=1)).max().item()

    for what, other, changed in case.mutants(tensors):
        with tempfile.TemporaryDirectory() as folder:
            write_checkpoint(other, changed, Path(folder))
            yield what, effect(other, load(Path(folder)))
    yield "pooling", effect(replace(case, pooling="cls" if case.pooling == "mean" else "mean"), model)
    yield "normalized", effect(replace(case, normalized=not case.normalized), model)
    if case.name == "bert-epsilon":
        for name, module in model.named_modules():
            if name.endswith("LayerNorm"):
                mutant = copy.deepcopy(model)
                mutant.get_submodule(name).eps = 1e-12
                yield f"{name} eps", effect(case, mutant)


def attempt(case, seed, folder):
    """Returns the expected.json for one seed, or None if the seed is unsuitable, and a note."""
    tensors = case.random_weights(seed)
    write_checkpoint(case, tensors, folder)
    model = load(folder)
    generator = torch.Generator().manual_seed(seed)
    texts = [torch.randint(case.vocab, (length,), generator=generator).tolist() for length in LENGTHS]
    texts[1][1] = 0  # pad_token_id, an ordinary token here
    embeddings = embed(case, model, texts)
    noise = (embed(case, copy.deepcopy(model).double(), texts) - embeddings).abs().max().item()
    if noise > MOST_NOISE:
        return None, f"seed {seed}: noise {noise:.1e}"
    found = dict(effects(case, tensors, model, texts))
    idle = {what: found.pop(what) for what in list(found) if case.is_idle(what)}
    wrong = {what: effect for what, effect in idle.items() if effect > MOST_NOISE}
    wrong |= {what: effect for what, effect in found.items() if effect <= LEAST_EFFECT}
    if wrong:
        return None, f"seed {seed}: effects {wrong}"
    weakest = min(found, key=found.get)
    rows = [
        {"tokens": text, "embedding": [float(f"{x:.8g}") for x in embedding]}
        for text, embedding in zip(texts, embeddings.tolist(), strict=True)
    ]
    expected = {"covers": case.covers, "transformers": transformers.__version__, "seed": seed, "texts": rows}
    return expected, f"seed {seed}, noise {noise:.1e}, least effect {found[weakest]:.2g} ({weakest})"


def render(expected):
    """Formats expected.json with one line per text."""
    rows = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in expected["texts"])
    head = {key: value for key, value in expected.items() if key != "texts"}
    return json.dumps(head)[:-1] + ', "texts": [\n' + rows + "\n]}\n"


def make(case):
    """Writes encoders/<case> from the first suitable seed."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / case.name
        first = zlib.crc32(case.name.encode()) % 1_000_000
        for seed in range(first, first + 50):
            expected, note = attempt(case, seed, folder)
            print(f"{case.name}: {note}", file=sys.stderr)
            if expected:
                break
        else:
            sys.exit(f"{case.name}: no fit seed")
        (folder / "expected.json").write_text(render(expected))
        shutil.rmtree(FIXTURES / case.name, ignore_errors=True)
        shutil.copytree(folder, FIXTURES / case.name, copy_function=shutil.copyfile)


def check(case):
    """Returns whether the committed fixture is what this version of transformers gives."""
    folder = FIXTURES / case.name
    expected = json.loads((folder / "expected.json").read_text())
    stored = safetensors.torch.load_file(folder / "model.safetensors")
    tensors = case.random_weights(expected["seed"])
    assert stored.keys() == tensors.keys(), case.name
    assert all(torch.equal(stored[n], tensors[n]) for n in tensors), f"{case.name}: other weights"
    files = {"config.json": case.config_json()} | case.module_files()
    assert all(json.loads((folder / path).read_text()) == files[path] for path in files), f"{case.name}: other files"
    found = embed(case, load(folder), [entry["tokens"] for entry in expected["texts"]])
    wanted = torch.tensor([entry["embedding"] for entry in expected["texts"]])
    assert (found - wanted).abs().max() < MOST_NOISE, f"{case.name}: other embeddings"
    print(f"{case.name}: holds", file=sys.stderr)


def row(case):
    cells = [
        f"`{case.name}`", case.covers, f"{case.hidden}, {case.intermediate}, {case.vocab}", case.layers,
        f"{case.heads}×{case.hidden // case.heads}", case.dtype,
        case.pooling + (", normalized" if case.normalized else ""),
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="names; none: all")
    parser.add_argument("--check", action="store_true", help="only compare the committed fixtures")
    options = parser.parse_args()
    known = {case.name: case for case in CASES}
    if unknown := set(options.cases) - known.keys():
        sys.exit(f"unknown cases {sorted(unknown)}, expected some of {list(known)}")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)  # matrices are tiny, and additions keep one order
    for name in options.cases or known:
        (check if options.check else make)(known[name])
    size = sum(f.stat().st_size for f in FIXTURES.rglob("*") if f.is_file())
    print(f"{size} bytes", file=sys.stderr)
    assert size <= BYTES_LIMIT, f"found {size} bytes, expected at most {BYTES_LIMIT}"
    head = "| case | covers | sizes | layers | heads | weights | pooling |\n|---|---|---|---|---|---|---|\n"
    table = head + "".join(map(row, CASES))
    text = README.read_text()
    wanted = re.sub(TABLE, lambda _: table, text, flags=re.DOTALL)
    if options.check:
        assert wanted == text, "another table in README.md"
    else:
        README.write_text(wanted)


if __name__ == "__main__":
    main()
