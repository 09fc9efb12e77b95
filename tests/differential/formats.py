"""Formats of operands and results: every composition of the level kinds that means something, and what each one stores."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from sparsetune.compiler.format import Format
from sparsetune.compiler.levels import level_kind

DENSE, COMPRESSED, NARROW, SINGLETON, HASHED, BITMAP, PADDED, SLICED, PATTERNED = map(level_kind, "dsnqhbplt")

Coordinates = tuple[int, ...]


def random_format(rng: Random, order: int) -> Format:
    """Return a format; every composition is possible, common ones come more often."""
    modes = tuple(range(order)) if rng.random() < 0.6 else tuple(rng.sample(range(order), order))
    draw = rng.random()
    if draw < 0.18:
        return Format((DENSE,) * order, modes)
    if draw < 0.3:
        return Format((COMPRESSED,) * order, modes)
    if draw < 0.4 and order:
        return Format((COMPRESSED, *(SINGLETON,) * (order - 1)), modes)
    if draw < 0.6:
        return Format(tuple(rng.choice((DENSE, COMPRESSED)) for _ in range(order)), modes)
    if draw < 0.68:
        return Format(tuple(rng.choice((DENSE, NARROW, PATTERNED)) for _ in range(order)), modes)
    drawn = (DENSE, COMPRESSED, COMPRESSED, NARROW, HASHED, SINGLETON, BITMAP, PADDED, SLICED, PATTERNED)
    kinds = [rng.choice(drawn) for _ in range(order)]
    for level, kind in enumerate(kinds):
        if kind is SINGLETON and (level == 0 or kinds[level - 1] in (NARROW, PATTERNED)):
            kinds[level] = COMPRESSED
    return Format(tuple(kinds), modes)


def shares_positions(form: Format, level: int) -> bool:
    """Whether a singleton level belongs to a run below a compressed one, whose positions are one an entry."""
    while form.levels[level] is SINGLETON:
        level -= 1
    return form.levels[level] is COMPRESSED


def one_coordinate_levels(form: Format) -> list[int]:
    """Return the singleton levels that hold a single coordinate for each coordinate tuple above them."""
    return [level for level, kind in enumerate(form.levels) if kind is SINGLETON and not shares_positions(form, level)]


def padded_above(form: Format, shape: tuple[int, ...], level: int) -> bool:
    """Return whether even an empty tensor has positions above a level: all levels there are dense or bitmaps, or singletons that pad."""
    above = list(zip(form.levels, form.order, strict=True))[:level]
    return all(kind is SINGLETON or (kind in (DENSE, BITMAP) and shape[mode] > 0) for kind, mode in above)


def storable(coordinates: Iterable[Coordinates], form: Format) -> list[Coordinates]:
    """Return those of the coordinates that a format can hold together: the first to come where a parent has one slot."""
    kept = []
    chosen: dict[tuple[int, Coordinates], int] = {}
    restricted = one_coordinate_levels(form)
    for entry in coordinates:
        path = tuple(entry[mode] for mode in form.order)
        claims = [((level, path[:level]), path[level]) for level in restricted]
        if all(chosen.get(key, coordinate) == coordinate for key, coordinate in claims):
            chosen.update(claims)
            kept.append(entry)
    return kept


def stored(coordinates: Iterable[Coordinates], form: Format, shape: tuple[int, ...]) -> set[Coordinates]:
    """Return everything that a tensor of some entries stores: dense levels and singletons below them pad.

    Entries that the format cannot hold together must be left out before (``storable``).
    """
    paths = {tuple(entry[mode] for mode in form.order) for entry in coordinates}
    reached: set[Coordinates] = {()}
    for level, kind in enumerate(form.levels):
        present = {path[: level + 1] for path in paths}
        if kind is DENSE:
            reached = {(*above, coordinate) for above in reached for coordinate in range(shape[form.order[level]])}
        elif kind is SINGLETON and not shares_positions(form, level):
            given = {path[:-1] for path in present}
            reached = present | {(*above, 0) for above in reached if above not in given}
        else:
            reached = present
    return {tuple(path[form.level_of(mode)] for mode in range(len(form))) for path in reached}


def pads(form: Format) -> bool:
    """Whether a format may store more than the entries it is given."""
    return form.levels[-1:] == (DENSE,) or bool(one_coordinate_levels(form))
