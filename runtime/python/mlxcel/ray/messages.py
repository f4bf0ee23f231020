"""What a gateway and the replicas behind it tell each other."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

Headers = list[tuple[bytes, bytes]]

# They are between two neighbors, not between a client and a server.
_OF_CONNECTIONS = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade".split()
)

_KEY_CHARACTERS = 1024
"""How much of a prompt decides which replica gets it."""

_KEY_BODY = 1 << 20
"""The largest body in bytes that has a key. Reading a larger one would hold up all requests of the gateway."""


@dataclass(frozen=True)
class Request:
    """A request of HTTP."""

    method: str
    target: str
    """The path with its query, as the client wrote them."""
    headers: Headers
    body: bytes
    key: str
    """Equal for requests whose prompts begin alike; empty for those without a prompt."""


@dataclass(frozen=True)
class Head:
    """The head of an answer."""

    status: int
    headers: Headers

    @property
    def is_stream(self) -> bool:
        """Whether events follow."""
        return any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in self.headers)


class ReplicaLostError(Exception):
    """A replica's server ended while it answered."""


class NotReachedError(Exception):
    """A replica's server had ended before the request reached it."""


def passed_on(headers: Headers, without: frozenset[bytes]) -> Headers:
    """Returns the headers that are for the other end, in lower case."""
    lower = [(name.lower(), value) for name, value in headers]
    return [(name, value) for name, value in lower if name not in _OF_CONNECTIONS and name not in without]


def key_of(path: str, body: bytes) -> str:
    """Returns a key of how the prompt begins. All turns of a chat have the same: that of its first question."""
    if not path.endswith("completions") or len(body) > _KEY_BODY:
        return ""
    try:
        value = json.loads(body)
        text = _beginning(value)[:_KEY_CHARACTERS] if isinstance(value, dict) else ""
    except (ValueError, RecursionError):
        # The server says what is wrong with it.
        return ""
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).hexdigest() if text else ""


def _beginning(value: dict[str, Any]) -> str:
    messages = value.get("messages")
    if not isinstance(messages, list):
        prompt = value.get("prompt")
        return prompt if isinstance(prompt, str) else json.dumps(prompt) if prompt else ""
    first = []
    for message in messages:
        first.append(message)
        if isinstance(message, dict) and message.get("role") == "user":
            break
    return json.dumps(first) if first else ""


def error_body(message: str, code: str, kind: str = "server_error") -> bytes:
    """Returns an error as OpenAI's API has it."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()
