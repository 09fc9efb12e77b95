"""Which stored coordinates choose rows of dense operands, and how often such a row is in no cache."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..compiler.native.machine import this_machine
from ..compiler.notation.nodes import Access, accesses
from ..compiler.storage.tensor import Tensor
from .facts import position_count, size
from .prefetches import LINE
from .problem import Problem
from .scattering import scattered_share

_USUAL_BYTES = {1: 2**15, 2: 2**20}  # bytes of the first and second level of cache where the system does not tell
_AFAR = 0.25  # share of misses from which on a loop waits for what it gathers, and not for what it reads in order


def begun_by(problem: Problem, originals: tuple[str, ...]) -> Iterator[tuple[Access, Tensor]]:
    """Yield the stored operands whose first level one of some indices goes through."""
    for access, tensor in stored_reads(problem):
        if access.subscripts[tensor.format.order[0]].index in originals:
            yield access, tensor


def chosen_by(problem: Problem, originals: tuple[str, ...]) -> Iterator[tuple[str, Tensor, int]]:
    """Yield the indices, operands and levels that store coordinates of some indices."""
    for access, tensor in stored_reads(problem):
        for level, mode in enumerate(tensor.format.order):
            index = access.subscripts[mode].index
            if index in originals and not tensor.format.levels[level].full:
                yield index, tensor, level


def stored_reads(problem: Problem) -> Iterator[tuple[Access, Tensor]]:
    """Yield the accesses of operands that store coordinates, where subscripts are plain."""
    if problem.is_compound:
        return
    for access in accesses(problem.assignment.value):
        tensor = problem.operand(access.tensor)
        if tensor is not None and not tensor.format.is_dense and access.is_plain:
            yield access, tensor


def is_summed(problem: Problem, name: str, originals: tuple[str, ...]) -> bool:
    """Return whether the rows of an operand that some indices choose are summed up: the result has none of the rows' own indices."""
    read = [access for access in accesses(problem.assignment.value) if access.tensor == name]
    along = {index for access in read for index in access.indices}.difference(originals)
    return bool(along) and along.isdisjoint(problem.assignment.target.indices)


def gathers_from_afar(problem: Problem, originals: tuple[str, ...]) -> bool:
    """Return whether much of what stored coordinates of some indices gather from a dense operand is not in the second-level cache."""
    named = ((name, problem.operand(name)) for name in problem.formats)
    dense = [(name, operand) for name, operand in named if operand is not None and operand.format.is_dense]
    near = level_bytes(2)
    return any(
        missed_share(problem, operand, name, near, *where) > _AFAR for name, operand in dense for where in chosen_by(problem, originals)
    )


def missed_share(problem: Problem, operand: Tensor, name: str, cache: float, index: str, tensor: Tensor, level: int) -> float:
    """Return the share of the rows of a dense operand, chosen by an index, that are waited for from outside a cache of so many bytes. All
    other operands and the result pass through the cache as well, a part of them with each row."""
    if not any(index in access.indices for access in accesses(problem.assignment.value) if access.tensor == name):
        return 0.0
    row = max(size(operand) / max(1, problem.extents[index]), 1.0)
    beside = (problem.nbytes - size(operand) + result_bytes(problem)) / max(1, position_count(tensor, level))
    return scattered_share(tensor, level, cache / row, row / LINE, beside / row)


def room(problem: Problem, operand: Tensor, name: str, cache: int, index: str, tensor: Tensor, level: int) -> float:
    """Return the bytes of a cache that are left for the rows of an operand which a level of a tensor chooses, while the tensor chooses rows
    of other operands too: what these leave when they lie in it as a whole, and at least a share by the bytes chosen."""
    sizes, chosen = [], []
    for chooser, stored, where in chosen_by(problem, tuple(problem.extents)):
        for other in sorted({access.tensor for access in accesses(problem.assignment.value) if chooser in access.indices} - {name}):
            beside = problem.operand(other)
            if stored is tensor and beside is not None and beside.format.is_dense:
                sizes.append(size(beside))
                chosen.append(size(beside) / max(1, problem.extents[chooser]) * position_count(tensor, where))
    if not sizes:
        return cache
    own = size(operand) / max(1, problem.extents[index]) * position_count(tensor, level)
    return max(cache - sum(sizes), cache * (own / (own + sum(chosen))))


def waits_beside(problem: Problem, name: str, cache: int, tensor: Tensor, level: int, asked: Sequence[str] = ()) -> float:
    """Return in which share of a level's coordinates, which choose rows of an operand, a loop waits for a row of another operand besides,
    from outside a cache of so many bytes: one that a loop around it chose, for the first entry of each of its fibres. Loops do not wait for
    rows of operands that are ``asked`` for ahead."""
    beside = 0.0
    for other in sorted({access.tensor for access in accesses(problem.assignment.value)}.difference((name, *asked))):
        operand = problem.operand(other)
        if operand is not None and operand.format.is_dense:
            outer = (where for where in chosen_by(problem, tuple(problem.extents)) if where[1] is tensor and where[2] < level)
            shares = (missed_share(problem, operand, other, cache, *where) * position_count(tensor, where[2]) for where in outer)
            beside = max(beside, *shares, 0.0)
    return beside / max(1.0, position_count(tensor, level))


def result_bytes(problem: Problem) -> float:
    """Return the bytes of a dense result; of others, whose entries are not known, 0."""
    target = problem.assignment.target
    if not problem.formats[target.tensor].is_dense:
        return 0
    return math.prod(problem.extents[index] for index in target.indices) * problem.dtype.itemsize


def level_bytes(level: int) -> int:
    """Return the bytes of the first or second level of cache."""
    return next((cache.bytes for cache in this_machine().caches if cache.level == level), _USUAL_BYTES[level])
