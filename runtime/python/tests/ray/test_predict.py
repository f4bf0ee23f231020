"""Data sets of prompts."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from conftest import IS_FULL, PROGRAMS, alone, end, prompts
from registry import Registry

import mlxcel

ray = pytest.importorskip("ray")

import mlxcel.ray  # noqa: E402

COUNT = 2000 if IS_FULL else 240
OPTIONS = {"max_tokens": 24}


@ray.remote(num_cpus=0)
class Progress:
    """Counts the rows that workers have answered."""

    def __init__(self) -> None:
        self.workers: dict[int, str] = {}
        self.rows = 0

    def add(self, rows: int, process: int, node: str) -> None:
        self.rows += rows
        self.workers[process] = node

    def read(self) -> tuple[int, dict[int, str]]:
        return self.rows, dict(self.workers)


class Watched(mlxcel.ray.Predictor):
    """Tells which process of which node answers."""

    def __init__(self, bundle: str, progress: object, **arguments: object) -> None:
        super().__init__(bundle, **arguments)
        self.progress = progress
        self.node = ray.get_runtime_context().get_node_id()

    def __call__(self, batch: dict) -> dict:
        answered = super().__call__(batch)
        ray.get(self.progress.add.remote(len(batch["prompt"]), os.getpid(), self.node))
        return answered | {"node": [self.node] * len(batch["prompt"])}


def rows_of(texts: list[str]) -> list[dict]:
    return [{"number": number, "prompt": text} for number, text in enumerate(texts)]


def check_answers(answers: list[dict], expected: list[tuple]) -> None:
    """Checks that each prompt was answered once, as the single process does."""
    numbers = Counter(answer["number"] for answer in answers)
    assert numbers == Counter(range(len(expected)))
    for answer in answers:
        found = (answer["text"], answer["finish_reason"], answer["completion_tokens"])
        assert found == expected[answer["number"]], answer["number"]


def test_a_killed_node_and_a_killed_worker_lose_nothing(nodes, demo, tmp_path):
    registry = Registry()
    digest = registry.add(Path(demo), "1")
    reference = registry.reference(f"models/demo@{digest}")
    texts = prompts(COUNT)
    expected = alone(demo, texts, **OPTIONS)
    # Two workers on each node.
    ids = nodes.add(3, cpus=2)
    progress = Progress.options(label_selector={"ray.io/node-id": ids[0]}).remote()
    dataset = ray.data.from_items(rows_of(texts), override_num_blocks=COUNT // 8).map_batches(
        Watched,
        fn_constructor_args=(reference, progress),
        fn_constructor_kwargs={"options": OPTIONS, "cache_size": "32MiB"},
        batch_size=8,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=6),
    )
    start, killed, answers = time.monotonic(), [], []
    for answer in dataset.iter_rows():
        answers.append(answer)
        done, workers = ray.get(progress.read.remote())
        if not killed and done >= COUNT * 0.2:
            worker = next(process for process, node in workers.items() if node == ids[1])
            end(worker)
            killed.append(done)
        if len(killed) == 1 and done >= COUNT * 0.4:
            nodes.kill(ids[2])
            killed.append(done)
    seconds = time.monotonic() - start
    print(f"{COUNT} prompts in {seconds:.1f} s; a worker killed after {killed[0]}, a node after {killed[1]}")
    check_answers(answers, expected)
    # Each file was fetched once by each node: six workers on three nodes.
    fetched = {digest: registry.fetched[digest] for digest in registry.blobs if registry.fetched[digest]}
    assert set(fetched.values()) == {3}, fetched
    registry.close()
