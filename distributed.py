"""Kernels with one sparse operand over MPI: ``mpiexec -n 8 python program.py``.

    import sparsetune as st
    D = st.distributed.tensor("tensor.tns")                                  # read by all ranks together, cyclic over a grid
    Y = st.distributed.evaluate("Y(i,r) = D(i,j,k) * B(j,r) * C(k,r)", {"D": D, "B": B, "C": C})

``volume`` says what a call would move and hold on any number of ranks; it needs no MPI. The rest needs the extra ``mpi``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tuner.distributed.evaluation import evaluate
    from .tuner.distributed.plan import volume
    from .tuner.distributed.scatter import tensor
    from .tuner.distributed.tensors import DistributedArray, DistributedTensor
    from .tuner.distributed.traffic import traffic

_HOMES = {
    "DistributedArray": "tensors",
    "DistributedTensor": "tensors",
    "evaluate": "evaluation",
    "tensor": "scatter",
    "traffic": "traffic",
    "volume": "plan",
}

__all__ = ["DistributedArray", "DistributedTensor", "evaluate", "tensor", "traffic", "volume"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".tuner.distributed.{_HOMES[name]}", __package__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
