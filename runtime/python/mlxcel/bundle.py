"""Bundles: opening, verifying, signing and moving them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from ._native import NativeBundle


@dataclass(frozen=True)
class Target:
    """Whether a target of a bundle runs on a device of this machine."""

    name: str
    verdict: str
    """`run`, `run-with-packing` or `refuse`."""
    device: str
    reasons: tuple[str, ...]

    @property
    def runs(self) -> bool:
        """Whether it runs."""
        return self.verdict != "refuse"


def _targets(judged: list[tuple[str, str, str, list[str]]]) -> list[Target]:
    return [Target(name, verdict, device, tuple(reasons)) for name, verdict, device, reasons in judged]


class Bundle:
    """A bundle: compiled code with all that it needs, named by digests.

    Opening one verifies its manifest and small files. `verify` reads the weights too.

    Args:
        path: the bundle's folder, its name in the store, or `demo`, which comes with wheels.
        store: the store's folder; `$MLXCEL_STORE`, or the default, if it is None.

    Raises:
        BundleError: there is no such bundle, or it is damaged.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, store: str | os.PathLike[str] | None = None
    ) -> None:
        self._native = NativeBundle(path, store)

    @classmethod
    def _of(cls, native: NativeBundle) -> Bundle:
        bundle = cls.__new__(cls)
        bundle._native = native
        return bundle

    @classmethod
    def pull(
        cls,
        reference: str,
        *,
        name: str | None = None,
        store: str | os.PathLike[str] | None = None,
        plain_http: bool = False,
    ) -> Bundle:
        """Pulls a bundle from an OCI registry into the store, and opens it. Files that the store has are not read again.

        Args:
            reference: an address such as `registry.example/models/demo:1`, or one with `@sha256:…`.
            name: the name in the store; the reference if it is None.
            plain_http: uses HTTP without TLS, as for registries on this machine always.
        """
        return cls._of(NativeBundle.pull(reference, name, store, plain_http))

    @staticmethod
    def resolve(reference: str, *, plain_http: bool = False) -> str:
        """Returns a reference with the digest that it stands for now: `registry.example/models/demo@sha256:…`.

        Pulling that gets the same bundle on every machine and at any time, while a tag can be moved.
        """
        return NativeBundle.resolve(reference, plain_http)

    def push(self, reference: str, *, plain_http: bool = False) -> str:
        """Pushes the bundle to an OCI registry. Returns the address with its digest."""
        return f"{reference}@{self._native.push(reference, plain_http)}"

    @property
    def name(self) -> str:
        """The bundle's folder, or its name in the store."""
        return self._native.name()

    @property
    def path(self) -> str:
        """The folder with the manifest."""
        return os.fspath(self._native.path())

    @property
    def digest(self) -> str:
        """The digest of the manifest, which names all files."""
        return self._native.digest()

    @property
    def manifest(self) -> dict[str, Any]:
        """All that the manifest says."""
        manifest: dict[str, Any] = json.loads(self._native.manifest())
        return manifest

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.manifest["model"])

    @property
    def kind(self) -> str:
        """`model` or `program`."""
        return str(self.manifest.get("kind", "model"))

    def __repr__(self) -> str:
        return f"<mlxcel.Bundle {self.name}>"

    def __str__(self) -> str:
        return self._native.describe()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bundle) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def verify(self, key: str | None = None) -> tuple[str, str] | None:
        """Reads every file and compares it with its digest.

        Args:
            key: the minisign key that must have signed the bundle: a public key, or its file. Without it, what the signature
                says is returned and not checked.

        Returns:
            The id of the key that signed the bundle, and the signer's comment; None if nobody did.

        Raises:
            BundleError: a file is missing or differs.
            SignatureError: the key did not sign it.
        """
        return self._native.verify(key)

    def check(self, driver: str | None = None) -> list[Target]:
        """Returns whether each target runs on this machine, before any code does.

        Args:
            driver: `local`, `cuda` or `vulkan`; all if it is None.
        """
        return _targets(self._native.check(driver))

    @staticmethod
    def check_remote(reference: str, driver: str | None = None, *, plain_http: bool = False) -> list[Target]:
        """Returns whether each target of a bundle in an OCI registry runs on this machine. Pulls its manifest alone.

        Args:
            reference: an address such as `registry.example/models/demo:1`, or one with `@sha256:…`.
            driver: `local`, `cuda` or `vulkan`; all if it is None.
            plain_http: uses HTTP without TLS, as for registries on this machine always.

        Raises:
            BundleError: there is no such bundle, or the registry cannot be reached.
        """
        return _targets(NativeBundle.check_remote(reference, driver, plain_http))

    def sign(self, key: str | os.PathLike[str], *, password: str | None = None, comment: str = "") -> str:
        """Signs the bundle after verifying it. Returns the id of the key.

        Args:
            key: the file of the secret key, as `mlxcel-bundle keygen` or `minisign -G` writes it.
            comment: one line to sign with the bundle.
        """
        return self._native.sign(key, password, comment)

    def diff(self, other: Bundle) -> dict[str, str]:
        """Returns the fields that differ from another bundle, each with a text that says how."""
        return dict(self._native.diff(other._native))

    def copy(self, *, folder: str | os.PathLike[str] | None = None, name: str | None = None) -> Bundle:
        """Copies the bundle to a folder, or into the store under a name."""
        if (folder is None) == (name is None):
            raise TypeError("found neither or both of folder and name, expected one of them")
        return Bundle._of(self._native.copy(folder, name))
