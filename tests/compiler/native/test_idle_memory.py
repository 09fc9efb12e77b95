"""Memory of large results serves the next one, is bounded, and is given back."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import sparsetune as st
from sparsetune.compiler.native import idle_memory, memory
from sparsetune.compiler.native.idle_memory import IDLE, IdleMemory
from sparsetune.compiler.native.memory import Room
from sparsetune.compiler.storage.pooled import LEAST, pooled_empty

SIZE = 2 * LEAST


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(idle_memory, "SECONDS", 60.0)
    IDLE.clear()
    yield
    IDLE.clear()


def place(array: np.ndarray) -> int:
    return array.ctypes.data


def test_the_memory_of_what_is_gone_serves_the_next() -> None:
    first = pooled_empty(SIZE, np.uint8)
    was = place(first)
    assert was % 64 == 0
    del first
    assert IDLE.bytes == SIZE
    second = pooled_empty(SIZE // 8 - 1, np.float64)  # a little less
    assert place(second) == was
    assert IDLE.bytes == 0
    assert place(pooled_empty(SIZE, np.uint8)) != was


def test_every_view_keeps_it() -> None:
    array = pooled_empty(SIZE // 8, np.float64)
    array[:] = 3.0
    was, view, buffer = place(array), array.reshape(2, -1).T[::2].view(np.int64), memoryview(array)[5:]
    del array
    assert IDLE.bytes == 0
    del buffer
    other = pooled_empty(SIZE // 8, np.float64)
    other[:] = 4.0
    assert place(other) != was
    assert (view.view(np.float64) == 3.0).all()
    with pytest.raises(ValueError, match="does not own"):
        other.resize(7, refcheck=False)
    del view
    assert IDLE.bytes == SIZE


def test_small_results_and_other_sizes_are_not_its_matter() -> None:
    small = pooled_empty(LEAST // 8 - 1, np.float64)
    del small
    assert IDLE.bytes == 0
    del (large := [pooled_empty(2 * SIZE, np.uint8)])[0]
    assert not large
    assert pooled_empty(SIZE, np.uint8).size == SIZE
    assert IDLE.bytes == 3 * SIZE


def test_what_is_kept_is_bounded() -> None:
    idle = IdleMemory(limit=100)
    idle.give("too large", 101)
    assert idle.bytes == 0
    for name in "abc":
        idle.give(name, 40)
    assert idle.bytes == 80
    assert [idle.take(40), idle.take(40), idle.take(40)] == ["b", "c", None]


def test_it_is_given_back_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_memory, "SECONDS", 0.02)
    for _ in range(2):  # the first watcher ends, and another begins
        idle = IdleMemory(limit=100)
        idle.give("a", 40)
        ends = time.monotonic() + 30
        while idle.bytes:
            assert time.monotonic() < ends
            time.sleep(0.005)


def test_it_is_given_back_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = pooled_empty(SIZE, np.uint8)
    del kept
    monkeypatch.setattr(memory, "available", lambda: Room(memory.FLOOR if IDLE.bytes else 4 * memory.FLOOR, "a test"))
    memory.claim(2 * memory.FLOOR, "a result")
    assert IDLE.bytes == 0
    with pytest.raises(st.ResourceError, match="a result does not fit into memory"):
        memory.claim(5 * memory.FLOOR, "a result")


def test_where_no_thread_can_be_had_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(idle_memory._thread, "start_new_thread", refuse)
    idle = IdleMemory(limit=100)
    idle.give("a", 40)
    assert idle.bytes == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_begins_with_none() -> None:
    array = pooled_empty(SIZE, np.uint8)
    del array
    child = os.fork()
    if child == 0:
        os._exit(IDLE.bytes != 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert IDLE.bytes == SIZE


def test_threads_never_get_the_same_memory() -> None:
    idle, faults, out = IdleMemory(limit=1 << 40), list[object](), set[object]()
    for number in range(4):
        idle.give(number, 64)

    def work() -> None:
        for _ in range(2_000):
            if (found := idle.take(64)) is not None:
                if found in out:
                    faults.append(found)
                out.add(found)
                out.discard(found)
                idle.give(found, 64)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert idle.bytes == 4 * 64


@pytest.mark.cc
@pytest.mark.parametrize("columns", [1, 40])
def test_results_that_are_held_stay_as_they_are(columns: int) -> None:
    """Calls like one before, and others."""
    kernel = st.compile("Y(i,k) = x(i) * z(k)")
    x, z = np.arange(LEAST // 8 + 1, dtype=float), np.ones(columns)
    held = [kernel(x=x, z=z * number) for number in range(4)]
    assert all(np.array_equal(result, np.outer(x, z * number)) for number, result in enumerate(held))
    was = set(map(place, held))
    assert len(was) == 4
    held.clear()
    assert place(kernel(x=x, z=z)) in was
    assert place(st.evaluate("Y(i,k) = x(i) * z(k)", {"x": x, "z": z})) in was
