"""The directives of the scheduling language as values; ``compiler/schedule/README.md`` explains them.

Every directive lists its parameters in the order of its text. ``schedule.text`` reads and prints directives by that list, and
``Schedule.rename`` renames by it; ``schedule.apply`` carries directives out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from typing import ClassVar, Final

from ..frozen import frozen
from ..notation.nodes import Access, Assignment, Expr
from ..units import CHUNKINGS, LANES, REGISTERS, UNITS
from ..workspaces import WORKSPACES

RACES: Final = ("no_races", "ignore_races", "atomics", "temporary", "parallel_reduction")
BOUNDS: Final = ("min_exact", "min_constraint", "max_exact", "max_constraint", "divisible")
PROTOCOLS: Final = ("step", "locate", "append", "insert")
ASSEMBLIES: Final = ("append", "insert", "workspace")
MERGES: Final = ("two_finger", "gallop", "locate", "bitmap")
CALL_LOOPS: Final = {"gemm": 3, "gemv": 2, "ger": 2, "axpy": 1, "dot": 1}
"""Routines of BLAS, and how many loops each replaces."""

CALLS: Final = tuple(CALL_LOOPS)


class Required:
    """Stands for the missing default of a parameter that must be given."""


@frozen
class Parameter:
    """One argument of a directive.

    Attributes:
        field: the attribute that holds its value.
        kind: index (an existing loop), name (an existing workspace), new (a new name), indices and news (one, or several in
            brackets), integer, ordinal (an integer that may be left out, also before other arguments), boolean, choice,
            expression, addend (an expression, or an assignment to a new workspace), access (an operand, or one access of
            it), path, text, compiler, flags.
        choices: the values of kind choice.
        default: the value of a last argument that is left out.
        many: whether it takes all further arguments, at least one.
    """

    field: str
    kind: str
    choices: Collection[str] = ()
    default: object = Required
    many: bool = False


@frozen
class Directive:
    """One step of a schedule. ``path`` leads to its statement; None: the root, or the place where its index is unique.

    ``takes_path`` is false if no path may be given, because the directive is about the whole program or names its statements itself.
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


# Statements


@frozen
class Factors(Directive):
    """Set the order of the factors of a product."""

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
    """Write the right-hand side as a sum of the given addends, each in its own loops; ``w(i) = e`` sums into a workspace that a later
    addend reads."""

    keyword = "addends"
    parameters = (Parameter("addends", "addend", many=True),)
    takes_path = False
    addends: tuple[Expr | Assignment, ...]


@frozen
class Join(Directive):
    """Make the outermost loops of two statements one loop, around the smallest block that contains both."""

    keyword = "join"
    parameters = (Parameter("index", "index"), Parameter("first", "path"), Parameter("second", "path"))
    takes_path = False
    index: str
    first: tuple[int, ...]
    second: tuple[int, ...]


@frozen
class Recompute(Directive):
    """Move the outermost loop of the second statement around the first one too, which does not depend on it and runs in every iteration."""

    keyword = "recompute"
    parameters = Join.parameters
    takes_path = False
    index: str
    first: tuple[int, ...]
    second: tuple[int, ...]


@frozen
class Accumulate(Directive):
    """Let assignments add to a workspace (``+=``) even if every component is written only once."""

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
    """Set how each mode of an access is traversed, in the order in which modes are stored, outermost first.

    ``place`` distinguishes reads with the same text: 1 is the first of them; None: all of them.
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
        """Whether it concerns all accesses of the operand, or all with the same text."""
        return not self.path and self.place is None


@frozen
class WorkspaceDirective(Directive):
    """Choose the storage of a workspace."""

    keyword = "workspace"
    parameters = (Parameter("workspace", "name"), Parameter("kind", "choice", WORKSPACES))
    workspace: str
    kind: str


@frozen
class Convert(Directive):
    """Convert an operand to another format before the kernel runs.

    With a path, or with the ``place`` of one of several reads with the same text, a copy is made for these reads alone.
    """

    keyword = "convert"
    parameters = (Parameter("access", "access"), Parameter("place", "ordinal", default=None), Parameter("format", "text"))
    access: Access
    format: str
    place: int | None = field(default=None, kw_only=True)

    @property
    def is_general(self) -> bool:
        """Whether it concerns all reads of the operand, or all with the same text."""
        return not self.path and self.place is None


@frozen
class Assemble(Directive):
    """Choose how a sparse result is assembled."""

    keyword = "assemble"
    parameters = (Parameter("result", "name"), Parameter("strategy", "choice", ASSEMBLIES))
    result: str
    strategy: str


@frozen
class Merge(Directive):
    """Choose how sparse operands are merged in a loop."""

    keyword = "merge"
    parameters = (Parameter("index", "index"), Parameter("strategy", "choice", MERGES))
    index: str
    strategy: str


# Code


@frozen
class Call(Directive):
    """Let BLAS compute the last loops around an assignment."""

    keyword = "call"
    parameters = (Parameter("routine", "choice", CALLS),)
    routine: str


@frozen
class Build(Directive):
    """Choose compiler and flags among those of ``build_options``; None, the default compiler, is written ``auto``."""

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
