"""A cluster, and the bundles that the environment names."""

from __future__ import annotations

import pytest
from cluster import Nodes, bundle


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory):
    """A cluster with a head. Each file adds nodes of its own."""
    nodes = Nodes(tmp_path_factory.mktemp("nodes"))
    yield nodes
    nodes.close()


@pytest.fixture(scope="session")
def demo() -> str:
    return bundle("demo")


@pytest.fixture(scope="session")
def encoder() -> str:
    return bundle("encoder")
