"""One level of a result that is being assembled: the names of its arrays and variables, by which entries are appended."""

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
        level: its kind, index and extent, and the arrays that are handed to the caller.
        listed: the list of entries that its kind places afterwards (``placing``); for other kinds the same as ``level``.
        carried: the levels above with the same positions, one coordinate for each entry: appending to this one appends to them too.
        head: the number of the first of these, or the level's own number.
        cursor: the position of the next coordinate; None for levels that are inserted into, and for those that another one carries.
        total: the number of entries when all are appended.
        counts: the array of how many entries each iteration of the outermost loop appends.
        pos: the array that delimits the entries of each parent; ``pos_capacity`` is its size.
        crd_capacity: the size of the arrays of coordinates.
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
        """The array to which coordinates are appended."""
        return self.listed.array("crd").name

    @property
    def entries(self) -> tuple[AssembledLevel, ...]:
        """The levels that get a coordinate for every entry: this one and those that it carries."""
        return (*self.carried, self)


def assembled_levels(
    name: str, form: Format, indices: tuple[str, ...], extents: tuple[Value, ...], widths: tuple[int, ...], names: Names
) -> tuple[AssembledLevel, ...]:
    """Return the levels of a result; see ``results.result_assembly``."""
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
    """Return the arrays of a level. Positions have 64 bits, since the number of entries is known only at the end."""
    types = ((part, I64 if part == "pos" else own) for part, own in kind.types(width).items())
    return tuple(LevelArray(part, names.permanent(f"{stem}_{part}"), own) for part, own in types)


def _appended(level: Level, width: Type, place: int, carried: tuple[AssembledLevel, ...], stem: str, names: Names) -> AssembledLevel:
    """Return a level to which entries are appended, below those that it carries."""
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
    """Return the variable with the position of the next coordinate of a level."""
    return known(entry.cursor)


def known(variable: Var | None) -> Var:
    """Return a variable that exists, as it does for every level that stores coordinates."""
    assert variable is not None, "the level has no such variable"
    return variable
