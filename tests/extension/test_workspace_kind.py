"""A kind of workspace that the library does not have: written here, registered, named in schedules, held against the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import sparsetune as st
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.ir.arithmetic import ONE, ZERO, compare, every, integer, subtract
from sparsetune.compiler.ir.names import Names
from sparsetune.compiler.ir.nodes import (
    I64,
    ArrayRef,
    Call,
    Declare,
    Grow,
    If,
    Load,
    SetVar,
    Step,
    Steps,
    Store,
    Value,
    Var,
    While,
)  # fmt: skip
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.workspaces.held import HeldWorkspace
from sparsetune.compiler.workspaces.kind import WorkspaceKind, register, unregister
from sparsetune.compiler.workspaces.levels import Storage, key_levels
from sparsetune.compiler.workspaces.making import Making


@dataclass(frozen=True)
class SortedWorkspace(HeldWorkspace):
    """Keys in order, each written at its place, and the values beside them: small where few components are written."""

    kind = "sorted"
    keys: str
    count: Var
    capacity: Var
    room: Var

    def update(self, position: Value, value: Value, op: str, names: Names) -> list[Step]:
        key, place, moved = (Var(names.local(wish), I64) for wish in ("key", "place", "moved"))
        found = every([compare("<", place, self.count), compare("==", Load(self.keys, place, I64), key)])
        before, type_ = subtract(moved, ONE), self.stored.type
        shift = (
            Store(self.keys, moved, Load(self.keys, before, I64)),
            Store(self.stored.values, moved, Load(self.stored.values, before, type_)),
            SetVar(moved, integer(-1), "+"),
        )
        first = Steps((
            Grow(self.keys, I64, self.room, self.count),
            Grow(self.stored.values, type_, self.capacity, self.count),
            Declare(moved, subtract(self.count, ONE)),
            While(compare(">", moved, place), Steps(shift)),
            Store(self.keys, place, key),
            Store(self.stored.values, place, value),
        ))  # fmt: skip
        again = Steps((Store(self.stored.values, place, value, op),))
        search = Call("lower_bound", (ArrayRef(self.keys, I64), ZERO, self.count, key), I64)
        return [
            Declare(key, position),
            Declare(place, search),
            If(found, again, Steps((SetVar(self.count, ONE, "+"), first))),
        ]

    def mark(self, position: Value, names: Names) -> list[Step]:
        return self.update(position, self.zero, "", names)

    def clean(self, names: Names) -> list[Step]:
        return [SetVar(self.count, ZERO)]


class Sorted(WorkspaceKind):
    keeps_entries = True

    def make(self, making: Making) -> SortedWorkspace:
        start, count = integer(4), making.counter("_count", ZERO)
        capacity, room = making.counter("_capacity", start), making.counter("_room", start)
        values, keys = making.array("_vals", making.type, start), making.array("_keys", I64, start)
        levels = key_levels(making.indices, making.extents, keys.array, I64, count.variable)
        stored, once = Storage(making.name, levels, values.array, making.type), (count, capacity, room, values, keys)
        return SortedWorkspace(stored, making.zero, making.depth, once, keys.array, count.variable, capacity.variable, room.variable)


@pytest.fixture
def kind() -> Iterator[WorkspaceKind]:
    made = register(Sorted("sorted"))
    yield made
    unregister(made)


def operands(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    left, right = (np.where(rng.random((15, 15)) < 0.2, rng.integers(1, 9, (15, 15)), 0).astype(float) for _ in range(2))
    left[::4] = 0
    return left, right


def test_schedules_may_name_it_while_it_is_registered(kind: WorkspaceKind) -> None:
    assert str(Schedule("workspace(w, sorted)")) == "workspace(w, sorted)"
    with pytest.raises(ScheduleError, match="there is a kind of workspace 'sorted' already"):
        register(Sorted("sorted"))
    unregister(kind)
    with pytest.raises(ScheduleError, match="one of scalar, registers, dense, list, bitmap, hashed, positions"):
        Schedule("workspace(v, sorted)")
    register(kind)


@pytest.mark.cc
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize(
    "schedule",
    [
        "workspace(w, sorted)",
        "workspace(w, sorted); assemble(C, insert)",
        "workspace(w, sorted); parallelize(i, cpu_thread, no_races); assemble(C, insert)",
        "workspace(w, sorted); parallelize(i, cpu_thread, no_races)",
    ],
)
def test_sparse_rows_are_gathered_in_it(kind: WorkspaceKind, schedule: str, target: str) -> None:
    left, right = operands()
    kernel = st.compile("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, schedule=schedule, target=target)
    made = kernel(A=st.tensor(left, "csr"), B=st.tensor(right, "csr"), threads=2)
    assert np.array_equal(made.to_numpy(), left @ right)
    assert made.nnz == np.count_nonzero(left @ right)
    assert target == "interpreter" or "w_bits" not in kernel.source


@pytest.mark.cc
def test_keys_of_two_modes(kind: WorkspaceKind) -> None:
    left, right = operands(1)
    kernel = st.compile("C(i,j) = A(i,k) * B(k,j)", {"A": "csc", "B": "csr", "C": "csf"}, schedule="workspace(w, sorted)")
    made = kernel(A=st.tensor(left, "csc"), B=st.tensor(right, "csr"))
    assert np.array_equal(made.to_numpy(), left @ right)
