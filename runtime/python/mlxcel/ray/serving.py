"""OpenAI's endpoints on a cluster: a deployment of Ray Serve."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp
from ray import serve
from ray.serve.config import AutoscalingConfig, RequestRouterConfig
from yarl import URL

from ..errors import DeviceError
from .arguments import check_arguments, check_name, with_defaults
from .child import Child
from .gateway import Gateway
from .messages import Head, NotReachedError, ReplicaLostError, Request
from .nodes import cpus_here, open_here, selector
from .routing import PrefixRouter
from .source import Source, is_reference

_HEAD = "node:__internal_head__"
"""The resource that Ray gives the head node alone."""

_HEALTH_SECONDS = 2
"""How often Serve asks whether a replica is well."""

_EXIT_SECONDS = 0.5
"""How long a replica outlives its server, so that its requests learn why they failed."""

_QUEUE = 256
"""The requests that wait in mlxcel-serve by default."""

_PLACES = 4
"""The places in a server's queue for each request: every prompt and answer of a request takes one."""


class Server:
    """A replica: a server in a process of its own, which ends with the replica.

    Args:
        source: where to take the bundle from.
        name: the model's name in requests.
        device: the device, as mlxcel-serve takes it.
        arguments: what else mlxcel-serve is started with.
        drain: seconds that answers have to end.

    Raises:
        DeviceError: this node lacks what the bundle needs, or the server does not start.
    """

    def __init__(self, source: Source, name: str, device: str, arguments: Sequence[str], drain: float) -> None:
        bundle = open_here(source, device)
        options = {"--device": device, "--threads": str(cpus_here()), "--drain": str(int(drain))}
        if source.store is not None:
            options["--store"] = source.store
        self._drain = drain
        self._child = Child([f"{name}={bundle.name}", *with_defaults(arguments, options)], self._on_end)
        self._session: aiohttp.ClientSession | None = None

    async def forward(self, request: Request) -> AsyncIterator[Head | bytes]:
        """Yields the head of the answer to a request, and then its body as it comes."""
        session = self._connect()
        url = URL(f"{self._child.url}{request.target}", encoded=True)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers]
        try:
            async with session.request(
                request.method, url, headers=headers, data=request.body or None, allow_redirects=False
            ) as answer:
                yield Head(answer.status, [(name.lower(), value) for name, value in answer.raw_headers])
                async for part in answer.content.iter_any():
                    yield part
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotReachedError(f"the server had ended: {error}") from None
        except aiohttp.ClientError as error:
            raise ReplicaLostError(f"the server ended while it answered: {error}") from None

    async def check_health(self) -> None:
        """Raises an exception if the server has ended or cannot answer: Serve then replaces the replica."""
        if not self._child.is_running:
            raise DeviceError("mlxcel-serve has ended", found="no process", expected="a running one")
        async with self._connect().get(f"{self._child.url}/health/ready") as answer:
            if answer.status != 200:
                text = await answer.text()
                raise DeviceError(f"mlxcel-serve is not ready: {text}", found=text, expected="the status 200")

    def process(self) -> int:
        """Returns the id of the server's process."""
        return self._child.process

    def __del__(self) -> None:
        """Ends the server. Serve calls this when the replica has no request left."""
        child = getattr(self, "_child", None)
        if child is not None:
            child.stop(self._drain)

    def _connect(self) -> aiohttp.ClientSession:
        if self._session is None:
            # As many connections as there are requests, and nothing is added to what the client wrote.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                auto_decompress=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            )
        return self._session

    def _on_end(self, _log: str) -> None:
        """Ends the replica, whose server has ended: Serve starts another one."""
        timer = threading.Timer(_EXIT_SECONDS, os._exit, [1])
        timer.daemon = True
        timer.start()


def app(
    bundle: str | os.PathLike[str],
    *,
    name: str | None = None,
    min_replicas: int = 1,
    max_replicas: int = 1,
    target_requests: float = 8,
    max_requests: int = 64,
    max_queued: int = 1024,
    num_cpus: float = 1,
    num_gpus: float = 0,
    gateways: int = 1,
    prefix_routing: bool = True,
    drain: float = 30,
    max_body: int = 16 << 20,
    autoscaling: Mapping[str, Any] | None = None,
    device: str = "auto",
    arguments: Sequence[str] = (),
    store: str | os.PathLike[str] | None = None,
    plain_http: bool = False,
) -> serve.Application:
    """Returns an application of Ray Serve with OpenAI's endpoints, for `serve.run`.

    A tag of a registry is replaced by the digest that it stands for now. Every node checks that it can run
    the bundle, and pulls it once. One that cannot is named in a warning of the logger `mlxcel.ray`, and gets no replica.
    If no node has CPUs yet, a warning says so, and servers start on the nodes that join.

    Args:
        bundle: a folder that every node has, a name in the nodes' stores, or a reference of a registry.
        name: the model's name in requests, without `/` and `=`; that of the bundle if it is None.
        min_replicas: the least servers.
        max_replicas: the most servers. Between both, Serve follows `target_requests`.
        target_requests: the requests, running and waiting, for which there is a server.
        max_requests: the requests that a server has at most. Others wait in the gateway.
        max_queued: the requests that wait in a gateway at most. Others get the status 429.
        num_cpus: the CPUs of each server, which are its threads.
        num_gpus: the GPUs of each server.
        gateways: processes that pass requests on. A single one is on the head node, without which there is no cluster; several
            are spread over the nodes, and one that ends takes the requests with it that it passes on.
        prefix_routing: sends prompts that begin alike to the same server, whose cache has their beginning. Bodies above 1 MiB
            go to any server.
        drain: seconds that answers have to end when a server is stopped.
        max_body: the largest body of a request in bytes.
        autoscaling: more fields of Serve's `AutoscalingConfig`, such as `upscale_delay_s`.
        device: the device, as mlxcel-serve takes it.
        arguments: what else mlxcel-serve is started with, such as `["--cache-size", "4GiB"]`. `--threads`, `--max-body` and
            `--queue` replace what `num_cpus`, `max_body` and `max_requests` give a server.
        store: the folder of each node's store; its `$MLXCEL_STORE`, or the default, if it is None.
        plain_http: uses HTTP without TLS, as for registries on this machine always.

    Raises:
        DeviceError: no node can run it.
        BundleError: no node can open it.
        RequestError: the name is not one for mlxcel-serve, or `arguments` has an option that has an argument here.
    """
    check_arguments(arguments)
    model = check_name(name or model_name(os.fspath(bundle)))
    limits = {"--max-body": str(max_body), "--queue": str(max(_QUEUE, _PLACES * max_requests))}
    source = Source.of(bundle, store, plain_http)
    actor: dict[str, Any] = {"num_cpus": num_cpus, "num_gpus": num_gpus}
    if labels := selector(source, device, may_be_empty=True):
        actor["label_selector"] = labels
    scaling = {
        "min_replicas": min_replicas,
        "max_replicas": max_replicas,
        "target_ongoing_requests": target_requests,
        **(autoscaling or {}),
    }
    options: dict[str, Any] = {}
    if prefix_routing:
        kwargs = {"slack": max(1, int(target_requests))}
        router: Any = PrefixRouter
        options["request_router_config"] = RequestRouterConfig(
            request_router_class=router, request_router_kwargs=kwargs
        )
    deployment: Any = serve.deployment
    servers = deployment(
        Server,
        name="Server",
        ray_actor_options=actor,
        autoscaling_config=AutoscalingConfig(**scaling),
        max_ongoing_requests=max_requests,
        max_queued_requests=max_queued,
        health_check_period_s=_HEALTH_SECONDS,
        graceful_shutdown_wait_loop_s=0.5,
        graceful_shutdown_timeout_s=drain + 10,
        **options,
    )
    gateway = deployment(
        Gateway,
        name="Gateway",
        num_replicas=gateways,
        ray_actor_options={"num_cpus": 0, "resources": {_HEAD: 0.001} if gateways == 1 else {}},
        max_ongoing_requests=100_000,
        graceful_shutdown_timeout_s=drain + 20,
    )
    replicas = servers.bind(source, model, device, with_defaults(arguments, limits), drain)
    application: serve.Application = gateway.bind(replicas, max_body, prefix_routing)
    return application


def build(arguments: dict[str, Any]) -> serve.Application:
    """Returns the application for arguments of a Serve config file: `import_path: mlxcel.ray:build`."""
    return app(**arguments)


def model_name(bundle: str) -> str:
    """Returns the name that a bundle is served under: the last part of its own, without tag and ending."""
    last = os.path.basename(bundle.rstrip("/"))
    if is_reference(bundle) and not os.path.exists(bundle):
        last = last.partition("@")[0].partition(":")[0]
    return last.removesuffix(".bundle")
