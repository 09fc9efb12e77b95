"""Kernels that run again: in memory that holds something else, and on other data than before.

A result that is written in part only is right the first time, in fresh pages of zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
from sparsetune.compiler.build.bound import BoundKernel

from .blocks import row_extent
from .cases import LARGEST, Case, fill_of, linked, most_components, random_operand
from .expressions import leaves
from .formats import one_coordinate_levels
from .patterns import random_extent

GARBAGE = 85
"""What integers hold before a kernel runs; the others are NaN, or true."""


def spoil(bound: BoundKernel) -> None:
    """Write something that no result holds into the array that a kernel is to fill."""
    values = bound._flat
    if values is not None and not bound.kernel.spec.result.copies:  # else it is an operand's
        values.fill(GARBAGE if values.dtype.kind in "iu" else np.nan)


def datasets(case: Case) -> Iterator[Case]:
    """Yield a case, and one that the same kernel computes: of other data, and other extents where they are no constants."""
    yield case
    rng = Random(f"again {case.seed}")
    accesses = {leaf.tensor: leaf for leaf in leaves(case.tree)}
    if case.accumulates:
        accesses[case.target.tensor] = case.target
    extents = _extents(case, rng)
    fill = fill_of(case.semiring, case.dtype)
    operands = {
        name: random_operand(rng, accesses[name], extents, operand.form, operand.values.dtype, fill, case.manner)
        for name, operand in case.operands.items()
    }
    yield replace(case, extents=extents, operands=operands, given={index: extents[index] for index in case.given})


def _extents(case: Case, rng: Random) -> dict[str, int]:
    """Return other extents; the same where they would be too large, or where a format has a slot to fill and no coordinate for it."""
    every = (case.target, *leaves(case.tree))
    leader = linked(every)
    known = {leader[index]: extent for index, extent in case.constants.items()}
    drawn = {
        first: row_extent(rng, first) if case.manner.rows else random_extent(rng, len(leader))
        for first in dict.fromkeys(leader.values())
    }  # fmt: skip
    found = {index: known.get(first, drawn[first]) for index, first in leader.items()}
    slots = any(one_coordinate_levels(form) for form in case.formats.values())
    return case.extents if most_components(every, found) > LARGEST or (slots and 0 in found.values()) else found
