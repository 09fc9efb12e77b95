"""Sorts iterations into bins by how many keys they insert into their tables, and makes a kernel for each bin (``passes.needs``).

An array has, bin after bin, a mark for each iteration that says whether it is in the bin. Prefix sums of the marks give the place of each
iteration in a list, in which the iterations of a bin are consecutive and in their old order, and the begin of each bin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..frozen import frozen
from ..ir.arithmetic import ONE, ZERO, add, compare, integer, maximum, minimum, multiply, quotient, subtract
from ..ir.nodes import (
    I64,
    Allocate,
    ArrayRef,
    Call,
    Dealt,
    Declare,
    Fill,
    For,
    Free,
    If,
    Load,
    Member,
    Node,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Value,
    Var,
)
from ..ir.rewrite import as_steps, flat, transform
from .block_sizes import WARPS

NEAR_BYTES = 32 * 1024
"""The bytes of a block's shared memory for tables, such that several blocks run on a multiprocessor."""
MOST_SLOTS = 8192
"""The most bytes of such a table: it is reset in every iteration, and its keys are sorted."""
OTHER_BYTES = 1024
"""The bytes of a block's shared memory that are left for other uses if tables take all they can."""
WORK = 16
"""This many inserted keys count as one distinct key, although all of them may be equal, because each must be looked up."""


@frozen
class Room:
    """The size of tables in shared memory: their number of slots for each block or warp."""

    unit: Member
    slots: int

    @property
    def limit(self) -> int:
        """The most keys for such a table, which is at most three quarters full."""
        return self.slots * 3 // 4


@frozen
class Tables:
    """The tables that the iterations of a loop fill.

    Attributes:
        loop: the dealt loop, in which each block, warp or thread has such tables.
        arrays: the arrays of keys, values and lists of keys.
        needs: the variables of the number of keys, with their present values: the whole range.
    """

    loop: For
    arrays: tuple[Allocate, ...]
    needs: tuple[Declare, ...]

    @property
    def unit(self) -> Member:
        """What the loop deals its iterations to: "block", "warp" or "thread"."""
        assert isinstance(self.loop.tag, Dealt)
        return self.loop.tag.unit

    @property
    def place(self) -> Value:
        """The number of the current iteration, from 0 on."""
        return subtract(self.loop.variable, self.loop.low)

    def noting(self, needs: str, need: Var) -> Tables:
        """Return the loop with steps that note how many distinct keys each iteration has, if it lists the keys of one table once."""
        statements = [*flat((self.loop.body,))]
        values = [step.value if isinstance(step, SetVar) else ZERO for step in statements]
        lists = [place for place, value in enumerate(values) if isinstance(value, Call) and value.function in LISTING]
        if len(lists) != 1 or len(self.needs) != 1:
            return self
        listed = statements[lists[0]]
        assert isinstance(listed, SetVar)
        statements.insert(lists[0] + 1, Store(needs, self.place, maximum(listed.variable, quotient(need, integer(WORK)))))
        return replace(self, loop=replace(self.loop, body=Steps(tuple(statements))))

    def rooms(self, most: int) -> list[Room]:
        """Return the sizes of tables in shared memory, in increasing order.

        Args:
            most: the most shared memory of a block, in bytes.
        """
        warp = Room("warp", min(MOST_SLOTS, self._slots(NEAR_BYTES // WARPS)))
        block = Room("block", min(MOST_SLOTS, self._slots(NEAR_BYTES)))
        whole = Room("block", self._slots(most - OTHER_BYTES))
        return [warp] if self.unit == "warp" else [warp, block, whole] if whole.slots > block.slots else [warp, block]

    def _slots(self, room: int) -> int:
        """Return how many slots, a power of two, tables have in ``room`` bytes."""
        fitting = room // sum(table.type.bytes for table in self.arrays)
        return 1 << max(fitting.bit_length() - 1, 0)

    def near(self, room: Room, need: Var, fresh: Callable[[str], str]) -> For:
        """Return the loop with tables of a size in shared memory, dealt out to blocks or warps."""
        unit, slots = room.unit, room.slots
        made = [replace(made, array=fresh(f"{made.array}_near"), length=integer(slots), storage=unit) for made in self.arrays]
        own = [Declare(each.variable, minimum(minimum(need, integer(slots // 2)), each.value)) for each in self.needs]
        body = _renamed(self.loop.body, {old.array: new.array for old, new in zip(self.arrays, made, strict=True)})
        body = body if unit == self.unit else _by_warps(body)
        return replace(self.loop, private=self._others, finish=(), body=Steps((*made, *own, body)), tag=Dealt(unit))

    def far(self, most: Value, need: Var) -> For:
        """Return the loop with tables on the heap, with room for ``most`` keys."""
        own = [Declare(each.variable, minimum(need, each.value)) for each in self.needs]
        room = [replace(made, length=_table_of(minimum(most, _range(made)))) for made in self.arrays]
        return replace(self.loop, private=(*self._others, *room), body=Steps((*own, self.loop.body)))

    @property
    def _others(self) -> tuple[Step, ...]:
        """The other arrays that each block, warp or thread has for itself."""
        return tuple(step for step in flat(self.loop.private) if step not in (*self.arrays, *self.needs))


LISTING = ("table_keys", "table_count")


def _range(table: Allocate) -> Value:
    assert isinstance(table.length, Call)
    return table.length.arguments[0]


def _table_of(keys: Value) -> Value:
    return Call("table_size", (keys,), I64)


def _renamed(body: Step, names: Mapping[str, str]) -> Step:
    def change(node: Node) -> Node:
        return replace(node, array=names[node.array]) if isinstance(node, _NAMING) and node.array in names else node

    return transform(body, change)


_NAMING = (ArrayRef, Fill, Load, Store)


def _by_warps(body: Step) -> Step:
    """Return the statements of a block for a single warp: it does in turn what the warps of a block do in parallel."""

    def change(node: Node) -> Node:
        return replace(node, tag=None) if isinstance(node, For) and isinstance(node.tag, Dealt) and node.tag.unit == "warp" else node

    return transform(body, change)


class Bins:
    """The bins of a loop's iterations.

    Attributes:
        rooms: the table sizes of the bins in shared memory; a last bin has its tables on the heap.
    """

    def __init__(self, tables: Tables, needs: str, need: Var, fresh: Callable[[str], str], most: int) -> None:
        """Create the bins.

        Args:
            needs: the array with the number of keys of each iteration.
            need: a variable for one such number.
            most: the most shared memory of a block, in bytes.
        """
        self.tables = tables
        self.needs = needs
        self.need = need
        self.fresh = fresh
        self.rooms = tables.rooms(most)
        self.marks, self.order, self.most = fresh("marks"), fresh("order"), fresh("most")
        self.bin = Var(fresh("bin"), I64)
        self.count = subtract(tables.loop.high, tables.loop.low)

    def steps(self) -> list[Step]:
        """Return the kernels that put iterations into bins, and those of the bins."""
        known, length = Var(self.fresh("most_keys"), I64), add(multiply(integer(len(self.rooms) + 1), self.count), ONE)
        near = [self.turns(place, self.tables.near(room, self.need, self.fresh)) for place, room in enumerate(self.rooms)]
        rare = [*near[2:], self.turns(len(self.rooms), self.tables.far(known, self.need))]
        beyond = [compare(">", known, integer(room.limit)) for room in self.rooms[-len(rare) :]]
        return [
            Allocate(self.most, I64, ONE, zero=True),
            Allocate(self.marks, I64, length, zero=True),
            self.each(Store(self.marks, add(self.mark(), ONE), ONE), Store(self.most, ZERO, self.need, "max", atomic=True)),
            Declare(known, Load(self.most, ZERO, I64)),
            Free(self.most),
            Run("scan", (ArrayRef(self.marks, I64), length)),
            Allocate(self.order, I64, self.count),
            self.each(Store(self.order, Load(self.marks, self.mark(), I64), self.tables.loop.variable)),
            *near[:2],
            *(If(found, loop) for found, loop in zip(beyond, rare, strict=True)),
            Free(self.order),
            Free(self.marks),
        ]

    def mark(self) -> Value:
        """Return the place of the mark of an iteration."""
        return add(multiply(self.bin, self.count), self.tables.place)

    def each(self, *statements: Step) -> For:
        """Return a loop over all iterations, inside which their number of keys and their bin are known."""
        found = [If(compare(">", self.need, integer(room.limit)), SetVar(self.bin, ONE, "+")) for room in self.rooms]
        body = Steps((self.known(), Declare(self.bin, ZERO), *found, *statements))
        return replace(self.tables.loop, private=(), finish=(), body=body, tag=Dealt("thread"))

    def known(self) -> Step:
        """Return the step that declares how many keys the current iteration needs room for."""
        return Declare(self.need, Load(self.needs, self.tables.place, I64))

    def turns(self, place: int, loop: For) -> For:
        """Return a loop over the iterations of a bin."""
        turn = Var(self.fresh("turn"), I64)
        low, high = (Load(self.marks, multiply(integer(bound), self.count), I64) for bound in (place, place + 1))
        taken = Declare(loop.variable, Load(self.order, turn, I64))
        return replace(loop, variable=turn, low=low, high=high, body=Steps((taken, self.known(), *as_steps(loop.body).statements)))
