"""Random checkpoints of gpt-oss as OpenAI publishes it: experts in MXFP4, everything else in bf16."""

import json

import safetensors.torch
import torch

import common
import mixtures

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
CONFIG = mixtures.GPT_OSS | {
    "head_dim": 16, "hidden_size": 64, "intermediate_size": 64, "layer_types": ["sliding_attention"],
    "num_hidden_layers": 1, "num_local_experts": 3, "vocab_size": 83,
}  # fmt: skip
QUANTIZATION = {
    "modules_to_not_convert": [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head",
    ],
    "quant_method": "mxfp4",
}  # fmt: skip


def packed(rows):
    """Returns blocks [..., groups, 16] and scales [..., groups] of rows of floats."""
    groups = rows.float().unflatten(-1, (-1, 32))
    largest = groups.abs().amax(-1, keepdim=True)
    exponents = torch.floor(torch.log2(largest)) - 2  # 4 is the largest power of two in E2M1
    nearest = (groups / torch.exp2(exponents))[..., None].sub(E2M1).abs().argmin(-1)
    blocks = (nearest[..., ::2] | nearest[..., 1::2] << 4).to(torch.uint8)
    return blocks, (exponents[..., 0] + 127).to(torch.uint8)


def write(source, folder):
    tensors = {}
    for name, tensor in common.stored(source).items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            tensors[f"{name}_blocks"], tensors[f"{name}_scales"] = packed(tensor.transpose(1, 2))
        else:
            tensors[name] = tensor
    folder.mkdir()
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text()) | {"quantization_config": QUANTIZATION}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
