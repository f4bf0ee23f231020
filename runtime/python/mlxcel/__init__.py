"""Runs bundles of models that were compiled ahead of time: no compiler, no framework.

    import mlxcel

    engine = mlxcel.Engine("demo")
    print(engine.generate("And it came to pass", max_tokens=20).text)
"""

from ._native import Answer, Piece, Timings, TokenLogprobs
from .bundle import Bundle, Target
from .engine import Engine
from .errors import (
    BundleError,
    ClosedError,
    DeviceError,
    EngineError,
    Error,
    ForkError,
    OriginWarning,
    PackageError,
    QueueFullError,
    RequestError,
    SignatureError,
)
from .options import GenerateOptions, Message
from .program import Argument, Function, Program, Result, Signature
from .stream import Stream

__all__ = [
    "Answer",
    "Argument",
    "Bundle",
    "BundleError",
    "ClosedError",
    "DeviceError",
    "Engine",
    "EngineError",
    "Error",
    "ForkError",
    "Function",
    "GenerateOptions",
    "Message",
    "OriginWarning",
    "PackageError",
    "Piece",
    "Program",
    "QueueFullError",
    "RequestError",
    "Result",
    "Signature",
    "SignatureError",
    "Stream",
    "Target",
    "Timings",
    "TokenLogprobs",
]
