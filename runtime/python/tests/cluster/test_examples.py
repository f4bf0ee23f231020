"""The scripts of `examples/` that need Ray."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import only_in_full
from load import free_port

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@only_in_full
@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("ray_batch", "In the beginning is the beginning of the glory"),
        ("ray_serve", ", when the angel of the LORD"),
    ],
)
def test_an_example_runs(nodes, script, line, demo):
    if not nodes.nodes:
        nodes.add(1, cpus=2)
    environment = os.environ | {"RAY_ADDRESS": nodes.cluster.address}
    process = subprocess.run(
        [sys.executable, "-W", "ignore", str(EXAMPLES / f"{script}.py"), demo, str(free_port())],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert process.returncode == 0, process.stderr
    assert line in process.stdout, process.stdout
