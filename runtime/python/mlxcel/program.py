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

_Given = tuple[str, str, list[int], Any]
"""A tensor as the native part takes it: its name, element type, shape and bytes."""


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
            state: the first values of states. Each call takes what the call before returned, also one with inputs of other
                shapes.
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
        # The entry point that has the present states.
        self._current: Signature | None = None
        # Bound arguments that were set, of which the other entry points have an older value.
        self._changed: set[str] = set()
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
            RequestError: an argument is missing or has another type or shape, or a state has another shape than the call
                before returned. Nothing has run then.
        """
        given = self._named(arguments, named)
        arrays = {name: _array(name, value) for name, value in given.items()}
        signature = self._choose(arrays)
        number = self._enter(signature)
        names = [r.name for r in signature.results if not r.is_state]
        found = self._native.call(number, [_given(*one) for one in arrays.items()], True, names)
        results = tuple(_result(*one) for one in found)
        return results[0] if len(results) == 1 else results

    def read(self, name: str) -> numpy.ndarray:
        """Copies a state, or a result of the last call, from the device."""
        number = self._enter(self._current or self.signatures[0])
        return _result(*self._native.call(number, [], False, [name])[0])

    def set(self, name: str, value: Any) -> None:
        """Copies an argument for all calls from now on, or a state's present value, to the device."""
        array = _array(name, value)
        number = self._enter(self._current or self.signatures[0])
        self._native.call(number, [_given(name, array)], False, [])
        if name in self._bound and len(self.signatures) > 1:
            # A copy, because the caller may write to the array before another entry point takes it.
            self._bound[name] = array.copy()
            self._changed.add(name)

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
        """Returns the entry point for these shapes; if none fits, the last one that was called, for its message."""
        for signature in self.signatures:
            types = {a.name: (a.dtype, a.shape) for a in signature.arguments}
            if all(types[name] == (str(array.dtype), array.shape) for name, array in arrays.items()):
                return signature
        return self._current or self.signatures[0]

    def _enter(self, signature: Signature) -> int:
        """Gives an entry point the present states. Returns the number by which the native part knows its calls."""
        before = self._current
        if before is signature:
            return self._prepared[signature.entry]
        values = _all_given(self._state) if before is None else self._present(before, signature)
        number = self._prepared.get(signature.entry)
        if number is None:
            number = self._native.prepare(signature.entry)
            weakref.finalize(self, self._native.forget, number).atexit = False
            values += _all_given(self._bound)
        else:
            values += _all_given({name: self._bound[name] for name in self._changed})
        if values:
            self._native.call(number, values, False, [])
        self._prepared[signature.entry] = number
        self._current = signature
        return number

    def _present(self, before: Signature, signature: Signature) -> list[_Given]:
        """Reads the states that one entry point has, for another one."""
        types = {a.name: a for a in before.arguments if a.is_state}
        states = [a for a in signature.arguments if a.is_state]
        for state in states:
            present = types.get(state.name, state)
            if (present.dtype, present.shape) != (state.dtype, state.shape):
                found = f"{_shown(present)} of {before.entry}"
                expected = f"{_shown(state)} of {signature.entry}"
                raise RequestError(
                    f'state "{state.name}": found {found}, expected {expected}',
                    found=found,
                    expected=expected,
                    hint="prepare the function once for each shape, with states of its own",
                )
        if not states:
            return []
        names = [state.name for state in states]
        read = self._native.call(self._prepared[before.entry], [], False, names)
        return [(name, dtype, shape, data) for name, ((dtype, shape), data) in zip(names, read)]


def _shown(what: Argument | Result) -> str:
    return f"{what.dtype}[{','.join(map(str, what.shape))}]"


def _refused(found: str, expected: str) -> RequestError:
    return RequestError(f"{found}, expected {expected}", found=found.removeprefix("found "), expected=expected)


def _array(name: str, value: Any) -> numpy.ndarray:
    """Returns a value as an array of numpy, in the order of C and with bytes as this machine orders them."""
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
    if not value.dtype.isnative:
        # Only its bytes are passed on, and not their order.
        value = value.astype(value.dtype.newbyteorder("="))
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


def _given(name: str, array: numpy.ndarray) -> _Given:
    import numpy

    return name, array.dtype.name, list(array.shape), array.reshape(-1).view(numpy.uint8)


def _all_given(values: Mapping[str, Any]) -> list[_Given]:
    return [_given(name, _array(name, value)) for name, value in values.items()]


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
