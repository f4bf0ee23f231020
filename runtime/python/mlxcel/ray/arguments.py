"""The command line of the servers behind a deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import RequestError

_LONG = {"-t": "--threads"}
"""The options that a deployment sets and that have a short form."""

_TLS = "end TLS in front of Serve: its proxy asks servers on loopback, which have no certificate"

_SET_OTHERWISE = {
    "--device": "give device=",
    "--drain": "give drain=",
    "--store": "give store=",
    "--listen": "serve.start(http_options=…) says where Serve listens",
    "--ssl-cert-file": _TLS,
    "--ssl-key-file": _TLS,
}
"""What `arguments` cannot set, with what does. The cluster has to know the values, too."""


def with_defaults(arguments: Sequence[str], defaults: Mapping[str, str]) -> list[str]:
    """Returns the arguments, after the options that they do not give: mlxcel-serve takes each once."""
    given = {_option(argument) for argument in arguments}
    options = [part for name, value in defaults.items() if name not in given for part in (name, value)]
    return [*options, *arguments]


def check_arguments(arguments: Sequence[str]) -> None:
    """Raises RequestError for an option that a deployment sets itself."""
    for argument in arguments:
        option = _option(argument)
        if option in _SET_OTHERWISE:
            found, expected = option, "options that only the server has to know"
            raise RequestError(
                f"arguments: found {found}, expected {expected}",
                found=found,
                expected=expected,
                hint=_SET_OTHERWISE[option],
            )


def check_name(name: str) -> str:
    """Returns the name of a model, which mlxcel-serve takes as `NAME=BUNDLE`.

    Raises:
        RequestError: mlxcel-serve would take it for a path, for an option, or for another name.
    """
    if name and not name.startswith("-") and not set(name) & set("/="):
        return name
    expected = "one without / and =, and with no - at its beginning"
    raise RequestError(
        f"name: found {name!r}, expected {expected}",
        found=repr(name),
        expected=expected,
        hint=f'give name="{name.rpartition("/")[2].replace("=", "-").strip("-") or "model"}"',
    )


def _option(argument: str) -> str:
    """Returns the long form of the option that an argument gives, with or without its value."""
    name = argument if argument.startswith("--") else argument[:2]
    return _LONG.get(name, name.partition("=")[0])
