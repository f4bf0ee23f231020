"""Answers that are read while they grow."""

from __future__ import annotations

import asyncio
import itertools
import weakref
from collections import deque
from collections.abc import AsyncIterator, Iterator

from ._native import Answer, NativeStream, Notifier, Piece


class Stream(Iterator[Piece], AsyncIterator[Piece]):
    """The pieces of an answer, for `for` and for `async for`.

    Leaving the loop does not end the request: `cancel` does, and so does dropping the stream.
    """

    def __init__(self, native: NativeStream) -> None:
        self._native = native
        self._pieces: deque[Piece] = deque()
        self._has_ended = False
        self._hub: _Hub | None = None
        self._number = 0

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

    async def __anext__(self) -> Piece:
        while not self._pieces:
            if self._has_ended:
                raise StopAsyncIteration
            if self._hub is None:
                self._watch(only_end=False)
            pieces, self._has_ended = self._native.poll()
            self._pieces.extend(pieces)
            if not pieces and not self._has_ended:
                await self._wait()
        return self._pieces.popleft()

    def __del__(self) -> None:
        hub = getattr(self, "_hub", None)
        if hub is not None:
            hub.forget(self._number)

    def _watch(self, *, only_end: bool) -> None:
        self._hub = _Hub.of(asyncio.get_running_loop())
        self._number = self._hub.add()
        self._native.watch(self._hub.notifier, self._number, only_end)

    async def _wait(self) -> None:
        """Waits for news. A task that is cancelled meanwhile ends the request."""
        assert self._hub is not None
        try:
            await self._hub.wait(self._number)
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def _finish(self) -> Answer:
        """Waits for the end, without waking for every token."""
        self._watch(only_end=True)
        while not self._has_ended:
            _, self._has_ended = self._native.poll()
            if not self._has_ended:
                await self._wait()
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


class _Hub:
    """Wakes the streams of one event loop. All share a socket, so that a step of the engine wakes the loop once."""

    _hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Hub] = weakref.WeakKeyDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.notifier = Notifier()
        self._loop = weakref.ref(loop)
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._told: set[int] = set()
        self._numbers = itertools.count()
        loop.add_reader(self.notifier.fileno(), self._wake)

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> _Hub:
        hub = cls._hubs.get(loop)
        if hub is None:
            hub = cls._hubs[loop] = cls(loop)
        return hub

    def add(self) -> int:
        return next(self._numbers)

    def forget(self, number: int) -> None:
        self._told.discard(number)

    async def wait(self, number: int) -> None:
        if number in self._told:
            self._told.discard(number)
            return
        loop = self._loop()
        assert loop is not None
        future = self._waiting[number] = loop.create_future()
        try:
            await future
        finally:
            self._waiting.pop(number, None)

    def _wake(self) -> None:
        for number in self.notifier.take():
            future = self._waiting.pop(number, None)
            if future is None:
                self._told.add(number)
            elif not future.done():
                future.set_result(None)
