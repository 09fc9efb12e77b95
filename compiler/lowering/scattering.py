"""Merging by a bitmap: operands are scattered to an array by their coordinates, and looked up there.

Each operand, except one that is always present, is laid out over the range: an array holds the position that the operand has at each
coordinate. If no operand is always present, a set of bits gives all coordinates in order (``csrc/st_bits.h``). For any number of operands,
each entry is visited a constant number of times, and no coordinates are compared; but the arrays need memory for the whole range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..concrete.lattice import Domain, least_points, met, points, stored_operands
from ..concrete.nodes import Stmt
from ..frozen import frozen
from ..ir.arithmetic import ONE, TRUE, ZERO, add, compare, subtract
from ..ir.names import Names
from ..ir.nodes import BOOL, I64, ArrayRef, Call, Declare, For, If, Load, Step, Steps, Store, Value, Var, While
from ..notation.nodes import Access
from ..workspaces.bitmap import U64, bit_words
from .context import Context
from .cursors import Cursor, cursors_of, with_segment
from .merges import cases
from .origins import coordinates_of, originating
from .requests import allocated_once
from .resolve import Body, has_parts
from .rooms import room
from .scope import Scope, Window
from .unions import undecided


@frozen
class _Laid:
    """An operand that is laid out: ``array`` holds its position at each coordinate plus 1; 0 if it has none."""

    cursor: Cursor
    array: str

    def fill(self, names: Names, also: Callable[[Value], list[Step]]) -> Step:
        """Return the loop that lays the entries out; of several entries with a coordinate, the first one."""

        def entered(position: Value, coordinate: Value) -> list[Step]:
            store = Store(self.array, coordinate, add(position, ONE))
            if self.cursor.level.unique:
                return [store, *also(coordinate)]
            free = compare("==", Load(self.array, coordinate, I64), ZERO)
            return [If(free, Steps((store, *also(coordinate))))]

        return self._each(names, entered)

    def clean(self, names: Names) -> Step:
        """Return the loop that sets the array back to 0."""
        return self._each(names, lambda _, coordinate: [Store(self.array, coordinate, ZERO)])

    def _each(self, names: Names, body: Callable[[Value, Value], list[Step]]) -> Step:
        with names.block():
            place = Var(names.local("n"), I64)
            coordinate = Var(names.local("key"), I64)
            declared = Declare(coordinate, self.cursor.level.coordinate(place))
            return For(place, self.cursor.position, self.cursor.high, Steps((declared, *body(place, coordinate))))

    def at(self, context: Context, coordinate: Value, steps: list[Step]) -> tuple[Cursor, Var]:
        """Return the operand at a coordinate, and the variable that says whether it is stored there."""
        name = context.tensors.key(self.cursor.access)
        slot = Var(context.names.local(f"slot_{name}"), I64)
        here = Var(context.names.local(f"in_{name}"), BOOL)
        position = Var(context.names.local(self.cursor.position.name), I64)
        steps += [Declare(slot, Load(self.array, coordinate, I64)), Declare(here, compare(">", slot, ZERO))]
        steps.append(Declare(position, subtract(slot, ONE)))
        return replace(self.cursor, position=position), here


def scattered(context: Context, scope: Scope, index: str, window: Window, statement: Stmt, found: Domain, body: Body) -> list[Step]:
    """Return the loop over the coordinates at which some point of a domain's lattice is present."""
    least = least_points(found)
    operands = met([frozenset(stored_operands(found))])
    driver = next((access for access in operands if all(access in point for point in least)), None)
    steps: list[Step] = []
    with context.names.block():
        cursors = cursors_of(context, scope, index, window, operands, steps)
        laid = [_laid_out(context, cursor, steps) for access, cursor in cursors.items() if access != driver]
        counted = [cursors[driver]] if driver is not None else list(cursors.values())
        made, scope = room(scope, statement, index, [(cursor.position, cursor.high) for cursor in counted])
        if driver is not None:
            fill, loop = _driven(context, scope, index, statement, found, cursors[driver], laid, body)
        else:
            fill, loop = _drained(context, scope, index, statement, found, laid, body)
        clean = [operand.clean(context.names) for operand in laid]
    return [*steps, *fill, *made, *originating(loop, coordinates_of(index, least, cut=False)), *clean] if loop else []


def _laid_out(context: Context, cursor: Cursor, steps: list[Step]) -> _Laid:
    array = context.names.permanent(f"at_{context.tensors.key(cursor.access)}")
    steps.append(allocated_once(array, I64, context.size(cursor.level.index), zero=True))
    return _Laid(cursor, array)


def _driven(
    context: Context, scope: Scope, index: str, statement: Stmt, found: Domain, driver: Cursor, laid: list[_Laid], body: Body
) -> tuple[list[Step], list[Step]]:
    """Return the loop that steps through an operand that is always present, and looks the others up."""
    fill = [operand.fill(context.names, lambda _: []) for operand in laid]
    with context.names.block():
        current = Var(context.names.local(index), I64)
        inside: list[Step] = [Declare(current, driver.level.coordinate(driver.position))]
        driver = with_segment(context, scope, driver, current, TRUE, inside)
        inner = _body(context, scope, index, statement, found, current, [driver], laid, inside, body)
    whole = Steps((*inside, *inner, driver.move_on(TRUE)))
    return fill, [While(driver.running, whole)] if inner else []


def _drained(
    context: Context, scope: Scope, index: str, statement: Stmt, found: Domain, laid: list[_Laid], body: Body
) -> tuple[list[Step], list[Step]]:
    """Return the loop over the coordinates of all operands in order, by their set of bits."""
    size = context.size(index)
    bits, keys = (context.names.permanent(f"{part}_{index}") for part in ("bits", "keys"))
    made = (allocated_once(bits, U64, bit_words(size), zero=True), allocated_once(keys, I64, size, zero=False))

    def noted(coordinate: Value) -> list[Step]:
        new = Var(context.names.local("new"), BOOL)
        return [Declare(new, Call("bits_insert", (ArrayRef(bits, U64), size, coordinate), BOOL))]

    fill = [*made, *(operand.fill(context.names, noted) for operand in laid)]
    count = Var(context.names.local(f"count_{index}"), I64)
    fill.append(Declare(count, Call("bits_drain", (ArrayRef(keys, I64), ArrayRef(bits, U64), size), I64)))
    with context.names.block():
        place, current = Var(context.names.local("n"), I64), Var(context.names.local(index), I64)
        inside: list[Step] = [Declare(current, Load(keys, place, I64))]
        inner = _body(context, scope, index, statement, found, current, [], laid, inside, body)
    return fill, [For(place, ZERO, count, Steps((*inside, *inner)))] if inner else []


def _body(
    context: Context, scope: Scope, index: str, statement: Stmt, found: Domain, current: Var, stepped: list[Cursor],
    laid: list[_Laid], steps: list[Step], body: Body,
) -> list[Step]:  # fmt: skip
    """Return the steps at a coordinate; declarations before them are added to ``steps``."""
    found_there: list[Cursor] = []
    present: dict[Access, Var] = {}
    for operand in laid:
        cursor, here = operand.at(context, current, steps)
        found_there.append(with_segment(context, scope, cursor, current, here, steps))
        present[cursor.access] = here
    known = scope.guarded().inside(index).know(index, current)
    if has_parts(statement):
        for cursor in stepped:
            known = known.found(cursor.access, cursor.place(known))
        return undecided(context, known, statement, found_there, present, body)
    by_access = {cursor.access: cursor for cursor in (*stepped, *found_there)}
    conditions: dict[Access, Value] = {**dict.fromkeys((cursor.access for cursor in stepped), TRUE), **present}
    return cases(context, known, statement, tuple(by_access), points(found), by_access, conditions, body)
