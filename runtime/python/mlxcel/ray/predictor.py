"""Answers to the prompts of a data set, on every node of a cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import ray

from ..engine import Engine
from ..errors import RequestError
from ..options import GenerateOptions
from .nodes import cpus_here, open_here, selector
from .source import Source

if TYPE_CHECKING:
    import numpy
    from ray.data import Dataset

    from .._native import Answer

Errors = Literal["raise", "column"]

_TEXT = ("text", "finish_reason", "prompt_tokens", "completion_tokens")

_REFUSALS = (RequestError, TypeError)
"""What a prompt that is refused raises, before anything runs."""


class Predictor:
    """Answers batches of prompts, for `map_batches` of Ray Data: each worker of the data set makes one.

    Bundles of language models add the columns `text`, `finish_reason`, `prompt_tokens` and `completion_tokens`, encoders the
    column `embedding`. A node pulls a bundle once, however many workers it has.

    Args:
        bundle: a folder that every node has, a name in the nodes' stores, or a reference of a registry, best with its digest.
        column: the column of prompts: texts or lists of token ids.
        chat: whether prompts are chats: lists of messages, or texts of a user.
        options: what `mlxcel.Engine.generate` takes, such as `{"max_tokens": 32}`.
        prefix: goes before the names of the columns that are added.
        errors: `raise` ends the data set at a prompt that is refused. `column` adds a column `error`, which says why a row
            has no answer. The embedding of such a row is NaN.
        device: the device, as `mlxcel.Engine` takes it.
        threads: threads of the device `local-task`; the CPUs that Ray gives the worker if it is None.
        cache_size: the memory of the cache, in bytes or as in `"4GiB"`; room for one context if it is None.
        context: tokens of context, at most the bundle's.
        require_signature: the minisign key that must have signed the bundle: a public key, or its file.
        store: the folder of each node's store; its `$MLXCEL_STORE`, or the default, if it is None.
        plain_http: uses HTTP without TLS, as for registries on this machine always.

    Raises:
        BundleError: there is no such bundle, or the registry cannot be reached.
        DeviceError: this node lacks what the bundle needs.
    """

    def __init__(
        self,
        bundle: str | os.PathLike[str],
        *,
        column: str = "prompt",
        chat: bool = False,
        options: GenerateOptions | None = None,
        prefix: str = "",
        errors: Errors = "raise",
        device: str = "auto",
        threads: int | None = None,
        cache_size: int | str | None = None,
        context: int | None = None,
        require_signature: str | None = None,
        store: str | os.PathLike[str] | None = None,
        plain_http: bool = False,
    ) -> None:
        if errors not in ("raise", "column"):
            raise _refused("errors", repr(errors), '"raise" or "column"')
        opened = open_here(Source.of(bundle, store, plain_http), device)
        self._engine = Engine(
            opened.name,
            device=device,
            threads=cpus_here() if threads is None else threads,
            cache_size=cache_size,
            context=context,
            require_signature=require_signature,
            store=store,
        )
        self._column, self._chat, self._prefix = column, chat, prefix
        self._options: GenerateOptions = {} if options is None else options
        self._keeps_errors = errors == "column"
        self._is_encoder = self._engine.width is not None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the batch with the columns that are added.

        Raises:
            RequestError: a prompt is refused, there is no such column, or a column that would be added is there already.
        """
        if self._column not in batch:
            raise _refused("column", f"the columns {', '.join(batch)}", f"one named {self._column}", "give column=")
        rows = list(batch[self._column])
        answers, errors = self._answer_rows(rows)
        added = self._vectors(answers) if self._is_encoder else self._texts(answers)
        if self._keeps_errors:
            added[f"{self._prefix}error"] = _objects(errors)
        for name in added:
            if name in batch:
                raise _refused("prefix", f"a column {name}", "none of that name", 'give prefix="answer_"')
        return {**batch, **added}

    def _answer_rows(self, rows: list[Any]) -> tuple[list[Any], list[str | None]]:
        """Returns the answer of each row, or why it has none."""
        found: dict[int, tuple[Any, str | None]] = {}
        prompts: dict[int, list[int]] = {}
        for place, row in enumerate(rows):
            try:
                prompts[place] = self._prompt(row)
            except _REFUSALS as error:
                if not self._keeps_errors:
                    raise
                found[place] = None, str(error)
        found |= zip(prompts, self._answer(list(prompts.values())))
        return [found[place][0] for place in range(len(rows))], [found[place][1] for place in range(len(rows))]

    def _answer(self, prompts: list[list[int]]) -> list[tuple[Any, str | None]]:
        """Returns the answer of each prompt, or why it has none. If one of them is refused, halves are answered apart."""
        if not prompts:
            return []
        try:
            return [(answer, None) for answer in self._run(prompts)]
        except _REFUSALS as error:
            if not self._keeps_errors:
                raise
            if len(prompts) == 1:
                return [(None, str(error))]
        half = len(prompts) // 2
        return self._answer(prompts[:half]) + self._answer(prompts[half:])

    def _run(self, prompts: list[list[int]]) -> Sequence[Any]:
        if self._is_encoder:
            return list(self._engine.embed(prompts))
        return self._engine._native.generate(prompts, self._chat, self._options)

    def _prompt(self, row: Any) -> list[int]:
        if self._chat:
            messages = [{"role": "user", "content": row}] if isinstance(row, str) else list(_plain(row))
            return self._engine.encode_chat(messages)
        return self._engine._tokens(str(row) if isinstance(row, str) else row)

    def _texts(self, answers: list[Answer | None]) -> dict[str, Any]:
        columns = {name: [_field(answer, name) for answer in answers] for name in _TEXT}
        return {f"{self._prefix}{name}": _objects(values) for name, values in columns.items()}

    def _vectors(self, answers: list[Any]) -> dict[str, Any]:
        import numpy

        # Ray joins no tensors with objects: the column has one type in every block.
        none = numpy.full(self._engine.width or 0, numpy.nan, numpy.float32)
        rows = [none if row is None else row for row in answers]
        return {f"{self._prefix}embedding": numpy.stack(rows) if rows else _objects([])}


def predict(
    dataset: Dataset,
    bundle: str | os.PathLike[str],
    *,
    batch_size: int = 64,
    num_cpus: float = 1,
    num_gpus: float = 0,
    workers: int | tuple[int, int] | None = None,
    device: str = "auto",
    store: str | os.PathLike[str] | None = None,
    plain_http: bool = False,
    **arguments: Any,
) -> Dataset:
    """Returns a data set with an answer to each prompt, made on the nodes that can run the bundle.

    A tag of a registry is replaced by the digest that it stands for now. Every node checks that it can run
    the bundle, and pulls it once. One that cannot is named in a warning of the logger `mlxcel.ray`, and takes no work.

    Args:
        dataset: a data set with a column of prompts.
        bundle: a folder that every node has, a name in the nodes' stores, or a reference of a registry.
        batch_size: the prompts that a worker answers together.
        num_cpus: the CPUs of each worker, which are its threads.
        num_gpus: the GPUs of each worker.
        workers: how many, or the least and the most; one for each `num_cpus` of the cluster at most if it is None.
        device: the device, as `mlxcel.Engine` takes it.
        store: the folder of each node's store; its `$MLXCEL_STORE`, or the default, if it is None.
        plain_http: uses HTTP without TLS, as for registries on this machine always.
        arguments: what else `Predictor` takes: `column`, `options`, `chat`, `errors`, `cache_size` and others.

    Raises:
        DeviceError: no node can run it.
        BundleError: no node can open it.
    """
    from ray.data import ActorPoolStrategy

    source = Source.of(bundle, store, plain_http)
    labels = selector(source, device)
    if workers is None:
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        total = resources.get("CPU", 1)
        workers = (1, max(1, int(total / num_cpus) if num_cpus else int(total)))
    least, most = (workers, workers) if isinstance(workers, int) else workers
    arguments |= {"device": device, "store": source.store, "plain_http": plain_http}
    placed: dict[str, Any] = {"label_selector": labels} if labels else {}
    return dataset.map_batches(
        Predictor,
        batch_size=batch_size,
        batch_format="numpy",
        compute=ActorPoolStrategy(min_size=least, max_size=most),
        fn_constructor_args=(source.bundle,),
        fn_constructor_kwargs=arguments,
        num_cpus=num_cpus,
        num_gpus=num_gpus or None,
        udf_modifying_row_count=False,
        **placed,
    )


def _field(answer: Answer | None, name: str) -> Any:
    if answer is None:
        return None
    if name == "prompt_tokens":
        return answer.timings.prompt_tokens + answer.timings.cached_tokens
    return len(answer.tokens) if name == "completion_tokens" else getattr(answer, name)


def _plain(value: Any) -> Any:
    """Returns what JSON takes of a value that Arrow gives: its lists are arrays of NumPy, in which there are others."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def _objects(values: list[Any]) -> numpy.ndarray:
    """Returns an array that has these values, and no dimension of theirs."""
    import numpy

    array = numpy.empty(len(values), object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def _refused(what: str, found: str, expected: str, hint: str | None = None) -> RequestError:
    return RequestError(f"{what}: found {found}, expected {expected}", found=found, expected=expected, hint=hint)
