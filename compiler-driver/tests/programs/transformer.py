"""Exports a transformer block from PyTorch and one from JAX, with torch 2.9.1, torchax 0.0.13 and jax 0.10.2.

    python3 transformer.py

`torch_block` has its parameters beside it, as PyTorch calls them; torchax calls them `states[N]`, in the order of the lines in
`torch_block.txt`. `jax_block` has them as arguments. What each returns is in `*_block-out.npz`.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torchax.export
from arrays import save
from jax import export
from safetensors.numpy import save_file
from torch import nn

# Otherwise locations carry the paths of whoever exports.
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
jax.config.update("jax_traceback_in_locations_limit", 1)

HERE = Path(__file__).parent
WIDTH, HEADS = 32, 4


class Block(nn.Module):
    """A block with layer norms, causal attention and a gelu, as GPT-2 has it."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        split = self.qkv(self.ln_1(x)).view(batch, length, 3, HEADS, width // HEADS)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.ln_2(x))))


torch.manual_seed(0)
block = Block().eval()
x = torch.randn(2, 16, WIDTH)
program = torch.export.export(block, (x,))
_, exported = torchax.export.exported_program_to_stablehlo(program)
(HERE / "torch_block.jax").write_bytes(exported.serialize())
save_file({name: value.numpy() for name, value in block.state_dict().items()}, HERE / "torch_block.safetensors")
inputs = program.graph_signature.inputs_to_parameters.values()
(HERE / "torch_block.txt").write_text("".join(f"{name}\n" for name in inputs))
save(HERE / "torch_block-in.npz", {"inputs[0][0]": x})
save(HERE / "torch_block-out.npz", {"result[0]": block(x).detach()})


def rms_norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def rotate(x):
    """Rotary position embeddings of [batch, length, head, width]."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * 1e4 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def jax_block(p, x):
    """A block with rms norms, rotary embeddings and a gated mlp, as Llama has it."""
    batch, length, width = x.shape
    normed = rms_norm(x, p["ln_1"])
    q, k, v = (
        (normed @ p[name]).reshape(batch, length, HEADS, width // HEADS) for name in ("q", "k", "v")
    )
    mixed = jax.nn.dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
    x = x + mixed.reshape(batch, length, width) @ p["out"]
    normed = rms_norm(x, p["ln_2"])
    return x + (jax.nn.silu(normed @ p["gate"]) * (normed @ p["up"])) @ p["down"]


random = np.random.default_rng(0)
shapes = {"gate": (WIDTH, 64), "up": (WIDTH, 64), "down": (64, WIDTH)}
shapes |= {name: (WIDTH, WIDTH) for name in ("q", "k", "v", "out")}
p = {name: random.standard_normal(shape).astype("f4") / 6 for name, shape in shapes.items()}
p |= {name: np.ones(WIDTH, "f4") for name in ("ln_1", "ln_2")}
x = random.standard_normal((2, 16, WIDTH)).astype("f4")
jitted = jax.jit(jax_block)
(HERE / "jax_block.jax").write_bytes(export.export(jitted)(p, x).serialize())
save(HERE / "jax_block-in.npz", {f"p['{name}']": value for name, value in sorted(p.items())} | {"x": x})
save(HERE / "jax_block-out.npz", {"result": jitted(p, x)})
