"""One level of a result that is being assembled: how entries are appended to it, with the names of its arrays and variables."""

from __future__ import annotations

from dataclasses import replace

from ..format import Format
from ..frozen import frozen
from ..ir.names import Names
from ..ir.nodes import I32, I64, Type, Value, Var
from ..levels import LevelKind
from ..levels.level import Level, LevelArray


@frozen
class AssembledLevel:
    """One level of the result that is being assembled.

    Attributes:
        level: its kind, index and extent, and the arrays that are handed back.
        listed: where entries are appended that its kind places afterwards (``placing``); elsewhere the same as ``level``.
        carried: the levels above that have the same positions, one coordinate an entry: what is appended to this one is to them too.
        head: the first of these, or the level's own number.
        cursor: where the next coordinate goes; None for levels that are inserted into, and for those that another one carries.
        total: how many entries there are once all are in.
        counts: the array of what each iteration of the outermost loop appends.
        pos: the array that delimits the entries of each parent, and ``pos_capacity`` what it has room for.
        crd_capacity: what arrays of coordinates have room for.
    """

    level: Level
    listed: Level
    width: Type
    head: int
    carried: tuple[AssembledLevel, ...] = ()
    cursor: Var | None = None
    total: Var | None = None
    counts: str = ""
    pos: str = ""
    crd_capacity: Var | None = None
    pos_capacity: Var | None = None

    @property
    def kind(self) -> LevelKind:
        return self.level.kind

    @property
    def index(self) -> str:
        return self.level.index

    @property
    def extent(self) -> Value:
        return self.level.extent

    @property
    def crd(self) -> str:
        """The array that coordinates are appended to."""
        return self.listed.array("crd").name

    @property
    def entries(self) -> tuple[AssembledLevel, ...]:
        """The levels that get a coordinate with every entry: this one and those that it carries."""
        return (*self.carried, self)


def assembled_levels(
    name: str, form: Format, indices: tuple[str, ...], extents: tuple[Value, ...], widths: tuple[int, ...], names: Names
) -> tuple[AssembledLevel, ...]:
    """Return the levels of a result; see ``assembly.assembly_of``."""
    levels: list[AssembledLevel] = []
    for place, (kind, index, extent, bits) in enumerate(zip(form.levels, indices, extents, widths, strict=True)):
        width, stem = I32 if bits == 32 else I64, f"{name}{place + 1}"
        level = Level(kind, index, extent, arrays=_arrays(kind, stem, width, names))
        if kind.inserts:
            levels.append(AssembledLevel(level, level, width, place))
            continue
        carried: tuple[AssembledLevel, ...] = ()
        if kind.shares_positions:
            above = levels[-1]
            carried = (*above.carried, replace(above, carried=(), cursor=None))
            levels[-1] = carried[-1]
        levels.append(_appended(level, width, place, carried, stem, names))
    return tuple(levels)


def _arrays(kind: LevelKind, stem: str, width: Type, names: Names) -> tuple[LevelArray, ...]:
    """Return the arrays of a level; positions are counted in 64 bits, as how many entries come is known at the end only."""
    types = ((part, I64 if part == "pos" else own) for part, own in kind.types(width).items())
    return tuple(LevelArray(part, names.permanent(f"{stem}_{part}"), own) for part, own in types)


def _appended(level: Level, width: Type, place: int, carried: tuple[AssembledLevel, ...], stem: str, names: Names) -> AssembledLevel:
    """Return a level that entries are appended to, below those that it carries."""
    listed = level
    if level.kind.places:
        own = (("pos", I64), ("crd", width))
        listed = replace(level, arrays=tuple(LevelArray(part, names.permanent(f"{stem}_listed_{part}"), kind) for part, kind in own))
    head = carried[0] if carried else None
    counts = names.permanent(f"{stem}_counts")
    cursor, total, *room = (Var(names.permanent(f"{stem}_{part}"), I64) for part in ("count", "total", "crd_capacity", "pos_capacity"))
    pos = listed.array("pos").name if head is None else head.pos
    return AssembledLevel(level, listed, width, place if head is None else head.head, carried, cursor, total, counts, pos, *room)


def cursor(entry: AssembledLevel) -> Var:
    """Return the position where the next coordinate of a level goes."""
    return known(entry.cursor)


def known(variable: Var | None) -> Var:
    """Return a variable of a level that stores coordinates."""
    assert variable is not None, "the level has no such variable"
    return variable
