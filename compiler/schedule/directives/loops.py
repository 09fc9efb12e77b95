"""Directives about loops: their order and what they iterate over, and how they run."""

from __future__ import annotations

from typing import Final

from ...frozen import frozen
from ...notation.nodes import Access
from ...units import CHUNKINGS, LANES, REGISTERS, UNITS
from .directive import Directive, Parameter

RACES: Final = ("no_races", "ignore_races", "atomics", "temporary", "parallel_reduction")
BOUNDS: Final = ("min_exact", "min_constraint", "max_exact", "max_constraint", "divisible")


@frozen
class Reorder(Directive):
    """New order of directly nested loops."""

    keyword = "reorder"
    parameters = (Parameter("order", "index", many=True),)
    order: tuple[str, ...]


@frozen
class Split(Directive):
    """Split a loop into tiles of ``factor`` iterations."""

    keyword = "split"
    parameters = (Parameter("index", "index"), Parameter("outer", "new"), Parameter("inner", "new"), Parameter("factor", "integer"))
    index: str
    outer: str
    inner: str
    factor: int


@frozen
class SplitUp(Directive):
    """Split a loop into ``factor`` tiles."""

    keyword = "split_up"
    parameters = Split.parameters
    index: str
    outer: str
    inner: str
    factor: int


@frozen
class Collapse(Directive):
    """Make two directly nested loops one."""

    keyword = "collapse"
    parameters = (Parameter("outer", "index"), Parameter("inner", "index"), Parameter("fused", "new"))
    outer: str
    inner: str
    fused: str


@frozen
class Pos(Directive):
    """Iterate positions of an operand instead of coordinates."""

    keyword = "pos"
    parameters = (Parameter("index", "index"), Parameter("position", "new"), Parameter("access", "access"))
    index: str
    position: str
    access: Access


@frozen
class Coord(Directive):
    """Iterate coordinates again, over the range of a position loop."""

    keyword = "coord"
    parameters = (Parameter("position", "index"), Parameter("coordinate", "new"))
    position: str
    coordinate: str


@frozen
class MergePath(Directive):
    """Iterate the entries of a position loop and the ends of their fibres, in order, so that tiles have equally many of both together."""

    keyword = "merge_path"
    parameters = (Parameter("position", "index"), Parameter("item", "new"))
    position: str
    item: str


@frozen
class Bound(Directive):
    """State a known fact about the range of a loop."""

    keyword = "bound"
    parameters = (
        Parameter("index", "index"),
        Parameter("bounded", "new"),
        Parameter("amount", "integer"),
        Parameter("kind", "choice", BOUNDS),
    )
    index: str
    bounded: str
    amount: int
    kind: str


@frozen
class Unroll(Directive):
    """Do ``factor`` iterations of a loop in one step, or ``factor`` vectors in a vector loop."""

    keyword = "unroll"
    parameters = (Parameter("index", "index"), Parameter("factor", "integer"))
    index: str
    factor: int


@frozen
class Prefetch(Directive):
    """Prefetch the data of an operand for ``distance`` iterations ahead: the row of a coordinate, or the entries over which the loop
    runs. With a distance of at least 1024, entries are brought only to the second level of cache."""

    keyword = "prefetch"
    parameters = (Parameter("index", "index"), Parameter("access", "access"), Parameter("distance", "integer"))
    index: str
    access: Access
    distance: int


@frozen
class Parallelize(Directive):
    """Run the iterations of a loop on parallel units; ``race`` is the strategy for conflicting writes."""

    keyword = "parallelize"
    parameters = (
        Parameter("index", "index"),
        Parameter("unit", "choice", tuple(UNITS)),
        Parameter("race", "choice", RACES),
        Parameter("chunking", "choice", (*CHUNKINGS, LANES, REGISTERS), default=None),
        Parameter("chunk", "integer", default=None),
    )
    index: str
    unit: str
    race: str
    chunking: str | None = None
    chunk: int | None = None
