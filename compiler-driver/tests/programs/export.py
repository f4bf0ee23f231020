"""Writes the programs beside it with JAX 0.10.2: python3 export.py

`logistic` is a step of logistic regression that is given its parameters, as text, portable artifact and jax.export file.
`symbolic` has a dimension that is known only when it runs.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
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
