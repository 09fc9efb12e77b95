"""sparsetune: sparse tensor algebra that is fast without anyone having to know how.

    >>> import sparsetune as st
    >>> y = st.evaluate("y(i) = A(i,j) * x(j)", {"A": A, "x": x})

Names are loaded at first use, so that importing costs little more than importing NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from . import autograd as torch
    from . import distributed
    from .compiler.build.bound import BoundKernel
    from .compiler.errors import (
        BuildError,
        DatabaseError,
        DataError,
        ExpressionError,
        FormatError,
        ResourceError,
        ScheduleError,
        ShapeError,
        SparsetuneError,
        TuningError,
    )
    from .compiler.format import Format
    from .compiler.kernel import Kernel
    from .compiler.schedule.schedule import Schedule
    from .compiler.storage.tensor import Tensor
    from .compiler.targets.streams import on_stream
    from .tuner.calls.compiling import compile
    from .tuner.calls.einsum import einsum
    from .tuner.calls.evaluating import evaluate, evaluate_all
    from .tuner.calls.operands import tensor
    from .tuner.calls.tuning import autotune, lookup, tune
    from .tuner.exploration import Exploration
    from .tuner.explore import explore
    from .tuner.forests.exploration import ForestExploration
    from .tuner.match import Match
    from .tuner.tune_result import TuneResult

__version__ = "0.1.0"

_HOMES = {
    "BoundKernel": ".compiler.build.bound",
    "BuildError": ".compiler.errors",
    "DataError": ".compiler.errors",
    "DatabaseError": ".compiler.errors",
    "Exploration": ".tuner.exploration",
    "ExpressionError": ".compiler.errors",
    "ForestExploration": ".tuner.forests.exploration",
    "Format": ".compiler.format",
    "FormatError": ".compiler.errors",
    "Kernel": ".compiler.kernel:Kernel",
    "Match": ".tuner.match",
    "ResourceError": ".compiler.errors",
    "Schedule": ".compiler.schedule.schedule",
    "ScheduleError": ".compiler.errors",
    "ShapeError": ".compiler.errors",
    "SparsetuneError": ".compiler.errors",
    "Tensor": ".compiler.storage.tensor",
    "TuneResult": ".tuner.tune_result",
    "TuningError": ".compiler.errors",
    "autotune": ".tuner.calls.tuning",
    "compile": ".tuner.calls.compiling",
    "distributed": ".distributed",
    "einsum": ".tuner.calls.einsum",
    "evaluate": ".tuner.calls.evaluating",
    "evaluate_all": ".tuner.calls.evaluating",
    "explore": ".tuner.explore",
    "lookup": ".tuner.calls.tuning",
    "on_stream": ".compiler.targets.streams",
    "tensor": ".tuner.calls.operands",
    "torch": ".autograd:*",
    "tune": ".tuner.calls.tuning",
}

__all__ = [
    "BoundKernel",
    "BuildError",
    "DataError",
    "DatabaseError",
    "Exploration",
    "ExpressionError",
    "ForestExploration",
    "Format",
    "FormatError",
    "Kernel",
    "Match",
    "ResourceError",
    "Schedule",
    "ScheduleError",
    "ShapeError",
    "SparsetuneError",
    "Tensor",
    "TuneResult",
    "TuningError",
    "autotune",
    "compile",
    "distributed",
    "einsum",
    "evaluate",
    "evaluate_all",
    "explore",
    "lookup",
    "on_stream",
    "tensor",
    "torch",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, other = _HOMES[name].partition(":")
    home = _looking() if name == "lookup" else import_module(module, __name__)
    value = home if module == f".{name}" or other == "*" else getattr(home, other or name)
    globals()[name] = value
    return value


def _looking() -> ModuleType:
    """Import what looks schedules up from one file, in a fraction of the time."""
    from .tuner.together import together

    with together("known"):
        from .tuner import asking  # noqa: F401
        from .tuner.calls import tuning
    return tuning


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
