"""The gateway alone: no cluster, and replicas that answer what a test says."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from ray.exceptions import ActorDiedError
from starlette.requests import Request as HttpRequest

from mlxcel.ray import gateway as gateway_module
from mlxcel.ray.gateway import Gateway
from mlxcel.ray.messages import Head, NotReachedError, ReplicaLostError, key_of

CHAT = "/v1/chat/completions"
OK = Head(200, [(b"content-type", b"application/json")])
EVENTS = Head(200, [(b"content-type", b"text/event-stream")])
BROKEN = b'data: {"error": {"message": "the replica ended before the answer did: ask again"'


class Replicas:
    """A handle whose replicas give these answers in turn. An exception is the end of one."""

    def __init__(self, *answers: list) -> None:
        self.answers = list(answers)
        self.requests: list = []
        self.cancelled = 0
        self.forward = self

    def options(self, stream: bool) -> Replicas:
        assert stream
        return self

    def remote(self, request) -> Given:
        self.requests.append(request)
        return Given(self, self.answers.pop(0))


class Given:
    def __init__(self, replicas: Replicas, parts: list) -> None:
        self.replicas, self.parts = replicas, iter(parts)

    def __aiter__(self) -> Given:
        return self

    async def __anext__(self) -> object:
        for part in self.parts:
            if isinstance(part, BaseException):
                raise part
            return part
        raise StopAsyncIteration

    def cancel(self) -> None:
        self.replicas.cancelled += 1


@pytest.fixture(autouse=True)
def pauses(monkeypatch) -> list[float]:
    """The times that the gateway slept, which take none."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(gateway_module.asyncio, "sleep", sleep)
    return found


def ask(replicas: Replicas, path: str = CHAT, body: bytes = b"{}", prefix_routing: bool = True, **scope: object):
    """Returns the status of an answer, its headers and its body."""
    raw = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": [], **scope}

    async def receive() -> dict:
        return {"type": "http.request", "body": body}

    async def run() -> tuple:
        answer = await Gateway(replicas, 16 << 20, prefix_routing)(HttpRequest(raw, receive))
        parts = [part async for part in answer.body_iterator] if hasattr(answer, "body_iterator") else [answer.body]
        return answer.status_code, dict(answer.raw_headers), b"".join(parts)

    return asyncio.run(run())


def error_of(body: bytes) -> dict:
    return json.loads(body)["error"]


@pytest.mark.parametrize(
    ("path", "raw", "target"),
    [
        ("/llm/v1/models", b"/llm/v1/models", "/v1/models"),
        ("/llm", b"/llm", "/"),
        ("/llm/a b", b"/llm/a%20b", "/a%20b"),
        ("/llm/a b", b"/ll%6D/a%20b", "/a%20b"),
        ("/llm/a?b", b"/ll%6D/a%3Fb", "/a%3Fb"),
        ("/llm/v1/models", b"", "/v1/models"),
        ("/llm@host/v1", b"/llm@host/v1", "/"),
    ],
)
def test_servers_get_paths_below_the_route(path, raw, target):
    replicas = Replicas([OK, b"{}"])
    status, *_ = ask(replicas, path, raw_path=raw, root_path="/llm", query_string=b"x=/llm")
    assert (status, replicas.requests[0].target) == (200, f"{target}?x=/llm")


@pytest.mark.parametrize(("path", "target"), [("/v1/models", "/v1/models"), ("/llm/v1", "/llm/v1"), ("*", "/")])
def test_paths_without_a_route(path, target):
    replicas = Replicas([OK, b"{}"])
    ask(replicas, path)
    assert replicas.requests[0].target == target


@pytest.mark.parametrize(("root", "path"), [("", "/admin/reload"), ("/llm", "/llm/admin/reload")])
def test_the_servers_admin_is_refused_below_every_route(root, path):
    replicas = Replicas()
    status, _, body = ask(replicas, path, root_path=root)
    assert (status, error_of(body)["code"], replicas.requests) == (404, "not_found", [])
    assert error_of(body)["message"].startswith("/admin/reload concerns one server")


def test_a_request_that_ends_servers_ends_two_at_most(pauses):
    lost = [ReplicaLostError("the server ended")]
    replicas = Replicas(*[lost] * 6)
    status, headers, body = ask(replicas)
    assert (status, len(replicas.requests), pauses) == (502, 2, [0.2])
    assert error_of(body)["message"] == "2 servers ended while they answered the request, expected none to"
    # OpenAI's client repeats other answers of 500 and more.
    assert headers[b"x-should-retry"] == b"false"


def test_a_request_that_no_server_got_is_repeated(pauses):
    gone = [[NotReachedError("refused")], [ActorDiedError()]]
    replicas = Replicas(*gone, [ReplicaLostError("ended")], *gone, [OK, b"{}", b" "])
    assert ask(replicas)[::2] == (200, b"{} ")
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2]
    replicas = Replicas(*gone * 3)
    status, headers, body = ask(replicas)
    assert (status, error_of(body)["code"], headers[b"retry-after"]) == (503, "replica_lost", b"5")
    # Not after the last one.
    assert pauses[5:] == [0.2, 0.4, 0.8, 1.6, 3.2]


def test_a_stream_has_whole_events():
    events = [b"data: 1\n\nda", b"ta: 2\n", b"\ndata: 3", b"\n\n", b"data: [DONE]\n\n"]
    whole = b"data: 1\n\ndata: 2\n\ndata: 3\n\n"
    assert ask(Replicas([EVENTS, *events]))[2] == whole + b"data: [DONE]\n\n"
    lost = ReplicaLostError("ended")
    assert ask(Replicas([EVENTS, *events, lost]))[2] == whole + b"data: [DONE]\n\n"
    body = ask(Replicas([EVENTS, *events[:2], lost]))[2]
    assert body.startswith(b"data: 1\n\n" + BROKEN) and body.endswith(b"\n\n")
    body = ask(Replicas([EVENTS, *events[:3], lost]))[2]
    assert body.startswith(b"data: 1\n\ndata: 2\n\n" + BROKEN)
    # What has no end is passed on if the server wrote no more.
    assert ask(Replicas([EVENTS, *events[:3]]))[2] == b"data: 1\n\ndata: 2\n\ndata: 3"


def test_a_failure_is_an_error_in_openais_form(caplog):
    replicas = Replicas([RuntimeError("secret")])
    status, _, body = ask(replicas)
    assert (status, error_of(body)["type"], error_of(body)["code"]) == (500, "server_error", "internal_error")
    assert "found RuntimeError, expected an answer" in error_of(body)["message"] and b"secret" not in body
    assert replicas.cancelled == 1


def test_a_client_that_goes_ends_its_request():
    replicas = Replicas([asyncio.CancelledError()])
    with pytest.raises(asyncio.CancelledError):
        ask(replicas)
    assert replicas.cancelled == 1


def test_keys_of_prompts():
    chat = [{"role": "user", "content": "And"}]
    turns = [chat, [*chat, {"role": "assistant", "content": "Yes"}, {"role": "user", "content": "More"}]]
    keys = {key_of(CHAT, json.dumps({"messages": turn}).encode()) for turn in turns}
    assert len(keys) == 1 and keys != {""}
    assert key_of("/v1/completions", b'{"prompt": [1, 2]}') not in ("", *keys)
    assert key_of("/v1/embeddings", b'{"prompt": "a"}') == ""


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"prompt": ' + b"[" * 500_000, b'{"prompt": ""}', b"\xff"])
def test_bodies_without_a_key(body):
    assert key_of("/v1/completions", body) == ""
    # The server says what is wrong with it.
    replicas = Replicas([OK, b"{}"])
    assert ask(replicas, "/v1/completions", body)[0] == 200
    assert replicas.requests[0].body == body


def test_a_large_body_does_not_hold_up_others():
    body = b'{"prompt": [%s]}' % b",".join([b"12345"] * 2_000_000)
    start = time.thread_time()
    assert key_of("/v1/completions", body) == ""
    assert time.thread_time() - start < 0.01


def test_without_prefix_routing_bodies_are_not_read(monkeypatch):
    replicas = Replicas([OK, b"{}"], [OK, b"{}"])
    body = b'{"prompt": "And"}'
    ask(replicas, "/v1/completions", body)
    monkeypatch.setattr(gateway_module, "key_of", lambda *_: pytest.fail("the body was read"))
    ask(replicas, "/v1/completions", body, prefix_routing=False)
    assert [bool(request.key) for request in replicas.requests] == [True, False]
