"""Finding the programs, and a server that does not start."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from cluster import PROGRAMS, end
from load import until

import mlxcel
from mlxcel.ray.child import Child
from mlxcel.ray.programs import find_program


def test_a_program_that_is_nowhere(monkeypatch, tmp_path):
    monkeypatch.setenv("MLXCEL_PROGRAMS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mlxcel.PackageError, match="found no program mlxcel-nothing") as error:
        find_program("mlxcel-nothing")
    assert "MLXCEL_PROGRAMS" in error.value.hint
    (tmp_path / "mlxcel-nothing").touch(0o755)
    assert find_program("mlxcel-nothing") == str(tmp_path / "mlxcel-nothing")


@pytest.fixture
def programs(monkeypatch):
    monkeypatch.setenv("MLXCEL_PROGRAMS", str(PROGRAMS))


def test_a_server_that_does_not_start(programs):
    with pytest.raises(mlxcel.DeviceError, match="missing is not a bundle") as error:
        Child(["demo=missing"], lambda log: None)
    assert error.value.message.startswith("mlxcel-serve did not start:\n")
    assert "mlxcel-serve demo=missing" in error.value.hint


def test_a_server_ends_when_it_is_asked_to_and_says_so_otherwise(programs, demo):
    ends = []
    child = Child([f"demo={demo}", "--threads", "1"], ends.append)
    assert child.url.startswith("http://127.0.0.1:") and child.is_running
    child.stop(10)
    assert not child.is_running and ends == []
    child = Child([f"demo={demo}", "--threads", "1"], ends.append)
    end(child.process)
    until("its end is told", lambda: ends, 5)
    assert not child.is_running


def test_a_server_ends_with_the_process_that_started_it(programs, demo):
    code = """
        import os, sys
        from mlxcel.ray.child import Child
        print(Child([f"demo={sys.argv[1]}", "--threads", "1"], lambda log: None).process, flush=True)
        os.kill(os.getpid(), 9)
    """
    started = subprocess.run([sys.executable, "-c", textwrap.dedent(code), demo], stdout=subprocess.PIPE, text=True)
    assert started.returncode == -9
    server = int(started.stdout)
    until("the server ends", lambda: not os.path.exists(f"/proc/{server}") or _is_dead(server), 10)


def _is_dead(process: int) -> bool:
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "Z"
