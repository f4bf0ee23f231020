"""Clients that ask until they are stopped."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable

import openai

# Seconds that anything is waited for at most. A second alone takes ten of them beside other tests on two busy cores.
LONGEST = 240


def free_port() -> int:
    """Returns a port that nothing listens on, below those that Linux gives to whoever asks for any."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Load:
    """Threads that ask prompts in turn, and keep what is answered and what fails."""

    def __init__(self, url: str, prompts: list[str], streams: bool = True, max_tokens: int = 24) -> None:
        # A failed request is counted, and not asked again.
        self.client = openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=LONGEST)
        self.prompts, self.streams, self.max_tokens = prompts, streams, max_tokens
        self.answers: list[tuple[int, str]] = []
        self.failures: list[str] = []
        self.next = 0
        self.wanted = 0
        self.lock = threading.Lock()
        self.threads: list[threading.Thread] = []

    def clients(self, count: int) -> None:
        """Changes the number of clients. Those that are too many end after their request."""
        self.wanted = count
        self.threads = [thread for thread in self.threads if thread.is_alive()]
        for number in range(len(self.threads), count):
            thread = threading.Thread(target=self._ask, args=(number,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def stop(self) -> None:
        self.wanted = 0
        for thread in self.threads:
            thread.join(LONGEST + 30)
            assert not thread.is_alive()

    def _ask(self, client: int) -> None:
        while client < self.wanted:
            with self.lock:
                number = self.next % len(self.prompts)
                self.next += 1
            try:
                text = self._answer(self.prompts[number], self.streams and number % 2 == 0)
                self.answers.append((number, text))
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {error}, {error.__cause__!r}")

    def _answer(self, prompt: str, streams: bool) -> str:
        found = self.client.completions.create(
            model="demo", prompt=prompt, max_tokens=self.max_tokens, temperature=0, stream=streams
        )
        if not streams:
            return found.choices[0].text
        parts = [chunk.choices[0] for chunk in found]
        assert parts[-1].finish_reason
        return "".join(part.text for part in parts)


def until(what: str, check: Callable[[], object], seconds: float = LONGEST) -> object:
    """Waits until `check` returns something true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := check():
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds} s")
