"""Where the nodes of a cluster take a bundle from."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..bundle import Bundle, Target
from ..errors import BundleError

_REGISTRY = re.compile(r"(localhost|\[[0-9a-fA-F:]+\]|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(?=[.:])[A-Za-z0-9.-]*)(:[0-9]+)?/.")
"""How a reference of a registry begins: with a host that has a dot or a port, or is this machine."""


@dataclass(frozen=True)
class Source:
    """Where a node takes a bundle from.

    Attributes:
        bundle: a folder, a name in the store, or a reference of a registry.
        store: the folder of each node's store; its `$MLXCEL_STORE`, or the default, if it is None.
        plain_http: uses HTTP without TLS, as for registries on this machine always.
    """

    bundle: str
    store: str | None = None
    plain_http: bool = False

    @classmethod
    def of(
        cls, bundle: str | os.PathLike[str], store: str | os.PathLike[str] | None, plain_http: bool
    ) -> Source:
        """Makes one of what a caller names, so that all nodes agree.

        A tag becomes the digest that it stands for now. Folders become absolute: workers run in a folder of their own.
        """
        name = os.fspath(bundle)
        if os.path.exists(name):
            name = os.path.abspath(name)
        elif is_reference(name) and "@" not in name:
            name = Bundle.resolve(name, plain_http=plain_http)
        return cls(name, None if store is None else os.path.abspath(store), plain_http)

    def open(self) -> Bundle:
        """Opens the bundle on this node. The first worker that asks pulls it, and the others of the node wait for that.

        Raises:
            BundleError: there is no such bundle, or the registry cannot be reached.
        """
        if not self._is_remote():
            return Bundle(self.bundle, store=self.store)
        with _alone(f"{self.store or os.environ.get('MLXCEL_STORE', '')}\n{self.bundle}"):
            try:
                return Bundle(self.bundle, store=self.store)
            except BundleError:
                return Bundle.pull(self.bundle, store=self.store, plain_http=self.plain_http)

    def check(self, driver: str | None) -> tuple[Target, ...]:
        """Returns whether each target runs on this node. Of a bundle that it would have to pull, it reads the manifest alone.

        Raises:
            BundleError: there is no such bundle, or the registry cannot be reached.
        """
        try:
            return tuple(Bundle(self.bundle, store=self.store).check(driver))
        except BundleError:
            if not self._is_remote():
                raise
            return tuple(Bundle.check_remote(self.bundle, driver, plain_http=self.plain_http))

    def _is_remote(self) -> bool:
        return is_reference(self.bundle) and not os.path.exists(self.bundle)


def is_reference(bundle: str) -> bool:
    """Returns whether a bundle is named by its address in a registry."""
    return _REGISTRY.match(bundle) is not None


@contextmanager
def _alone(what: str) -> Iterator[None]:
    """Holds a lock of this machine's user on `what`. It ends with the process, too."""
    name = f"mlxcel-{os.getuid()}-{hashlib.sha256(what.encode()).hexdigest()[:32]}.lock"
    path = os.path.join(tempfile.gettempdir(), name)
    # Others may write to the folder, but not make this open a file of theirs that a link leads to.
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise BundleError(
            f"{path} cannot be locked: found {error.strerror}, expected a file of this user",
            found=error.strerror,
            expected="a file of this user",
            hint="export TMPDIR=FOLDER, with a folder to which no other user writes",
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
