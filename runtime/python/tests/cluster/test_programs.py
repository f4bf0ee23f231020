"""Finding the programs, and a server that does not start."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time

import pytest
from cluster import PROGRAMS, end
from load import until

import mlxcel
from mlxcel.ray import child as child_module
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


@pytest.fixture
def script(monkeypatch, tmp_path):
    """Makes a script the program mlxcel-serve."""

    def make(lines: str) -> None:
        program = tmp_path / "mlxcel-serve"
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)

    monkeypatch.setenv("MLXCEL_PROGRAMS", str(tmp_path))
    return make


@pytest.mark.parametrize(
    ("line", "url"),
    [
        ("listening on http://127.0.0.1:1234/v1", "http://127.0.0.1:1234"),
        ('{"message":"listening on http://127.0.0.1:1234/v1","target":"note"}', "http://127.0.0.1:1234"),
        ("listening on https://[::1]:1234/v1", "https://[::1]:1234"),
    ],
)
def test_the_address_is_found_in_every_form_of_log(script, line, url):
    script(f"echo 'demo is loaded' >&2; echo '{line}' >&2; exec sleep 60")
    child = Child([], lambda log: None)
    assert child.url == url
    child.stop(10)


def test_the_end_of_a_server_that_does_not_start_is_told_once(script):
    script("echo broken >&2; exit 3")
    ends = []
    with pytest.raises(mlxcel.DeviceError, match="did not start:\nbroken"):
        Child([], ends.append)
    # The thread that reads the log ends later.
    time.sleep(0.3)
    assert ends == []
    script("echo 'listening on http://127.0.0.1:1/v1' >&2; sleep 0.3; exit 3")
    Child([], ends.append)
    until("its end is told", lambda: ends)


@pytest.mark.parametrize("error", [OSError(11, "no process"), MemoryError()])
def test_a_server_that_cannot_be_started(script, monkeypatch, error):
    def fail(*_: object, **__: object) -> None:
        raise error

    script("exit 0")
    monkeypatch.setattr(child_module.subprocess, "Popen", fail)
    with pytest.raises(mlxcel.DeviceError, match=r"did not start:\n(BlockingIOError: .*no process|MemoryError)") as found:
        Child([], lambda log: None)
    assert found.value.__cause__ is error


def test_a_server_ends_when_it_is_asked_to_and_says_so_otherwise(programs, demo):
    ends = []
    child = Child([f"demo={demo}", "--threads", "1"], ends.append)
    assert child.url.startswith("http://127.0.0.1:") and child.is_running
    child.stop(10)
    assert not child.is_running and ends == []
    child = Child([f"demo={demo}", "--threads", "1"], ends.append)
    end(child.process)
    until("its end is told", lambda: ends)
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
    until("the server ends", lambda: _is_dead(server))


def _is_dead(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
