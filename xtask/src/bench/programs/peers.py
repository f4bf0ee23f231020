"""Trains a logistic regression with JAX, PyTorch or MLX on the CPU, and prints the seconds that it takes.

    python3 peers.py jax-step|jax-loop|torch|mlx DATA.npz ITERATIONS THREADS EXPECTED.npz

DATA.npz has examples `x`, labels `y` and parameters `w` to begin with; EXPECTED.npz those after all steps. The largest
difference is printed too, as a fraction of the largest parameter. Compiling and first calls are not counted.
"""

import json
import sys
import time

import numpy as np

LEARNING_RATE = 0.1


def measure(step, w, iterations):
    """Returns the seconds of so many steps, and what they return. `step` takes and returns parameters; the last one waits."""
    step(w, last=True)
    start = time.perf_counter()
    for index in range(iterations):
        w = step(w, last=index + 1 == iterations)
    return time.perf_counter() - start, w


def with_jax(x, y, w, iterations, in_loop):
    import jax
    import jax.numpy as jnp

    x, y, w = map(jnp.asarray, (x, y, w))

    def loss(w, x, y):
        logits = x @ w
        return jnp.mean(jnp.logaddexp(0.0, logits) - y * logits)

    def update(w, x, y):
        return w - LEARNING_RATE * jax.grad(loss)(w, x, y)

    if in_loop:
        train = jax.jit(lambda w, x, y: jax.lax.fori_loop(0, iterations, lambda _, w: update(w, x, y), w))
        return measure(lambda w, last: train(w, x, y).block_until_ready(), w, 1)
    jitted = jax.jit(update)

    def step(w, last):
        w = jitted(w, x, y)
        return w.block_until_ready() if last else w

    return measure(step, w, iterations)


def with_torch(x, y, w, iterations, threads):
    import torch

    torch.set_num_threads(threads)
    x, y, w = map(torch.from_numpy, (x, y, w))

    def step(w, last):
        w = w.detach().requires_grad_()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(x @ w, y)
        (gradient,) = torch.autograd.grad(loss, w)
        return (w - LEARNING_RATE * gradient).detach()

    seconds, w = measure(step, w, iterations)
    return seconds, w.numpy()


def with_mlx(x, y, w, iterations):
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    x, y, w = map(mx.array, (x, y, w))

    def loss(w):
        logits = x @ w
        return mx.mean(mx.logaddexp(0.0, logits) - y * logits)

    gradient = mx.grad(loss)

    def step(w, last):
        w = w - LEARNING_RATE * gradient(w)
        mx.eval(w)
        return w

    return measure(step, w, iterations)


def main():
    peer, data, iterations, threads, expected = sys.argv[1:]
    iterations, threads = int(iterations), int(threads)
    data = np.load(data)
    arrays = [data[name] for name in ("x", "y", "w")]
    if peer.startswith("jax"):
        seconds, w = with_jax(*arrays, iterations, peer == "jax-loop")
    elif peer == "torch":
        seconds, w = with_torch(*arrays, iterations, threads)
    else:
        seconds, w = with_mlx(*arrays, iterations)
    expected = np.load(expected)["w"]
    difference = np.abs(np.asarray(w) - expected).max() / np.abs(expected).max()
    print(json.dumps({"seconds": seconds, "difference": float(difference)}))


if __name__ == "__main__":
    main()
