"""Checking expressions with compound subscripts: a small problem cut out of a large one, and its operands as views read them.

``verify`` samples coordinates; here stretches are cut out, so that neighbours stay neighbours: an index keeps its first values, and a mode
the coordinates that these reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ...compiler.concrete.affine import Viewed
from ...compiler.concrete.arithmetic import INTEGERS
from ...compiler.concrete.relations import SumRelation
from ...compiler.errors import ShapeError
from ...compiler.format import Format
from ...compiler.ir.nodes import Type
from ...compiler.lowering.semiring import identity
from ...compiler.notation.nodes import Affine, Assignment
from ...compiler.storage.construct import tensor
from ...compiler.storage.tensor import Tensor
from ...compiler.storage.unpack import unpack
from ...compiler.views import View
from ..extents import all_extents, known_extents, reads
from .patterns import Patterns, stored_places

_POINTS = 200_000
"""Most points of the index space of a small problem."""

_LONGEST = 2000
"""Coordinates that a mode keeps at most: where a constant reaches farther, nothing is cut out."""


def cut_out(
    viewed: Viewed, written: Assignment, operands: Mapping[str, Tensor], known: Mapping[str, int], seed: int = 0
) -> tuple[dict[str, Tensor], dict[str, int]] | None:
    """Return a small problem: operands and the extents that are known of it; None where nothing small can be cut out.

    Args:
        viewed: the expression with plain subscripts.
        written: the expression as it was written.
        operands: by the user's name.
        known: the extents that plain subscripts or the user determine.
    """
    shapes = {name: operand.shape for name, operand in operands.items()}
    try:
        extents = all_extents(viewed, known, shapes)
        side = max(2, min(10, int(_POINTS ** (1 / max(1, len(extents))))))
        lengths = {index: min(extent, side) for index, extent in extents.items()}
        kept = _stretches(written, operands, lengths, np.random.default_rng(seed))
        if any(len(mode) > _LONGEST for modes in kept.values() for mode in modes):
            return None
        small = {name: _restricted(operands[name], modes) for name, modes in kept.items()}
        told = known_extents(written, {name: operand.shape for name, operand in small.items()}, {})
        made = {index: lengths[index] for index in known if index not in told and index in lengths}
        own = {writing.index for writing in viewed.ranges.written} if viewed.ranges is not None else set[str]()
        free = {**told, **{index: length for index, length in made.items() if index not in own}}
        found = all_extents(viewed, free, {name: operand.shape for name, operand in small.items()})
    except ShapeError:
        return None
    if np.prod([float(extent) for extent in found.values()]) > 20 * _POINTS:
        return None
    return small, {**free, **{index: found[index] for index in made if index in own}}


def _stretches(
    written: Assignment, operands: Mapping[str, Tensor], lengths: Mapping[str, int], generator: np.random.Generator
) -> dict[str, tuple[NDArray[np.int64], ...]]:
    """Return the coordinates that each mode of each operand keeps: around an entry, or the first ones where it is read in several ways."""
    starts: dict[str, int] = {}
    found: dict[str, tuple[NDArray[np.int64], ...]] = {}
    counts = {name: sum(access.tensor == name for access in reads(written)) for name in operands}
    for access in reads(written):
        operand = operands[access.tensor]
        entry = _entry(operand, generator) if counts[access.tensor] == 1 else (0,) * operand.order
        modes = []
        for mode, part in enumerate(access.subscripts):
            length = min(operand.shape[mode], lengths[part.index] if part.is_index else _most(part, lengths) + 1)
            start = max(0, min(entry[mode] - length // 2, operand.shape[mode] - length))
            modes.append(np.arange(length) + (starts.setdefault(part.index, start) if part.is_index else start))
        others = found.get(access.tensor, tuple(modes))
        found[access.tensor] = tuple(max(pair, key=len) for pair in zip(modes, others, strict=True))
    return found


def _entry(operand: Tensor, generator: np.random.Generator) -> tuple[int, ...]:
    """Return the coordinates of some stored entry."""
    if not operand.nnz:
        return (0,) * operand.order
    place = int(generator.integers(0, operand.nnz))
    if operand.format.is_dense:
        return tuple(int(coordinate) for coordinate in np.unravel_index(place, operand.shape or (1,)))
    return tuple(int(column[place]) for column in unpack(operand).coordinates)


def _most(part: Affine, lengths: Mapping[str, int]) -> int:
    known = {index: max(1, lengths[index]) for index in part.indices}
    return max(0, SumRelation(part).known(INTEGERS, lengths.__getitem__, (), known).most)


def _restricted(operand: Tensor, modes: tuple[NDArray[np.int64], ...]) -> Tensor:
    if operand.format.is_dense or not modes:
        return tensor(np.ascontiguousarray(operand.to_numpy()[np.ix_(*modes)]) if modes else operand.to_numpy(), operand.format)
    stored = unpack(operand)
    starts = [int(mode[0]) if len(mode) else 0 for mode in modes]
    inside = np.logical_and.reduce([
        (column >= start) & (column < start + len(mode)) for column, start, mode in zip(stored.coordinates, starts, modes, strict=True)
    ])  # fmt: skip
    rows = np.array([column[inside] - start for column, start in zip(stored.coordinates, starts, strict=True)], np.int64)
    shape = tuple(map(len, modes))
    return tensor((rows.reshape(len(modes), -1), stored.values[inside]), operand.format, shape, fill_value=operand.fill_value)


def as_read(
    viewed: Viewed, operands: Mapping[str, Tensor], extents: Mapping[str, int], semiring: tuple[str, str]
) -> tuple[dict[str, NDArray[np.generic]], Patterns]:
    """Return the dense arrays that the plain assignment reads, by its names, and where they store something."""
    dense: dict[str, NDArray[np.generic]] = {}
    places: dict[str, NDArray[np.bool_]] = {}
    kind = np.result_type(*(operand.dtype for operand in operands.values()))
    for access in reads(viewed.assignment):
        name, form = access.tensor, viewed.formats[access.tensor]
        shape = tuple(extents[part.index] for part in access.subscripts)
        if name in viewed.points:
            (place,) = _coordinates(form, shape, (1,))
            one = identity(semiring[1], Type("bool") if kind == np.bool_ else Type(f"{kind.kind}{8 * kind.itemsize}"))
            dense[name], places[name] = np.where(place == 0, one, 0).astype(kind), place == 0
            continue
        operand = operands[viewed.source(name)]
        whole, stored = operand.to_numpy(), stored_places(operand)
        if isinstance(form, View):
            found = _coordinates(form, shape, operand.shape)
            inside = reduce(np.logical_and, [(one >= 0) & (one < extent) for one, extent in zip(found, operand.shape, strict=True)])
            safe = tuple(np.clip(one, 0, max(0, extent - 1)) for one, extent in zip(found, operand.shape, strict=True))
            nothing = 0 in operand.shape
            whole = np.full(shape, operand.fill_value, operand.dtype) if nothing else np.where(inside, whole[safe], operand.fill_value)
            stored = np.zeros(shape, np.bool_) if nothing else inside & stored[safe]
        dense[name], places[name] = whole.astype(operand.dtype, copy=False), stored
    return dense, places


def _coordinates(form: Format, shape: tuple[int, ...], stored: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """Return, for each stored mode of a view, the coordinates that the points of its own space read."""
    assert isinstance(form, View)
    axes, found = np.indices(shape, np.int64), []
    for subscript, extent in zip(form.subscripts, stored, strict=True):
        place = sum((factor * axes[mode] for mode, factor in subscript.terms), np.full(shape, subscript.constant, np.int64))
        found.append(place % max(1, extent) if subscript.wraps else place)
    return found
