"""A cluster for each file of tests, and the bundles that the environment names."""

from __future__ import annotations

import pytest
from cluster import Nodes, bundle


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory):
    """A cluster with a head, for the tests of a file."""
    nodes = Nodes(tmp_path_factory.mktemp("nodes"))
    yield nodes
    nodes.close()


@pytest.fixture(scope="session")
def demo() -> str:
    return bundle("demo")


@pytest.fixture(scope="session")
def encoder() -> str:
    return bundle("encoder")
