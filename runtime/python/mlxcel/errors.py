"""The exceptions of this package. Each says what was found, what was expected, and what to do."""

from __future__ import annotations


class Error(Exception):
    """An error of this package.

    Attributes:
        message: what failed and why, in one line.
        found: what was found, if the message says so.
        expected: what was expected, if the message says so.
        hint: the remedy, if there is one.
    """

    def __init__(
        self,
        message: str,
        found: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, found, expected, hint)
        self.message = message
        self.found = found
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class BundleError(Error):
    """A bundle cannot be found, read or written, or is damaged."""


class SignatureError(BundleError):
    """A bundle is not signed by the key that is required."""


class DeviceError(Error):
    """No target of the bundle runs on the device, or the device cannot be used."""


class RequestError(Error, ValueError):
    """A request or an argument is refused, before anything runs."""


class QueueFullError(Error):
    """As many requests wait as may wait. The same request can succeed later."""


class EngineError(Error):
    """The device failed while it ran."""


class ClosedError(Error):
    """The engine or program was closed, or its thread has ended."""


class ForkError(Error):
    """The process was forked after the bundle was loaded, and this is the child."""


class PackageError(Error, ImportError):
    """A package or program is missing that a part of this package needs."""


class OriginWarning(UserWarning):
    """The code of a bundle was neither compiled here nor signed as required."""
