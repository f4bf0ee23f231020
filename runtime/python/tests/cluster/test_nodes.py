"""Which nodes take work and where they take bundles from, without a cluster: what Ray says is what a test says."""

from __future__ import annotations

import logging
import os
from types import SimpleNamespace

import pytest
from ray.exceptions import GetTimeoutError

import mlxcel
import mlxcel.ray
from mlxcel.ray import nodes as nodes_module
from mlxcel.ray import source as source_module
from mlxcel.ray.source import Source

SOURCE = Source("demo")
FIT = mlxcel.Target("cpu", "run", "local-task", ())
UNFIT = mlxcel.Target("cpu", "refuse", "local-task", ("the cpu lacks avx2",))


class Cluster:
    """Nodes with what each answers: targets with an error, or an exception of Ray."""

    def __init__(self, monkeypatch, **answers: object) -> None:
        self.answers = answers
        self.cancelled: list[str] = []
        self.timeouts: list[float] = []
        # The head has no CPUs.
        names = {"head": {}} | {name: {"CPU": 1.0} for name in answers}
        nodes = [
            {"NodeID": name, "NodeManagerAddress": "127.0.0.1", "Alive": True, "Resources": resources}
            for name, resources in names.items()
        ]
        ray = nodes_module.ray
        monkeypatch.setattr(ray, "is_initialized", lambda: True)
        monkeypatch.setattr(ray, "nodes", lambda: nodes)
        monkeypatch.setattr(ray, "remote", lambda **_: lambda function: self)
        monkeypatch.setattr(ray, "get", self.get)
        monkeypatch.setattr(ray, "cancel", self.cancelled.append)

    def options(self, label_selector: dict) -> SimpleNamespace:
        return SimpleNamespace(remote=lambda *_: label_selector["ray.io/node-id"])

    def get(self, name: str, timeout: float) -> object:
        self.timeouts.append(timeout)
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_cluster_whose_nodes_join_later(monkeypatch, caplog):
    Cluster(monkeypatch)
    with caplog.at_level(logging.WARNING, "mlxcel.ray"):
        assert nodes_module.selector(SOURCE, "auto", may_be_empty=True) == {}
    assert "no node has CPUs yet: each checks demo when it joins" in caplog.text
    for select in (lambda: nodes_module.selector(SOURCE, "auto"), lambda: mlxcel.ray.label_selector("demo")):
        with pytest.raises(mlxcel.DeviceError, match="no node of the cluster runs demo: no node has CPUs") as error:
            select()
        assert error.value.hint.startswith("ray start --address=")


def test_nodes_that_lack_something_are_refused_though_others_may_join(monkeypatch):
    Cluster(monkeypatch, a=((UNFIT,), None))
    with pytest.raises(mlxcel.DeviceError, match="no node of the cluster runs demo: cpu: the cpu lacks avx2"):
        nodes_module.selector(SOURCE, "auto", may_be_empty=True)


def test_a_node_that_does_not_answer_takes_no_work(monkeypatch):
    cluster = Cluster(monkeypatch, a=GetTimeoutError("late"), b=((FIT,), None))
    found = {node.id: node.problem for node in nodes_module.probe(SOURCE, "auto")}
    assert found == {"a": "the check failed: found no answer within 120 s, expected one", "b": None}
    assert cluster.cancelled == ["a"]
    assert all(0 < timeout <= 120 for timeout in cluster.timeouts)
    assert nodes_module.selector(SOURCE, "auto") == {"ray.io/node-id": "!in(a)"}


def test_a_store_is_the_same_folder_for_every_worker(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert Source.of("demo", "store", False).store == str(tmp_path / "store")
    assert Source.of("demo", tmp_path, False).store == str(tmp_path)
    assert Source.of("demo", None, False).store is None


def test_a_lock_that_another_user_made(monkeypatch, tmp_path):
    monkeypatch.setattr(source_module.tempfile, "gettempdir", lambda: str(tmp_path))
    with source_module._alone("demo"):
        (lock,) = tmp_path.iterdir()
    # As for a file of another user: it is refused, and a link is, too.
    lock.unlink()
    os.symlink(tmp_path / "other", lock)
    with pytest.raises(mlxcel.BundleError, match="cannot be locked: found .*, expected a file of this user") as error:
        with source_module._alone("demo"):
            pass
    assert "TMPDIR" in error.value.hint and not (tmp_path / "other").exists()
