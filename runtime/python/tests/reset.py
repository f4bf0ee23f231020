"""Checks what becomes of an engine whose context another library takes away: `reset.py BUNDLE`."""

import ctypes
import sys
import warnings

import mlxcel

warnings.simplefilter("ignore", mlxcel.OriginWarning)


def reset() -> None:
    """Resets the first GPU, as `numba.cuda.close` or `cudaDeviceReset` do."""
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)()
    find = ctypes.CDLL("libcuda.so").cuGetProcAddress
    version, flags = ctypes.c_int(11040), ctypes.c_uint64(0)
    assert find(b"cuDevicePrimaryCtxReset", ctypes.byref(function), version, flags) == 0
    assert function(0) == 0


def refusal(engine: mlxcel.Engine) -> str:
    """Returns why an engine does not answer."""
    try:
        engine.generate([63], max_tokens=1)
    except mlxcel.EngineError as error:
        return str(error)
    sys.exit("found an answer, expected an error")


with mlxcel.Engine(sys.argv[1], device="cuda", cache_size="64MiB") as engine:
    options = {"max_tokens": 2, "ignore_eos": True}
    before = engine.generate([63], **options).tokens
    assert len(before) == 2
    reset()
    found = refusal(engine)
    assert found.startswith("cuda, Emulator is lost, expected a device that answers: "), found
    assert "'CUDA_ERROR_CONTEXT_IS_DESTROYED' (709)" in found, found
    assert refusal(engine) == found
with mlxcel.Engine(sys.argv[1], device="cuda", cache_size="64MiB") as engine:
    assert engine.generate([63], **options).tokens == before
print("a new engine answers after a reset")
