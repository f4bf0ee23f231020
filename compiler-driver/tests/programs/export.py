"""Writes the programs beside it with JAX 0.10.2: python3 export.py

`logistic` is a step of logistic regression that is given its parameters, as text, portable artifact and jax.export file.
`symbolic` has a dimension that is known only when it runs. `adam` is a step of Adam that is given its parameters and moments;
`adam-1.npz` and `adam-1000.npz` have what JAX returns after so many steps from the arguments in `adam-0.npz`.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from arrays import save
from jax import export

# Otherwise locations carry the paths of whoever exports.
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
jax.config.update("jax_traceback_in_locations_limit", 1)

HERE = Path(__file__).parent


def step(p, x, y):
    def loss(p):
        return jnp.mean(jnp.log1p(jnp.exp(-y * (x @ p["w"] + p["b"]))))

    value, gradient = jax.value_and_grad(loss)(p)
    return jax.tree.map(lambda a, g: a - 0.1 * g, p, gradient), value


parameters = {"w": jnp.zeros((100,)), "b": jnp.zeros(())}
exported = export.export(jax.jit(step, donate_argnums=0))(parameters, jnp.zeros((1000, 100)), jnp.zeros((1000,)))
(HERE / "logistic.mlir").write_text(exported.mlir_module())
(HERE / "logistic.mlirbc").write_bytes(exported.mlir_module_serialized)
(HERE / "logistic.jax").write_bytes(exported.serialize())

(rows,) = export.symbolic_shape("rows")
symbolic = export.export(jax.jit(lambda x: jnp.sort(x @ x.T, axis=-1)))(jax.ShapeDtypeStruct((rows, 64), jnp.float32))
(HERE / "symbolic.mlirbc").write_bytes(symbolic.mlir_module_serialized)


def adam(p, m, v, count, x, y):
    def loss(p):
        return jnp.mean((jnp.tanh(x @ p["w"] + p["b"]) - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(p)
    count = count + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradient)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradient)
    first, second = 1 - 0.9**count, 1 - 0.999**count
    p = jax.tree.map(lambda p, m, v: p - 0.01 * (m / first) / (jnp.sqrt(v / second) + 1e-8), p, m, v)
    return p, m, v, count, value


def named(prefixes, values):
    """Returns leaves by name, as the exported program calls them."""
    leaves = {}
    for prefix, value in zip(prefixes, values):
        for path, leaf in jax.tree_util.tree_leaves_with_path(value):
            leaves[prefix + jax.tree_util.keystr(path)] = leaf
    return leaves


random = np.random.default_rng(7)
p = {"w": random.standard_normal((8, 3)).astype("f4"), "b": np.zeros(3, "f4")}
zeros = jax.tree.map(np.zeros_like, p)
x, y = random.standard_normal((16, 8)).astype("f4"), random.uniform(-0.9, 0.9, (16, 3)).astype("f4")
arguments = (p, zeros, zeros, np.zeros((), "f4"), x, y)
exported = export.export(jax.jit(adam, donate_argnums=(0, 1, 2, 3)))(*arguments)
(HERE / "adam.jax").write_bytes(exported.serialize())
save(HERE / "adam-0.npz", named(["p", "m", "v", "count", "x", "y"], arguments))
for count in range(1, 1001):
    results = jax.jit(adam)(*arguments)
    arguments = (*results[:4], x, y)
    if count in (1, 1000):
        save(HERE / f"adam-{count}.npz", named([f"result[{index}]" for index in range(5)], results))
