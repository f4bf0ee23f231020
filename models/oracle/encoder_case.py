"""The cases of make_encoder_fixtures.py: tiny random BERT checkpoints in the layout of the hub."""

import math
import re
from dataclasses import dataclass, field, replace

import torch

from make_fixtures import DTYPE_NAMES, DTYPES

# Classes in modules.json, of sentence-transformers 2 and of 6.
TYPES = {
    "old": ["models.Transformer", "models.Pooling", "models.Normalize"],
    "new": [
        "base.modules.transformer.Transformer",
        "sentence_transformer.modules.pooling.Pooling",
        "base.modules.normalize.Normalize",
    ],
}
OLD_POOLING = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len": "pooling_mode_mean_sqrt_len_tokens",
}
LATER_POOLING = ["pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"]


@dataclass(frozen=True)
class Case:
    name: str
    covers: str
    hidden: int = 32
    intermediate: int = 48
    vocab: int = 131
    layers: int = 2
    heads: int = 4
    activation: str = "gelu"
    rival: str = "relu"  # an activation that must change the embeddings
    epsilon: float = 1e-12
    dtype: str = "F16"
    pooling: str = "mean"
    normalized: bool = True
    modules: str | None = "old"  # spelling of modules.json and 1_Pooling; None for no files
    config: dict = field(default_factory=dict)  # further keys of config.json; a value of None removes the key
    pooling_config: dict = field(default_factory=dict)  # further keys of 1_Pooling/config.json
    masked_lm: bool = False  # a checkpoint of BertForMaskedLM
    unread: bool = False  # whether there are tensors of hub checkpoints that embeddings do not need
    gain: float = 1.6  # of random matrices: the standard deviation is gain / sqrt(inputs)
    score_gain: float = 2.0  # gain of queries and keys
    embedding_std: float = 1.0
    # Activations near -2.7, where gelu and gelu_new differ by some percent, and an output layer that amplifies this.
    negative: bool = False

    positions = 220
    types = 2

    def config_json(self):
        config = {
            "architectures": ["BertForMaskedLM" if self.masked_lm else "BertModel"],
            "attention_probs_dropout_prob": 0.1,
            "classifier_dropout": None,
            "hidden_act": self.activation,
            "hidden_dropout_prob": 0.1,
            "hidden_size": self.hidden,
            "initializer_range": 0.02,
            "intermediate_size": self.intermediate,
            "layer_norm_eps": self.epsilon,
            "max_position_embeddings": self.positions,
            "model_type": "bert",
            "num_attention_heads": self.heads,
            "num_hidden_layers": self.layers,
            "pad_token_id": 0,
            "position_embedding_type": "absolute",
            "torch_dtype": DTYPE_NAMES[self.dtype],
            "transformers_version": "4.30.0",
            "type_vocab_size": self.types,
            "use_cache": True,
            "vocab_size": self.vocab,
        } | self.config
        left_out = {key for key, value in self.config.items() if value is None}
        return {key: value for key, value in sorted(config.items()) if key not in left_out}

    def module_files(self):
        """Returns modules.json and the config.json files of the modules, by path."""
        if not self.modules:
            return {}
        folders = ["", "1_Pooling", "2_Normalize"][: 3 if self.normalized else 2]
        modules = [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.{TYPES[self.modules][i]}"}
            for i, path in enumerate(folders)
        ]
        if self.modules == "new":
            pooling = {"embedding_dimension": self.hidden, "pooling_mode": self.pooling, "include_prompt": True}
        else:
            modes = {key: mode == self.pooling for mode, key in OLD_POOLING.items()}
            pooling = {"word_embedding_dimension": self.hidden} | modes
        files = {"modules.json": modules, "1_Pooling/config.json": pooling | self.pooling_config}
        if self.modules == "new" and self.normalized:
            names = ("module_input_name", "module_output_name")
            files["2_Normalize/config.json"] = dict.fromkeys(names, "sentence_embedding")
        return files

    def random_weights(self, seed):
        """Returns every tensor of the checkpoint, rounded to the case's element type."""
        generator = torch.Generator().manual_seed(seed)

        def normal(std, *shape):
            return torch.randn(shape, generator=generator) * std

        def linear(name, outputs, inputs, gain=self.gain, bias=0.0):
            tensors[f"{name}.weight"] = normal(gain / math.sqrt(inputs), outputs, inputs)
            tensors[f"{name}.bias"] = bias + normal(0.5, outputs)

        def norm(name):
            tensors[f"{name}.weight"] = 1 + normal(0.3, self.hidden)
            tensors[f"{name}.bias"] = normal(0.3, self.hidden)

        tensors = {}
        std = self.embedding_std
        root = "bert." if self.masked_lm else ""
        tensors[f"{root}embeddings.word_embeddings.weight"] = normal(std, self.vocab, self.hidden)
        tensors[f"{root}embeddings.position_embeddings.weight"] = normal(std / 2, self.positions, self.hidden)
        tensors[f"{root}embeddings.token_type_embeddings.weight"] = normal(std / 2, self.types, self.hidden)
        norm(f"{root}embeddings.LayerNorm")
        for layer in range(self.layers):
            at = f"{root}encoder.layer.{layer}"
            linear(f"{at}.attention.self.query", self.hidden, self.hidden, self.score_gain)
            linear(f"{at}.attention.self.key", self.hidden, self.hidden, self.score_gain)
            linear(f"{at}.attention.self.value", self.hidden, self.hidden)
            linear(f"{at}.attention.output.dense", self.hidden, self.hidden)
            norm(f"{at}.attention.output.LayerNorm")
            inner, outer, bias = (0.3, 60.0, -2.7) if self.negative else (self.gain, self.gain, 0.0)
            linear(f"{at}.intermediate.dense", self.intermediate, self.hidden, inner, bias)
            linear(f"{at}.output.dense", self.hidden, self.intermediate, outer)
            norm(f"{at}.output.LayerNorm")
        if self.masked_lm:
            tensors["cls.predictions.bias"] = normal(0.5, self.vocab)
            linear("cls.predictions.transform.dense", self.hidden, self.hidden)
            norm("cls.predictions.transform.LayerNorm")
        if self.unread:
            linear("pooler.dense", self.hidden, self.hidden)
        dtype = DTYPES[self.dtype]
        tensors = {name: tensor.to(dtype).contiguous() for name, tensor in tensors.items()}
        if self.unread:
            tensors["embeddings.position_ids"] = torch.arange(self.positions)[None].contiguous()
        return dict(sorted(tensors.items()))

    def mutants(self, tensors):
        """Yields checkpoints with one option omitted or changed: (what, case, tensors)."""
        for change in (
            {"activation": self.rival},
            {"heads": 1 if self.heads > 1 else 2},
            {"config": self.config | {"is_decoder": True}},
        ):
            yield str(change), replace(self, **change), tensors
        for name, tensor in tensors.items():
            if "embeddings.position_ids" in name:
                continue
            changes = {}
            if name.endswith("LayerNorm.weight"):
                changes["left out"] = torch.ones_like(tensor)
            elif name.endswith("bias"):
                changes["left out"] = torch.zeros_like(tensor)
            elif "position_embeddings" in name:
                changes = {"left out": torch.zeros_like(tensor), "one further": tensor.roll(1, 0)}
            elif "token_type" in name:
                changes = {f"row {i} left out": zero_row(tensor, i) for i in range(self.types)}
            elif "word_embeddings" in name:
                changes["row of pad_token_id left out"] = zero_row(tensor, 0)
            for what, changed in changes.items():
                yield f"{name} {what}", self, tensors | {name: changed}

    def is_idle(self, what):
        """Returns whether a mutant must not matter: a bias of keys adds the same to all scores of a query."""
        return bool(re.search(r"self\.key\.bias|token_type\S+ row [^0]|pooler|cls\.predictions", what))


def zero_row(tensor, row):
    return torch.cat([tensor[:row], torch.zeros_like(tensor[:1]), tensor[row + 1 :]])


CASES = [
    Case(
        "bert-hub", "all-MiniLM-L6-v2: with tensors that no embedding needs", intermediate=64, dtype="F32", unread=True,
        config={"classifier_dropout": None, "torch_dtype": None, "gradient_checkpointing": False},
    ),
    Case(
        "bert-cls", "bge: the first token's embedding", pooling="cls", heads=2, unread=True,
        config={"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}},
    ),
    Case(
        "bert-plain", "no Normalize; 1_Pooling/config.json of sentence-transformers 3 to 5", normalized=False,
        pooling_config=dict.fromkeys(LATER_POOLING, False) | {"include_prompt": True},
    ),
    Case("bert-masked-lm", "BertForMaskedLM: names with a prefix; no modules.json", masked_lm=True, modules=None),
    Case("bert-bf16", "bf16 weights; three layers", layers=3, heads=2, dtype="BF16"),
    Case(
        "bert-f16", "f16 weights; heads of 16; gelu that is not gelu_new",
        hidden=48, heads=3, rival="gelu_new", negative=True,
    ),
    Case(
        "bert-odd", "sizes that no vector width divides; one layer",
        hidden=30, heads=3, intermediate=77, vocab=113, layers=1, dtype="F32",
    ),
    Case("bert-gelu-new", "gelu_new", activation="gelu_new", rival="gelu", negative=True, dtype="BF16"),
    Case("bert-one-head", "a single head", heads=1, dtype="BF16"),
    Case("bert-epsilon", "layer_norm_eps that matters: small embeddings", epsilon=0.5, embedding_std=0.5),
    Case("bert-wide-gaps", "large weights: attention on few positions", score_gain=5.0, dtype="BF16"),
    Case(
        "bert-new-pooling", "config.json, modules.json and 1_Pooling as transformers 5 and sentence-transformers 6 do",
        pooling="cls", modules="new", dtype="BF16",
        config={
            "dtype": "bfloat16", "torch_dtype": None, "transformers_version": "5.23.0", "is_decoder": False,
            "add_cross_attention": False, "tie_word_embeddings": True, "use_cache": False,
        },
    ),
]  # fmt: skip
