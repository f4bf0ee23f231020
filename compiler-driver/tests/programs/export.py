"""Writes the programs beside it with JAX 0.10.2: python3 export.py

`logistic` is a step of logistic regression that is given its parameters, as text, portable artifact and jax.export file.
`symbolic` has a dimension that is known only when it runs. `adam` is a step of Adam that is given its parameters and moments;
`adam-1.npz` and `adam-1000.npz` have what JAX returns after so many steps from the arguments in `adam-0.npz`. `kernel` and
`scan` compute the same recurrence, one with a kernel in C. `gradient` has the modules of two gradients beside the program's.
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


def through(states):
    """Returns what a program computes of the states of a recurrence, beside them."""
    return {"states": states, "sums": jnp.tanh(states).sum(0)}


def by_kernel(a, x):
    steps, channels = x.shape
    # The kernel is in `linear_recurrence.c` and `linear_recurrence.cu.c`: one item for each channel.
    call = jax.ffi.ffi_call("linear_recurrence", jax.ShapeDtypeStruct(x.shape, x.dtype))
    return through(call(a, x, steps=steps, channels=channels, scale=np.float32(0.5), items=channels, threads=32))


def by_scan(a, x):
    def step(h, ax):
        h = ax[0] * h + np.float32(0.5) * ax[1]
        return h, h

    return through(jax.lax.scan(step, jnp.zeros_like(x[0]), (a, x))[1])


a, x = random.uniform(0.5, 1, (64, 100)).astype("f4"), random.standard_normal((64, 100)).astype("f4")
checks = [export.DisabledSafetyCheck.custom_call("linear_recurrence")]
exported = export.export(jax.jit(by_kernel), disabled_checks=checks)(a, x)
(HERE / "kernel.jax").write_bytes(exported.serialize())
save(HERE / "kernel-in.npz", {"a": a, "x": x})
(HERE / "scan.jax").write_bytes(export.export(jax.jit(by_scan))(a, x).serialize())
results = jax.jit(by_scan)(a, x)
save(HERE / "kernel-out.npz", {f"result['{name}']": value for name, value in results.items()})

exported = export.export(jax.jit(lambda x: jnp.sin(x) * 2))(jnp.zeros((3,)))
(HERE / "gradient.jax").write_bytes(exported.serialize(vjp_order=2))
