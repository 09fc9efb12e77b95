"""Through which levels of which accesses the loop over an index steps, and how accesses are resolved when coordinates are known."""

from __future__ import annotations

from collections.abc import Callable

from ..concrete.annihilation import Patterns
from ..concrete.lattice import EVERYWHERE, NOWHERE, UNDECIDED, Domain, Stored, cover, is_everywhere, unite
from ..concrete.nodes import Block, Stmt, Where, walk
from ..ir.arithmetic import ZERO, every
from ..ir.nodes import BOOL, I64, Const, Declare, If, Select, Step, Steps, Value, Var
from ..levels.level import Level
from ..levels.subsection import SubsectionLevel
from ..notation.nodes import Access
from ..workspaces.levels import Storage
from .context import Context
from .recovery import coordinate, known
from .scope import Scope

Body = Callable[[Scope], list[Step]]


def next_level(context: Context, scope: Scope, access: Access) -> Level | None:
    """Return the first level of an access that is not resolved yet; None if all are."""
    levels, place = context.tensors.storage(scope, access).levels, scope.place(access)
    if place.depth == len(levels):
        return None
    return levels[place.depth].given(place, known(context, scope)).under(place.parent, scope.doubtful.get(access))


def stepping_level(context: Context, scope: Scope, access: Access, index: str) -> Level | None:
    """Return the level of an access through which a loop over ``index`` can step, or None."""
    if access.tensor in context.results or access in scope.absent or not _visible(context, scope, access):
        return None
    level = next_level(context, scope, access)
    if level is None or level.index != index or not level.steps:
        return None
    if context.on_gpu and isinstance(level, SubsectionLevel) and level.across:  # its buffer has no room there
        return None
    return None if _protocol(scope, access) == "locate" else level


def _protocol(scope: Scope, access: Access) -> str:
    """Return the protocol of the next level of an access; protocols are given outermost level first."""
    depth = scope.place(access).depth
    return access.protocols[depth] if depth < len(access.protocols) else "step"


def _visible(context: Context, scope: Scope, access: Access) -> bool:
    """Whether an access is an operand, or a workspace that has been filled already."""
    if not context.is_workspace(access.tensor):
        return True
    found = scope.workspaces.get(access.tensor)
    return found is not None and found.filled


def domain(context: Context, scope: Scope, statement: Stmt, index: str) -> Domain:
    """Return the coordinates of ``index`` that a loop around a statement must visit."""
    return cover(patterns(context, scope, index).remaining(statement, scope.loops).domain)


def restrict(context: Context, scope: Scope, statement: Stmt) -> Stmt | None:
    """Return the part of a statement that has an effect at a place of the nest; None if nothing has.

    This is the expression of a lattice point: each point below that of a loop gets a body of its own, without the operands that are not
    stored there (``expression(Lq)`` in Figure 9 of Liu et al., section 5.2, after Kjolstad et al.). The points depend on the loops that
    lowering makes, and one statement has several bodies, so that this cannot be a rewrite before lowering. If no operand is absent, the
    whole statement is left: parts without any effect were dropped before (``doing_something``).
    """
    if not scope.absent and not context.divides:
        return statement
    return patterns(context, scope).remaining(statement, scope.loops).statement


def patterns(context: Context, scope: Scope, index: str | None = None) -> Patterns:
    """Return the patterns of statements at one place of the nest, along an index if one is given."""

    def of(access: Access) -> Domain:
        if scope.absent and access in scope.absent:
            return NOWHERE
        if index is not None and index in access.indices and stepping_level(context, scope, access, index) is not None:
            return Stored(access)
        return EVERYWHERE if not context.divides or _is_stored(context, scope, access, found) else UNDECIDED

    found = Patterns(of, context.semiring.add, context.completeness.holds)
    return found


def _is_stored(context: Context, scope: Scope, access: Access, here: Patterns) -> bool:
    """Whether an access has a value at all coordinates that are not known yet; only quotients need this."""
    if access in scope.doubtful:
        return False
    if context.is_workspace(access.tensor) and not is_everywhere(_written(context, access.tensor, here)):
        return False
    if not _visible(context, scope, access):
        return True
    return all(level.kind.full for level in context.tensors.storage(scope, access).levels[scope.place(access).depth :])


def _written(context: Context, workspace: str, here: Patterns) -> Domain:
    """Return where a workspace gets entries."""
    return unite(here.remaining(assign, loops).domain for loops, assign in context.writes(workspace))


def has_parts(statement: Stmt) -> bool:
    """Whether a statement consists of several statements that can be lowered one by one."""
    return any(isinstance(node, Block) or (isinstance(node, Where) and node.local is None) for node in walk(statement))


def settle(context: Context, scope: Scope, statement: Stmt, body: Body, opened: str | None = None) -> list[Step]:
    """Resolve every access whose next level has a known coordinate, then continue with ``body``.

    Positions in dense levels are computed. Levels that store coordinates are searched; if the coordinate is missing, the body
    is lowered without the access.

    Args:
        opened: the original index of the loop that was just opened, if no index is derived: only accesses with that index have
            anything new to resolve.
    """
    operands = statement.operands
    if opened is not None and not context.program.relations:
        operands = tuple(access for access in operands if opened in access.indices or context.is_workspace(access.tensor))
    for access in operands:
        if access in scope.absent or not _visible(context, scope, access) or access.tensor in context.results:
            continue
        storage = context.tensors.storage(scope, access)
        if all(level.kind.full for level in storage.levels):
            continue
        level = next_level(context, scope, access)
        value = coordinate(context, scope, level.index) if level is not None else None
        if level is None or value is None:
            continue
        if level.kind.full or level.kind.passes:
            below = level.descend(scope.place(access), known(context, scope))
            return settle(context, scope.at(access, below), statement, body, opened)
        return _located(context, scope, access, storage, level, value, statement, body, opened)
    return body(scope)


def is_located(context: Context, scope: Scope, access: Access) -> bool:
    """Whether the next level of an access is searched for a known coordinate, and not stepped through."""
    level = next_level(context, scope, access)
    return level is not None and coordinate(context, scope, level.index) is not None


def bounds(scope: Scope, access: Access, level: Level) -> tuple[Value, Value]:
    """Return the positions of the next level of an access; an empty range if it is doubtful and not stored."""
    low, high = level.bounds(scope.place(access))
    present = scope.doubtful.get(access)
    return (low, high) if present is None else (Select(present, low, ZERO, I64), Select(present, high, ZERO, I64))


def _located(
    context: Context, scope: Scope, access: Access, storage: Storage, level: Level, value: Value, statement: Stmt, body: Body,
    opened: str | None,
) -> list[Step]:  # fmt: skip
    above = scope.place(access)
    depth = above.depth + 1
    low, high = bounds(scope, access, level)
    steps: list[Step] = []
    level = anchored(context, level, steps)
    low, high = named(context, f"begin_{storage.name}{depth}", low, steps), named(context, f"end_{storage.name}{depth}", high, steps)
    position = named(context, f"p_{storage.name}{depth}", level.locate(low, high, value), steps)
    hit, above_found = level.hit(position, low, high, value), scope.doubtful.get(access)
    found = hit if above_found is None else every([above_found, hit])  # a level may have a hit below no parent
    inside = scope.guarded()
    past = None if level.unique else level.search(position, high, value, "upper_bound")
    if has_parts(statement):  # each part asks on its own whether it is there
        present = Var(context.names.local(f"in_{storage.name}"), BOOL)
        steps.append(Declare(present, found))
        end = past and named(context, f"q_{storage.name}{depth}", Select(present, past, position, I64), steps)
        inner = settle(context, inside.doubt(access, above.deeper(position, end), present), statement, body, opened)
        return [*steps, *inner] if inner else []
    with context.names.block():
        then: list[Step] = []
        end = past and named(context, f"q_{storage.name}{depth}", past, then)
        then += settle(context, inside.found(access, above.deeper(position, end)), statement, body, opened)
    with context.names.block():
        otherwise = settle(context, inside.without(frozenset({access})), statement, body, opened)
    if not then and not otherwise:
        return []
    return [*steps, If(found, Steps(tuple(then)), Steps(tuple(otherwise)) if otherwise else None)]


def anchored(context: Context, level: Level, steps: list[Step]) -> Level:
    """Declare the origin of a level's coordinates, so that a loop reads it once.

    The variable is declared outside the loop, where other variables follow, so that its name is permanent.
    """

    def keep(wish: str, value: Value) -> Value:
        if isinstance(value, (Var, Const)):
            return value
        variable = Var(context.names.permanent(wish), I64)
        steps.append(Declare(variable, value))
        return variable

    return level.read_once(keep)


def named(context: Context, wish: str, value: Value, steps: list[Step]) -> Value:
    """Declare a local variable that holds a value, and return it; variables and constants are returned as they are."""
    if isinstance(value, (Var, Const)):
        return value
    variable = Var(context.names.local(wish), I64)
    steps.append(Declare(variable, value))
    return variable
