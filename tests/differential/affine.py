"""Random expressions with compound subscripts, and what they mean: every term on the grid of all values of its indices (DESIGN 4.5).

The oracle shares nothing with the compiler. It reads operands entry by entry, at positions that it works out, and finds how far an index
goes by trying one value after another.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import sparsetune as st
from numpy.typing import NDArray

KINDS = ("d", "s", "h", "b", "p", "n")
MATRICES = ("dd", "ds", "ss", "coo", "csc", "dcsc", "sd", "dh", "hh", "db", "sb", "dp", "sp", "dn", "sn")
CUBES = ("ddd", "dds", "dss", "sss", "coo", "csf; 2, 0, 1", "dsd", "ssd", "dsh", "dsb", "ddp")
MOST = 40  # values of an index that has no end


@dataclass(frozen=True)
class Sub:
    """A subscript: coefficients by index, and a constant."""

    terms: tuple[tuple[str, int], ...]
    constant: int

    @property
    def plain(self) -> bool:
        return self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1

    def __str__(self) -> str:
        if self.plain:
            return self.terms[0][0]
        return "".join([*(f"{factor:+d}*{name}" for name, factor in self.terms), f"{self.constant:+d}"])

    def at(self, values: Mapping[str, Any]) -> Any:
        return sum((factor * values[name] for name, factor in self.terms), start=self.constant)


@dataclass(frozen=True)
class Read:
    tensor: str
    subs: tuple[Sub, ...]

    def __str__(self) -> str:
        return f"{self.tensor}({', '.join(map(str, self.subs))})"


@dataclass(frozen=True)
class Case:
    """An expression: a sum of products with signs and factors, and what it is computed on."""

    target: Read
    terms: tuple[tuple[int, tuple[Read, ...]], ...]
    arrays: Mapping[str, NDArray[Any]] = field(repr=False)
    formats: Mapping[str, str]
    shape: Mapping[str, int]
    boundary: str | dict[str, str] | None
    output: str | None

    @property
    def text(self) -> str:
        parts = (f"{factor} * {' * '.join(map(str, reads))}" for factor, reads in self.terms)
        return f"{self.target} = {' + '.join(parts)}"

    def found(self, schedule: str = "default", target: str = "cpu") -> NDArray[Any]:
        """Return what the compiler makes of it."""
        operands = {name: st.tensor(array, self.formats[name]) for name, array in self.arrays.items()}
        made = st.evaluate(
            self.text, operands, output_format=self.output, schedule=schedule, shape=dict(self.shape) or None, boundary=self.boundary,
            target=target,
        )  # fmt: skip
        return made.to_numpy() if isinstance(made, st.Tensor) else made

    def wanted(self) -> NDArray[Any]:
        """Return what it means; ``Impossible`` where something is undetermined or begins outside."""
        extents = self.extents()
        shape = tuple(_length(sub, extents) for sub in self.target.subs)
        total = np.zeros(shape)
        left = [name for sub in self.target.subs for name, _ in sub.terms]
        for factor, reads in self.terms:
            names = list(dict.fromkeys([*left, *(name for read in reads for sub in read.subs for name, _ in sub.terms)]))
            grid = np.meshgrid(*(np.arange(extents[name]) for name in names), indexing="ij") if names else []
            values = dict(zip(names, grid, strict=True))
            whole = np.full(grid[0].shape if names else (), float(factor))
            for read in reads:
                whole = whole * self._read(read, values)
            places = tuple(np.broadcast_to(sub.at(values), whole.shape).reshape(-1) for sub in self.target.subs)
            if places:
                np.add.at(total, places, whole.reshape(-1))
            else:
                total += whole.sum()
        return total

    def _read(self, read: Read, values: Mapping[str, Any]) -> Any:
        array, inside, places = self.arrays[read.tensor], np.array(True), []
        for mode, sub in enumerate(read.subs):
            place = np.asarray(sub.at(values))
            if not sub.plain and any(self._wraps(name) for name, _ in sub.terms):
                place = place % array.shape[mode]
            inside = inside & (place >= 0) & (place < array.shape[mode])
            places.append(np.clip(place, 0, array.shape[mode] - 1))
        return np.where(inside, array[tuple(places)], 0.0)

    def _wraps(self, name: str) -> bool:
        said = self.boundary if isinstance(self.boundary, str) or self.boundary is None else self.boundary.get(name)
        return said == "wrap"

    def extents(self) -> dict[str, int]:
        """Return how far each index goes."""
        reads = [read for _, found in self.terms for read in found]
        subs = [(sub, self.arrays[read.tensor].shape[mode]) for read in reads for mode, sub in enumerate(read.subs)]
        known = {sub.terms[0][0]: extent for sub, extent in subs if sub.plain} | dict(self.shape)
        if any(sub.plain and known[sub.terms[0][0]] != extent for sub, extent in subs):
            raise Impossible("two extents disagree")
        for sub, extent in subs:
            if not sub.terms and not 0 <= sub.constant < extent:
                raise Impossible(f"{sub} is outside")
        names = {name for sub in (*(sub for sub, _ in subs), *self.target.subs) for name, _ in sub.terms}
        while names - known.keys():
            inner = {}
            for name in names - known.keys():
                own = [(sub, e) for sub, e in subs if name in dict(sub.terms) and not {n for n, _ in sub.terms} - known.keys() - {name}]
                if own:
                    inner[name] = _tried(name, own, known)
            if not inner:
                raise Impossible(f"{names - known.keys()} are not determined")
            known |= inner
        return known


class Impossible(Exception):
    """A case that a ShapeError has to answer."""


def _tried(name: str, subs: list[tuple[Sub, int]], known: Mapping[str, int]) -> int:
    """Return for how many values from 0 on an index keeps all subscripts inside."""
    def fits(value: int) -> bool:
        for sub, extent in subs:
            others = [other for other, _ in sub.terms if other != name]
            for rest in product(*(range(known[other]) for other in others)):
                if not 0 <= sub.at({name: value, **dict(zip(others, rest, strict=True))}) < extent:
                    return False
        return True

    if not fits(0):
        if all(_begins(name, sub, extent, known) for sub, extent in subs):
            return 0
        raise Impossible(f"{name} begins outside")
    if any(known[other] == 0 for sub, _ in subs for other, _ in sub.terms if other != name):
        return 0  # nothing is read
    return next(value for value in range(1, MOST) if not fits(value))


def _begins(name: str, sub: Sub, extent: int, known: Mapping[str, int]) -> bool:
    """Whether a subscript is on the right side of its operand's begin at 0, which it leaves at the other end only."""
    others = [other for other, _ in sub.terms if other != name]
    reached = [sub.at({name: 0, **dict(zip(others, rest, strict=True))}) for rest in product(*(range(known[other]) for other in others))]
    if not reached:
        return True
    return min(reached) >= 0 if dict(sub.terms)[name] > 0 else max(reached) < extent


def _length(sub: Sub, extents: Mapping[str, int]) -> int:
    if sub.plain:
        return extents[sub.terms[0][0]]
    names = [name for name, _ in sub.terms]
    reached = [sub.at(dict(zip(names, rest, strict=True))) for rest in product(*(range(extents[name]) for name in names))]
    if reached and min(reached) < 0:
        raise Impossible(f"{sub} of the result is negative")
    return max(reached, default=-1) + 1


def draw(seed: int) -> Case:
    """Return the case of a seed."""
    rng = random.Random(seed)
    names = ["i", "j", "k"][: rng.randint(1, 3)]
    sizes = {name: rng.randint(1, 5) for name in names}
    arrays, formats, kept = {}, {}, list[Read]()
    terms = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        reads = []
        for _ in range(rng.choice((1, 2, 2, 3))):
            if kept and rng.random() < 0.15:
                old = rng.choice(kept)
                read = Read(old.tensor, tuple(_subscript(rng, sizes)[0] for _ in old.subs))
            else:
                tensor, order = f"T{len(arrays)}", rng.choice((1, 1, 1, 2, 2, 3))
                drawn = [_subscript(rng, sizes) for _ in range(order)]
                read = Read(tensor, tuple(sub for sub, _ in drawn))
                arrays[tensor] = _array(seed, len(arrays), tuple(extent for _, extent in drawn), rng.choice((0.0, 0.3, 0.6, 1.0)))
                formats[tensor] = rng.choice((KINDS, MATRICES, CUBES)[order - 1])
                kept.append(read)
            reads.append(read)
        terms.append((rng.choice((1, 1, 2, -3)), tuple(reads)))
    target, output = _target(rng, names, sizes)
    plain = {sub.terms[0][0] for _, reads in terms for read in reads for sub in read.subs if sub.plain}
    used = {name for _, reads in terms for read in reads for sub in read.subs for name, _ in sub.terms}
    used |= {name for sub in target.subs for name, _ in sub.terms}
    given = {name: sizes[name] + rng.randint(-1, 2) for name in used - plain if rng.random() < 0.35}
    boundary = rng.choice((None, None, "fill", "wrap", {next(iter(sorted(used))): "wrap"} if used else None))
    case = Case(target, tuple(terms), arrays, formats, given, boundary, output)
    while True:  # say what nothing else says
        try:
            extents = case.extents()
        except Impossible as reason:
            missing = [name for name in sorted(used - plain) if name not in given and "determined" in str(reason)]
            if not missing:
                return case
            given = {**given, rng.choice(missing): rng.randint(0, 4)}
            case = Case(target, tuple(terms), arrays, formats, given, boundary, output)
        else:
            return case if np.prod([extents[name] for name in used] or [1]) < 20_000 else draw(seed + 1_000_003)


def _subscript(rng: random.Random, sizes: Mapping[str, int]) -> tuple[Sub, int]:
    """Return a subscript and an extent that it fits into when indices have their nominal sizes, more or less."""
    if rng.random() < 0.3:
        name = rng.choice(list(sizes))
        return Sub(((name, 1),), 0), sizes[name]
    names = rng.sample(list(sizes), rng.randint(0 if rng.random() < 0.2 else 1, len(sizes)))
    factors = [rng.choice((1, 1, 1, -1, 2, 3, -2, -3)) for _ in names]
    reaches = [factor * (sizes[name] - 1) for name, factor in zip(names, factors, strict=True)]
    constant = -sum(min(0, reach) for reach in reaches) + rng.choice((0, 0, 1, 2))
    extent = constant + sum(max(0, reach) for reach in reaches) + 1 + rng.choice((0, 0, 1, 3))
    if rng.random() < 0.08:
        constant -= rng.randint(1, 3)
    sub = Sub(tuple(zip(names, factors, strict=True)), constant)
    return sub, sizes[names[0]] if sub.plain else extent


def _array(seed: int, number: int, shape: tuple[int, ...], share: float) -> NDArray[Any]:
    rng = np.random.default_rng((seed, number))
    return rng.integers(1, 9, shape) * (rng.random(shape) < share).astype(float)


def _target(rng: random.Random, names: list[str], sizes: Mapping[str, int]) -> tuple[Read, str | None]:
    kind = rng.random()
    if kind < 0.25:
        subs = tuple(_subscript(rng, sizes)[0] for _ in range(rng.randint(1, 2)))
        taken = [sub.terms[0][0] for sub in subs if sub.plain]
        if len(set(taken)) == len(taken):
            return Read("y", subs), None
    order = rng.sample(names, rng.randint(0, len(names)))
    output = None
    if order and rng.random() < 0.4:
        output = rng.choice((("s", "h", "b"), ("csr", "dcsr", "csc", "coo"), ("csf", "dss", "coo"))[len(order) - 1])
    return Read("y", tuple(Sub(((name, 1),), 0) for name in order)), output


def fault(case: Case) -> str | None:
    """Return what is wrong with what the compiler makes of a case; None where nothing is."""
    try:
        wanted = case.wanted()
    except Impossible as reason:
        try:
            case.found()
        except st.ShapeError:
            return None
        return f"{case}\nno ShapeError, although {reason}"
    found = case.found()
    if found.shape != wanted.shape or not np.allclose(found, wanted):
        return f"{case}\n{case.text}\nfound {found}\nwanted {wanted}"
    return None


def fault_in_some_order(case: Case, seed: int) -> str | None:
    """Return what is wrong where the loops over the written indices stand in an order drawn with a seed; None where nothing is, or where
    storage does not admit the order."""
    try:
        wanted = case.wanted()
    except Impossible:
        return None
    names = sorted({name for _, reads in case.terms for read in reads for sub in read.subs for name, _ in sub.terms})
    random.Random(seed).shuffle(names)
    schedule = f"reorder({', '.join(names)})"
    try:
        found = case.found(schedule, "interpreter")
    except st.ScheduleError:
        return None
    if found.shape != wanted.shape or not np.allclose(found, wanted):
        return f"{case}\n{case.text}\n{schedule}\nfound {found}\nwanted {wanted}"
    return None
