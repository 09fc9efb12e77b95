"""The directives of the scheduling language as values; ``compiler/schedule/README.md`` explains them.

Every directive lists its parameters in the order of its text. ``schedule.text`` reads and prints directives by that list, and
``Schedule.rename`` renames by it; ``schedule.apply`` carries directives out.
"""

from __future__ import annotations

from typing import Final

from .code import CALL_LOOPS, CALLS, Build, Call
from .data import ASSEMBLIES, MERGES, PROTOCOLS, Assemble, Convert, Merge, ProtocolDirective, WorkspaceDirective
from .directive import Directive, Parameter, Required
from .loops import BOUNDS, RACES, Bound, Collapse, Coord, MergePath, Parallelize, Pos, Prefetch, Reorder, Split, SplitUp, Unroll
from .statements import Accumulate, Addends, Factors, Join, Loopfuse, Precompute, Recompute

__all__ = [
    "ALIASES",
    "ASSEMBLIES",
    "BOUNDS",
    "CALLS",
    "CALL_LOOPS",
    "CODE",
    "DATA",
    "DIRECTIVES",
    "LOOPS",
    "MERGES",
    "PROTOCOLS",
    "RACES",
    "STATEMENTS",
    "Accumulate",
    "Addends",
    "Assemble",
    "Bound",
    "Build",
    "Call",
    "Collapse",
    "Convert",
    "Coord",
    "Directive",
    "Factors",
    "Join",
    "Loopfuse",
    "Merge",
    "MergePath",
    "Parallelize",
    "Parameter",
    "Pos",
    "Precompute",
    "Prefetch",
    "ProtocolDirective",
    "Recompute",
    "Reorder",
    "Required",
    "Split",
    "SplitUp",
    "Unroll",
    "WorkspaceDirective",
]

LOOPS: Final = (Reorder, Split, SplitUp, Collapse, Pos, Coord, MergePath, Bound, Unroll, Prefetch, Parallelize)
STATEMENTS: Final = (Addends, Factors, Precompute, Accumulate, Join, Recompute, Loopfuse)
DATA: Final = (ProtocolDirective, WorkspaceDirective, Convert, Assemble, Merge)
CODE: Final = (Call, Build)
DIRECTIVES: Final[dict[str, type[Directive]]] = {kind.keyword: kind for kind in (*LOOPS, *STATEMENTS, *DATA, *CODE)}
ALIASES: Final = {"fuse": "collapse"}
