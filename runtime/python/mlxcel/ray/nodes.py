"""Which nodes of a cluster can run a bundle."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from typing import Any

import ray

from ..bundle import Bundle, Target
from ..errors import DeviceError, Error
from .source import Source

_log = logging.getLogger("mlxcel.ray")

_NODE_ID = "ray.io/node-id"
"""The label that Ray gives each node."""

_CHECK_SECONDS = 120
"""The longest time that nodes have to check a bundle: each starts a worker, and reads a manifest."""


@dataclass(frozen=True)
class Node:
    """Whether a node of the cluster can run a bundle."""

    id: str
    address: str
    targets: tuple[Target, ...]
    """The bundle's targets with what each lacks; none if the bundle could not be checked there."""
    problem: str | None
    """Why the node takes no work; None if it does."""


def check(
    bundle: str | os.PathLike[str],
    *,
    device: str = "auto",
    store: str | os.PathLike[str] | None = None,
    plain_http: bool = False,
) -> list[Node]:
    """Returns whether each node with CPUs can run a bundle. Nodes pull nothing of it but its manifest.

    Args:
        bundle: a folder that every node has, a name in the nodes' stores, or a reference of a registry.
        device: the device that will run it, as `mlxcel.Engine` takes it.
        store: the folder of each node's store; its `$MLXCEL_STORE`, or the default, if it is None.
        plain_http: uses HTTP without TLS, as for registries on this machine always.
    """
    return probe(Source.of(bundle, store, plain_http), device)


def label_selector(
    bundle: str | os.PathLike[str],
    *,
    device: str = "auto",
    store: str | os.PathLike[str] | None = None,
    plain_http: bool = False,
) -> dict[str, str]:
    """Returns the `label_selector=` of Ray that keeps work off the nodes that cannot run a bundle.

    A node that joins later is not among them. A worker that starts there checks for itself, and refuses.

    Raises:
        DeviceError: no node can run it.
        BundleError: no node has it or reaches its registry.
    """
    return selector(Source.of(bundle, store, plain_http), device)


def probe(source: Source, device: str) -> list[Node]:
    """Asks every node that has CPUs to check a bundle's targets."""
    if not ray.is_initialized():
        ray.init()
    ask = ray.remote(num_cpus=0, max_retries=0)(_judge)
    every: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    alive = [node for node in every if node["Alive"] and node["Resources"].get("CPU", 0) > 0]
    asked = [
        (node, ask.options(label_selector={_NODE_ID: node["NodeID"]}).remote(source, device)) for node in alive
    ]
    found = []
    end = time.monotonic() + _CHECK_SECONDS
    for node, answer in asked:
        try:
            targets, error = ray.get(answer, timeout=max(0, end - time.monotonic()))
        except ray.exceptions.GetTimeoutError:
            # A task for a node that was removed before it began waits for ever.
            ray.cancel(answer)
            targets, error = (), Error(f"the check failed: found no answer within {_CHECK_SECONDS} s, expected one")
        except ray.exceptions.RayError as failure:
            # Such as a node that ended meanwhile.
            targets, error = (), Error(f"the check failed: {str(failure).splitlines()[0]}")
        found.append((Node(node["NodeID"], node["NodeManagerAddress"], targets, problem(targets, error)), error))
    if found and all(error is not None for _, error in found):
        raise next(error for _, error in found if error is not None)
    return [node for node, _ in found]


def selector(source: Source, device: str, *, may_be_empty: bool = False) -> dict[str, str]:
    """Returns the selector of labels that leaves out nodes that cannot run the bundle, and says which those are.

    Args:
        may_be_empty: whether the cluster may have no node with CPUs yet. Otherwise that raises DeviceError.
    """
    nodes = probe(source, device)
    if not nodes and may_be_empty:
        _log.warning("no node has CPUs yet: each checks %s when it joins", source.bundle)
        return {}
    if not nodes:
        raise DeviceError(
            f"no node of the cluster runs {source.bundle}: no node has CPUs",
            found="no node with CPUs",
            expected="a node with CPUs",
            hint="ray start --address=HEAD:6379 --num-cpus=4",
        )
    unfit = [node for node in nodes if node.problem is not None]
    for node in unfit:
        _log.warning("node %s (%s) takes no work: %s", node.id[:12], node.address, node.problem)
    if len(unfit) == len(nodes):
        # One that was checked says more than one that could not be.
        reason = max(unfit, key=lambda node: bool(node.targets)).problem
        raise refusal(f"no node of the cluster runs {source.bundle}", reason)
    return {_NODE_ID: f"!in({', '.join(node.id for node in unfit)})"} if unfit else {}


def open_here(source: Source, device: str) -> Bundle:
    """Checks that this node runs the bundle, and opens it, which may pull it.

    Raises:
        DeviceError: it does not. The message says what is missing.
    """
    found = problem(source.check(_driver(device)), None)
    if found is not None:
        node = ray.get_runtime_context().get_node_id()
        raise refusal(f"node {node[:12]} does not run {source.bundle}", found)
    return source.open()


def refusal(what: str, why: str | None) -> DeviceError:
    """Makes the error for a node, or a cluster, that lacks what a bundle needs."""
    return DeviceError(
        f"{what}: {why}",
        found=why,
        expected="a node with what one of the bundle's targets needs",
        hint="compile the bundle for another target, such as --target cpu-x86-64-v3; "
        "mlxcel.ray.label_selector(bundle) keeps work off nodes that lack something",
    )


def problem(targets: tuple[Target, ...], error: Error | None) -> str | None:
    """Returns why no target runs; None if one does."""
    if error is not None:
        return error.message
    if any(target.runs for target in targets):
        return None
    # What is needed follows in brackets, and is long.
    reasons = [f"{target.name}: {'; '.join(target.reasons)}".partition(" (needed:")[0] for target in targets]
    return " | ".join(reasons) or "the bundle has no target for such a device"


def _judge(source: Source, device: str) -> tuple[tuple[Target, ...], Error | None]:
    """Checks the bundle's targets on the node where this runs. An error is a value, so that Ray does not wrap it."""
    try:
        return source.check(_driver(device)), None
    except Error as error:
        return (), error


def _driver(device: str) -> str | None:
    """Returns the driver of a device, None for any."""
    kind = device.partition(":")[0]
    return None if kind == "auto" else "local" if kind.startswith("local") else kind


def cpus_here(default: int = 1) -> int:
    """Returns the CPUs that Ray gave this worker, at least one."""
    context = ray.get_runtime_context()
    assigned: dict[str, Any] = context.get_assigned_resources()  # type: ignore[no-untyped-call]
    return max(1, int(assigned.get("CPU", default)))
