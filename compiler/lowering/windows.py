"""The range that an index has left at one place of the nest, and what follows when it becomes known.

Tile loops narrow the window of the index that they cut; everything that only renames an index, or counts from the begin of
its tile, follows from its value (Senanayake et al., sections 5.1 and 5.2).
"""

from __future__ import annotations

from ..concrete.nodes import Stmt, targets
from ..concrete.relations import Bound, Pos, Rename, Split
from ..loops.nodes import Const
from ..loops.nodes import Expr as Value
from ..loops.nodes import Stmt as Step
from ..notation.nodes import Access
from .arithmetic import ZERO, load_index, subtract
from .context import Context
from .resolve import Body
from .scope import Scope, Window


def window(context: Context, scope: Scope, index: str) -> Window:
    """Return the range that an index has left here."""
    if index in scope.windows:
        return scope.windows[index]
    relation = context.graph.made_by(index) if context.graph.is_derived(index) else None
    if isinstance(relation, Pos):
        return all_positions(context, scope, relation)
    if isinstance(relation, (Bound, Rename)) and relation.parents[0] in scope.windows:
        return scope.windows[relation.parents[0]]
    extent = context.extent(index)
    return Window(ZERO, extent, int(extent.value) if isinstance(extent, Const) else None)


def all_positions(context: Context, scope: Scope, relation: Pos) -> Window:
    """Return the positions of the last collapsed level that lie below the present place of the operand."""
    access, chain = position_chain(context, relation)
    place = scope.place(access)
    levels = context.storage(access).levels[place.depth : place.depth + len(chain)]
    low, high = levels[0].bounds(place) if levels[0].steps else (ZERO, levels[0].extent)
    for level in levels[1:]:
        low = load_index(level.pos, low, level.pos_type) if low != ZERO else ZERO
        high = load_index(level.pos, high, level.pos_type)
    return Window(low, high)


def position_chain(context: Context, relation: Pos) -> tuple[Access, tuple[str, ...]]:
    """Return the access whose positions are counted, and the indices of the levels that are collapsed."""
    return relation.access, context.graph.originals(relation.position)


def root_of(context: Context, scope: Scope, index: str) -> str:
    """Return the variable whose window an index cuts: through inner halves of splits that are open, and other names."""
    while context.graph.is_derived(index):
        relation = context.graph.made_by(index)
        inside = isinstance(relation, Split) and index == relation.inner and relation.outer in scope.coordinates
        if not inside and not isinstance(relation, (Bound, Rename)):
            break
        index = relation.parents[0]
    return index


def with_aliases(context: Context, scope: Scope, aliases: list[str], value: Value) -> Scope:
    """Make an index and everything that only renames it, or counts from its tile's begin, known."""
    for alias in aliases:
        scope = scope.know(alias, subtract(value, scope.bases[alias]) if alias in scope.bases else value)
    return scope


def opening(context: Context, statement: Stmt, index: str, aliases: list[str]) -> Body:
    """Return the body of a loop over an original index; a level of an assembled result opens and closes around it."""

    def body(scope: Scope) -> list[Step]:
        value = scope.coordinates[index]
        inner_scope = with_aliases(context, scope, aliases, value)
        return opened(context, inner_scope, statement, index)

    return body


def opened(context: Context, scope: Scope, statement: Stmt, index: str) -> list[Step]:
    """Lower a statement in which an original index has just become known."""
    assembly = context.assembly
    writes = assembly is not None and context.result.tensor in targets(statement) and assembly.stores(index)
    if assembly is None or not writes:
        return context.lower(statement, scope)
    before, after = assembly.open(index, dict(scope.coordinates), context.names)
    inner = context.lower(statement, scope)
    return [*before, *inner, *after] if inner else []
