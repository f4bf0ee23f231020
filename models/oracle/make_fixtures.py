#!/usr/bin/env python3
"""Makes the fixtures in fixtures/: tiny random Llama checkpoints, and their output by Hugging Face transformers.

    python3 models/oracle/make_fixtures.py              # all cases
    python3 models/oracle/make_fixtures.py gqa sharded  # only these cases
    python3 models/oracle/make_fixtures.py --check      # compares the committed fixtures

README.md says what is needed, what a fixture holds and when a case is kept.
"""

import argparse
import json
import math
import shutil
import sys
import tempfile
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import safetensors.torch
import torch
import transformers

FIXTURES = Path(__file__).resolve().parent / "fixtures"
PROMPT_LENGTHS = [1, 2, 17, 64, 100, 200, 300]
NEW_TOKENS = 40
BEST = 5
LEAST_GAP = 2e-3  # between the two best logits of every step
LEAST_DISTINCT = 6  # different tokens in an answer, because a loop of two tokens proves little
MOST_NOISE = 1e-4  # difference of logits in f32 and f64
LEAST_EFFECT = 2e-2  # of omitting an option, on some logit
BYTES_LIMIT = 3_000_000

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
DTYPE_NAMES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}


class Recordable:
    """Base of a case, whose subclasses have name, covers, vocab, shards, config_json(), random_weights(seed) and
    mutants(tensors)."""

    prompt_lengths = PROMPT_LENGTHS
    idle = ()  # mutants that must not matter

    def check_spellings(self, folder):
        """Checks that transformers reads config.json as intended."""

    def doubt(self, exact, entry):
        """Returns why an answer may depend on rounding although its logits do not show it."""


@dataclass(frozen=True)
class Case(Recordable):
    name: str
    covers: str
    hidden: int = 32
    intermediate: int = 80
    vocab: int = 131
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int | None = None  # None to omit it from config.json: hidden / heads
    tied: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    theta: float = 10000.0
    scaling: dict = field(default_factory=dict)  # rope_type and its parameters; empty for the default
    epsilon: float = 1e-5
    dtype: str = "F32"
    # Spelling of config.json: new (transformers 5), old (4), type (4, before "rope_type"), bare (no defaults).
    spelling: str = "new"
    shards: int = 1
    eos: int | list[int] | None = 2
    gain: float = 1.6  # of random matrices: the standard deviation is gain / sqrt(inputs)
    embedding_std: float = 1.0
    stale_tensors: bool = False  # rotary_emb.inv_freq of old checkpoints

    @property
    def width(self):
        return self.head_dim or self.hidden // self.heads

    def config_json(self):
        """Returns the config.json, written by hand, because transformers writes only the newest spelling."""
        config = {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "vocab_size": self.vocab,
            "max_position_embeddings": 512,
            "bos_token_id": 1,
            "eos_token_id": self.eos,
        }
        if self.spelling == "bare":
            return config
        config |= {
            "num_key_value_heads": self.kv_heads,
            "hidden_act": "silu",
            "rms_norm_eps": self.epsilon,
            "tie_word_embeddings": self.tied,
            "attention_bias": self.attention_bias,
            "mlp_bias": self.mlp_bias,
            "attention_dropout": 0.0,
            "initializer_range": 0.02,
            "pretraining_tp": 1,
            "use_cache": True,
        }
        if self.head_dim:
            config["head_dim"] = self.head_dim
        if self.spelling == "new":
            config["dtype"] = DTYPE_NAMES[self.dtype]
            config["rope_parameters"] = {"rope_type": "default", **self.scaling, "rope_theta": self.theta}
            return config
        config["torch_dtype"] = DTYPE_NAMES[self.dtype]
        config["transformers_version"] = "4.45.0"
        config["rope_theta"] = self.theta
        scaling = dict(self.scaling)
        if scaling and self.spelling == "type":
            scaling = {"type": scaling.pop("rope_type"), **scaling}
        config["rope_scaling"] = scaling or None
        return config

    def random_weights(self, seed):
        """Returns every tensor of the checkpoint, rounded to the case's element type."""
        generator = torch.Generator().manual_seed(seed)

        def normal(std, *shape):
            return torch.randn(shape, generator=generator) * std

        def linear(name, outputs, inputs, bias):
            tensors[f"{name}.weight"] = normal(self.gain / math.sqrt(inputs), outputs, inputs)
            if bias:
                tensors[f"{name}.bias"] = normal(0.5, outputs)

        def norm(name):
            tensors[f"{name}.weight"] = 1 + normal(0.2, self.hidden)

        tensors = {"model.embed_tokens.weight": normal(self.embedding_std, self.vocab, self.hidden)}
        query, key = self.heads * self.width, self.kv_heads * self.width
        for layer in range(self.layers):
            at = f"model.layers.{layer}"
            norm(f"{at}.input_layernorm")
            linear(f"{at}.self_attn.q_proj", query, self.hidden, self.attention_bias)
            linear(f"{at}.self_attn.k_proj", key, self.hidden, self.attention_bias)
            linear(f"{at}.self_attn.v_proj", key, self.hidden, self.attention_bias)
            linear(f"{at}.self_attn.o_proj", self.hidden, query, self.attention_bias)
            norm(f"{at}.post_attention_layernorm")
            linear(f"{at}.mlp.gate_proj", self.intermediate, self.hidden, self.mlp_bias)
            linear(f"{at}.mlp.up_proj", self.intermediate, self.hidden, self.mlp_bias)
            linear(f"{at}.mlp.down_proj", self.hidden, self.intermediate, self.mlp_bias)
            if self.stale_tensors:
                exponents = torch.arange(0, self.width, 2) / self.width
                tensors[f"{at}.self_attn.rotary_emb.inv_freq"] = self.theta**-exponents
        norm("model.norm")
        if not self.tied:
            linear("lm_head", self.vocab, self.hidden, False)
        dtype = DTYPES[self.dtype]
        return {
            name: tensor if name.endswith("inv_freq") else tensor.to(dtype).contiguous()
            for name, tensor in tensors.items()
        }

    def check_spellings(self, folder):
        """Checks that transformers reads the intended rope from any spelling of config.json."""
        with tempfile.TemporaryDirectory() as other:
            config = replace(self, spelling="new").config_json()
            (Path(other) / "config.json").write_text(json.dumps(config))
            meant = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(other))
        read = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder))
        assert torch.equal(meant.model.rotary_emb.inv_freq, read.model.rotary_emb.inv_freq), self.name
        assert meant.config.rms_norm_eps == read.config.rms_norm_eps, self.name
        assert meant.config.num_key_value_heads == read.config.num_key_value_heads, self.name

    def mutants(self, tensors):
        """Yields checkpoints with one option of the case omitted: (what, case, tensors)."""

        def without(word):
            return {n: torch.zeros_like(t) if word in n else t for n, t in tensors.items()}

        yield "rope_theta", replace(self, theta=self.theta * 1.5, spelling="new"), tensors
        if self.scaling:
            yield "rope scaling", replace(self, scaling={}), tensors
        if self.attention_bias:
            for name in "qkvo":
                yield f"{name} bias", self, without(f"{name}_proj.bias")
        if self.mlp_bias:
            for name in ("gate", "up", "down"):
                yield f"{name} bias", self, without(f"{name}_proj.bias")
        if self.kv_heads > 1:
            rolled = {n: t.roll(self.width, 0) if "v_proj" in n else t for n, t in tensors.items()}
            yield "order of key/value heads", self, rolled
        if self.name == "norm-epsilon":
            yield "rms_norm_eps", replace(self, epsilon=1e-5), tensors


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

CASES = [
    Case("mha", "as many key/value heads as query heads", kv_heads=4),
    Case("gqa", "grouped heads, tied embeddings", heads=8, kv_heads=2, head_dim=8, tied=True),
    Case("mqa", "one key/value head", kv_heads=1),
    Case("one-head", "a single head, one layer", heads=1, kv_heads=1, layers=1, eos=[2, 5]),
    Case("wide-heads", "head_dim above hidden / heads", hidden=30, heads=3, kv_heads=3, head_dim=16, dtype="BF16"),
    Case("narrow-heads", "head_dim below hidden / heads", hidden=64, intermediate=96, head_dim=8, dtype="BF16"),
    Case(
        "odd-sizes",
        "sizes that no vector width divides; five heads share a key/value head",
        hidden=60, intermediate=172, vocab=257, heads=10, kv_heads=2, dtype="BF16", eos=None,
    ),
    Case("attention-bias", "biases of q, k, v and o", attention_bias=True),
    Case("mlp-bias", "biases of gate, up and down", mlp_bias=True),
    Case("all-biases", "both kinds of bias, tied, bf16", attention_bias=True, mlp_bias=True, tied=True, dtype="BF16"),
    Case("rope-linear", "rope linear", scaling={"rope_type": "linear", "factor": 4.0}, dtype="BF16"),
    Case(
        "rope-linear-old", "rope linear in a config.json of transformers 4, before 'rope_type'",
        scaling={"rope_type": "linear", "factor": 2.5}, theta=20000.0, spelling="type", dtype="F16",
    ),
    Case("rope-llama3", "rope llama3: kept, blended and divided frequencies", head_dim=16, scaling=LLAMA3),
    Case(
        "rope-llama3-old", "the same in a config.json of transformers 4, 500000 as Llama 3 has it",
        head_dim=16, scaling=LLAMA3, theta=500000.0, spelling="old", dtype="BF16", tied=True, eos=[2, 5, 7],
    ),
    Case("rope-theta", "another rope_theta, spelled as in transformers 4", theta=137.5, spelling="old"),
    Case("bare", "a config.json that leaves every default out", kv_heads=4, epsilon=1e-6, spelling="bare"),
    Case("bf16", "bf16 weights", dtype="BF16", tied=True),
    Case("f16", "f16 weights", dtype="F16"),
    Case("norm-epsilon", "rms_norm_eps that matters: small embeddings", epsilon=1e-3, embedding_std=0.03),
    Case("peaked", "large weights: attention on few positions", gain=3.0, kv_heads=1),
    Case("deep", "five layers", layers=5, hidden=24, heads=3, kv_heads=1, intermediate=64, gain=1.3),
    Case("sharded", "three shards and model.safetensors.index.json", shards=3, layers=3, dtype="BF16"),
    Case(
        "llama2-old", "a Llama 2 checkpoint of transformers 4 with its stale rotary tensors, f16",
        kv_heads=4, spelling="old", dtype="F16", stale_tensors=True, epsilon=1e-6,
    ),
    Case(
        "everything", "head_dim, biases, llama3, tied, bf16, two shards, old spelling, odd sizes",
        hidden=42, intermediate=94, vocab=193, heads=6, kv_heads=2, head_dim=10, attention_bias=True, mlp_bias=True,
        scaling={**LLAMA3, "factor": 32.0}, theta=1000.0, tied=True, dtype="BF16", shards=2, spelling="old", eos=[3, 4],
    ),
]  # fmt: skip


def write_checkpoint(case, tensors, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(case.config_json(), indent=2) + "\n")
    if case.shards == 1:
        safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = list(tensors)
    size = math.ceil(len(names) / case.shards)
    files = {}
    for shard in range(case.shards):
        file = f"model-{shard + 1:05}-of-{case.shards:05}.safetensors"
        part = names[shard * size : (shard + 1) * size]
        safetensors.torch.save_file({n: tensors[n] for n in part}, folder / file, metadata={"format": "pt"})
        files |= dict.fromkeys(part, file)
    total = sum(t.numel() * t.element_size() for t in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(files.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def load(folder):
    """Returns the checkpoint in f32. `dtype=` widens only parameters; rotary tables are computed in f32 anyway."""
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        folder,
        dtype=torch.float32,
        attn_implementation="eager",
        experts_implementation="eager",
        output_loading_info=True,
    )
    for kind in ("missing_keys", "mismatched_keys"):
        assert not report[kind], f"{folder.name}: {kind}: {report[kind]}"
    model.generation_config.eos_token_id = None  # so that every answer has its full length
    model.generation_config.pad_token_id = 0
    return model.eval()


@torch.no_grad()
def greedy(model, prompt):
    """Decodes greedily with transformers and its cache. Returns tokens and the logits of every step."""
    out = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
    )
    return out.sequences[0, len(prompt) :].tolist(), torch.cat(out.logits)


@torch.no_grad()
def logits_at_once(model, prompt, tokens):
    """Returns the logits of every step from one pass over prompt and answer, without a cache."""
    row = torch.tensor([prompt + tokens[:-1]])
    return model(input_ids=row, use_cache=False).logits[0, len(prompt) - 1 :]


def answer(model, exact, prompt):
    """Returns an entry of expected.json, or why the prompt is unsuitable."""
    tokens, logits = greedy(model, prompt)
    best = logits.topk(BEST)
    gap = (best.values[:, 0] - best.values[:, 1]).min().item()
    if gap <= LEAST_GAP:
        return None, "near tie"
    if len(set(tokens)) < LEAST_DISTINCT:
        return None, "loop"
    noise = (logits_at_once(exact, prompt, tokens) - logits).abs().max().item()
    if noise > MOST_NOISE:
        return None, "noise"
    rows = [
        [[i, float(f"{v:.6g}")] for i, v in zip(ids, values, strict=True)]
        for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    entry = {"prompt": prompt, "tokens": tokens, "least_gap": float(f"{gap:.3g}"), "best": rows}
    return entry, noise


def check_effects(case, tensors, model, entry):
    """Measures how each option of the case changes the logits, because a fixture tests no option without an effect.
    Returns the effects, and those that are not as expected."""
    logits = logits_at_once(model, entry["prompt"], entry["tokens"])
    effects = {}
    for what, other, changed in case.mutants(tensors):
        with tempfile.TemporaryDirectory() as folder:
            write_checkpoint(other, changed, Path(folder))
            mutant = load(Path(folder))
        effects[what] = (logits_at_once(mutant, entry["prompt"], entry["tokens"]) - logits).abs().max().item()
    idle = {what: effects.pop(what) for what in case.idle}
    wrong = {what: effect for what, effect in idle.items() if effect > MOST_NOISE}
    wrong |= {what: effect for what, effect in effects.items() if effect <= LEAST_EFFECT}
    return effects, wrong


def attempt(case, seed, folder):
    """Returns the expected.json for one seed, or None if no prompt of some length is suitable."""
    tensors = case.random_weights(seed)
    write_checkpoint(case, tensors, folder)
    model, exact = load(folder), load(folder).double()
    generator = torch.Generator().manual_seed(seed)
    entries, noises, refused = [], [], []
    for length in case.prompt_lengths:
        for _ in range(12):
            prompt = torch.randint(case.vocab, (length,), generator=generator).tolist()
            entry, note = answer(model, exact, prompt)
            if entry and (doubt := case.doubt(exact, entry)):
                entry, note = None, doubt
            if entry:
                entries.append(entry)
                noises.append(note)
                break
            refused.append(note)
        else:
            return None, f"seed {seed}: {length} tokens: {refused[-12:]}"
    effects, wrong = check_effects(case, tensors, model, entries[-1])
    if wrong:
        return None, f"seed {seed}: effects {wrong}"
    weakest = min(effects, key=effects.get)
    note = f"seed {seed}, noise {max(noises):.1e}, least effect {effects[weakest]:.2g} ({weakest})"
    expected = {
        "covers": case.covers,
        "transformers": transformers.__version__,
        "seed": seed,
        "prompts": entries,
    }
    return expected, note


def render(expected):
    """Formats expected.json with one line per prompt, so that a changed prompt is one changed line."""
    rows = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in expected["prompts"])
    head = {key: value for key, value in expected.items() if key != "prompts"}
    return json.dumps(head)[:-1] + ', "prompts": [\n' + rows + "\n]}\n"


def make(case):
    """Writes fixtures/<case> from the first suitable seed."""
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
        case.check_spellings(folder)
        (folder / "expected.json").write_text(render(expected))
        shutil.rmtree(FIXTURES / case.name, ignore_errors=True)
        shutil.copytree(folder, FIXTURES / case.name, copy_function=shutil.copyfile)


def check(case):
    """Returns whether the committed fixture is what this version of transformers gives."""
    folder = FIXTURES / case.name
    expected = json.loads((folder / "expected.json").read_text())
    tensors = case.random_weights(expected["seed"])
    stored = {n: t for f in folder.glob("*.safetensors") for n, t in safetensors.torch.load_file(f).items()}
    assert stored.keys() == tensors.keys(), case.name
    assert all(torch.equal(stored[n], tensors[n]) for n in tensors), f"{case.name}: other weights"
    case.check_spellings(folder)
    model = load(folder)
    for entry in expected["prompts"]:
        tokens, logits = greedy(model, entry["prompt"])
        assert tokens == entry["tokens"], f"{case.name}: {len(entry['prompt'])} tokens"
        for row, best in zip(logits, entry["best"], strict=True):
            for i, value in best:
                rounded = 5e-6 * abs(value)  # to six digits
                assert abs(row[i].item() - value) < MOST_NOISE + rounded, f"{case.name}: logit {i}"
    print(f"{case.name}: holds", file=sys.stderr)


def main(cases, description, bytes_limit):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="names; none: all")
    parser.add_argument("--check", action="store_true", help="only compare the committed fixtures")
    options = parser.parse_args()
    known = {case.name: case for case in cases}
    if unknown := set(options.cases) - known.keys():
        sys.exit(f"unknown cases {sorted(unknown)}, expected some of {list(known)}")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)  # matrices are tiny, and additions keep one order
    for case in cases:
        if not options.cases or case.name in options.cases:
            (check if options.check else make)(case)
    weights = sum(f.stat().st_size for name in known for f in (FIXTURES / name).glob("*.safetensors"))
    print(f"{weights} bytes of weights", file=sys.stderr)
    assert weights <= bytes_limit, f"found {weights} bytes of weights, expected at most {bytes_limit}"
    return options


if __name__ == "__main__":
    main(CASES, __doc__, BYTES_LIMIT)
