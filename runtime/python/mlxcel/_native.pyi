"""The native part. The modules beside it are what users see."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, final

__all__ = [
    "Answer",
    "NativeBundle",
    "NativeEngine",
    "NativeProgram",
    "NativeStream",
    "Notifier",
    "Piece",
    "Timings",
    "TokenLogprobs",
]

_Path = str | os.PathLike[str]

@final
class TokenLogprobs:
    """Log-probabilities that come with a token, in the model's own distribution."""

    @property
    def token(self) -> float:
        """That of the token."""
    @property
    def top(self) -> list[tuple[int, float]]:
        """The most likely ids with theirs, best first."""

@final
class Timings:
    """Times in seconds, and counts of tokens."""

    @property
    def queued(self) -> float:
        """Time that the request waited for its turn."""
    @property
    def prefill(self) -> float:
        """Time from its turn to the first token."""
    @property
    def decode(self) -> float:
        """Time of all later steps."""
    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt that were run."""
    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompt that an earlier request had left in the cache."""
    @property
    def drafted_tokens(self) -> int:
        """Tokens that were guessed and verified."""
    @property
    def accepted_tokens(self) -> int:
        """Guessed tokens that are part of the answer."""

@final
class Answer:
    """An answer."""

    @property
    def text(self) -> str:
        """The text, up to a stop text."""
    @property
    def tokens(self) -> list[int]:
        """All tokens, those of a stop text or an end of text included."""
    @property
    def finish_reason(self) -> str:
        """`eos`, `stop`, `length`, `context` or `cancelled`."""
    @property
    def logprobs(self) -> list[TokenLogprobs] | None:
        """Log-probabilities of each token, if they were asked for."""
    @property
    def timings(self) -> Timings:
        """Times and counts."""

@final
class Piece:
    """What a token adds to an answer."""

    @property
    def text(self) -> str:
        """The text that is final now; often empty, because characters and stop texts can have several tokens."""
    @property
    def token(self) -> int | None:
        """The token; None at the end, where a rest of text may come."""
    @property
    def logprobs(self) -> TokenLogprobs | None:
        """Log-probabilities, if they were asked for."""

@final
class Notifier:
    def __new__(cls) -> Notifier: ...
    def fileno(self) -> int: ...
    def take(self) -> list[int]: ...

@final
class NativeStream:
    def next(self) -> Piece | None: ...
    def poll(self) -> tuple[list[Piece], bool]: ...
    def watch(self, notifier: Notifier, stream: int, only_end: bool) -> None: ...
    def cancel(self) -> None: ...
    def answer(self) -> Answer | None: ...

class _Facts(TypedDict):
    model: str
    digest: str
    target: str
    device: str
    context: int
    vocab: int
    width: int | None

@final
class NativeEngine:
    def __new__(
        cls,
        place: Mapping[str, Any],
        device: Mapping[str, Any],
        *,
        context: int | None,
        cache_size: int | str | None,
        queue: int,
        weights: _Path | None,
    ) -> NativeEngine: ...
    def facts(self) -> _Facts: ...
    def close(self) -> None: ...
    def encode(self, text: str, special: bool) -> list[int]: ...
    def decode(self, tokens: Sequence[int]) -> str: ...
    def encode_chat(self, messages: str, tools: str, variables: str) -> list[int]: ...
    def stream(self, prompt: Sequence[int], is_message: bool, options: Mapping[str, Any]) -> NativeStream: ...
    def generate(
        self, prompts: Sequence[Sequence[int]], is_message: bool, options: Mapping[str, Any]
    ) -> list[Answer]: ...
    def embed(self, texts: Sequence[Sequence[int]]) -> bytes: ...
    def score(self, tokens: Sequence[int], start: int, top: int) -> list[TokenLogprobs]: ...

@final
class NativeProgram:
    def __new__(cls, place: Mapping[str, Any], device: Mapping[str, Any]) -> NativeProgram: ...
    def facts(self) -> tuple[str, str, str, str]: ...
    def entries(
        self,
    ) -> list[
        tuple[str, str, list[tuple[str, str, list[int], bool]], list[tuple[str, str, list[int], bool]]]
    ]: ...
    def prepare(self, entry: str) -> int: ...
    def forget(self, number: int) -> None: ...
    def call(
        self,
        number: int,
        arguments: Sequence[tuple[str, str, Sequence[int], Any]],
        is_called: bool,
        results: Sequence[str],
    ) -> list[tuple[tuple[str, list[int]], bytearray]]: ...
    def close(self) -> None: ...

@final
class NativeBundle:
    def __new__(cls, path: _Path, store: _Path | None) -> NativeBundle: ...
    @staticmethod
    def pull(reference: str, named: str | None, store: _Path | None, plain_http: bool) -> NativeBundle: ...
    @staticmethod
    def resolve(reference: str, plain_http: bool) -> str: ...
    def push(self, reference: str, plain_http: bool) -> str: ...
    def name(self) -> str: ...
    def path(self) -> _Path: ...
    def digest(self) -> str: ...
    def manifest(self) -> str: ...
    def describe(self) -> str: ...
    def verify(self, key: str | None) -> tuple[str, str] | None: ...
    def check(self, driver: str | None) -> list[tuple[str, str, str, list[str]]]: ...
    @staticmethod
    def check_remote(
        reference: str, driver: str | None, plain_http: bool
    ) -> list[tuple[str, str, str, list[str]]]: ...
    def sign(self, key: _Path, password: str | None, comment: str) -> str: ...
    def diff(self, other: NativeBundle) -> list[tuple[str, str]]: ...
    def copy(self, folder: _Path | None, named: str | None) -> NativeBundle: ...
