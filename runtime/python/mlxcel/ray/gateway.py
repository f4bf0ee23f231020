"""The deployment that clients talk to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from ray.exceptions import NodeDiedError, ObjectLostError, RayActorError, WorkerCrashedError
from ray.serve.exceptions import BackPressureError, ReplicaUnavailableError
from ray.serve.handle import DeploymentHandle
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from .messages import Head, ReplicaLostError, Request, error_body, key_of, passed_on

_log = logging.getLogger("ray.serve")

_LOST = (
    ReplicaLostError,
    RayActorError,
    NodeDiedError,
    ObjectLostError,
    WorkerCrashedError,
    ReplicaUnavailableError,
)
"""How a replica's end is told."""

_ATTEMPTS = 6
_PAUSE_SECONDS = 0.2
"""The time before the second attempt. It doubles with each."""

_LAST_EVENT = b"data: [DONE]\n\n"

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
    """

    def __init__(self, replicas: DeploymentHandle[Any], max_body: int) -> None:
        self._replicas = replicas.options(stream=True)
        self._max_body = max_body

    async def __call__(self, http: HttpRequest) -> Response:
        """Answers a request."""
        if http.scope["path"].startswith("/admin/"):
            message = f"{http.scope['path']} concerns one server, and here are several: deploy the application again"
            return _refused(404, message, "not_found")
        try:
            body = await self._body(http)
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            return _refused(413, f"the body has more than {self._max_body} bytes", "body_too_large")
        return await self._ask(_request(http, body))

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
        for attempt in range(_ATTEMPTS):
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
                _log.warning("attempt %d of %s: %s", attempt + 1, request.target, str(lost).splitlines()[0])
                await asyncio.sleep(_PAUSE_SECONDS * 2**attempt)
                continue
            except BaseException:
                # The client has gone.
                answer.cancel()
                raise
            response: Response = Response(first, head.status)
            if head.is_stream:
                response = StreamingResponse(_stream(answer, first), head.status)
            response.raw_headers = passed_on(head.headers, _NOT_ANSWERED)
            return response
        return _refused(503, f"no replica could answer in {_ATTEMPTS} attempts", "replica_lost", {"retry-after": "5"})


async def _stream(answer: Any, first: bytes) -> AsyncIterator[bytes]:
    """Yields the events of an answer whose first ones are here."""
    has_ended, last = False, first
    try:
        yield first
        async for part in answer:
            yield part
            last = part
        has_ended = True
    except _LOST:
        has_ended = True
        if not last.endswith(_LAST_EVENT):
            # Ends the event that was cut, if one was.
            message = "the replica ended before the answer did: ask again"
            yield b"\n\ndata: " + error_body(message, "replica_lost") + b"\n\n"
    finally:
        if not has_ended:
            # The client has gone.
            answer.cancel()


def _request(http: HttpRequest, body: bytes) -> Request:
    raw = http.scope.get("raw_path") or http.scope["path"].encode()
    query = http.scope.get("query_string") or b""
    target = raw.partition(b"?")[0] + (b"?" + query if query else b"")
    headers = passed_on(list(http.headers.raw), _NOT_ASKED)
    return Request(http.method, target.decode("latin-1"), headers, body, key_of(http.scope["path"], body))


def _refused(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> Response:
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    return Response(error_body(message, code, kind), status, headers, "application/json")
