"""Data sets of prompts."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
import ray
from cluster import IS_FULL, PROGRAMS, alone, end, prompts
from load import until
from registry import Registry
from watched import Progress, Watched

import mlxcel
import mlxcel.ray
from mlxcel.ray.source import Source, is_reference

COUNT = 2000 if IS_FULL else 240
# Of two nodes, one is left when the other is killed.
NODES = 3 if IS_FULL else 2
OPTIONS = {"max_tokens": 24}


# On one node only: what its CPU lacks is what mlxcel-bundle finds for the machine in a file.
OTHER_CPU = """
import json, subprocess
import mlxcel

def judged(*arguments):
    command = [{program!r}, "check", *arguments, "--machine", {machine!r}, "--json"]
    found = json.loads(subprocess.run(command, capture_output=True).stdout)["judgements"]
    return [mlxcel.Target(one["target"], one["verdict"], one["device"], tuple(one["reasons"])) for one in found]

mlxcel.Bundle.check = lambda self, driver=None: judged(self.name)
mlxcel.Bundle.check_remote = staticmethod(lambda reference, driver=None, **options: judged(reference, "--remote"))
"""


def other_cpu(folder: Path) -> str:
    """Returns the PYTHONPATH of a node whose CPU has no AVX-512 and no AVX2."""
    program = str(PROGRAMS / "mlxcel-bundle")
    machine = json.loads(subprocess.run([program, "machine"], capture_output=True, check=True).stdout)
    machine["cpu_features"] = [one for one in machine["cpu_features"] if not one.startswith(("avx512", "avx2"))]
    (folder / "machine.json").write_text(json.dumps(machine))
    code = OTHER_CPU.format(program=program, machine=str(folder / "machine.json"))
    (folder / "sitecustomize.py").write_text(code)
    return f"{folder}:{os.environ['PYTHONPATH']}"


def digest_of_manifest(bundle: str) -> str:
    """Returns the digest that a registry has a bundle's manifest under."""
    return f"sha256:{hashlib.sha256((Path(bundle) / 'manifest.toml').read_bytes()).hexdigest()}"


def rows_of(texts: list[str]) -> list[dict]:
    return [{"number": number, "prompt": text} for number, text in enumerate(texts)]


def check_answers(answers: list[dict], expected: list[tuple]) -> None:
    """Checks that each prompt was answered once, as the single process does."""
    numbers = Counter(answer["number"] for answer in answers)
    assert numbers == Counter(range(len(expected)))
    for answer in answers:
        found = (answer["text"], answer["finish_reason"], answer["completion_tokens"])
        assert found == expected[answer["number"]], answer["number"]


def test_a_node_without_the_features_takes_no_work(nodes, demo, tmp_path, caplog, monkeypatch):
    nodes.remove_all()
    (fit,) = nodes.add(1, cpus=2)
    (unfit,) = nodes.add(1, cpus=2, PYTHONPATH=other_cpu(tmp_path))
    found = {node.id: node for node in mlxcel.ray.check(demo)}
    assert found[fit].problem is None
    assert "the cpu lacks avx2" in found[unfit].problem
    assert mlxcel.ray.label_selector(demo) == {"ray.io/node-id": f"!in({unfit})"}
    texts = prompts(24)
    expected = alone(demo, texts, **OPTIONS)
    with caplog.at_level(logging.WARNING, "mlxcel.ray"):
        answers = mlxcel.ray.predict(
            ray.data.from_items(rows_of(texts)), demo, batch_size=4, workers=2, options=OPTIONS
        ).take_all()
    check_answers(answers, expected)
    assert f"node {unfit[:12]} (127.0.0.1) takes no work: cpu: the cpu lacks avx2" in caplog.text
    registry = Registry()
    reference = registry.reference(f"models/demo@{registry.add(Path(demo), '1')}")
    assert {node.id: node.problem for node in mlxcel.ray.check(reference)} == {fit: None, unfit: found[unfit].problem}
    # A worker that is placed there nonetheless says so, as on a node that joins later.
    with pytest.raises(Exception, match="does not run .*: cpu: the cpu lacks avx2"):
        ray.data.from_items(rows_of(texts)).map_batches(
            mlxcel.ray.Predictor,
            fn_constructor_args=(reference,),
            compute=ray.data.ActorPoolStrategy(size=1),
            label_selector={"ray.io/node-id": unfit},
        ).take_all()
    # Nothing was pulled to find that out.
    assert set(registry.fetched) & set(registry.blobs) == {digest_of_manifest(demo)}
    registry.close()
    listed = ray.nodes()
    nodes.kill(fit)
    # For a while, the list of a cluster has nodes that ended.
    with monkeypatch.context() as late:
        late.setattr(ray, "nodes", lambda: listed)
        found = {node.id: node for node in mlxcel.ray.check(demo)}
    assert "the check failed: " in found[fit].problem
    # A task for a node that is gone, and still listed, waits for as long as a check may take.
    until("Ray misses the node", lambda: fit not in {node["NodeID"] for node in ray.nodes() if node["Alive"]})
    with pytest.raises(mlxcel.DeviceError, match="no node of the cluster runs .* lacks avx2") as error:
        mlxcel.ray.predict(ray.data.from_items(rows_of(texts)), demo)
    assert "--target" in error.value.hint
    with pytest.raises(mlxcel.DeviceError, match="no node of the cluster runs .* lacks avx2"):
        mlxcel.ray.app(demo)
    nodes.remove_all()


def test_embeddings(nodes, encoder):
    nodes.add(1, cpus=2)
    texts = prompts(12)
    found = mlxcel.ray.predict(ray.data.from_items(rows_of(texts)), encoder, batch_size=5).take_all()
    with mlxcel.Engine(encoder) as engine:
        expected = engine.embed(texts)
    assert sorted(row["number"] for row in found) == list(range(12))
    for row in found:
        assert (row["embedding"] == expected[row["number"]]).all()


def test_chats(nodes, demo):
    # With the same fields, so that all have the same type in the data set. The template refuses the last one.
    calls = [""] * 6 + ["none"]
    chats = [[{"role": "user", "content": text, "tool_calls": call}] for text, call in zip(prompts(7), calls)]
    rows = [{"messages": chat, "number": number} for number, chat in enumerate(chats)]
    found = mlxcel.ray.predict(
        ray.data.from_items(rows), demo, column="messages", chat=True, options=OPTIONS, errors="column"
    ).take_all()
    found.sort(key=lambda row: row["number"])
    with mlxcel.Engine(demo) as engine:
        expected = [engine.chat(chat, **OPTIONS).text for chat in chats[:6]]
    assert [row["text"] for row in found] == [*expected, None]
    assert [row["error"] for row in found[:6]] == [None] * 6
    assert "the chat template failed: " in found[6]["error"]


def test_a_row_that_is_refused(nodes, demo):
    rows = [{"prompt": "And"}, {"prompt": "And " * 3000}, {"prompt": None}]
    found = mlxcel.ray.predict(
        ray.data.from_items(rows), demo, options=OPTIONS, prefix="answer_", errors="column"
    ).take_all()
    found.sort(key=lambda row: row["answer_error"] or "")
    assert found[0]["answer_text"] and found[0]["answer_error"] is None
    problems = [row["answer_error"] for row in found[1:]]
    assert any("tokens" in text for text in problems) and any("None" in text for text in problems), problems
    assert [row["answer_text"] for row in found[1:]] == [None, None]
    with pytest.raises(Exception, match="tokens"):
        mlxcel.ray.predict(ray.data.from_items(rows[:2]), demo).take_all()


def test_a_bundle_that_nobody_has(nodes):
    with pytest.raises(mlxcel.BundleError, match="missing is not a bundle"):
        mlxcel.ray.predict(ray.data.range(1), "missing")


def test_a_tag_becomes_a_digest(demo, tmp_path):
    registry = Registry()
    digest = registry.add(Path(demo), "1")
    reference = registry.reference("models/demo:1")
    source = Source.of(reference, None, False)
    assert source.bundle == registry.reference(f"models/demo@{digest}")
    assert Source.of(demo, tmp_path, False) == Source(demo, str(tmp_path), False)
    assert Source.of("demo", None, False).bundle == "demo"
    with pytest.raises(mlxcel.BundleError, match="models/demo:2"):
        Source.of(registry.reference("models/demo:2"), None, False)
    registry.close()


@pytest.mark.parametrize("name", ["registry.example/demo", "localhost/demo:1", "host:5000/a/b@sha256:0", "[::1]:5000/a"])
def test_what_is_a_reference(name):
    assert is_reference(name)


@pytest.mark.parametrize("name", ["demo", "demo:q4", "models/demo", "./a/b", "../a", "/a.b/c", "~/a.b/c", "a/b.c"])
def test_what_is_none(name):
    assert not is_reference(name)


def test_a_killed_node_and_a_killed_worker_lose_nothing(nodes, demo, tmp_path):
    registry = Registry()
    digest = registry.add(Path(demo), "1")
    reference = registry.reference(f"models/demo@{digest}")
    texts = prompts(COUNT)
    expected = alone(demo, texts, **OPTIONS)
    # Two workers on each node.
    nodes.remove_all()
    nodes.add(NODES, cpus=2)
    head = ray.get_runtime_context().get_node_id()
    progress = Progress.options(label_selector={"ray.io/node-id": head}).remote()
    dataset = ray.data.from_items(rows_of(texts), override_num_blocks=COUNT // 8).map_batches(
        Watched,
        fn_constructor_args=(reference, progress),
        fn_constructor_kwargs={"options": OPTIONS, "cache_size": "32MiB"},
        batch_size=8,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=2 * NODES),
    )
    start, killed, answers = time.monotonic(), [], []
    for answer in dataset.iter_rows():
        answers.append(answer)
        done, workers = ray.get(progress.read.remote())
        if not killed and done >= COUNT * 0.2:
            worker, node_of_worker = workers.popitem()
            end(worker)
            killed.append(done)
        # Another node, if one has answered yet.
        others = set(workers.values()) - {node_of_worker} if killed else None
        if len(killed) == 1 and done >= COUNT * 0.4 and others:
            nodes.kill(others.pop())
            killed.append(done)
    seconds = time.monotonic() - start
    assert len(killed) == 2
    print(f"{COUNT} prompts in {seconds:.1f} s; a worker killed after {killed[0]}, a node after {killed[1]}")
    check_answers(answers, expected)
    # Each file was fetched once by each node, which has two workers. The manifest may have been checked by both before. On a
    # busy machine, a third node may not have begun when all is answered.
    fetched = {digest: registry.fetched[digest] for digest in registry.blobs if registry.fetched[digest]}
    assert fetched.pop(digest_of_manifest(demo)) <= 3 * NODES
    answered = len({answer["node"] for answer in answers})
    assert all(answered <= times <= NODES for times in fetched.values()), (answered, fetched)
    registry.close()
