"""Answers that are read while they grow."""

from __future__ import annotations

import asyncio
import functools
import itertools
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterator

from ._native import Answer, NativeStream, Notifier, Piece
from .errors import RequestError


class Stream(Iterator[Piece], AsyncIterator[Piece]):
    """The pieces of an answer, for `for` and for `async for`. One task reads it at a time.

    Leaving the loop does not end the request: `cancel` does, and so do dropping the stream and cancelling a task that waits
    for a piece.
    """

    def __init__(self, native: NativeStream) -> None:
        self._native = native
        self._pieces: deque[Piece] = deque()
        self._has_ended = False
        self._error: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: asyncio.Future[Piece] | None = None
        # It has no reference to the stream, so that dropping the stream frees it at once.
        self._on_wait_end = functools.partial(_end_if_cancelled, native)

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Piece:
        if self._pieces:
            return self._pieces.popleft()
        piece = self._native.next()
        if piece is None:
            raise StopIteration
        return piece

    def __aiter__(self) -> Stream:
        return self

    def __anext__(self) -> Awaitable[Piece]:
        if self._waiting is not None and not self._waiting.done():
            found, expected = "a second read while another one waits", "one read at a time"
            raise RequestError(
                f"stream: found {found}, expected {expected}",
                found=found,
                expected=expected,
                hint="read the stream in one task, which passes the pieces on",
            )
        # A future, and no coroutine: that costs half as much for each token.
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            _Hub.of(self._loop).watch(self, self._native, only_end=False)
            self._read()
        future: asyncio.Future[Piece] = self._loop.create_future()
        self._waiting = future
        future.add_done_callback(self._on_wait_end)
        self._answer_waiting()
        return future

    def _on_news(self) -> None:
        """Reads what has come, in the event loop."""
        self._read()
        self._answer_waiting()

    def _read(self) -> None:
        try:
            pieces, self._has_ended = self._native.poll()
            self._pieces.extend(pieces)
        except Exception as error:
            self._error, self._has_ended = error, True

    def _answer_waiting(self) -> None:
        future = self._waiting
        if future is None or future.done() or not (self._pieces or self._has_ended):
            return
        self._waiting = None
        # It cannot be cancelled any more, and the loop has one call less for each token.
        future.remove_done_callback(self._on_wait_end)
        if self._pieces:
            future.set_result(self._pieces.popleft())
        elif self._error is not None:
            future.set_exception(self._error)
            self._error = None
        else:
            future.set_exception(StopAsyncIteration())

    async def _finish(self) -> Answer:
        """Waits for the end, without waking for every token."""
        loop = asyncio.get_running_loop()
        end = _End(loop.create_future())
        _Hub.of(loop).watch(end, self._native, only_end=True)
        try:
            await end.future
        except asyncio.CancelledError:
            self.cancel()
            raise
        # An error, if that was the end.
        self._native.poll()
        answer = self._native.answer()
        assert answer is not None
        return answer

    def cancel(self) -> None:
        """Ends the request. Its last piece comes soon, and the answer then says `cancelled`."""
        self._native.cancel()

    @property
    def answer(self) -> Answer | None:
        """The whole answer; None before its end."""
        return self._native.answer()


def _end_if_cancelled(native: NativeStream, wait: asyncio.Future[Piece]) -> None:
    """Ends the request of a wait that was cancelled, also before its first token."""
    if wait.cancelled():
        native.cancel()


class _End:
    """The end of an answer that nobody reads piece by piece."""

    def __init__(self, future: asyncio.Future[None]) -> None:
        self.future = future

    def _on_news(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class _Hub:
    """Wakes the streams of one event loop. All share a socket, so that a step of the engine wakes the loop once."""

    _hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Hub] = weakref.WeakKeyDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._notifier = Notifier()
        self._streams: weakref.WeakValueDictionary[int, Stream | _End] = weakref.WeakValueDictionary()
        self._numbers = itertools.count()
        loop.add_reader(self._notifier.fileno(), self._wake)

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> _Hub:
        hub = cls._hubs.get(loop)
        if hub is None:
            hub = cls._hubs[loop] = cls(loop)
        return hub

    def watch(self, stream: Stream | _End, native: NativeStream, *, only_end: bool) -> None:
        number = next(self._numbers)
        self._streams[number] = stream
        native.watch(self._notifier, number, only_end)

    def _wake(self) -> None:
        for number in self._notifier.take():
            stream = self._streams.get(number)
            if stream is not None:
                stream._on_news()
