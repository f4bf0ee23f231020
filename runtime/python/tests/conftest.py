"""Bundles for the tests: the environment names them."""

import os
from importlib.util import find_spec

import pytest

import mlxcel

# Those of a cluster need Ray.
collect_ignore = [] if find_spec("ray") else ["cluster"]


def bundle(name: str) -> str:
    """Returns the folder of a bundle that the test was started with."""
    variable = f"MLXCEL_TEST_{name.upper()}"
    if variable not in os.environ:
        pytest.skip(f"{variable} names no bundle")
    return os.environ[variable]


@pytest.fixture(scope="session")
def demo() -> str:
    """The demo model, with a chat template."""
    return bundle("demo")


@pytest.fixture(scope="session")
def engine(demo: str) -> mlxcel.Engine:
    return mlxcel.Engine(demo, cache_size="64MiB")


@pytest.fixture(scope="session")
def encoder() -> mlxcel.Engine:
    return mlxcel.Engine(bundle("encoder"))


@pytest.fixture(scope="session")
def adam() -> str:
    """A step of training, with state."""
    return bundle("adam")


@pytest.fixture(scope="session")
def sums() -> str:
    """A sum with state, of four and of seven numbers."""
    return bundle("sums")
