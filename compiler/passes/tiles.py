"""Tiles of positions that threads have, and which segments lie in one of them entirely, so that no other thread has a part of these.

A tile [low, high) of the positions of a level holds segments of the level above, the first and the last of which may be cut. Those are
positions of the level above in turn, so that they are a tile of it: ``upper_bound(pos, low) - 1 .. lower_bound(pos, high)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product

from ..frozen import frozen
from ..ir.nodes import BOOL, I64, ArrayRef, Binary, Call, Cast, Const, Declare, For, Load, SetVar, Type, Value, Var
from ..ir.rewrite import mentions, nodes_of, walk


@frozen
class Tile:
    """Positions that one iteration of a parallel loop has.

    Attributes:
        low, high: variables with its ends, as positions of the lowest level.
        levels: the arrays ``pos`` of the levels from the one below that of the tile down to the lowest one.
    """

    low: Var
    high: Var
    levels: tuple[str, ...] = ()


Tiles = Mapping[tuple[str, str], Tile]
"""Tiles by the names of the variables with their ends, as positions of their own level."""


def tiles_of(loop: For) -> Tiles:
    """Return the tiles that the iterations of a parallel loop declare: ``low = number * size``, ``high = min(low + size, ...)``, and those
    of the levels above that are searched for these ends."""
    declared = {node.variable.name: node.value for node in nodes_of(loop.body, Declare)}
    counts = Counter(node.variable.name for node in walk(loop.body) if isinstance(node, Declare | SetVar | For))
    found: dict[tuple[str, str], Tile] = {}
    for high, value in declared.items():
        match value:
            case Binary("min", Binary("+", Var(low), Const() | Var() as size), _):
                begins = declared.get(low) == Binary("*", loop.variable, size, I64)
                if begins and counts[low] == counts[high] == 1 and not mentions(size, counts.keys() | {loop.variable.name}):
                    found[low, high] = Tile(Var(low, I64), Var(high, I64))
    searches = [name for name, value in declared.items() if counts[name] == 1 and any(isinstance(node, Call) for node in walk(value))]
    for first, past in product(searches, repeat=2):
        level = segments_between(declared[first], declared[past])
        if level is not None and (below := found.get((level.low.name, level.high.name))) is not None:
            found[first, past] = Tile(below.low, below.high, (level.pos, *below.levels))
    return found


@frozen
class Level:
    """Segments of a tile of positions.

    Attributes:
        pos: the array of their ends.
        low, high: variables with the ends of the tile.
    """

    pos: str
    low: Var
    high: Var


def segments_between(first: Value | None, past: Value | None) -> Level | None:
    """Return the level whose segments ``first .. past`` contain a tile of positions, if these are searched for the ends of a tile."""
    match first, past:
        case (
            Binary("-", Call("upper_bound", (ArrayRef(pos), Const(1), _, Var() as low)), Const(1)),
            Call("lower_bound", (ArrayRef(other), Const(0), _, Var() as high)),
        ) if pos == other:
            return Level(pos, low, high)
    return None


def inside_tile(loop: For, tiles: Tiles, types: Mapping[str, Type]) -> tuple[Var, Value] | None:
    """Return the index of the segment of a loop, and the condition that no other tile has a part of it; None: it is no segment of a tile.

    Args:
        loop: through what is in a tile of a segment: ``max(pos[index], low) .. min(pos[index + 1], high)``.
        tiles: those of the parallel loop around it.
        types: of the elements of arrays.
    """
    match loop.low, loop.high:
        case Binary("max", begin, Var(first)), Binary("min", end, Var(past)) if (first, past) in tiles:
            match _uncast(begin), _uncast(end):
                case Load(pos, Var() as row), Load(other, Binary("+", Var() as same, Const(1), _)) if pos == other and row == same:
                    tile = tiles[first, past]
                    for level in tile.levels:
                        begin, end = (Cast(Load(level, place, types[level]), I64) for place in (begin, end))
                    after, before = Binary("<=", tile.low, begin, BOOL), Binary("<=", end, tile.high, BOOL)
                    return row, Binary("and", after, before, BOOL)
    return None


def _uncast(expr: Value) -> Value:
    return expr.operand if isinstance(expr, Cast) else expr
