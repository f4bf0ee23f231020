"""The deployments of `app` and the command line of a server, without a cluster."""

from __future__ import annotations

import asyncio
import socket
import threading
from types import SimpleNamespace

import pytest

import mlxcel
import mlxcel.ray
from mlxcel.ray import serving
from mlxcel.ray.arguments import check_arguments, check_name, with_defaults
from mlxcel.ray.gateway import Gateway
from mlxcel.ray.messages import NotReachedError, ReplicaLostError, Request
from mlxcel.ray.source import Source


class Deployment:
    """What `serve.deployment` was given, and then `bind`."""

    def __init__(self, kind: type, **options: object) -> None:
        self.kind, self.options = kind, options

    def bind(self, *arguments: object) -> Deployment:
        self.arguments = arguments
        return self


@pytest.fixture
def selected(monkeypatch) -> list:
    """What the cluster was asked for. It has no node yet."""
    found: list = []

    def selector(source: Source, device: str, *, may_be_empty: bool) -> dict:
        found.append((source, device, may_be_empty))
        return {}

    monkeypatch.setattr(serving, "selector", selector)
    monkeypatch.setattr(serving.serve, "deployment", Deployment)
    return found


@pytest.fixture
def started(monkeypatch) -> list[list[str]]:
    """The command lines of the servers that were started, which are none."""
    lines: list[list[str]] = []

    class Child:
        url = "http://127.0.0.1:9"

        def __init__(self, arguments: list[str], on_end: object) -> None:
            lines.append(arguments)

        def stop(self, seconds: float) -> None:
            pass

    monkeypatch.setattr(serving, "Child", Child)
    monkeypatch.setattr(serving, "open_here", lambda source, device: SimpleNamespace(name=source.bundle))
    monkeypatch.setattr(serving, "cpus_here", lambda: 3)
    return lines


def line_of(application: Deployment, started: list[list[str]]) -> list[str]:
    """Returns the command line of the application's servers."""
    servers, *_ = application.arguments
    servers.kind(*servers.arguments)
    return started.pop()


def test_the_application_waits_for_nodes(selected):
    gateway = mlxcel.ray.app("demo", prefix_routing=False, max_body=5)
    servers, *more = gateway.arguments
    assert (gateway.kind, servers.kind, more) == (Gateway, serving.Server, [5, False])
    assert selected == [(Source("demo"), "auto", True)]
    assert "label_selector" not in servers.options["ray_actor_options"]


def test_servers_take_what_the_gateway_takes(selected, started):
    found = line_of(mlxcel.ray.app("demo", max_body=64 << 20, max_requests=500, drain=5), started)
    assert found[0] == "demo=demo"
    options = dict(zip(found[1::2], found[2::2], strict=True))
    limits = {"--max-body": str(64 << 20), "--queue": "2000"}
    assert options == {"--device": "auto", "--threads": "3", "--drain": "5", **limits}
    # mlxcel-serve's own queue is not made shorter.
    assert line_of(mlxcel.ray.app("demo"), started)[-1] == "256"


def test_arguments_replace_options(selected, started, tmp_path):
    given = ["--threads=8", "--queue", "9", "--max-body=1MiB"]
    found = line_of(mlxcel.ray.app("demo", arguments=given, store=tmp_path), started)
    assert found == ["demo=demo", "--device", "auto", "--drain", "30", "--store", str(tmp_path), *given]


@pytest.mark.parametrize("given", [["-t", "8"], ["-t8"], ["-t=8"], ["--threads", "8"], ["--threads=8"]])
def test_an_option_is_given_once(given):
    assert with_defaults(given, {"--threads": "2", "--drain": "3"}) == ["--drain", "3", *given]
    assert with_defaults(["--log", "json"], {"--threads": "2"}) == ["--threads", "2", "--log", "json"]


@pytest.mark.parametrize(
    ("argument", "hint"),
    [
        ("--device", "device="),
        ("--drain=5", "drain="),
        ("--store", "store="),
        ("--listen=0.0.0.0:80", "http_options"),
        ("--ssl-cert-file", "in front of Serve"),
        ("--ssl-key-file=key.pem", "in front of Serve"),
    ],
)
def test_options_of_the_deployment_are_refused(selected, argument, hint):
    with pytest.raises(mlxcel.RequestError, match="arguments: found --.*, expected options that") as error:
        mlxcel.ray.app("demo", arguments=["--log", "json", argument, "5"])
    assert hint in error.value.hint and selected == []
    check_arguments(["--log", "json", "-t8"])


@pytest.mark.parametrize(
    ("name", "hint"), [("meta-llama/Llama-3", "Llama-3"), ("a=b", "a-b"), ("-x", "x"), ("", "model"), ("/", "model")]
)
def test_names_that_the_server_would_take_for_something_else(name, hint):
    with pytest.raises(mlxcel.RequestError, match="name: found .*, expected one without / and =") as error:
        check_name(name)
    assert error.value.hint == f'give name="{hint}"'


def test_the_name_of_an_application(selected, started):
    with pytest.raises(mlxcel.RequestError, match="name: found 'meta-llama/Llama-3'"):
        mlxcel.ray.app("demo", name="meta-llama/Llama-3")
    with pytest.raises(mlxcel.RequestError, match="name: found 'a=b'"):
        mlxcel.ray.app("bundles/a=b.bundle")
    assert selected == []
    assert line_of(mlxcel.ray.app("demo", name="Llama-3:8b"), started)[0] == "Llama-3:8b=demo"


def test_a_server_that_was_not_reached_is_told_from_one_that_ended(started):
    server = serving.Server(Source("demo"), "demo", "auto", [], 1)

    async def ask(port: int) -> None:
        server._child.url = f"http://127.0.0.1:{port}"
        try:
            async for _ in server.forward(Request("POST", "/v1/completions", [], b"{}", "")):
                pass
        finally:
            await server._session.close()
            server._session = None

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def end() -> None:
            connection, _ = listening.accept()
            connection.recv(1000)
            connection.close()

        threading.Thread(target=end).start()
        with pytest.raises(ReplicaLostError, match="ended while it answered"):
            asyncio.run(ask(port))
    with pytest.raises(NotReachedError, match="had ended"):
        asyncio.run(ask(port))
