"""Batches of a data set, without a cluster and with an engine that refuses what a test says."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy
import pyarrow
import pytest
from ray.data._internal.arrow_ops.transform_pyarrow import concat
from ray.data.block import BlockAccessor

import mlxcel
from mlxcel.ray import predictor as predictor_module
from mlxcel.ray.predictor import Predictor

REFUSED = 13
"""A token that the engine refuses."""


class Native:
    """An engine whose tokens are the characters of a text, and whose answers are its prompts."""

    def __init__(self, width: int | None) -> None:
        self.width = width
        self.calls: list[int] = []

    def facts(self) -> dict:
        return {"width": self.width, "vocab": 128}

    def encode(self, text: str, special: bool) -> list[int]:
        return [ord(one) for one in text]

    def encode_chat(self, messages: str, tools: str, variables: str) -> list[int]:
        return self.encode(" ".join(message["content"] for message in json.loads(messages)), True)

    def generate(self, prompts: list[list[int]], is_chat: bool, options: dict) -> list:
        self._run(prompts)
        timings = SimpleNamespace(prompt_tokens=1, cached_tokens=0)
        return [
            SimpleNamespace(text=str(prompt), tokens=prompt, finish_reason="eos", timings=timings)
            for prompt in prompts
        ]

    def embed(self, prompts: list[list[int]]) -> bytes:
        self._run(prompts)
        return numpy.array([[prompt[0]] * self.width for prompt in prompts], numpy.float32).tobytes()

    def _run(self, prompts: list[list[int]]) -> None:
        self.calls.append(len(prompts))
        if any(REFUSED in prompt for prompt in prompts):
            raise mlxcel.RequestError("refused")


@pytest.fixture
def make(monkeypatch):
    """Makes a predictor and its engine."""

    def make(width: int | None = None, **arguments: object) -> tuple[Predictor, Native]:
        native = Native(width)
        monkeypatch.setattr("mlxcel.engine.NativeEngine", lambda *_, **__: native)
        return Predictor("demo", **arguments), native

    monkeypatch.setattr(predictor_module, "open_here", lambda source, device: SimpleNamespace(name=source.bundle))
    monkeypatch.setattr(predictor_module, "cpus_here", lambda: 1)
    return make


def batch_of(column: str, rows: list) -> dict:
    """Returns the batch that Ray makes of a table of Arrow."""
    block = pyarrow.table({column: rows})
    return BlockAccessor.for_block(block).to_batch_format("numpy")


def test_chats_with_lists_in_messages(make):
    predictor, _ = make(chat=True)
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    chats = [
        [{"role": "user", "content": parts, "more": [{"scores": [1.5]}]}],
        [{"role": "user", "content": [], "more": None}, {"role": "user", "content": parts[:1], "more": []}],
    ]
    batch = batch_of("prompt", chats)
    assert isinstance(batch["prompt"][0][0]["content"], numpy.ndarray)
    assert list(predictor(batch)["text"]) == ["[97, 98]", "[32, 97]"]


def test_rows_that_are_refused_have_an_error(make):
    predictor, native = make(errors="column")
    rows = [[97], [-1, 5], [2**32], [], None, [98]]
    found = predictor(batch_of("prompt", rows))
    assert list(found["text"]) == ["[97]", None, None, "[]", None, "[98]"]
    errors = list(found["error"])
    assert [error is None for error in errors] == [True, False, False, True, False, True]
    assert "found the token -1, expected 0 to" in errors[1] and "found the token 4294967296" in errors[2]
    assert "found None" in errors[4]
    # What was refused before is not asked for.
    assert native.calls == [3]


def test_few_calls_find_the_row_that_the_engine_refuses(make):
    predictor, native = make(errors="column")
    rows = [[97]] * 64
    rows[21] = [REFUSED]
    found = predictor(batch_of("prompt", rows))
    assert [place for place, error in enumerate(found["error"]) if error] == [21]
    assert [place for place, text in enumerate(found["text"]) if text is None] == [21]
    assert native.calls == [64, 32, 16, 16, 8, 4, 4, 2, 1, 1, 2, 8, 32]


@pytest.mark.parametrize("row", [[-1, 5], [REFUSED]])
def test_a_row_that_is_refused_ends_the_data_set(make, row):
    predictor, _ = make()
    with pytest.raises(mlxcel.RequestError):
        predictor({"prompt": [[97], row]})


def test_a_column_that_is_not_there(make):
    predictor, native = make(column="question")
    with pytest.raises(mlxcel.RequestError, match="found the columns prompt, expected one named question"):
        predictor({"prompt": ["And"]})
    assert native.calls == []


def test_blocks_of_embeddings_can_be_joined(make):
    predictor, _ = make(width=3, errors="column")
    batches = [predictor(batch_of("prompt", rows)) for rows in (["a", "b"], ["c", chr(REFUSED)], [chr(REFUSED)])]
    blocks = [BlockAccessor.batch_to_arrow_block(batch) for batch in batches]
    rows = list(BlockAccessor.for_block(concat(blocks)).iter_rows(False))
    assert {row["embedding"].dtype for row in rows} == {numpy.dtype("float32")}
    assert [row["embedding"][0] for row in rows[:3]] == [97, 98, 99]
    assert all(numpy.isnan(row["embedding"]).all() for row in rows[3:])
    assert [row["error"] is None for row in rows] == [True, True, True, False, False]


def test_a_batch_without_rows(make):
    for width in (None, 3):
        predictor, native = make(width=width)
        assert len(predictor({"prompt": []})["text" if width is None else "embedding"]) == 0
        assert native.calls == []
