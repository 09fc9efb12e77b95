"""Whether a result is right: the same pattern as the reference result, and values that rounding alone can explain.

Two orders of summation of n terms differ by at most about n times the unit roundoff, times the sum of the terms' absolute values;
random errors grow with the square root of n. The reference therefore comes with a bound per value, the same kernel's result on
absolute operands, and the tolerance grows with the length of the reduction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.concrete.check import tensor_names
from ...compiler.notation.functions import has_functions
from ...compiler.notation.nodes import Assignment, Div, walk_expression
from ...compiler.notation.terms import terms
from ...compiler.storage.construct import tensor
from ...compiler.storage.entries import Entries
from ...compiler.storage.tensor import LevelArrays, Tensor
from ...compiler.storage.unpack import unpack
from ..extents import reads
from .oracle import evaluate_dense
from .patterns import Patterns, stored_places
from .semirings import evaluate_semiring

Result = Tensor | NDArray[Any]

_CHUNK = 2**20
_ENLARGED = 64.0
_SAMPLED_POINTS = 200_000
"""Most points of the index space of a sampled problem."""


@dataclass(frozen=True)
class Reference:
    """The right result.

    Attributes:
        result: of the default schedule.
        bound: the same for absolute operands; None: nothing is known but the result.
        factor: tolerance of a value, as a part of its bound.
    """

    result: Result
    bound: Result | None
    factor: float


def tolerance_factor(dtype: np.dtype[Any], reduction: float) -> float:
    """Return how far two sums of ``reduction`` terms may differ, as a part of the sum of absolute values; 0 for integers."""
    if not np.issubdtype(dtype, np.inexact):
        return 0.0
    return float(np.finfo(dtype).eps) * (8 + min(reduction, 8 * math.sqrt(reduction)))


def reduction_length(assignment: Assignment, operands: Mapping[str, Tensor], extents: Mapping[str, int]) -> float:
    """Return a bound on how many terms are summed into one value: the reduced space, or the entries stored in it."""
    longest, left = 1.0, frozenset(assignment.target.indices)
    if has_functions(assignment.value):  # which may enlarge what rounding did to their arguments
        return _ENLARGED * math.prod(float(extent) for index, extent in extents.items() if index not in left)
    for term in terms(assignment.value, left):
        space = math.prod(float(extents[index]) for index in term.reduced)
        longest = max(longest, space)
    stored = math.prod(float(max(1, len(operand.values))) for operand in operands.values() if not operand.format.is_dense)
    sparse = any(not operand.format.is_dense for operand in operands.values())
    return min(longest, stored * max(extents.values(), default=1)) if sparse else longest


def difference(result: Result, reference: Reference) -> str | None:
    """Return how a result differs from the reference, in one line; None if it is right."""
    if isinstance(result, Tensor) != isinstance(reference.result, Tensor):
        return "the result is of another kind"
    if result.shape != reference.result.shape:
        return f"the result has shape {result.shape}, not {reference.result.shape}"
    found, expected = _aligned(result, reference.result)
    if found is None or expected is None:
        return "the pattern of the result differs"
    bound = None if reference.bound is None else _values(reference.bound)
    return _value_difference(found, expected, bound, reference.factor)


def sampled_problem(
    assignment: Assignment, operands: Mapping[str, Tensor], extents: Mapping[str, int], seed: int = 0
) -> tuple[dict[str, Tensor], dict[str, int]]:
    """Return a small problem cut out of a large one: each index keeps a few of its coordinates, such that entries remain.

    The operands keep their formats; the coordinates that stay are numbered anew.
    """
    generator = np.random.default_rng(seed)
    side = max(2, min(12, int(_SAMPLED_POINTS ** (1 / max(1, len(extents))))))
    entries = {name: unpack(operand) for name, operand in operands.items() if not operand.format.is_dense}
    kept: dict[str, set[int]] = {index: set() for index in extents}
    for access in reads(assignment):
        if access.tensor in entries and len(entries[access.tensor]):
            stored = entries[access.tensor]
            for place in generator.integers(0, len(stored), side // 2):
                for mode, subscript in enumerate(access.subscripts):
                    kept[subscript.index].add(int(stored.coordinates[mode][place]))
    chosen = {index: _fill_up(kept[index], extents[index], side, generator) for index in extents}
    small = {}
    for access in reads(assignment):
        modes = [chosen[subscript.index] for subscript in access.subscripts]
        small[access.tensor] = _restrict(operands[access.tensor], entries.get(access.tensor), modes)
    return small, {index: len(coordinates) for index, coordinates in chosen.items()}


def oracle_difference(
    assignment: Assignment,
    result: Result,
    operands: Mapping[str, Tensor],
    extents: Mapping[str, int],
    semiring: tuple[str, str] = ("+", "*"),
    dtype: str | None = None,
) -> str | None:
    """Return how a kernel's result on a small problem differs from the definition; None if it is right.

    Args:
        semiring: (add, multiply); quotients in another one than ("+", "*") are not judged.
        dtype: that the kernel computes with; None: that of the operands.
    """
    dense = {name: operands[name].to_numpy() for name in tensor_names(assignment)}
    return dense_difference(assignment, result, dense, {name: stored_places(operands[name]) for name in dense}, extents, semiring, dtype)


def dense_difference(
    assignment: Assignment,
    result: Result,
    dense: Mapping[str, NDArray[Any]],
    places: Patterns,
    extents: Mapping[str, int],
    semiring: tuple[str, str] = ("+", "*"),
    dtype: str | None = None,
) -> str | None:
    """Do what ``oracle_difference`` does for operands given as dense arrays and their stored patterns."""
    if dtype is not None:
        dense = {name: values.astype(dtype) for name, values in dense.items()}
    if semiring == ("+", "*"):
        expected = evaluate_dense(assignment, dense, extents, places if isinstance(result, Tensor) else None)
    elif any(isinstance(node, Div) for node in walk_expression(assignment.value)):
        return None
    else:
        expected = evaluate_semiring(assignment, dense, extents, places, semiring)
    magnitude = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
    found = result.to_numpy() if isinstance(result, Tensor) else np.asarray(result)
    factor = tolerance_factor(found.dtype, math.prod(extents.values()))
    return _value_difference(found.reshape(-1), expected.reshape(-1), np.full(expected.size, magnitude), factor)


def _fill_up(kept: set[int], extent: int, side: int, generator: np.random.Generator) -> NDArray[np.int64]:
    coordinates = set(sorted(kept)[: min(side, extent)])
    while len(coordinates) < min(side, extent):
        coordinates.add(int(generator.integers(0, extent)))
    return np.array(sorted(coordinates), np.int64)


def _restrict(operand: Tensor, stored: Entries | None, modes: list[NDArray[np.int64]]) -> Tensor:
    if stored is None:
        return tensor(np.ascontiguousarray(operand.to_numpy()[np.ix_(*modes)]) if modes else operand.to_numpy(), operand.format)
    inside = np.ones(len(stored), bool)
    for mode, coordinates in enumerate(modes):
        inside &= np.isin(stored.coordinates[mode], coordinates)
    rows = np.array([np.searchsorted(coordinates, stored.coordinates[mode][inside]) for mode, coordinates in enumerate(modes)], np.int64)
    shape = tuple(len(coordinates) for coordinates in modes)
    return tensor((rows.reshape(len(modes), -1), stored.values[inside]), operand.format, shape, fill_value=operand.fill_value)


def _aligned(result: Result, reference: Result) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Return the values of both in one order, or None where the patterns differ."""
    if not isinstance(result, Tensor) or not isinstance(reference, Tensor):
        return _values(result), _values(reference)
    if result.format == reference.format and all(map(_same_level, result.levels, reference.levels)):
        return result.values, reference.values
    coordinates, values = result.to_coordinates()
    expected_coordinates, expected = reference.to_coordinates()
    return (values, expected) if np.array_equal(coordinates, expected_coordinates) else (None, None)


def _same_level(left: LevelArrays, right: LevelArrays) -> bool:
    pairs = ((array, right.parts[part]) for part, array in left.parts.items())
    return left.parts.keys() == right.parts.keys() and all(a is b or np.array_equal(a, b) for a, b in pairs)


def _values(result: Result) -> NDArray[Any]:
    return result.values if isinstance(result, Tensor) else np.asarray(result).reshape(-1)


def _value_difference(found: NDArray[Any], expected: NDArray[Any], bound: NDArray[Any] | None, factor: float) -> str | None:
    """Compare chunk by chunk, so that large results need little more memory."""
    if expected.dtype == np.bool_:  # which NumPy does not subtract
        found, expected = found.astype(np.int8), expected.astype(np.int8)
    scale = 1.0
    if bound is None and len(expected):
        finite = expected[np.isfinite(expected)]
        scale = float(np.abs(finite).max(initial=0.0))
    for start in range(0, len(expected), _CHUNK):
        part = slice(start, start + _CHUNK)
        allowed = factor * (np.abs(bound[part]) if bound is not None else np.abs(expected[part]) + scale)
        allowed[~np.isfinite(allowed)] = 0.0  # infinities and NaN must be met exactly
        with np.errstate(invalid="ignore"):
            wrong = ~((np.abs(found[part] - expected[part]) <= allowed) | (found[part] == expected[part]))
        wrong &= ~(np.isnan(found[part]) & np.isnan(expected[part]))
        if wrong.any():
            place = start + int(np.flatnonzero(wrong)[0])
            return f"value {place} is {found[place]!r}, not {expected[place]!r}"
    return None
