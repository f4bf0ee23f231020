"""Writes the results and gradients that JAX computes for the functions of `main.rs`, a line for each: `name index values…`.

    python oracle.py > ../../../compiler-driver/tests/gradients.txt

The operands are small numbers that are exact in binary: see `numbers`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_default_matmul_precision", "highest")


def numbers(shape, seed):
    """Returns numbers between -1.375 and 1.375 that are not zero. The test has the same function."""
    count = int(np.prod(shape))
    values = [((i * 37 + seed * 11) % 23 - 11) / 8 + 1 / 16 for i in range(count)]
    return np.array(values, np.float32).reshape(shape)


def operand(dtype, shape, seed):
    if dtype == np.complex64:
        return (numbers(shape, seed) + 1j * numbers(shape, seed + 5)).astype(np.complex64)
    return numbers(shape, seed)


CASES = {}


def case(name, *shapes):
    """Registers a function."""
    return lambda body: CASES.__setitem__(name, (shapes, body))


UNARY = {
    "abs": jnp.abs,
    "ceil": jnp.ceil,
    "cosine": jnp.cos,
    "erf": lax.erf,
    "exponential": jnp.exp,
    "exponential_minus_one": jnp.expm1,
    "floor": jnp.floor,
    "logistic": lax.logistic,
    "negate": jnp.negative,
    "round_nearest_even": jnp.round,
    "sign": jnp.sign,
    "sine": jnp.sin,
    "tan": jnp.tan,
    "tanh": jnp.tanh,
    "erf_inv": lambda x: lax.erf_inv(0.5 * x),
    "maximum_of_equals": lambda x: jnp.maximum(x, x),
    "power_of_zero": lambda x: jnp.maximum(x, 0) * jnp.maximum(x, 0) ** jnp.full((2, 5), 2.0),
    "convert": lambda x: x.astype(jnp.bfloat16).astype(jnp.float32) ** 2,
    "stop_gradient": lambda x: lax.stop_gradient(x) * x,
    "second_derivative": jax.vmap(jax.vmap(jax.grad(lambda x: jnp.tanh(x) * jnp.sin(x)))),
}
OF_SQUARE = {"cbrt": jnp.cbrt, "log": jnp.log, "log_plus_one": jnp.log1p, "rsqrt": lax.rsqrt, "sqrt": jnp.sqrt}
BINARY = {
    "add": jnp.add,
    "atan2": jnp.arctan2,
    "divide": jnp.divide,
    "maximum": jnp.maximum,
    "minimum": jnp.minimum,
    "multiply": jnp.multiply,
    "remainder": lax.rem,
    "subtract": jnp.subtract,
    "power": lambda x, y: (x * x) ** y,
    "select": lambda x, y: jnp.where(x < y, x, y),
}
for name, body in UNARY.items():
    case(name, (2, 5))(body)
for name, body in OF_SQUARE.items():
    case(name, (2, 5))(lambda x, body=body: body(x * x))
for name, body in BINARY.items():
    case(name, (2, 5), (2, 5))(body)
case("clamp", (), (2, 5), (2, 5))(
    lambda low, x, high: lax.clamp(jnp.broadcast_to(low, x.shape), x, high + 0.5)
)
case("clamp_to_swapped_bounds", (2, 5), (2, 5), (2, 5))(lax.clamp)
case("abs_of_zero", (2, 5))(lambda x: jnp.abs(x - lax.stop_gradient(x)))
case("atan2_near_zero", (2, 5), (2, 5))(lambda y, x: 1e10 * jnp.arctan2(1e-16 * y, 1e-16 * x))

case("complex_multiply", (2, 3), (2, 3))(jnp.multiply)
case("complex_divide", (2, 3), (2, 3))(jnp.divide)
case("complex_exponential", (2, 3))(jnp.exp)
case("complex_abs", (2, 3))(jnp.abs)
case("complex_stop_gradient", (2, 3))(lambda z: lax.stop_gradient(z) * z)
case("complex_parts", (2, 3))(lambda z: lax.complex(z.real * z.imag, z.real))

case("broadcast", (1, 3))(lambda x: lax.broadcast_in_dim(x, (2, 4, 3), (1, 2)))
case("reshape", (2, 6))(lambda x: x.reshape(3, 4))
case("transpose", (2, 3, 4))(lambda x: x.transpose(2, 0, 1))
case("reverse", (2, 5))(lambda x: x[:, ::-1])
case("concatenate", (2, 2), (2, 3))(lambda x, y: jnp.concatenate([x, y, x], 1))
case("pad", (2, 3), ())(lambda x, value: lax.pad(x, value, [(1, 0, 0), (-1, 2, 1)]))
case("slice", (4, 6))(lambda x: x[1:4:2, 0:6:4])
case("dynamic_slice", (4, 5))(lambda x: lax.dynamic_slice(x, (1, 4), (2, 3)))
case("dynamic_update_slice", (4, 5), (2, 3))(lambda x, y: lax.dynamic_update_slice(x, y, (1, 4)))
case("reduce_sum", (2, 3, 4))(lambda x: x.sum((0, 2)))
case("reduce_max", (4, 6))(lambda x: x.max(1))
case("reduce_min", (4, 6))(lambda x: x.min(0))
case("reduce_max_of_equals", (6,))(
    lambda x: jnp.concatenate([x, x]).max() + (jnp.floor(x) + x - x).sum()
)
case("reduce_product", (2, 3, 4))(lambda x: x.prod((0, 2)))
case("reduce_product_of_zeros", (3, 5))(
    lambda x: x.at[:, 2].add(-lax.stop_gradient(x[:, 2])).prod(1)
)
case("second_derivative_of_product", (3, 5))(jax.grad(lambda x: x.prod(1).sum()))
case("sum_of_bf16", (1,))(
    lambda x: jnp.broadcast_to(x.astype(jnp.bfloat16), (512,)).astype(jnp.float32).sum()
)
case("take_rows", (5, 3))(lambda x: x.at[jnp.array([[2, 0], [2, 9]])].get(mode="clip"))


@case("gather", (5, 4))
def _(x):
    dims = lax.GatherDimensionNumbers((), (0, 1), (0, 1))
    at = jnp.array([[1, 0], [4, 2], [1, 7]])
    return lax.gather(x, at, dims, (1, 1), mode="clip")


ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
for name, rows in {"scatter_add": [2, 0, 2, 4], "scatter_add_outside": [2, -1, 2, 9]}.items():
    indices = np.array(rows).reshape(4, 1)
    case(name, (5, 3), (4, 3))(
        lambda x, y, indices=indices: lax.scatter_add(x, indices, y, ROWS, mode="drop")
    )
case("scatter_replace", (5, 3), (4, 3))(
    lambda x, y: lax.scatter(x, jnp.array([[2], [0], [4], [1]]), y, ROWS, unique_indices=True)
)
case("scatter_replace_twice", (5, 3), (4, 3))(
    lambda x, y: lax.scatter(x, jnp.array([[2], [0], [2], [1]]), y, ROWS)
)

# XLA drops windows that are outside in part. So these are single elements, with 9 for those outside.
case("scatter_add_outside_in_part", (5,), (4, 2))(
    lambda x, y: x.at[np.array([[4, 9], [9, 0], [2, 3], [9, 9]])].add(y, mode="drop")
)
case("scatter_replace_outside_in_part", (5,), (4, 2))(
    lambda x, y: x.at[np.array([[4, 9], [9, 0], [3, 4], [9, 9]])].set(y, mode="drop")
)
case("sort", (2, 6))(lambda x: lax.sort(x, dimension=1))


@case("sort_by_key", (6, 2), (6, 2))
def _(key, value):
    key, value = lax.sort([key, value], dimension=0, num_keys=1)
    return key * value


@case("sort_unstable", (8,), (8,))
def _(key, value):
    def sort(value):
        return lax.sort([jnp.floor(key), value], num_keys=1, is_stable=False)[1]

    weights = jnp.arange(8.0)
    ordered, back = jax.vjp(sort, value)
    return ordered @ weights - value @ back(weights)[0]


case("cumulative_sum", (3, 4))(lambda x: jnp.cumsum(x, 0))
case("sum_of_windows", (2, 7, 6))(
    lambda x: lax.reduce_window(
        x, 0.0, lax.add, (1, 3, 2), (1, 2, 1), [(0, 0), (1, 2), (0, -1)], (1, 1, 2), (1, 1, 2)
    )
)
case("largest_of_windows", (2, 7, 6))(
    lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2), (1, 2, 1), [(0, 0), (1, 2), (0, 1)])
)


@case("largest_of_tiles", (2, 7, 6))
def _(x):
    ties = x - lax.stop_gradient(x - jnp.round(x))
    return lax.reduce_window(ties, -jnp.inf, lax.max, (1, 3, 2), (1, 3, 2), "VALID")


@case("largest_of_tiles_with_nan", (2, 6))
def _(x):
    def largest(x):
        some = jnp.where(x > 1, jnp.nan, x)
        return lax.reduce_window(some, -jnp.inf, lax.max, (1, 2), (1, 2), "VALID").sum()

    return jax.grad(largest)(x)


@case("second_derivative_of_largest_of_windows", (7,))
def _(x):
    def squares(x):
        return (lax.reduce_window(x, -jnp.inf, lax.max, (3,), (2,), [(1, 1)]) ** 2).sum()

    return jax.grad(squares)(x)


case("repeat_without_rounds", (3,), (3,))(lambda x, y: x * y)


@case("repeat_with_constants", (3,), (3,))
def _(x, y):
    return lax.fori_loop(0, 9, lambda _, x: jnp.tanh(x * y + y), x) * y


@case("repeat", (3,), (3,), (2,))
def _(x, y, z):
    factor = jnp.sin(y)

    def body(round, state):
        x, z = state
        return jnp.tanh((x * factor + round) * z.sum()), jnp.cos(z)

    return lax.fori_loop(0, 4, body, (x, z))[0] * y


@case("if_else", (3,), (3,))
def _(x, y):
    product = x * y
    return lax.cond(x.sum() < 0, lambda: product * x, lambda: jnp.sin(y) + product) + product


case("dot", (2, 4), (3, 4))(lambda x, y: x @ y.T)
case("dot_of_batches", (3, 2, 5, 2), (2, 2, 3, 4))(
    lambda x, y: lax.dot_general(x, y, (([3, 0], [1, 2]), ([1], [0])))
)
case("dot_with_vector", (3, 4), (4,))(lambda x, y: x @ y)


def convolution(x, kernel, strides, padding, **options):
    spatial = "WHD"[: x.ndim - 2]
    layout = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    return lax.conv_general_dilated(x, kernel, strides, padding, dimension_numbers=layout, **options)


case("convolution", (2, 6, 5, 3), (3, 2, 3, 4))(
    lambda x, kernel: convolution(x, kernel, (2, 1), [(1, 2), (0, 1)])
)
case("convolution_with_dilation", (1, 5, 2), (3, 2, 2))(
    lambda x, kernel: convolution(x, kernel, (2,), [(3, -1)], lhs_dilation=(3,), rhs_dilation=(2,))
)
case("convolution_in_groups", (2, 5, 4), (3, 2, 6))(
    lambda x, kernel: convolution(x, kernel, (1,), [(1, 1)], feature_group_count=2)
)
case("convolution_in_groups_of_examples", (4, 5, 2), (3, 2, 6))(
    lambda x, kernel: convolution(x, kernel, (1,), [(0, 0)], batch_group_count=2)
)


@case("convolution_and_windows", (2, 9, 8, 2), (3, 3, 2, 4))
def _(x, kernel):
    y = convolution(x, kernel, (1, 1), [(1, 1)] * 2)
    return lax.reduce_window(
        y, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)]
    )


@case("second_derivative_of_convolution", (1, 5, 2), (2, 2, 3))
def _(x, kernel):
    y, back = jax.vjp(lambda kernel: convolution(x, kernel, (2,), [(0, 0)]) ** 2, kernel)
    return back(convolution(x, kernel, (2,), [(0, 0)]))[0]


case("complex_fft", (2, 8))(jnp.fft.fft)
case("complex_ifft", (2, 8))(jnp.fft.ifft)
case("rfft", (2, 8))(lambda x: jnp.fft.rfft(x) ** 2)
case("complex_irfft", (2, 5))(lambda z: jnp.fft.irfft(z, 8))
case("cholesky", (3, 3))(lambda x: jnp.linalg.cholesky(x + x.T + 8 * jnp.eye(3)))
case("triangular_solve", (3, 3), (3, 2))(
    lambda a, b: lax.linalg.triangular_solve(a + 4 * jnp.eye(3), b, left_side=True, lower=True)
)
case("triangular_solve_from_the_right", (3, 3), (2, 3))(
    lambda a, b: lax.linalg.triangular_solve(a, b, transpose_a=True, unit_diagonal=True)
)


def results(name):
    """Returns the operands of a function, and its results."""
    shapes, body = CASES[name]
    dtype = np.complex64 if name.startswith("complex_") else np.float32
    operands = [operand(dtype, shape, seed) for seed, shape in enumerate(shapes)]
    result, back = jax.vjp(body, *operands)
    d = operand(result.dtype, result.shape, 7)
    return [*operands, d], [result, *back(jnp.asarray(d))]


def text(values):
    values = np.ascontiguousarray(values).reshape(-1)
    if np.iscomplexobj(values):
        values = values.view(np.float32)
    return " ".join(f"{value:.7g}" for value in values)


if __name__ == "__main__":
    for name in CASES:
        for index, values in enumerate(results(name)[1]):
            print(name, index, text(values))
