"""Operations of loop nests, counted by running their loop IR, and the counts that formulas give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...compiler.ir.interpret import interpret
from ...compiler.passes.cpu import CPU
from ...compiler.passes.manager import VectorUnit
from ...compiler.schedule.schedule import Schedule
from ...compiler.storage.tensor import Tensor
from ..kernels import compile_problem
from .records import Count
from .workloads import KernelCase, operands_of, problem_of

_VECTORS = VectorUnit(64)  # makes the interpreter faster and changes no count, since each lane counts


def fibres(source: Tensor) -> int:
    """Return the stored fibres of a tensor: nonempty combinations of all coordinates but the last."""
    coordinates, _ = source.to_coordinates()
    changes = np.any(coordinates[:-1, 1:] != coordinates[:-1, :-1], axis=0)
    return int(changes.sum()) + (coordinates.shape[1] > 0)


def factorized(source: Tensor, dims: Mapping[str, int]) -> int:
    """Return the operations of the factorized, fused TTMc: ``2 nnz S + 2 nnz_IJ R S``."""
    return 2 * source.nnz * dims["s"] + 2 * fibres(source) * dims["r"] * dims["s"]


def unfactorized(source: Tensor, dims: Mapping[str, int]) -> int:
    """Return the operations of the TTMc that multiplies all three factors for every entry: ``3 nnz R S``."""
    return 3 * source.nnz * dims["r"] * dims["s"]


def counted(case: KernelCase, source: Tensor, schedule: str) -> int:
    """Return the floating-point operations of a schedule on an input, by running its loops in the interpreter."""
    problem = problem_of(case, operands_of(case, source), "", 1)
    bound = compile_problem(problem, Schedule(schedule)).bind(problem.operands, 1)
    bound()
    arrays, sizes = bound.arguments()
    function = CPU.run(bound.kernel.spec.function, _VECTORS)
    copies = [None if array is None else array.copy() for array in arrays]
    return interpret(function, copies, sizes).counts.flops


def count_nests(case: KernelCase, sources: Mapping[str, Tensor], nests: Mapping[str, str]) -> list[Count]:
    """Return counts of the "fused" and "unfactorized" nests of a TTMc on small inputs."""
    expected = {"fused": factorized, "unfactorized": unfactorized}
    ranks = "x".join(str(extent) for extent in case.dims.values())
    return [
        Count(name, nest, ranks, counted(case, source, text), expected[nest](source, case.dims))
        for name, source in sources.items()
        for nest, text in nests.items()
    ]
