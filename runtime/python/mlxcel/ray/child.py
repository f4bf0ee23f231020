"""A server in a process of its own, which ends when this process does."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence

from ..errors import DeviceError
from .programs import find_program

_START_SECONDS = 600
"""The longest time from a server's start to its first line with an address: it reads and may pack weights."""

_KEPT_LINES = 50

_LISTENING = re.compile(r"listening on (https?://[^\s\"]+?)/v1")
"""The server's first line when it is ready. In a log of JSON, the text of a member."""

# The kernel ends it with the process that started it, also if that one is killed. A child whose parent has gone already would
# not hear of it, so that it looks.
_GUARD = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started this one has ended")
os.execv(sys.argv[2], sys.argv[2:])
"""


class Child:
    """A running mlxcel-serve on a port of loopback.

    Args:
        arguments: what it is started with, besides `--listen`.
        on_end: called in a thread of its own with the last lines of the log, if it ends after it listened and
            without being asked to.

    Raises:
        DeviceError: it cannot be started, or ends before it listens. The message has the last lines of its log.
    """

    def __init__(self, arguments: Sequence[str], on_end: Callable[[str], None]) -> None:
        command = [find_program("mlxcel-serve"), *arguments, "--listen", "127.0.0.1:0"]
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._is_stopping = False
        self._has_started = threading.Event()
        self._has_news = threading.Event()
        self._on_end = on_end
        self._error: Exception | None = None
        self.url: str | None = None
        # To the kernel, a process is the child of a thread, which therefore has to stay.
        threading.Thread(target=self._run, args=(command,), daemon=True).start()
        self._has_started.wait()
        if self._error is None:
            self._has_news.wait(_START_SECONDS)
        if self.url is None:
            self._is_stopping = True
            if self._error is None:
                self._process.kill()
            lines = "\n".join(self._lines) or f"nothing within {_START_SECONDS} s"
            raise DeviceError(
                f"mlxcel-serve did not start:\n{lines}",
                found=lines,
                expected="a line with its address",
                hint=f"run it alone: {' '.join(command)}",
            ) from self._error

    @property
    def process(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def stop(self, seconds: float) -> None:
        """Asks the server to end, which lets answers end first, and waits so long at most."""
        self._is_stopping = True
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _run(self, command: list[str]) -> None:
        """Starts the server, and reads its log to the end: a full pipe would stop it."""
        guard = [sys.executable, "-I", "-S", "-c", _GUARD, str(os.getpid())]
        try:
            self._process = subprocess.Popen(
                guard + command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
            )
        except Exception as error:
            # Such as a machine without memory for another process. The constructor raises it.
            self._error = error
            self._lines.append(f"{type(error).__name__}: {error}")
            return
        finally:
            self._has_started.set()
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.append(line.rstrip("\n"))
            if self.url is None and (found := _LISTENING.search(line)):
                self.url = found[1]
                self._has_news.set()
            # Ray shows what its workers write.
            sys.stderr.write(line)
        self._process.wait()
        self._has_news.set()
        # Otherwise the constructor's error tells of the end.
        if self.url is not None and not self._is_stopping:
            self._on_end("\n".join(self._lines))
