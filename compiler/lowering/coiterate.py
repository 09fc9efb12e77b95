"""Loops over one index by its iteration lattice: over the range, over one operand, or over several operands that are merged.

A lattice without stored operands becomes a loop over the range, and one point with one operand a loop over positions. Several
points become while loops, each until one of its operands is exhausted, with a case for every smaller point
(Kjolstad et al., "The tensor algebra compiler", section 5.2). Tiles restrict all of these to a window.
"""

from __future__ import annotations

from ..concrete.lattice import NOWHERE, Domain, is_everywhere, least_points, only_point, points, stored_operands, without
from ..concrete.loop_tag import LoopTag
from ..concrete.nodes import Stmt, targets
from ..errors import ScheduleError
from ..ir.arithmetic import ONE, ZERO, add, compare, every, integer, minimum, multiply, quotient, subtract
from ..ir.nodes import BOOL, I64, Binary, Const, Declare, For, If, SetVar, Step, Steps, Unroll, Value, Var, Vector, While
from ..levels import LevelKind
from ..levels.level import Level
from ..levels.subsection import SubsectionLevel
from ..notation.nodes import Access
from ..notation.printer import show
from .context import Context
from .cursors import Cursor, cursors_of, skip_equal, window_bounds, with_segment
from .merges import merged
from .origins import coordinates_of, originating
from .prefetching import prefetches, scattered_segments
from .resolve import Body, anchored, domain, has_parts, named, next_level, settle, stepping_level
from .rooms import room
from .scattering import scattered
from .scope import Scope, Window
from .subsections import subsections
from .turns import turn_by_turn, turns
from .unions import undecided, united


def iterate(context: Context, scope: Scope, index: str, window: Window, statement: Stmt, tag: LoopTag, body: Body) -> list[Step]:
    """Return the loops over the values of an original index in a window.

    ``body`` is called with a scope in which the index is known and every stepped operand is resolved one level deeper.
    """
    cut = window.low != ZERO or window.high != context.size(index)
    found = _ordered(context, scope, index, cut, statement, domain(context, scope, statement, index))
    if found == NOWHERE:
        return []
    operands = stored_operands(found)
    if tag.merge == "locate":
        operands = () if is_everywhere(found) else _led(context, scope, index, operands)
    if tag.unit is not None:
        bound = (access for access in operands if not turns(context, scope, access, index))
        operands = tuple(access for access in bound if not _next_kind(context, scope, access).passes)
    if tag.is_dealt:
        operands = _dealt_out(context, scope, index, operands)
    found = without(found, frozenset(stored_operands(found)) - frozenset(operands))
    if tag.is_dealt and len(operands) > 1:
        names = " and ".join(show(access) for access in operands)
        raise ScheduleError(
            f"parallelize({index}, {tag.unit}): {names} are merged in this loop, so its iterations depend on one another; split it first"
        )
    wrapping = next((access for access in operands if turns(context, scope, access, index)), None)
    if wrapping is not None:
        def within(scope: Scope, window: Window) -> list[Step]:
            return iterate(context, scope, index, window, statement, tag, body)

        return turn_by_turn(context, scope, index, window, wrapping, within)
    steps = _strategy(context, scope, index, window, statement, tag, found, body)
    return originating(steps, coordinates_of(index, least_points(found), cut))


def _strategy(
    context: Context, scope: Scope, index: str, window: Window, statement: Stmt, tag: LoopTag, found: Domain, body: Body
) -> list[Step]:
    """Return the loops of the kind that the lattice of a domain needs."""
    operands, everywhere = stored_operands(found), is_everywhere(found)
    if not operands or (everywhere and tag.is_dealt):
        return _range_loop(context, scope, index, window, statement, tag, body)
    if everywhere:
        return _accompanied(context, scope, index, window, statement, operands, body)
    passing = any(_next_kind(context, scope, access).passes for access in operands)
    if tag.merge == "bitmap" and len(operands) > 1 and not context.wide and not passing:  # 64-bit extents: no array has room for the range
        return scattered(context, scope, index, window, statement, found, body)
    if only_point(found) is None and has_parts(statement):
        return united(context, scope, index, window, statement, found, body)
    if len(operands) == 1:
        return _single(context, scope, index, window, statement, tag, operands[0], body)
    return merged(context, scope, index, window, statement, tag, points(found), body)


def _dealt_out(context: Context, scope: Scope, index: str, operands: tuple[Access, ...]) -> tuple[Access, ...]:
    """Return the operands through which dealt iterations step. Workspaces are located if there are other operands, or if equal keys would
    have to be skipped."""
    stored = tuple(access for access in operands if not context.is_workspace(access.tensor))
    alone = stepping_level(context, scope, operands[0], index) if len(operands) == 1 else None
    return operands if alone is not None and alone.unique else stored


def _led(context: Context, scope: Scope, index: str, operands: tuple[Access, ...]) -> tuple[Access, ...]:
    """Return the operand through which the loop steps while all others are located; it must store each coordinate once."""
    levels = ((access, stepping_level(context, scope, access, index)) for access in operands)
    return next(((access,) for access, level in levels if level is not None and level.unique), ())


def _ordered(context: Context, scope: Scope, index: str, cut: bool, statement: Stmt, found: Domain) -> Domain:
    """Return the domain without operands with unsorted coordinates, if sorted ones are needed; these operands are located.

    An unsorted operand may be stepped through if it is not merged with others, unless the loop appends to a level of the result, or runs
    through only a part of the coordinates, whose begin cannot be searched among unsorted ones.
    """
    operands = stored_operands(found)
    unsorted = [access for access in operands if not _next_kind(context, scope, access).merges]
    rest = without(found, frozenset(unsorted))
    if is_everywhere(rest) and not is_everywhere(found) and only_point(found) is None:  # offsets of subsections restrict what is visited
        unsorted = [access for access in unsorted if not _next_kind(context, scope, access).passes]
    if not unsorted:
        return found
    appends = context.assembly is not None and context.assembly.stores(index) and context.result.tensor in targets(statement)
    alone = only_point(found) is not None and len(unsorted) == len(operands)
    if alone and (all(_next_kind(context, scope, access).ordered for access in unsorted) or not (cut or appends)):
        return without(found, frozenset(unsorted[1:]))
    return without(found, frozenset(unsorted))


def _next_kind(context: Context, scope: Scope, access: Access) -> LevelKind:
    return context.tensors.storage(scope, access).levels[scope.place(access).depth].kind


def loop_mode(tag: LoopTag) -> Vector | Unroll | None:
    """Return the loop-IR tag of a loop that is not dealt out to threads."""
    if tag.is_vector:
        return Vector(tag.unroll)
    return Unroll(tag.unroll) if tag.unroll else None


def _range_loop(context: Context, scope: Scope, index: str, window: Window, statement: Stmt, tag: LoopTag, body: Body) -> list[Step]:
    made, scope = room(scope, statement, index, [(window.low, window.high)])
    with context.names.block():
        variable = Var(context.names.local(index), I64)
        last = subtract(context.size(index), ONE)  # where segments begin is loaded, which must not be past the end
        early = prefetches(context, scope, index, statement, tag, lambda distance: minimum(add(variable, integer(distance)), last))
        inside = settle(context, scope.know(index, variable).inside(index), statement, body, index)
        inside = [*early, *inside] if inside else []
    return [*made, For(variable, window.low, window.high, Steps(tuple(inside)), loop_mode(tag))] if inside else []


def _single(
    context: Context, scope: Scope, index: str, window: Window, statement: Stmt, tag: LoopTag, access: Access, body: Body
) -> list[Step]:
    level = stepping_level(context, scope, access, index)
    assert level is not None
    if isinstance(level, SubsectionLevel):
        return subsections(context, scope, index, window, statement, access, level, body)
    steps: list[Step] = []
    with context.names.block():
        low, high = window_bounds(context, scope, access, level, window, steps)
        return steps + position_loop(context, scope, index, statement, tag, access, low, high, body, filled=level.kind.merges)


def position_loop(
    context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, access: Access, low: Value, high: Value, body: Body,
    *, filled: bool = False,
) -> list[Step]:  # fmt: skip
    """Return the loop over positions [low, high) of the next level of one operand. If ``filled``, all of them are known to hold an
    entry."""
    storage = context.tensors.storage(scope, access)
    above = scope.place(access)
    wish = f"p_{storage.name}{above.depth + 1}"
    with context.names.block():
        before: list[Step] = []
        found = next_level(context, scope, access)
        assert found is not None
        level = anchored(context, found, before)
        position = Var(context.names.local(wish), I64)
        coordinate = Var(context.names.local(index), I64)
        variable = position
        steps: list[Step] = [Declare(coordinate, level.coordinate(position))]
        if level.kind.stride != 1:
            variable = Var(context.names.local(f"s_{storage.name}{above.depth + 1}"), I64)
            begin, count = named(context, f"begin_{storage.name}{above.depth + 1}", low, before), _strides(low, high, level.kind.stride)
            steps.insert(0, Declare(position, add(begin, multiply(variable, integer(level.kind.stride)))))
            low, high = ZERO, count
        guarded = scope.stepping_shared() if access == context.shares else scope.guarded()
        inside = guarded.inside(index).know(index, coordinate)
        if level.unique:
            made, inside = room(inside, statement, index, [(low, high)])
            inner = settle(context, inside.found(access, above.deeper(position)), statement, body, index)
            if not inner:
                return []
            steps += _prefetched_rows(context, scope, index, statement, tag, access, level, position)
            if not filled and (occupied := level.occupied(position, coordinate)) is not None:
                inner = [If(occupied, Steps(tuple(inner)))]
            return [*before, *made, For(variable, low, high, Steps((*steps, *inner)), loop_mode(tag))]
        high = named(context, f"end_{storage.name}{above.depth + 1}", high, before)
        end = Var(context.names.local(f"q_{storage.name}{above.depth + 1}"), I64)
        inside = inside.found(access, above.deeper(position, end))
        inner = settle(context, inside, statement, body)
        skip = skip_equal(context, inside, access, level, end, high, coordinate)
        whole = Steps((*steps, Declare(end, add(position, ONE)), skip, *inner, SetVar(position, end)))
        return [*before, Declare(position, low), While(compare("<", position, high), whole)] if inner else []


def _strides(low: Value, high: Value, stride: int) -> Value:
    """Return how many strides there are from one position to another below the same parent."""
    match low, high:
        case Binary("+", Binary("*", first, Const(width)), place), Binary("+", Binary("*", past, Const(other)), same):
            if width == other == stride and place == same:
                return subtract(past, first)
    return quotient(subtract(high, low), integer(stride))


def _prefetched_rows(
    context: Context, scope: Scope, index: str, statement: Stmt, tag: LoopTag, access: Access, level: Level, position: Var
) -> list[Step]:
    """Prefetch rows by coordinates further on in the level, which may be in the segments of later parents."""
    depth = scope.place(access).depth
    key = context.tensors.key(access)

    def ahead(distance: int) -> Value:
        held = context.is_workspace(access.tensor)
        length = level.length if held else context.tensors.stored_length(key, depth)
        later = minimum(add(position, integer(distance * level.kind.stride)), subtract(length, ONE))
        later = level.kind.readable(level, later)
        return level.kind.within(level, level.coordinate(later))

    told = prefetches(context, scope, index, statement, tag, ahead, (access, position, 1))
    return [*told, *scattered_segments(context, scope, index, statement, tag, ahead)]


def _accompanied(
    context: Context, scope: Scope, index: str, window: Window, statement: Stmt, operands: tuple[Access, ...], body: Body
) -> list[Step]:
    """Return a loop over the whole range that steps through stored operands alongside."""
    steps: list[Step] = []
    with context.names.block():
        cursors = cursors_of(context, scope, index, window, operands, steps)
        with context.names.block():
            variable = Var(context.names.local(index), I64)
            before: list[Step] = []
            present: dict[Access, Var] = {}
            for access, cursor in cursors.items():
                here = Var(context.names.local(f"in_{context.tensors.key(access)}"), BOOL)
                hit = every([cursor.running, compare("==", cursor.level.coordinate(cursor.position), variable)])
                before.append(Declare(here, hit))
                present[access] = here
            cursors = {
                access: with_segment(context, scope, cursor, variable, present[access], before) for access, cursor in cursors.items()
            }
            inside = scope.know(index, variable).inside(index)
            if has_parts(statement):
                inner = undecided(context, inside, statement, list(cursors.values()), present, body)
            else:
                inner = _branches(context, inside, statement, list(cursors.values()), present, body)
            after = [cursor.move_on(present[access]) for access, cursor in cursors.items()]
        if not inner:
            return []
        return [*steps, For(variable, window.low, window.high, Steps((*before, *inner, *after)))]


def _branches(context: Context, scope: Scope, statement: Stmt, cursors: list[Cursor], present: dict[Access, Var], body: Body) -> list[Step]:
    """Return nested tests of the operands, with a body for each combination of present and absent ones."""
    if not cursors:
        return settle(context, scope, statement, body)
    cursor, *rest = cursors
    inside = scope.guarded()
    with context.names.block():
        then = _branches(context, inside.found(cursor.access, cursor.place(inside)), statement, rest, present, body)
    with context.names.block():
        otherwise = _branches(context, inside.without(frozenset({cursor.access})), statement, rest, present, body)
    if not then and not otherwise:
        return []
    return [If(present[cursor.access], Steps(tuple(then)), Steps(tuple(otherwise)) if otherwise else None)]
