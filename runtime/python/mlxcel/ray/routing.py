"""Which replica gets a request."""

from __future__ import annotations

import hashlib
import random
from typing import Any

from ray.serve.request_router import (
    LocalityMixin,
    MultiplexMixin,
    PendingRequest,
    ReplicaID,
    RequestRouter,
    RunningReplica,
)

from .messages import Request


class PrefixRouter(LocalityMixin, MultiplexMixin, RequestRouter):
    """Sends prompts that begin alike to the same replica, whose cache has their beginning.

    The replica is chosen by a hash of the beginning and of each replica's id, so that routers agree without asking each
    other, and few prompts move when a replica comes or goes. If it has many more requests than another one, the one with the
    fewest gets the request.
    """

    def initialize_state(self, **arguments: Any) -> None:
        """Sets `slack`: how many requests more than another one the replica may have."""
        self._slack: int = arguments["slack"]

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """Returns the replica for the prompt, and the others for when that one is full."""
        if pending_request is not None:
            pending_request.routing_context.should_backoff = True
        key = _key(pending_request)
        # Of several with as few requests, the first one gets the next.
        replicas = random.sample(candidate_replicas, len(candidate_replicas))
        if len(replicas) < 2 or not key:
            return [replicas]
        first = max(replicas, key=lambda replica: _weight(key, replica.replica_id))
        if self._length(first) - min(map(self._length, replicas)) > self._slack:
            return [replicas]
        return [[first], [replica for replica in replicas if replica is not first]]

    def _length(self, replica: RunningReplica) -> int:
        """Returns the requests that a replica has, as far as is known here."""
        return self.replica_queue_len_cache.get(replica.replica_id) or 0


def _key(pending: PendingRequest | None) -> str:
    first = pending.args[0] if pending is not None and pending.args else None
    return first.key if isinstance(first, Request) else ""


def _weight(key: str, replica: ReplicaID) -> bytes:
    return hashlib.blake2b(f"{key} {replica.unique_id}".encode(), digest_size=8).digest()
