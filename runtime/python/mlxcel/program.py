"""Programs: functions of arrays that others wrote in StableHLO."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._native import NativeProgram
from .errors import RequestError

if TYPE_CHECKING:
    import numpy


@dataclass(frozen=True)
class Argument:
    """An argument of a function."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_state: bool
    """True if each call takes what the call before returned."""


@dataclass(frozen=True)
class Result:
    """A result of a function."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_state: bool
    """True if it is the next value of a state."""


@dataclass(frozen=True)
class Signature:
    """An entry point: a function with arguments of these shapes."""

    entry: str
    function: str
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]

    def __str__(self) -> str:
        arguments = ", ".join(f"{a.name}: {_shown(a)}" for a in self.arguments)
        results = ", ".join(f"{r.name}: {_shown(r)}" for r in self.results)
        return f"{self.function}({arguments}) -> ({results})"


class Program:
    """A bundle of a program on a device of this machine.

        program = mlxcel.Program("step.bundle")
        y = program(x)                      # its function `main`, or its only one
        f = program.function("loss")        # another one

    Arguments are what numpy makes arrays of, and what speaks DLPack. Results are numpy arrays.

    Args:
        bundle: a bundle's folder, or its name in the store.
        device: as for `Engine`.
        threads: threads of the device `local-task`.
        require_signature: the minisign key that must have signed the bundle: a public key, or its file.
        store: the store's folder; `$MLXCEL_STORE`, or the default, if it is None.
    """

    def __init__(
        self,
        bundle: str | os.PathLike[str],
        *,
        device: str = "auto",
        threads: int | None = None,
        require_signature: str | None = None,
        store: str | os.PathLike[str] | None = None,
    ) -> None:
        place = {"bundle": bundle, "store": store, "require_signature": require_signature}
        self._native = NativeProgram(place, {"device": device, "threads": threads})
        self.model, self.digest, self.target, self.device = self._native.facts()
        self.signatures: tuple[Signature, ...] = tuple(
            Signature(
                entry,
                function,
                tuple(Argument(name, kind, tuple(shape), state) for name, kind, shape, state in arguments),
                tuple(Result(name, kind, tuple(shape), state) for name, kind, shape, state in results),
            )
            for entry, function, arguments, results in self._native.entries()
        )
        self._main: Function | None = None

    def __repr__(self) -> str:
        return f"<mlxcel.Program {self.model} on {self.device}>"

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the program and frees its memory."""
        self._native.close()

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions."""
        return tuple(dict.fromkeys(signature.function for signature in self.signatures))

    def function(
        self,
        name: str | None = None,
        *,
        bind: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> Function:
        """Prepares calls of a function; `main`, or the only one, if it has no name.

        Args:
            bind: arguments that stay on the device for all calls.
            state: the first values of states. Each call takes what the call before returned.
        """
        if name is None:
            name = "main" if "main" in self.functions else self.functions[0]
            if len(self.functions) > 1 and name != "main":
                raise _refused("found several functions", f"the name of one: {', '.join(self.functions)}")
        chosen = [s for s in self.signatures if name in (s.function, s.entry)]
        if not chosen:
            raise _refused(f"found no function {name}", f"one of {', '.join(self.functions)}")
        return Function(self._native, tuple(chosen), bind or {}, state or {})

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Calls the function `main`, or the only one."""
        if self._main is None:
            self._main = self.function()
        return self._main(*arguments, **named)


class Function:
    """A function of a program, with its bound arguments and its state on the device."""

    def __init__(
        self,
        native: NativeProgram,
        signatures: tuple[Signature, ...],
        bind: Mapping[str, Any],
        state: Mapping[str, Any],
    ) -> None:
        self._native = native
        self.signatures = signatures
        self._bound = dict(bind)
        self._state = dict(state)
        self._prepared: dict[str, int] = {}
        arguments = {a.name: a for s in signatures for a in s.arguments}
        for name in (*bind, *state):
            if name not in arguments:
                raise _refused(f"found the argument {name}", f"one of {', '.join(arguments)}")
            if arguments[name].is_state != (name in state):
                kind = "a state" if arguments[name].is_state else "an input"
                raise _refused(f"found {name}, which is {kind}", "inputs in bind and states in state")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Calls the function and waits for it.

        Returns its result as a numpy array, or a tuple if it has several. States are not among them: `read` returns those.

        Raises:
            RequestError: an argument is missing or has another type or shape. Nothing has run then.
        """
        given = self._named(arguments, named)
        arrays = {name: _array(name, value) for name, value in given.items()}
        signature = self._choose(arrays)
        number = self._number(signature)
        names = [r.name for r in signature.results if not r.is_state]
        found = self._native.call(number, [_given(*one) for one in arrays.items()], True, names)
        results = tuple(_result(*one) for one in found)
        return results[0] if len(results) == 1 else results

    def read(self, name: str) -> numpy.ndarray:
        """Copies a state, or a result of the last call, from the device."""
        number = self._number(self.signatures[0])
        return _result(*self._native.call(number, [], False, [name])[0])

    def set(self, name: str, value: Any) -> None:
        """Copies an argument for all calls from now on, or a state's present value, to the device."""
        number = self._number(self.signatures[0])
        self._native.call(number, [_given(name, _array(name, value))], False, [])

    def _named(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        names = [
            a.name for a in self.signatures[0].arguments if not a.is_state and a.name not in self._bound
        ]
        if len(arguments) > len(names):
            raise _refused(f"found {len(arguments)} arguments", f"{len(names)}: {', '.join(names)}")
        given = dict(zip(names, arguments))
        for name, value in named.items():
            if name not in names or name in given:
                raise _refused(f"found the argument {name}", f"each of {', '.join(names)} once")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise _refused(f"found no argument {missing[0]}", f"{', '.join(names)}")
        return given

    def _choose(self, arrays: Mapping[str, numpy.ndarray]) -> Signature:
        """Returns the entry point for these shapes; the first one, if none fits, for its message."""
        for signature in self.signatures:
            types = {a.name: (a.dtype, a.shape) for a in signature.arguments}
            if all(types[name] == (str(array.dtype), array.shape) for name, array in arrays.items()):
                return signature
        return self.signatures[0]

    def _number(self, signature: Signature) -> int:
        number = self._prepared.get(signature.entry)
        if number is None:
            number = self._native.prepare(signature.entry)
            weakref.finalize(self, self._native.forget, number).atexit = False
            first = [_given(name, _array(name, value)) for name, value in (self._bound | self._state).items()]
            self._native.call(number, first, False, [])
            self._prepared[signature.entry] = number
        return number


def _shown(what: Argument | Result) -> str:
    return f"{what.dtype}[{','.join(map(str, what.shape))}]"


def _refused(found: str, expected: str) -> RequestError:
    return RequestError(f"{found}, expected {expected}", found=found.removeprefix("found "), expected=expected)


def _array(name: str, value: Any) -> numpy.ndarray:
    """Returns a value as an array of numpy, in the order of C."""
    import numpy

    if not isinstance(value, numpy.ndarray):
        if type(value).__module__.partition(".")[0] == "torch":
            value = _of_torch(value)
        elif hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            value = numpy.from_dlpack(value)
        else:
            value = numpy.asarray(value)
    if value.dtype.kind not in "biufc" and not _is_small_float(value.dtype.name):
        found = str(value.dtype)
        raise RequestError(f'argument "{name}": found {found}, expected numbers', found=found, expected="numbers")
    return numpy.ascontiguousarray(value).reshape(value.shape)


def _is_small_float(name: str) -> bool:
    """Returns whether it is an element type that ml_dtypes adds to numpy's."""
    return name.startswith(("bfloat16", "float8"))


def _of_torch(value: Any) -> numpy.ndarray:
    value = value.detach().cpu()
    kind = str(value.dtype).removeprefix("torch.")
    if _is_small_float(kind):
        import torch  # type: ignore[import-not-found, unused-ignore]

        bits = torch.int16 if kind == "bfloat16" else torch.int8
        array: numpy.ndarray = value.contiguous().view(bits).numpy().view(_dtype(kind))
        return array
    array = value.numpy()
    return array


def _given(name: str, array: numpy.ndarray) -> tuple[str, str, list[int], Any]:
    import numpy

    return name, array.dtype.name, list(array.shape), array.reshape(-1).view(numpy.uint8)


def _result(kind: tuple[str, list[int]], data: bytearray) -> numpy.ndarray:
    import numpy

    dtype, shape = kind
    return numpy.frombuffer(data, _dtype(dtype)).reshape(shape)


def _dtype(name: str) -> numpy.dtype:
    import numpy

    if _is_small_float(name):
        try:
            import ml_dtypes
        except ImportError as error:
            raise RequestError(
                f"found {name}, expected a type that numpy has, or the package ml_dtypes",
                found=name,
                expected="a type that numpy has, or the package ml_dtypes",
                hint="pip install ml_dtypes",
            ) from error
        small: numpy.dtype = numpy.dtype(getattr(ml_dtypes, name))
        return small
    return numpy.dtype(name)
