"""The directives of the scheduling language as values; what they mean is in ``compiler/schedule/README.md``.

Every directive lists its parameters, in the order of its text. ``schedule.text`` reads and prints directives by that list,
``Schedule.rename`` renames by it, and ``schedule.apply`` carries them out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from typing import ClassVar, Final

from ..frozen import frozen
from ..notation.nodes import Access, Assignment, Expr
from ..workspaces import WORKSPACES

UNITS_OF: Final = {"cpu": ("cpu_thread", "cpu_vector"), "cuda": ("gpu_block", "gpu_warp", "gpu_thread")}
UNITS: Final = tuple(unit for units in UNITS_OF.values() for unit in units)
RACES: Final = ("no_races", "ignore_races", "atomics", "temporary", "parallel_reduction")
CHUNKINGS: Final = ("static", "dynamic", "guided")
LANES: Final = "lanes"
"""What stands before how many lanes a warp of a GPU has: 32, or a part of these where other warps have the rest."""
REGISTERS: Final = "registers"
"""What stands before how many registers a thread of a GPU has at most: the fewer, the more threads are there at once."""
BOUNDS: Final = ("min_exact", "min_constraint", "max_exact", "max_constraint", "divisible")
PROTOCOLS: Final = ("step", "locate", "append", "insert")
ASSEMBLIES: Final = ("append", "insert", "workspace")
MERGES: Final = ("two_finger", "gallop", "locate", "bitmap")
CALL_LOOPS: Final = {"gemm": 3, "gemv": 2, "ger": 2, "axpy": 1, "dot": 1}
"""Routines of BLAS, and how many loops each takes over."""

CALLS: Final = tuple(CALL_LOOPS)


class Required:
    """Stands for the missing default of a parameter that must be given."""


@frozen
class Parameter:
    """One argument of a directive.

    Attributes:
        field: the attribute that holds it.
        kind: index (a loop that exists), name (a workspace that exists), new (a name made here), indices and news (one, or
            several in brackets), integer, ordinal (an integer that may be missing, also before others), boolean, choice,
            expression, addend (an expression, or one that goes into a new workspace), access (an operand, or one access of
            it), path, text, compiler, flags.
        choices: for kind choice.
        default: what stands for a missing last argument.
        many: it takes all arguments from here on, at least one.
    """

    field: str
    kind: str
    choices: Collection[str] = ()
    default: object = Required
    many: bool = False


@frozen
class Directive:
    """One step of a schedule. ``path`` leads to the statement it applies to; None: the root, or where its index is unique.

    ``takes_path`` is false where no path may be given, since the directive is about the whole program or names its statements.
    """

    keyword: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]
    takes_path: ClassVar[bool] = True
    path: tuple[int, ...] | None = field(default=None, kw_only=True)


# Loops


@frozen
class Reorder(Directive):
    """New order of directly nested loops."""

    keyword = "reorder"
    parameters = (Parameter("order", "index", many=True),)
    order: tuple[str, ...]


@frozen
class Split(Directive):
    """Tiles of ``factor`` iterations."""

    keyword = "split"
    parameters = (Parameter("index", "index"), Parameter("outer", "new"), Parameter("inner", "new"), Parameter("factor", "integer"))
    index: str
    outer: str
    inner: str
    factor: int


@frozen
class SplitUp(Directive):
    """``factor`` tiles."""

    keyword = "split_up"
    parameters = Split.parameters
    index: str
    outer: str
    inner: str
    factor: int


@frozen
class Collapse(Directive):
    """Two directly nested loops as one."""

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
    """Iterate the entries of a position loop and the ends of the fibres that they lie in, in order, so that tiles have equally many."""

    keyword = "merge_path"
    parameters = (Parameter("position", "index"), Parameter("item", "new"))
    position: str
    item: str


@frozen
class Bound(Directive):
    """Say what is known of the range of a loop."""

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
    """Do ``factor`` iterations of a loop in one step; of a loop in vectors, ``factor`` vectors."""

    keyword = "unroll"
    parameters = (Parameter("index", "index"), Parameter("factor", "integer"))
    index: str
    factor: int


@frozen
class Prefetch(Directive):
    """Ask for what an operand needs ``distance`` iterations ahead: the row that a coordinate chooses, or the entries that the loop goes
    through. From a distance of 1024 on, entries come to the second level of cache alone."""

    keyword = "prefetch"
    parameters = (Parameter("index", "index"), Parameter("access", "access"), Parameter("distance", "integer"))
    index: str
    access: Access
    distance: int


@frozen
class Parallelize(Directive):
    """Run the iterations of a loop on parallel units; ``race`` says what keeps writes apart."""

    keyword = "parallelize"
    parameters = (
        Parameter("index", "index"),
        Parameter("unit", "choice", UNITS),
        Parameter("race", "choice", RACES),
        Parameter("chunking", "choice", (*CHUNKINGS, LANES, REGISTERS), default=None),
        Parameter("chunk", "integer", default=None),
    )
    index: str
    unit: str
    race: str
    chunking: str | None = None
    chunk: int | None = None


# Statements


@frozen
class Factors(Directive):
    """Order of the factors of a product."""

    keyword = "factors"
    parameters = (Parameter("order", "expression", many=True),)
    order: tuple[Expr, ...]


@frozen
class Precompute(Directive):
    """Compute a part of an expression into a workspace first."""

    keyword = "precompute"
    parameters = (
        Parameter("expression", "expression"),
        Parameter("indices", "indices"),
        Parameter("producer_indices", "news"),
        Parameter("workspace", "new"),
    )
    expression: Expr
    indices: tuple[str, ...]
    producer_indices: tuple[str, ...]
    workspace: str


@frozen
class Addends(Directive):
    """The right-hand side as a sum of these, each in loops of its own; ``w(i) = e`` sums into a workspace that a later one adds."""

    keyword = "addends"
    parameters = (Parameter("addends", "addend", many=True),)
    takes_path = False
    addends: tuple[Expr | Assignment, ...]


@frozen
class Join(Directive):
    """The outermost loops of two statements become one loop around the smallest block that holds both."""

    keyword = "join"
    parameters = (Parameter("index", "index"), Parameter("first", "path"), Parameter("second", "path"))
    takes_path = False
    index: str
    first: tuple[int, ...]
    second: tuple[int, ...]


@frozen
class Recompute(Directive):
    """The outermost loop of the second statement moves around the first too, which does not depend on it and runs again each time."""

    keyword = "recompute"
    parameters = Join.parameters
    takes_path = False
    index: str
    first: tuple[int, ...]
    second: tuple[int, ...]


@frozen
class Accumulate(Directive):
    """A workspace is added to (``+=``) also where every component is written once."""

    keyword = "accumulate"
    parameters = (Parameter("workspace", "name"),)
    takes_path = False
    workspace: str


@frozen
class Loopfuse(Directive):
    """Split a product after its ``count``-th factor into a producer and a consumer that share their outermost loops."""

    keyword = "loopfuse"
    parameters = (Parameter("count", "integer"), Parameter("producer_is_left", "boolean"))
    count: int
    producer_is_left: bool
    path: tuple[int, ...] | None = field(default=(), kw_only=True)


# Data


@frozen
class ProtocolDirective(Directive):
    """How each mode of an access is traversed, modes in the order in which they are stored, outermost first.

    ``place`` tells reads apart that are written alike: 1 is the first of them; None: all.
    """

    keyword = "protocol"
    parameters = (
        Parameter("access", "access"),
        Parameter("place", "ordinal", default=None),
        Parameter("protocols", "choice", PROTOCOLS, many=True),
    )
    access: Access
    protocols: tuple[str, ...]
    place: int | None = field(default=None, kw_only=True)

    @property
    def is_general(self) -> bool:
        """Whether it is about all accesses of the operand, or all that are written alike."""
        return not self.path and self.place is None


@frozen
class WorkspaceDirective(Directive):
    """Storage of a workspace."""

    keyword = "workspace"
    parameters = (Parameter("workspace", "name"), Parameter("kind", "choice", WORKSPACES))
    workspace: str
    kind: str


@frozen
class Convert(Directive):
    """Convert an operand to another format before the kernel runs.

    With a path, or the ``place`` of one of several reads that are written alike, a copy is made for these reads alone.
    """

    keyword = "convert"
    parameters = (Parameter("access", "access"), Parameter("place", "ordinal", default=None), Parameter("format", "text"))
    access: Access
    format: str
    place: int | None = field(default=None, kw_only=True)

    @property
    def is_general(self) -> bool:
        """Whether it is about all reads of the operand, or all that are written alike."""
        return not self.path and self.place is None


@frozen
class Assemble(Directive):
    """How a sparse result is put together."""

    keyword = "assemble"
    parameters = (Parameter("result", "name"), Parameter("strategy", "choice", ASSEMBLIES))
    result: str
    strategy: str


@frozen
class Merge(Directive):
    """How sparse operands meet in a loop."""

    keyword = "merge"
    parameters = (Parameter("index", "index"), Parameter("strategy", "choice", MERGES))
    index: str
    strategy: str


# Code


@frozen
class Call(Directive):
    """Hand the last loops around an assignment to BLAS."""

    keyword = "call"
    parameters = (Parameter("routine", "choice", CALLS),)
    routine: str


@frozen
class Build(Directive):
    """Compiler and flags, of those in ``build_options``; compiler None is written ``auto``."""

    keyword = "build"
    parameters = (Parameter("compiler", "compiler"), Parameter("flags", "flags", default=None))
    compiler: str | None
    flags: str | None = None


LOOPS: Final = (Reorder, Split, SplitUp, Collapse, Pos, Coord, MergePath, Bound, Unroll, Prefetch, Parallelize)
STATEMENTS: Final = (Addends, Factors, Precompute, Accumulate, Join, Recompute, Loopfuse)
DATA: Final = (ProtocolDirective, WorkspaceDirective, Convert, Assemble, Merge)
CODE: Final = (Call, Build)
DIRECTIVES: Final[dict[str, type[Directive]]] = {kind.keyword: kind for kind in (*LOOPS, *STATEMENTS, *DATA, *CODE)}
ALIASES: Final = {"fuse": "collapse"}
