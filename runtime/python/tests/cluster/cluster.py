"""A cluster of Ray with several nodes on this machine, each with a store of its own."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

# Before Ray is imported: no other Ray of this machine is seen, nothing is reported, and only loopback is listened on.
for variable in ("RAY_ADDRESS", "RAY_JOB_ID"):
    os.environ.pop(variable, None)
os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "PYTHONWARNINGS": "ignore",
    # Otherwise workers starve while this machine does something else, too: 15 is Ray's default.
    "RAY_worker_niceness": "0",
    # Workers start when there is something to do: most of those that are started before end unused.
    "RAY_prestart_worker_first_driver": "0",
    # A node that was killed is missed after 5 s, and queues are looked at twice in a second.
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "10",
    "RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.5",
    "RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.5",
}
import ray  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import mlxcel  # noqa: E402

PROGRAMS = Path(os.environ.get("MLXCEL_TEST_PROGRAMS", "/nonexistent"))

IS_FULL = os.environ.get("MLXCEL_RAY") == "full"

only_in_full = pytest.mark.skipif(not IS_FULL, reason="takes long: cargo xtask ray, or MLXCEL_RAY=full")


class Nodes:
    """A cluster whose head takes no work, and whose other nodes can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Sockets have short paths.
        self.temporary = tempfile.TemporaryDirectory(prefix="mlxcel-ray-", ignore_cleanup_errors=True)
        # Cluster writes the head's address into the default folder, which only a head without `temp_dir` makes.
        os.environ["RAY_TMPDIR"] = self.temporary.name
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args=self._node(
                0,
                {
                    "temp_dir": f"{self.temporary.name}/ray",
                    # What shows logs and adds machines is not needed either.
                    "include_dashboard": False,
                    "include_log_monitor": False,
                    "no_monitor": True,
                },
            ),
        )
        ray.init(address=self.cluster.address, log_to_driver=False, logging_level="ERROR")
        self.nodes: dict[str, object] = {}
        self.stores = 0

    def _node(self, cpus: int, more: dict) -> dict:
        return {
            "num_cpus": cpus,
            "object_store_memory": 80 << 20,
            "node_ip_address": "127.0.0.1",
            **more,
        }

    def add(self, count: int = 1, *, cpus: int = 1, **variables: str) -> list[str]:
        """Adds nodes with an empty store each, and with these variables. Returns their ids."""
        added = []
        for _ in range(count):
            self.stores += 1
            store = self.folder / f"store-{self.stores}"
            environment = {"MLXCEL_STORE": str(store), "MLXCEL_PROGRAMS": str(PROGRAMS), "TMPDIR": str(self.folder)}
            before = {node["NodeID"] for node in ray.nodes()}
            node = self.cluster.add_node(**self._node(cpus, {"env_vars": environment | variables}))
            (id,) = {node["NodeID"] for node in ray.nodes()} - before
            self.nodes[id] = node
            added.append(id)
        return added

    def kill(self, id: str) -> None:
        """Kills all processes of a node at once, as a power cut does."""
        self.cluster.remove_node(self.nodes.pop(id), allow_graceful=False)

    def remove_all(self) -> None:
        """Removes all nodes but the head, and waits until Ray has seen it."""
        while self.nodes:
            self.cluster.remove_node(self.nodes.popitem()[1])
        while sum(node["Alive"] for node in ray.nodes()) > 1:
            time.sleep(0.1)

    def close(self) -> None:
        ray.shutdown()
        self.cluster.shutdown()
        self.temporary.cleanup()


def bundle(name: str) -> str:
    """Returns the folder of a bundle that the tests were started with."""
    variable = f"MLXCEL_TEST_{name.upper()}"
    if variable not in os.environ:
        pytest.skip(f"{variable} names no bundle")
    return os.environ[variable]


def prompts(count: int) -> list[str]:
    """Returns prompts that differ at their beginnings and ends."""
    begins = ["And it came to pass", "In the beginning", "Blessed are", "And the LORD said", "Then he went"]
    return [f"{begins[number % 5]} {number} times, when" for number in range(count)]


def alone(bundle: str, prompts: list[str], **options: object) -> list[tuple]:
    """Returns what one engine in this process answers to each prompt."""
    with mlxcel.Engine(bundle, cache_size="64MiB") as engine:
        answers = engine.generate(prompts, **options)
    return [(answer.text, answer.finish_reason, len(answer.tokens)) for answer in answers]


def end(process: int) -> None:
    """Ends a process as `kill -9` does."""
    os.kill(process, signal.SIGKILL)
