"""A case of make_family_fixtures.py: a tiny random checkpoint of any decoder that transformers has.

Its config.json is written by hand as the hub's checkpoints of the family have it; names and shapes of the tensors are
those that transformers writes, which is the layout of the hub too: one tensor for each expert, no tied head.
"""

import json
import math
import re
import tempfile
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import safetensors
import torch
import transformers

from make_fixtures import DTYPE_NAMES, DTYPES, Recordable

LEAST_ROUTER_GAP = 5e-4  # between the router's logits, of a few units, of the last expert taken and the next one
NO_WINDOW = 4096  # longer than any prompt; null changes more than the window in some families

# Keys whose number must matter: twice or one and a half times as much of it must give other logits.
NUMBERS = {
    "attention_multiplier", "attn_logit_softcapping", "clip_qkv", "embedding_multiplier", "final_logit_softcapping",
    "logit_scale", "logits_scaling", "query_pre_attn_scalar", "residual_multiplier", "rope_local_base_freq",
    "rope_theta", "rotary_emb_base", "swiglu_limit",
}  # fmt: skip
SHARES = {"partial_rotary_factor", "rotary_pct"}  # of the rotated part of a head: half of it must
SWITCHES = {"norm_topk_prob", "scale_attn_by_inverse_layer_idx", "scale_attn_weights"}
ACTIVATIONS = {"activation_function", "hidden_act", "hidden_activation"}


@dataclass(frozen=True)
class Case(Recordable):
    name: str
    covers: str
    config: dict
    storage: str = "F32"
    # of config.json: hub (by hand, most as transformers 4 wrote it), saved (what transformers makes of that today)
    spelling: str = "hub"
    gain: float = 1.6  # of the random matrices: their std is gain / sqrt(inputs)
    gains: dict = field(default_factory=dict)  # the same for tensors with this in their name, norms too
    embedding_std: float = 1.0
    norm_mean: float = 1.0  # 0 where a norm multiplies by 1 + w
    without_prefix: str = ""  # of the names, as some checkpoints have them
    stale: dict = field(default_factory=dict)  # tensors that old checkpoints have and nobody reads, by name
    matters: dict = field(default_factory=dict)  # further changes of the configuration that must give other logits
    idle: tuple = ()  # mutants that must not
    shards: int = 1

    prompt_lengths = [1, 2, 17, 64, 200, 300]

    @property
    def vocab(self):
        return self.config["vocab_size"]

    def config_json(self):
        config = dict(sorted(self.config.items()))
        config["torch_dtype"] = DTYPE_NAMES[self.storage]
        return saved(json.dumps(config)) if self.spelling == "saved" else config

    def random_weights(self, seed):
        """Every tensor of the checkpoint, rounded to the case's element type."""
        generator = torch.Generator().manual_seed(seed)
        tensors = {}
        for name, shape in layout(json.dumps(self.config_json())):
            tensor = torch.randn(shape, generator=generator)
            name = name.removeprefix(self.without_prefix)
            tensors[name] = self.scaled(name, tensor).to(DTYPES[self.storage]).contiguous()
        return tensors | self.stale

    def scaled(self, name, tensor):
        gain = next((gain for word, gain in self.gains.items() if word in name), None)
        if is_norm(name):
            gain = gain or 1
            return self.norm_mean + gain - 1 + 0.2 * gain * tensor
        if is_bias(name):
            return 0.5 * tensor
        if name.endswith("sinks"):
            return tensor
        if re.search(r"(embed_tokens|embed_in|wte|wpe)\.weight$", name):
            return self.embedding_std * tensor
        # gpt2 and the experts of gpt_oss have inputs before outputs.
        inputs_first = re.search(r"\.(c_attn|c_proj|c_fc)\.weight$|\.experts\.\w+_proj$", name)
        inputs = tensor.shape[-2 if inputs_first else -1]
        return (gain or self.gain) / math.sqrt(inputs) * tensor

    def check_spellings(self, folder):
        assert json.loads((folder / "config.json").read_text()) == self.config_json(), f"{self.name}: config.json"

    def doubt(self, exact, entry):
        k = getattr(exact.config, "num_experts_per_tok", None)
        if k in (None, getattr(exact.config, "num_experts", None), getattr(exact.config, "num_local_experts", None)):
            return None
        row = torch.tensor([entry["prompt"] + entry["tokens"][:-1]])
        with torch.no_grad():
            layers = exact(input_ids=row, use_cache=False, output_router_logits=True).router_logits
        for logits in layers:
            best = logits.topk(k + 1).values
            if (best[:, k - 1] - best[:, k]).min() < LEAST_ROUTER_GAP:
                return "near tie of experts"
        return None

    def mutants(self, tensors):
        """Checkpoints with one option of the case left out or changed: (what, case, tensors)."""
        for what, change in self.changes():
            yield what, replace(self, config=self.config | change), tensors
        for group in dict.fromkeys(without_numbers(name) for name in tensors if name not in self.stale):
            plain = without_option(group, self.norm_mean)
            if plain is not None:
                yield group, self, {
                    n: torch.full_like(t, plain) if without_numbers(n) == group else t for n, t in tensors.items()
                }
        heads = self.config.get("num_key_value_heads", 1)
        if heads > 1 and any("v_proj.weight" in n for n in tensors):
            rolled = {n: t.roll(t.shape[0] // heads, 0) if "v_proj" in n else t for n, t in tensors.items()}
            yield "order of key/value heads", self, rolled

    def changes(self):
        yield from self.matters.items()
        config = self.config
        for key, value in config.items():
            if key in NUMBERS and value is not None:
                yield key, {key: another(value)}
                if key.endswith("softcapping"):
                    yield f"{key} at all", {key: None}
            elif key in SHARES and "long_factor" not in (config.get("rope_scaling") or {}):  # which fix the share
                yield key, {key: value / 2}
            elif key in SWITCHES:
                yield key, {key: not value}
            elif key in ACTIVATIONS and value is not None:
                yield key, {key: "relu"}
            elif key == "sliding_window" and value is not None:
                yield key, {key: NO_WINDOW}
                yield f"{key} + 1", {key: value + 1}
            elif key == "num_experts_per_tok":
                yield key, {key: value - 1 if value > 1 else 2}
        for key, value in (config.get("rope_scaling") or {}).items():
            if isinstance(value, bool | int | float | list):
                yield f"rope_scaling.{key}", {"rope_scaling": config["rope_scaling"] | {key: another(value)}}


def another(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return [another(v) for v in value]
    return value * 2 if isinstance(value, int) else value * 1.5


def without_numbers(name):
    return re.sub(r"\.\d+(?=\.)", ".*", name)


def is_norm(name):
    return re.search(r"norm|\.?ln_", name) and name.endswith(".weight")


def is_bias(name):
    return name.endswith(("_bias", ".bias"))


def without_option(name, norm_mean):
    """What every element of a norm, a bias or the sinks is where there is none; None for other tensors."""
    if is_norm(name):
        return norm_mean
    if is_bias(name):
        return 0.0
    return -30.0 if name.endswith("sinks") else None


@cache
def saved(config):
    """The config.json that transformers writes today for this one."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(config)
        read = transformers.AutoConfig.from_pretrained(folder)
    return json.loads(read.to_json_string())


@cache
def layout(config):
    """Names and shapes of the tensors that a checkpoint with this config.json has."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(config)
        transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder)).save_pretrained(
            folder
        )
        with safetensors.safe_open(Path(folder) / "model.safetensors", "pt") as file:
            return [(name, file.get_slice(name).get_shape()) for name in sorted(file.keys())]
