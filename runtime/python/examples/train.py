"""Trains a small model with a program that JAX exported: its weights stay on the device.

    python train.py adam.bundle
"""

import sys

import numpy

import mlxcel

program = mlxcel.Program(sys.argv[1])
signature = program.signatures[0]
print(signature.function, "on", program.device)

random = numpy.random.default_rng(1)
types = {argument.name: argument for argument in signature.arguments}
state = {
    name: numpy.zeros(argument.shape, argument.dtype)
    for name, argument in types.items()
    if argument.is_state
}
x = random.standard_normal(types["x"].shape, numpy.float32)
y = x.sum(axis=1, keepdims=True)[:, : types["y"].shape[-1]] * numpy.ones(types["y"].shape, numpy.float32)
step = program.function(signature.function, bind={"x": x, "y": y}, state=state)
losses = [float(step()) for _ in range(200)]
print(f"loss {losses[0]:.3f}, after 200 steps {losses[-1]:.3f}")
