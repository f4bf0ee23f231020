"""Common parts of the scripts in this folder: cases, the search for a seed, and the command line.

A script is a tool with
    CASES
    write(case, source, folder)     quantizes the float checkpoint in `source` with the real tool
    read(case, folder, mistake="")  returns exact f32 tensors by the names of the float checkpoint, or with a mistake
    verify(case, folder, tensors)   asserts that `tensors` are what the tool's own code reads
    mistakes(case)                  names the mistakes that must change the tokens
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy
import safetensors.torch
import tokenizers
import torch
import transformers

import family_case
import make_fixtures

FIXTURES = HERE / "fixtures"
BYTES_LIMIT = 400_000  # of one fixture

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "hidden_act": "silu",
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "rope_scaling": None,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "vocab_size": 83,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MIXTRAL = {key: value for key, value in LLAMA.items() if key not in ("attention_bias", "mlp_bias", "head_dim")} | {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "intermediate_size": 64,
    "num_local_experts": 3,
    "num_experts_per_tok": 2,
    "output_router_logits": False,
    "router_aux_loss_coef": 0.02,
    "sliding_window": None,
}
QWEN3 = {key: value for key, value in LLAMA.items() if key != "mlp_bias"} | {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "use_sliding_window": False,
    "sliding_window": None,
}
QWEN3_MOE = {key: value for key, value in QWEN3.items()} | {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "output_router_logits": False,
    "router_aux_loss_coef": 0.001,
}


@dataclass(frozen=True)
class Case(family_case.Case):
    storage: str = "F16"
    options: dict = field(default_factory=dict)  # of the tool


class Oracle:
    """Runs answers.py in the environment with the transformers version of the other fixtures."""

    def __init__(self):
        python = os.environ.get("ORACLE_PYTHON", sys.executable)
        self.process = subprocess.Popen(
            [python, str(HERE / "answers.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, folder, **question):
        self.process.stdin.write(json.dumps({"folder": str(folder), **question}) + "\n")
        self.process.stdin.flush()
        found = self.process.stdout.readline()
        assert found, "answers.py failed: ORACLE_PYTHON may be another environment than README.md asks for"
        return json.loads(found)


def stored(folder):
    """Returns every tensor of a checkpoint as it is stored."""
    return {n: t for f in sorted(folder.glob("*.safetensors")) for n, t in safetensors.torch.load_file(f).items()}


def write_tokenizer(case, folder):
    """Writes a tokenizer without a meaning, for tools that do not work without one."""
    words = {f"w{i}": i for i in range(case.vocab)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="w2", pad_token="w0")
    fast.save_pretrained(folder)


def random_rows(case, count=32, length=64):
    """Returns random prompts to calibrate with."""
    return torch.randint(case.vocab, (count, length), generator=torch.Generator().manual_seed(0))


def codes(words, bits, mistake=""):
    """Returns elements of `bits` bits from rows of 32-bit words: low bits first, without gaps."""
    if mistake == "high bits first":
        raw = words.numpy().astype(">u4").view(numpy.uint8)
        stream = numpy.unpackbits(raw, axis=-1).reshape(*raw.shape[:-1], -1, bits)
        return torch.from_numpy(stream @ (1 << numpy.arange(bits)[::-1]))
    if mistake == "words hold whole elements":
        each = 32 // bits
        found = (words.numpy().astype(numpy.uint32)[..., None] >> (bits * numpy.arange(each)).astype(numpy.uint32)) & (
            (1 << bits) - 1
        )
        found = found.reshape(*words.shape[:-1], -1)
        missing = words.shape[-1] * 32 // bits - found.shape[-1]
        pad = numpy.zeros((*words.shape[:-1], missing), found.dtype)
        return torch.from_numpy(numpy.concatenate([found, pad], -1).astype(numpy.int64))
    raw = numpy.ascontiguousarray(words.numpy()).view(numpy.uint8)
    stream = numpy.unpackbits(raw, axis=-1, bitorder="little").reshape(*raw.shape[:-1], -1, bits)
    return torch.from_numpy(stream @ (1 << numpy.arange(bits)))


def write_plain(case, tensors, folder):
    folder.mkdir(parents=True)
    config = case.config_json() | {"torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {name: tensor.float().contiguous().clone() for name, tensor in tensors.items()}
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def write_readings(tool, case, folder, to):
    """Writes the exact reading of a quantized checkpoint, and one for each mistake. Returns the names of mistakes."""
    exact = tool.read(case, folder)
    names = {name for name, _ in family_case.layout(json.dumps(case.config_json()))}
    assert exact.keys() == names, f"{case.name}: {sorted(exact.keys() ^ names)}"
    tool.verify(case, folder, exact)
    write_plain(case, exact, to / "plain")
    mistakes = list(tool.mistakes(case))
    for number, mistake in enumerate(mistakes):
        changed = tool.read(case, folder, mistake)
        assert any(not torch.equal(changed[n], exact[n]) for n in exact), f"{case.name}: {mistake}: no difference"
        write_plain(case, changed, to / str(number))
    return mistakes


def copied(folder):
    """Yields the files that belong to a fixture."""
    for file in sorted(folder.iterdir()):
        if file.name in ("config.json", "model.safetensors.index.json") or file.suffix in (".safetensors", ".gguf"):
            yield file


def make(tool, case, oracle):
    """Writes fixtures/<case> from the first suitable seed."""
    first = zlib.crc32(case.name.encode()) % 1_000_000
    for seed in range(first, first + 50):
        with tempfile.TemporaryDirectory() as temporary:
            source, folder = Path(temporary) / "float", Path(temporary) / "quantized"
            make_fixtures.write_checkpoint(case, case.random_weights(seed), source)
            torch.manual_seed(0)
            tool.write(case, source, folder)
            mistakes = write_readings(tool, case, folder, Path(temporary))
            found = oracle.ask(temporary, seed=seed, covers=case.covers, vocab=case.vocab, mistakes=mistakes)
            print(f"{case.name}: seed {seed}: {found['note']}", file=sys.stderr, flush=True)
            if not found["expected"]:
                continue
            to = FIXTURES / case.name
            shutil.rmtree(to, ignore_errors=True)
            to.mkdir(parents=True)
            for file in copied(folder):
                shutil.copyfile(file, to / file.name)
            (to / "expected.json").write_text(make_fixtures.render(found["expected"]))
            size = sum(f.stat().st_size for f in to.iterdir())
            assert size <= BYTES_LIMIT, f"{case.name}: found {size} bytes, expected at most {BYTES_LIMIT}"
            print(f"{case.name}: {size} bytes", file=sys.stderr, flush=True)
            return
    sys.exit(f"{case.name}: no fit seed")


def check(tool, case, oracle):
    """Compares a committed fixture: the tool reads it, and the answers hold."""
    expected = json.loads((FIXTURES / case.name / "expected.json").read_text())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "quantized"
        shutil.copytree(FIXTURES / case.name, folder)
        write_tokenizer(case, folder)
        mistakes = write_readings(tool, case, folder, Path(temporary))
        found = oracle.ask(temporary, expected=expected, mistakes=mistakes)
    assert not found["note"], f"{case.name}: {found['note']}"
    print(f"{case.name}: holds", file=sys.stderr, flush=True)


def write_table(tool):
    """Writes the table of a script's cases in README.md."""
    script = Path(tool.__file__).name
    rows = "| case | covers | KB |\n|---|---|---|\n"
    for case in getattr(tool, "TABLE", tool.CASES):
        size = sum(f.stat().st_size for f in (FIXTURES / case.name).glob("*"))
        rows += f"| `{case.name}` | {case.covers} | {size // 1000} |\n"
    text = (HERE / "README.md").read_text()
    table = re.compile(rf"(?<=<!-- by {script} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    assert table.search(text), f"README.md has no table of {script}"
    (HERE / "README.md").write_text(table.sub(lambda _: rows, text, count=1))


def main(tool):
    parser = argparse.ArgumentParser(
        description=tool.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="names; none: all")
    parser.add_argument("--check", action="store_true", help="only compare the committed fixtures")
    options = parser.parse_args()
    known = {case.name: case for case in tool.CASES}
    if unknown := set(options.cases) - known.keys():
        sys.exit(f"unknown cases {sorted(unknown)}, expected some of {list(known)}")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    oracle = Oracle()
    for case in tool.CASES:
        if not options.cases or case.name in options.cases:
            (check if options.check else make)(tool, case, oracle)
    if not options.check:
        write_table(tool)
