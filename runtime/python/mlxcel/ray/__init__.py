"""Runs bundles on a cluster of Ray: data sets of prompts, and OpenAI's endpoints.

    import mlxcel.ray

    answers = mlxcel.ray.predict(dataset, "registry.example/models/demo:1", options={"max_tokens": 32})
    serve.run(mlxcel.ray.app("registry.example/models/demo:1", max_replicas=8))

Needs `pip install 'mlxcel[ray]'`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import PackageError

_found = find_spec("ray")
# A folder of that name is not the package.
if _found is None or _found.origin is None:
    raise PackageError(
        "mlxcel.ray: found no package ray, expected ray[data,serve]",
        found="no package ray",
        expected="ray[data,serve]",
        hint="pip install 'mlxcel[ray]'",
    )

from .nodes import Node, check, label_selector
from .predictor import Predictor, predict

if TYPE_CHECKING:
    from .serving import app, build

__all__ = ["Node", "Predictor", "app", "build", "check", "label_selector", "predict"]


def __getattr__(name: str) -> Any:
    """Imports Serve when it is asked for: workers of a data set need none of it."""
    if name in ("app", "build"):
        from . import serving

        return getattr(serving, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
