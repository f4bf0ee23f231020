"""The deployment that clients talk to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from ray.exceptions import NodeDiedError, ObjectLostError, RayActorError, WorkerCrashedError
from ray.serve.exceptions import BackPressureError, ReplicaUnavailableError
from ray.serve.handle import DeploymentHandle
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from .messages import Head, NotReachedError, ReplicaLostError, Request, error_body, key_of, passed_on

_log = logging.getLogger("ray.serve")

_LOST = (
    ReplicaLostError,
    NotReachedError,
    RayActorError,
    NodeDiedError,
    ObjectLostError,
    WorkerCrashedError,
    ReplicaUnavailableError,
)
"""How a replica's end is told."""

_ATTEMPTS = 6
_LOSSES = 2
"""How many servers may end while they answer a request. One that ends each would otherwise end one in each attempt."""
_PAUSE_SECONDS = 0.2
"""The time before the second attempt. It doubles with each."""

_END = b"\n\n"
"""The end of an event."""
_LAST_EVENT = b"data: [DONE]" + _END

# The server on loopback knows no other name than its own. Each hop has a length and a way to send of its own.
_NOT_ASKED = frozenset({b"host", b"content-length", b"expect"})
# The proxy of Serve writes its own, and hands the request's id down.
_NOT_ANSWERED = frozenset({b"date", b"server", b"x-request-id"})


class Gateway:
    """Passes requests on to the replicas, and their answers back byte for byte.

    A request whose replica ends goes to another one, unless it is a stream that has begun: that ends with an error in
    OpenAI's form.

    Args:
        replicas: the deployment of servers.
        max_body: the largest body of a request in bytes.
        prefix_routing: whether requests need a key of how their prompts begin.
    """

    def __init__(self, replicas: DeploymentHandle[Any], max_body: int, prefix_routing: bool) -> None:
        self._replicas = replicas.options(stream=True)
        self._max_body = max_body
        self._has_keys = prefix_routing

    async def __call__(self, http: HttpRequest) -> Response:
        """Answers a request."""
        path, raw_path = _paths(http.scope)
        if path.startswith("/admin/"):
            message = f"{path} concerns one server, and here are several: deploy the application again"
            return _refused(404, message, "not_found")
        try:
            body = await self._body(http)
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            return _refused(413, f"the body has more than {self._max_body} bytes", "body_too_large")
        try:
            key = key_of(path, body) if self._has_keys else ""
            return await self._ask(_request(http, raw_path, body, key))
        except Exception as error:
            _log.exception("%s failed", path)
            found = type(error).__name__
            message = f"the request was not passed on: found {found}, expected an answer; the gateway's log says more"
            return _refused(500, message, "internal_error")

    async def _body(self, http: HttpRequest) -> bytes | None:
        """Returns the body; None if it is too large."""
        parts, size = [], 0
        async for part in http.stream():
            size += len(part)
            if size > self._max_body:
                return None
            parts.append(part)
        return b"".join(parts)

    async def _ask(self, request: Request) -> Response:
        losses = 0
        for attempt in range(_ATTEMPTS):
            if attempt > 0:
                await asyncio.sleep(_PAUSE_SECONDS * 2 ** (attempt - 1))
            answer: Any = self._replicas.forward.remote(request)
            try:
                head: Head = await anext(answer)
                # Until the client has a part of the body, another replica can give all of it.
                first = await anext(answer, b"")
                if not head.is_stream:
                    first += b"".join([part async for part in answer])
            except BackPressureError:
                return _refused(429, "too many requests wait", "queue_full", {"retry-after": "1"})
            except _LOST as lost:
                _log.warning("attempt %d of %s: %s", attempt + 1, request.target, str(lost).partition("\n")[0])
                losses += isinstance(lost, ReplicaLostError)
                if losses == _LOSSES:
                    # Clients would repeat it, on servers that are left.
                    message = f"{losses} servers ended while they answered the request, expected none to"
                    return _refused(502, message, "replica_lost", {"x-should-retry": "false"})
                continue
            except BaseException:
                # Such as a client that has gone.
                answer.cancel()
                raise
            response: Response = Response(first, head.status)
            if head.is_stream:
                response = StreamingResponse(_stream(answer, first), head.status)
            response.raw_headers = passed_on(head.headers, _NOT_ANSWERED)
            return response
        return _refused(503, f"no replica could answer in {_ATTEMPTS} attempts", "replica_lost", {"retry-after": "5"})


async def _stream(answer: Any, first: bytes) -> AsyncIterator[bytes]:
    """Yields the events of an answer whose first ones are here. One that is cut is left out."""
    has_ended, last, rest = False, b"", b""
    part: bytes | None = first
    try:
        while part is not None:
            events, end, rest = (rest + part).rpartition(_END)
            if end:
                last = events + end
                yield last
            part = await anext(answer, None)
        has_ended = True
        if rest:
            yield rest
    except _LOST:
        has_ended = True
        if not last.endswith(_LAST_EVENT):
            message = "the replica ended before the answer did: ask again"
            yield b"data: " + error_body(message, "replica_lost") + _END
    finally:
        if not has_ended:
            # The client has gone.
            answer.cancel()


def _paths(scope: Mapping[str, Any]) -> tuple[str, bytes]:
    """Returns a request's path below the application's route, decoded and as the client wrote it."""
    root = scope.get("root_path", "").rstrip("/")
    path = _below(root, scope["path"]) or "/"
    raw = (scope.get("raw_path") or b"").partition(b"?")[0]
    raw_path = _below(root, raw.decode("latin-1"))
    if raw_path is None:
        # The client encoded characters of the route, for example.
        raw_path = quote(path)
    return path, raw_path.encode("latin-1")


def _below(root: str, path: str) -> str | None:
    """Returns what follows the route in a path, or `/`; None if the path is not below the route."""
    rest = path.removeprefix(root) or "/"
    # Without its slash, it could continue the server's address.
    return rest if path.startswith(root) and path and rest.startswith("/") else None


def _request(http: HttpRequest, raw_path: bytes, body: bytes, key: str) -> Request:
    query = http.scope.get("query_string") or b""
    target = raw_path + (b"?" + query if query else b"")
    headers = passed_on(list(http.headers.raw), _NOT_ASKED)
    return Request(http.method, target.decode("latin-1"), headers, body, key)


def _refused(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> Response:
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    return Response(error_body(message, code, kind), status, headers, "application/json")
