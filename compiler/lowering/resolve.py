"""Which levels of which accesses an index drives, and how accesses are resolved once coordinates are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..concrete.lattice import EVERYWHERE, NOWHERE, Domain, intersect, unite
from ..concrete.lattice import Stored as StoredDomain
from ..concrete.nodes import Assign, Block, Forall, Stmt, Where, reads, targets, walk
from ..format import LevelKind
from ..ir.arithmetic import ZERO, add, multiply
from ..ir.nodes import BOOL, I64, Const, Declare, If, Select, Step, Steps, Value, Var
from ..notation.nodes import Access, Add, Div, Expr, Literal, Mul, Neg
from .context import Context
from .levels import Level, Stored
from .quotients import skips
from .recovery import coordinate
from .scope import Place, Scope

Body = Callable[[Scope], list[Step]]


def next_level(context: Context, scope: Scope, access: Access) -> Level | None:
    """Return the first level of an access that is not resolved yet; None where all are."""
    levels, place = context.storage(access).levels, scope.place(access)
    if place.depth == len(levels):
        return None
    return levels[place.depth].under(place.positions[-1] if place.positions else ZERO, scope.doubtful.get(access))


def stepping_level(context: Context, scope: Scope, access: Access, index: str) -> Level | None:
    """Return the level of an access that a loop over ``index`` can step through, or None."""
    if access.tensor == context.result.tensor or access in scope.absent or not _visible(context, access):
        return None
    level = next_level(context, scope, access)
    if level is None or level.index != index or not level.steps:
        return None
    return None if _protocol(context, scope, access) == "locate" else level


def _protocol(context: Context, scope: Scope, access: Access) -> str:
    """Return the protocol of the next level of an access; protocols are given outermost level first."""
    depth = scope.place(access).depth
    return access.protocols[depth] if depth < len(access.protocols) else "step"


def _visible(context: Context, access: Access) -> bool:
    """Whether an access is an operand, or a workspace that has been filled already."""
    return access.tensor not in context.workspaces or access.tensor in context.stored


def domain(context: Context, scope: Scope, statement: Stmt, index: str) -> Domain:
    """Return the coordinates of ``index`` at which a statement does something."""
    return _statement_domain(context, scope, statement, index, {})


def _statement_domain(context: Context, scope: Scope, statement: Stmt, index: str, inner: dict[str, Domain]) -> Domain:
    match statement:
        case Assign(_, _, value):
            return _Values(context, scope, statement, index, inner).domain(value)
        case Forall(_, body, _):
            return _statement_domain(context, scope, body, index, inner)
        case Block(statements):
            found = dict(inner)
            parts = []
            for part in statements:
                own = _statement_domain(context, scope, part, index, found)
                parts.append(own)
                for name in targets(part):
                    found[name] = unite((found.get(name, NOWHERE), own))
            return unite(tuple(parts))
        case Where(consumer, producer):
            filled = {**inner, **_written(context, scope, producer, index, inner)}
            return _statement_domain(context, scope, consumer, index, filled)
        case _:
            raise TypeError(f"no domain of {type(statement).__name__}")


def _written(context: Context, scope: Scope, producer: Stmt, index: str, inner: dict[str, Domain]) -> dict[str, Domain]:
    """Return where each workspace that a producer writes gets entries."""
    match producer:
        case Block(statements):
            found: dict[str, Domain] = {}
            for part in statements:
                for name, own in _written(context, scope, part, index, {**inner, **found}).items():
                    found[name] = unite((found.get(name, NOWHERE), own))
            return found
        case Where(consumer, deeper):
            return _written(context, scope, consumer, index, {**inner, **_written(context, scope, deeper, index, inner)})
        case Forall(_, body, _):
            return _written(context, scope, body, index, inner)
        case Assign(target, _, value):
            return {target.tensor: _Values(context, scope, producer, index, inner).domain(value)}
        case _:
            raise TypeError(f"no domain of {type(producer).__name__}")


@dataclass(frozen=True)
class _Values:
    """The coordinates of ``index`` at which expressions of one assignment have a value; ``inner``: those of workspaces in it."""

    context: Context
    scope: Scope
    statement: Assign
    index: str
    inner: dict[str, Domain]

    def domain(self, value: Expr) -> Domain:
        match value:
            case Literal(number):
                return NOWHERE if number == 0 and self.context.semiring.add == "+" else EVERYWHERE
            case Access():
                return self._access(value)
            case Neg(operand):
                return self.domain(operand)
            case Add(operands):
                return unite(tuple(self.domain(operand) for operand in operands))
            case Mul(operands):  # a constant factor leaves the pattern as it is, even 0: 0 * inf is NaN
                return intersect(tuple(self.domain(operand) for operand in operands if not isinstance(operand, Literal)))
            case Div(numerator, denominator):
                above = self.domain(numerator)
                if skips(self.context, self.scope, self.statement, denominator):
                    return above
                return unite((EVERYWHERE, above, self.domain(denominator)))
            case _:
                raise TypeError(f"no domain of {type(value).__name__}")

    def _access(self, access: Access) -> Domain:
        if access in self.scope.absent:
            return NOWHERE
        if access.tensor in self.inner:
            return self.inner[access.tensor]
        return StoredDomain(access) if stepping_level(self.context, self.scope, access, self.index) is not None else EVERYWHERE


def has_parts(statement: Stmt) -> bool:
    """Whether a statement consists of several that can be lowered one by one."""
    return any(isinstance(node, (Where, Block)) for node in walk(statement))


def settle(context: Context, scope: Scope, statement: Stmt, body: Body) -> list[Step]:
    """Resolve every access whose next level is known by now, then go on with ``body``.

    Dense levels are arithmetic. Levels that store coordinates are searched, and where the coordinate is missing the body
    goes on without the access.
    """
    for access in dict.fromkeys(reads(statement)):
        if access in scope.absent or not _visible(context, access) or access.tensor == context.result.tensor:
            continue
        storage = context.storage(access)
        if all(level.kind is LevelKind.DENSE for level in storage.levels):
            continue
        level = next_level(context, scope, access)
        value = coordinate(context, scope, level.index) if level is not None else None
        if level is None or value is None:
            continue
        if level.kind is LevelKind.DENSE:
            return settle(context, scope.at(access, _dense(scope, access, level, value)), statement, body)
        return _located(context, scope, access, storage, level, value, statement, body)
    return body(scope)


def bounds(scope: Scope, access: Access, level: Level) -> tuple[Value, Value]:
    """Return the positions of the next level of an access; none where it is in doubt and not stored."""
    low, high = level.bounds(scope.place(access))
    present = scope.doubtful.get(access)
    return (low, high) if present is None else (Select(present, low, ZERO, I64), Select(present, high, ZERO, I64))


def _dense(scope: Scope, access: Access, level: Level, value: Value) -> Place:
    above = scope.place(access)
    parent = above.positions[-1] if above.positions else None
    return above.deeper(value if parent is None else add(multiply(parent, level.extent), value))


def _located(
    context: Context, scope: Scope, access: Access, storage: Stored, level: Level, value: Value, statement: Stmt, body: Body
) -> list[Step]:
    above = scope.place(access)
    depth = above.depth + 1
    low, high = bounds(scope, access, level)
    steps: list[Step] = []
    level = anchored(context, level, steps)
    low, high = named(context, f"begin_{storage.name}{depth}", low, steps), named(context, f"end_{storage.name}{depth}", high, steps)
    position = named(context, f"p_{storage.name}{depth}", level.locate(low, high, value), steps)
    found = level.hit(position, low, high, value)
    inside = scope.guarded()
    past = None if level.unique else level.search(position, high, value, "upper_bound")
    if has_parts(statement):  # each part asks on its own whether it is there
        present = Var(context.names.local(f"in_{storage.name}"), BOOL)
        steps.append(Declare(present, found))
        end = past and named(context, f"q_{storage.name}{depth}", Select(present, past, position, I64), steps)
        inner = settle(context, inside.doubt(access, above.deeper(position, end), present), statement, body)
        return [*steps, *inner] if inner else []
    with context.names.block():
        then: list[Step] = []
        end = past and named(context, f"q_{storage.name}{depth}", past, then)
        then += settle(context, inside.found(access, above.deeper(position, end)), statement, body)
    with context.names.block():
        otherwise = settle(context, inside.without(frozenset({access})), statement, body)
    if not then and not otherwise:
        return []
    return [*steps, If(found, Steps(tuple(then)), Steps(tuple(otherwise)) if otherwise else None)]


def anchored(context: Context, level: Level, steps: list[Step]) -> Level:
    """Declare what the coordinates of a narrow level are counted from, which a loop reads once.

    The variable stands beside the loop, where others of any name may follow: its name is its own.
    """
    if level.origin is None or isinstance(level.origin, Var):
        return level
    origin = Var(context.names.permanent(f"base_{level.index}"), I64)
    steps.append(Declare(origin, level.origin))
    return replace(level, origin=origin)


def named(context: Context, wish: str, value: Value, steps: list[Step]) -> Value:
    """Declare a local variable that holds a value, and return it; variables and constants are returned as they are."""
    if isinstance(value, (Var, Const)):
        return value
    variable = Var(context.names.local(wish), I64)
    steps.append(Declare(variable, value))
    return variable
