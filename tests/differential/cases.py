"""One random case: an expression, formats, extents and data, all from one seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
from sparsetune.compiler.format import Format, dense_format
from sparsetune.compiler.storage import aligned
from sparsetune.compiler.storage.construct import tensor
from sparsetune.compiler.storage.tensor import Tensor

from .blocks import SHARE, row_coordinates, row_extent, row_format
from .expressions import INDICES, ROW, Expressions, Leaf, Style, Tree, denominators, has_sum, leaves, show, show_leaf
from .formats import one_coordinate_levels, pads, random_format, storable, stored
from .patterns import random_coordinates, random_extent, random_values

SEMIRINGS = (("min", "+"), ("max", "+"), ("max", "*"), ("min", "max"), ("max", "min"), ("or", "and"))
DTYPES = ("float32", "int64", "int32", "int8", "uint16", "bool")
POSITIVE = ("max", "*")
"""A semiring of positive values: its fill value -inf is no zero of a product with another."""
LARGEST = 2**18
"""More components or coordinates than this the dense oracle does not visit."""


@dataclass(frozen=True)
class Operand:
    """What one tensor holds: entries in mode order, and the format that it is handed over in."""

    shape: tuple[int, ...]
    form: Format
    coordinates: tuple[tuple[int, ...], ...]
    values: np.ndarray[Any, Any]
    fill: Any

    @cached_property
    def packed(self) -> Tensor:
        columns = np.array(self.coordinates, np.int64).reshape(len(self.coordinates), len(self.shape)).T
        made = tensor((columns, self.values), Format(("compressed",) * len(self.shape)), self.shape, fill_value=self.fill)
        return made.convert(self.form)

    @property
    def given(self) -> Any:
        """What the kernel is called with: an ndarray for row-major dense operands, else a Tensor."""
        return self.dense if self.form == dense_format(len(self.shape)) else self.packed

    @cached_property
    def dense(self) -> np.ndarray[Any, Any]:
        whole = np.full(self.shape, self.fill, self.values.dtype)
        for place, value in zip(self.coordinates, self.values, strict=True):
            whole[place] = value
        return whole

    @cached_property
    def present(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Where something is stored, the padding of dense levels included."""
        mask = np.zeros(self.shape, bool)
        for place in stored(self.coordinates, self.form, self.shape):
            mask[place] = True
        return mask


@dataclass(frozen=True)
class Manner:
    """How the operands of a case are drawn: values see ``random_values``; ``divisors`` are to be dense and positive; with many ``rows``."""

    rows: bool
    divisors: frozenset[str]
    positive: bool
    exact: bool
    special: bool


@dataclass(frozen=True)
class Case:
    """Everything that one comparison needs.

    Attributes:
        seed: makes the case again.
        operands: by name; that of the result's name holds its initial value where the operator is ``+=``.
        constants: extents handed to the compiler.
        given: extents that only the caller knows.
        index_limit: largest number that is stored with 32 bits while the case runs.
        manner: how the operands were drawn.
        schedule: text of directives, empty for the default.
        threads: with how many the kernel is run, one after another.
    """

    seed: int
    text: str
    target: Leaf
    tree: Tree
    accumulates: bool
    extents: dict[str, int]
    operands: dict[str, Operand]
    result_format: Format
    constants: dict[str, int]
    given: dict[str, int]
    semiring: tuple[str, str]
    dtype: np.dtype[Any]
    index_limit: int
    manner: Manner
    schedule: str = ""
    threads: tuple[int, ...] = (1,)

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Lower the limit above which indices take 64 bits, for as long as the case is packed, compiled or run."""
        before = aligned.INDEX_LIMIT
        aligned.INDEX_LIMIT = self.index_limit
        try:
            yield
        finally:
            aligned.INDEX_LIMIT = before

    @property
    def formats(self) -> dict[str, Format]:
        found = {name: operand.form for name, operand in self.operands.items()}
        return {**found, self.target.tensor: self.result_format}

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.extents[index] for index in self.target.indices)

    def __str__(self) -> str:
        kinds = ", ".join(f"{name}: '{form}'" for name, form in self.formats.items())
        plus = "" if self.semiring == ("+", "*") else f" {self.semiring}"
        wide = f" index limit {self.index_limit}" if self.index_limit < 2**31 - 1 else ""
        how = f" | {self.schedule}" if self.schedule else ""
        types = {name: operand.values.dtype.name for name, operand in self.operands.items()}
        return f"seed {self.seed}: {self.text} | {kinds} | {self.extents} constants {self.constants} | {types}{plus}{wide}{how}"


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    rng = Random(seed)
    semiring = rng.choice(SEMIRINGS) if rng.random() < 0.1 else ("+", "*")
    kinds = _dtypes(rng, semiring)
    draw = rng.random()
    large, rows = draw < 0.01, 0.01 <= draw < 0.01 + SHARE
    tree, target = _expression(rng, _style(kinds, semiring), large, rows)
    accumulates = rng.random() < 0.1
    text = f"{show_leaf(target)} {'+=' if accumulates else '='} {show(tree, rng)}"
    extents = _extents(rng, tree, target, large, rows)
    form = _format(rng, len(target.indices), rows) if rng.random() < 0.75 else dense_format(len(target.indices))
    if accumulates:
        form = _possible(form, tuple(extents[index] for index in target.indices))
        form = _compressed(form) if semiring == POSITIVE and pads(form) else form
    orders = {leaf.tensor: leaf for leaf in leaves(tree)}
    if accumulates:
        orders[target.tensor] = target
    dtypes = {name: np.dtype(rng.choice(kinds)) for name in orders}
    dtype = np.result_type(*dtypes.values())
    manner = _manner(rng, tree, dtype, semiring, rows)
    fill = fill_of(semiring, dtype)
    operands = {
        name: random_operand(rng, leaf, extents, form if name == target.tensor else None, dtypes[name], fill, manner)
        for name, leaf in orders.items()
    }
    named = tuple(dict.fromkeys((*target.indices, *(index for leaf in leaves(tree) for index in leaf.indices))))
    constants = {index: extents[index] for index in named if rng.random() < 0.3} if rng.random() < 0.3 else {}
    read = {index for leaf in orders.values() for index in leaf.indices}
    given = {index: extents[index] for index in target.indices if index not in read}
    limit = rng.randint(2, 6) if rng.random() < 0.1 else 2**31 - 1
    return Case(seed, text, target, tree, accumulates, extents, operands, form, constants, given, semiring, dtype, limit, manner)


def _manner(rng: Random, tree: Tree, dtype: np.dtype[Any], semiring: tuple[str, str], rows: bool) -> Manner:
    """Choose whether values may be infinite: not where sums are multiplied, since the definition leaves open what comes first."""
    finite = dtype.kind != "f" or semiring != ("+", "*") or has_sum(tree, below_product=True)
    below = frozenset(leaf.tensor for leaf in denominators(tree))
    infinite = not finite and rng.random() < 0.4
    special = infinite and rng.random() < 0.15
    return Manner(rows, frozenset() if infinite else below, semiring == POSITIVE, infinite and bool(special or below), special)


def fill_of(semiring: tuple[str, str], dtype: np.dtype[Any]) -> Any:
    """Return the identity of the semiring's addition in a dtype."""
    if semiring[0] in ("+", "or"):
        return dtype.type(0)
    if dtype.kind == "f":
        return dtype.type(np.inf if semiring[0] == "min" else -np.inf)
    if dtype.kind == "b":
        return dtype.type(semiring[0] == "min")
    ends = np.iinfo(dtype)
    return dtype.type(ends.max if semiring[0] == "min" else ends.min)


def _dtypes(rng: Random, semiring: tuple[str, str]) -> tuple[str, ...]:
    """Return the dtypes that operands are drawn from."""
    if semiring == ("or", "and"):
        return ("bool",)
    if set(semiring) == {"min", "max"}:
        return (rng.choice(("float64", "float32", "int64", "int32", "uint8", "bool")),)
    if semiring != ("+", "*"):
        return (rng.choice(("float64", "float64", "float32", "int64", "int32", "int16")),)
    if rng.random() < 0.65:
        return ("float64",)
    one = rng.choice(DTYPES)
    return (one,) if rng.random() < 0.6 else (one, "float64" if rng.random() < 0.4 else rng.choice(("float32", "int32", "int64")))


def _style(kinds: tuple[str, ...], semiring: tuple[str, str]) -> Style:
    floats = all(kind.startswith("float") for kind in kinds)
    ring = semiring == ("+", "*")
    return Style("bool" not in kinds and ring, floats and ring, floats, "bool" not in kinds)


def _expression(rng: Random, style: Style, large: bool, rows: bool) -> tuple[Tree, Leaf]:
    """Draw what is computed, and where to: with many rows mostly sums over each of them."""
    weights = (1, 4, 4, 1) if rows else (1, 2) if large else (8, 27, 33, 20, 9, 3)
    pool = INDICES[: rng.choices(range(1, len(weights) + 1), weights)[0]]
    expressions = Expressions(rng, style, pool)
    if rows and rng.random() < 0.6:
        return expressions.row_sums(rng.randint(1, 3)), Leaf("A", (ROW,))
    tree = expressions.tree(rng.choices((1, 2, 3, 4, 5), (18, 32, 27, 17, 6))[0])
    return tree, Leaf("A", tuple(rng.sample(pool, rng.randint(0, min(4, len(pool))))))


def _extents(rng: Random, tree: Tree, target: Leaf, large: bool, rows: bool) -> dict[str, int]:
    """Return random extents, large ones if neither a tensor nor all coordinates together are too many then."""
    accesses = (target, *leaves(tree))
    count = len({index for leaf in accesses for index in leaf.indices})

    def draw(index: str) -> int:
        return row_extent(rng, index) if rows else random_extent(rng, count, large=large)

    extents = drawn_extents(accesses, draw)
    return extents if most_components(accesses, extents) <= LARGEST else drawn_extents(accesses, lambda _: random_extent(rng, count))


def drawn_extents(accesses: Iterable[Leaf], draw: Callable[[str], int]) -> dict[str, int]:
    """Return an extent for every index; indices that stand in one mode of one tensor in two accesses have the same."""
    leader = linked(accesses)
    drawn = {first: draw(first) for first in leader}
    return {index: drawn[first] for index, first in leader.items()}


def linked(accesses: Iterable[Leaf]) -> dict[str, str]:
    """Return for every index the one that stands for all that must have the same extent."""
    accesses = tuple(accesses)
    leader = {index: index for leaf in accesses for index in leaf.indices}

    def find(index: str) -> str:
        while leader[index] != index:
            index = leader[index]
        return index

    first: dict[str, Leaf] = {}
    for leaf in accesses:
        for left, right in zip(first.setdefault(leaf.tensor, leaf).indices, leaf.indices, strict=True):
            leader[find(left)] = find(right)
    return {index: find(index) for index in leader}


def most_components(accesses: Iterable[Leaf], extents: dict[str, int]) -> int:
    """Return how many components the largest tensor has, or how many coordinates all indices together have if these are more."""
    return max(math.prod(extents.values()), *(math.prod(extents[index] for index in leaf.indices) for leaf in accesses))


def _format(rng: Random, order: int, rows: bool) -> Format:
    return row_format(order) if rows and rng.random() < 0.6 else random_format(rng, order)


def _possible(form: Format, shape: tuple[int, ...]) -> Format:
    """Return a format that holds tensors of a shape: one slot a parent needs a coordinate to put there."""
    impossible = any(shape[form.order[level]] == 0 for level in one_coordinate_levels(form))
    return _compressed(form) if impossible else form


def _compressed(form: Format) -> Format:
    return Format(("compressed",) * len(form), form.order)


def random_operand(
    rng: Random, leaf: Leaf, extents: dict[str, int], form: Format | None, dtype: np.dtype[Any], fill: Any, manner: Manner
) -> Operand:
    """Draw an operand; ``form`` is None where its format is free."""
    shape = tuple(extents[index] for index in leaf.indices)
    divisor = leaf.tensor in manner.divisors
    if divisor:
        chosen = Format(("dense",) * len(shape), form.order if form is not None else None)
        places = list(np.ndindex(shape))
    else:
        chosen = _possible(_format(rng, len(shape), manner.rows), shape) if form is None else form
        if manner.positive and pads(chosen):  # the fill value -inf is no zero of *: stored, it would give inf with another one
            chosen = _compressed(chosen)
        drawn = row_coordinates if manner.rows else random_coordinates
        places = storable(drawn(rng, shape), chosen) if shape else [()]
    values = random_values(rng, len(places), dtype, positive=manner.positive or divisor, exact=manner.exact, special=manner.special)
    return Operand(shape, chosen, tuple(places), values, dtype.type(fill))
