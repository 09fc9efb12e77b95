"""Iterations in bins by how many keys come into their tables, and a kernel for each bin (``passes.needs``).

Marks of who is in which bin stand one bin after another; their prefix sums are the places of iterations in a list, in which those of a bin
follow one another in their old order, and where each bin begins.
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
"""Bytes of a block's shared memory for tables, so that several blocks run on a multiprocessor."""
MOST_SLOTS = 8192
"""Of such a table: it is set back in every iteration, and put in order."""
OTHER_BYTES = 1024
"""Bytes of a block's shared memory for other things than tables, where these take all that there is."""
WORK = 16
"""So many keys count as a different one, though all of them may be equal: they have to be looked up."""


@frozen
class Room:
    """What a table in shared memory has: so many slots for each block or warp."""

    unit: Member
    slots: int

    @property
    def limit(self) -> int:
        """The most keys that come into such a table, which is at most three quarters full."""
        return self.slots * 3 // 4


@frozen
class Tables:
    """The tables that the iterations of a loop fill.

    Attributes:
        loop: makes them for each block, warp or thread.
        arrays: of keys, values and lists of keys.
        needs: the variables that say how many keys come, with the whole range.
    """

    loop: For
    arrays: tuple[Allocate, ...]
    needs: tuple[Declare, ...]

    @property
    def unit(self) -> Member:
        assert isinstance(self.loop.tag, Dealt)
        return self.loop.tag.unit

    @property
    def place(self) -> Value:
        return subtract(self.loop.variable, self.loop.low)

    def noting(self, needs: str, need: Var) -> Tables:
        """Return the loop noting how many different keys came, where one table of an iteration is listed once."""
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
        """Return rooms for tables in shared memory, from few slots to many.

        Args:
            most: bytes that the threads of a block share at most.
        """
        warp = Room("warp", min(MOST_SLOTS, self._slots(NEAR_BYTES // WARPS)))
        block = Room("block", min(MOST_SLOTS, self._slots(NEAR_BYTES)))
        whole = Room("block", self._slots(most - OTHER_BYTES))
        return [warp] if self.unit == "warp" else [warp, block, whole] if whole.slots > block.slots else [warp, block]

    def _slots(self, room: int) -> int:
        """Return a power of two: how many slots tables have in so many bytes."""
        fitting = room // sum(table.type.bytes for table in self.arrays)
        return 1 << max(fitting.bit_length() - 1, 0)

    def near(self, room: Room, need: Var, fresh: Callable[[str], str]) -> For:
        """Return the loop with tables in shared memory, its iterations for blocks or warps."""
        unit, slots = room.unit, room.slots
        made = [replace(made, array=fresh(f"{made.array}_near"), length=integer(slots), storage=unit) for made in self.arrays]
        own = [Declare(each.variable, minimum(minimum(need, integer(slots // 2)), each.value)) for each in self.needs]
        body = _renamed(self.loop.body, {old.array: new.array for old, new in zip(self.arrays, made, strict=True)})
        body = body if unit == self.unit else _by_warps(body)
        return replace(self.loop, private=self._others, finish=(), body=Steps((*made, *own, body)), tag=Dealt(unit))

    def far(self, most: Value, need: Var) -> For:
        """Return the loop with tables on the heap, with room for so many keys."""
        own = [Declare(each.variable, minimum(need, each.value)) for each in self.needs]
        room = [replace(made, length=_table_of(minimum(most, _range(made)))) for made in self.arrays]
        return replace(self.loop, private=(*self._others, *room), body=Steps((*own, self.loop.body)))

    @property
    def _others(self) -> tuple[Step, ...]:
        """What else each block, warp or thread has for itself."""
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
    """Return what a block does, for a warp: one after another what warps do side by side."""

    def change(node: Node) -> Node:
        return replace(node, tag=None) if isinstance(node, For) and isinstance(node.tag, Dealt) and node.tag.unit == "warp" else node

    return transform(body, change)


class Bins:
    """The bins of a loop's iterations.

    Attributes:
        rooms: of the bins whose tables are in shared memory; behind them comes the one whose tables are on the heap.
    """

    def __init__(self, tables: Tables, needs: str, need: Var, fresh: Callable[[str], str], most: int) -> None:
        """Create the bins.

        Args:
            needs: an array with what each iteration comes to.
            need: a variable for it.
            most: bytes that the threads of a block share at most.
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
        """Return where the mark of an iteration stands."""
        return add(multiply(self.bin, self.count), self.tables.place)

    def each(self, *statements: Step) -> For:
        """Return a loop over all iterations that knows what they need and which bin they are in."""
        found = [If(compare(">", self.need, integer(room.limit)), SetVar(self.bin, ONE, "+")) for room in self.rooms]
        body = Steps((self.known(), Declare(self.bin, ZERO), *found, *statements))
        return replace(self.tables.loop, private=(), finish=(), body=body, tag=Dealt("thread"))

    def known(self) -> Step:
        return Declare(self.need, Load(self.needs, self.tables.place, I64))

    def turns(self, place: int, loop: For) -> For:
        """Return a loop over the iterations of a bin."""
        turn = Var(self.fresh("turn"), I64)
        low, high = (Load(self.marks, multiply(integer(bound), self.count), I64) for bound in (place, place + 1))
        taken = Declare(loop.variable, Load(self.order, turn, I64))
        return replace(loop, variable=turn, low=low, high=high, body=Steps((taken, self.known(), *as_steps(loop.body).statements)))
