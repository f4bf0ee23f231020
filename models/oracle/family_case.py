"""A case of make_family_fixtures.py: a tiny random checkpoint of any decoder that transformers supports.

Its config.json is written by hand, with the keys of the family's checkpoints on the hub. Tensors have the names and
shapes that transformers writes, which are also those of the hub: one tensor for each expert, no tied head.
"""

import json
import math
import re
import tempfile
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import gguf
import safetensors
import torch
import transformers

from make_fixtures import DTYPE_NAMES, DTYPES, Recordable

LEAST_ROUTER_GAP = 5e-4  # between the router logits of the last active expert and the next one
NO_WINDOW = 4096  # longer than any prompt; null changes more than the window in some families

# Keys whose value must matter: 1.5 or 2 times the value must change the logits.
NUMBERS = {
    "attention_multiplier", "attn_logit_softcapping", "clip_qkv", "embedding_multiplier", "final_logit_softcapping",
    "logit_scale", "logits_scaling", "query_pre_attn_scalar", "residual_multiplier", "rope_local_base_freq",
    "rope_theta", "rotary_emb_base", "swiglu_limit",
}  # fmt: skip
SHARES = {"partial_rotary_factor", "rotary_pct"}  # the rotated fraction of a head: half of it must change the logits
SWITCHES = {"norm_topk_prob", "scale_attn_by_inverse_layer_idx", "scale_attn_weights"}
ACTIVATIONS = {"activation_function", "hidden_act", "hidden_activation"}


@dataclass(frozen=True)
class Case(Recordable):
    name: str
    covers: str
    config: dict
    storage: str = "F32"
    # Spelling of config.json: hub (by hand, mostly that of transformers 4), saved (as transformers saves that today).
    spelling: str = "hub"
    gain: float = 1.6  # of random matrices: the standard deviation is gain / sqrt(inputs)
    gains: dict = field(default_factory=dict)  # gain of tensors whose names contain the key, norms included
    embedding_std: float = 1.0
    norm_mean: float = 1.0  # 0 if norms multiply by 1 + w
    without_prefix: str = ""  # prefix of names that some checkpoints omit
    stale: dict = field(default_factory=dict)  # tensors of old checkpoints that nothing reads, by name
    matters: dict = field(default_factory=dict)  # further changes of config.json that must change the logits
    idle: tuple = ()  # mutants that must not change the logits
    q4: bool = False  # whether matrices are rounded to numbers that --quant q4 keeps as they are
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
        """Returns every tensor of the checkpoint, rounded to the case's element type."""
        generator = torch.Generator().manual_seed(seed)
        tensors = {}
        for name, shape in layout(json.dumps(self.config_json())):
            tensor = torch.randn(shape, generator=generator)
            name = name.removeprefix(self.without_prefix)
            tensor = self.scaled(name, tensor)
            if self.q4 and tensor.ndim > 1 and not is_bias(name):
                # Groups are of inputs.
                tensor = rounded(tensor.mT).mT if has_inputs_first(name) else rounded(tensor)
            tensors[name] = tensor.to(DTYPES[self.storage]).contiguous()
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
        inputs = tensor.shape[-2 if has_inputs_first(name) else -1]
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
        """Yields checkpoints with one option of the case omitted or changed: (what, case, tensors)."""
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
            elif key in SHARES and "long_factor" not in (config.get("rope_scaling") or {}):  # long_factor fixes the fraction
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


def rounded(matrix):
    """Returns a matrix rounded to ggml's Q4_0, which rounds the result to itself."""
    blocks = gguf.quants.quantize(matrix.contiguous().numpy(), gguf.GGMLQuantizationType.Q4_0)
    return torch.from_numpy(gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q4_0))


def has_inputs_first(name):
    """Returns whether a matrix is stored with its inputs first, as those of gpt2 and of gpt_oss' experts are."""
    return re.search(r"\.(c_attn|c_proj|c_fc)\.weight$|\.experts\.\w+_proj$", name)


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
    """Returns the element that makes a norm, a bias or sinks ineffective; None for other tensors."""
    if is_norm(name):
        return norm_mean
    if is_bias(name):
        return 0.0
    return -30.0 if name.endswith("sinks") else None


@cache
def saved(config):
    """Returns the config.json that transformers saves today for this one."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(config)
        read = transformers.AutoConfig.from_pretrained(folder)
    return json.loads(read.to_json_string())


@cache
def layout(config):
    """Returns names and shapes of the tensors of a checkpoint with this config.json."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(config)
        transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder)).save_pretrained(
            folder
        )
        with safetensors.safe_open(Path(folder) / "model.safetensors", "pt") as file:
            return [(name, file.get_slice(name).get_shape()) for name in sorted(file.keys())]
