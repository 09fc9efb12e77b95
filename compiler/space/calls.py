"""Calls of BLAS as open places of a structure, in place of dense loops around a product of matrices, or of a matrix and a vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ..concrete.nodes import Assign, Forall, Program
from ..notation.nodes import Access, Literal, Mul, accesses
from ..schedule import directives as d
from ..schedule.addresses import Address, frames, path_to
from ..workspaces import keeps_entries
from .situation import Situation, format_read
from .template import Hole

GEMM = 16**3  # products of a gemm of known extents from which BLAS is faster than loops (measured, as what follows)
LEAST_GEMM = 8**3  # from which BLAS is tried
GEMV = (2**17, 2**9)  # elements, and those of a row, from which a gemv is faster: outside the second level of cache; the rest never are


def calls(program: Program, address: Address, leaf: Assign, situation: Situation) -> Iterator[Hole]:
    """Yield a hole that makes a product of matrices, or of a matrix and a vector, of known extents a call of BLAS, or does not; the faster
    choice first. Threads must not share its result."""
    around = [frame for frame in frames(program.statement, address) if isinstance(frame, Forall)]
    path = path_to(program.statement, address) or None
    for routine in ("gemm", "gemv"):
        count = d.CALL_LOOPS[routine]
        loops = [frame.index for frame in around[-count:]]
        if len(loops) < count or not _is_product(leaf, loops, program, situation):
            continue
        if any(frame.tag.unit and frame.tag.race != "no_races" for frame in around[:-count]):
            return
        products = prod(_extent(loop, situation) for loop in loops)
        often = products >= GEMM if routine == "gemm" else products >= GEMV[0] and _row(leaf, loops, program, situation) >= GEMV[1]
        if often or (routine == "gemm" and products >= LEAST_GEMM):
            call = d.Call(routine, path=path)
            yield Hole(f"blas_{label_of(loops[0], path)}", (call, None) if often else (None, call))
        return


def _extent(loop: str, situation: Situation) -> int:
    return situation.extents.get(loop, situation.lengths.get(loop, 0))


def _row(leaf: Assign, loops: Sequence[str], program: Program, situation: Situation) -> int:
    """Return how many neighbouring elements of the matrix of a product of matrix and vector the loops go through; 0 if its elements in
    them are no neighbours."""
    matrix = next(access for access in accesses(leaf.value) if set(loops) <= set(access.indices))
    modes = format_read(matrix, program, situation).order if matrix.tensor in situation.formats else range(len(matrix.indices))
    last = matrix.indices[list(modes)[-1]]
    return _extent(last, situation) if last in loops else 0


def _is_product(leaf: Assign, loops: Sequence[str], program: Program, situation: Situation) -> bool:
    """Return whether three loops make a product of two dense matrices, or two loops one of a matrix and a vector: each goes through two of
    three dense tensors, one of them in the result."""
    moved = [access for access in (leaf.target, *accesses(leaf.value)) if set(access.indices) & set(loops)]
    sets = [frozenset(access.indices) & set(loops) for access in moved]
    kept = {space.name for space in program.workspaces if keeps_entries(space.kind)}
    dense = kept.isdisjoint(access.tensor for access in moved)
    dense = dense and all(format_read(access, program, situation).is_dense for access in moved if access.tensor in situation.formats)
    product = isinstance(leaf.value, Mul) and all(isinstance(factor, Access | Literal) for factor in leaf.value.operands)
    twice = all(sum(loop in one for one in sets) == 2 for loop in loops) and max(map(len, sets)) == 2
    return product and dense and len(moved) == len(set(sets)) == 3 and twice and len(sets[0]) == len(loops) - 1


def label_of(loop: str, path: tuple[int, ...] | None) -> str:
    """Return what the name of a hole says of a loop: its index and its place."""
    return loop + "".join(f"_{number}" for number in path or ())
