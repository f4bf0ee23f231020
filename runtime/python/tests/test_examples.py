"""Every script of `examples/` runs. Those of a cluster are tested in `cluster/`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import bundle

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
EXAMPLES = [script for script in EXAMPLES if not script.stem.startswith("ray_")]

BUNDLES = {"embed": "encoder", "train": "adam"}

LINES = {
    "bundle": "demo model blake3:",
    "embed": " A cat sleeps on the sofa.",
    "generate": "In the beginning is the beginning of the glory",
    "score": "-0.006 And it came to pass",
    "streams": "And the LORD said",
    "train": "after 200 steps",
}


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(script):
    arguments = [bundle(BUNDLES.get(script.stem, "demo"))]
    process = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=60, env=os.environ
    )
    assert process.returncode == 0, process.stderr
    assert LINES[script.stem] in process.stdout, process.stdout
