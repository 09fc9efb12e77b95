"""Kernels whose memory runs out: each ends with a status and leaves nothing behind; large local arrays go to the heap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loop_runs import COMPILERS, function, run_both, run_compiled
from short_nodes import I, K, whole
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F64,
    I64,
    MAP,
    Allocate,
    Binary,
    Const,
    Declare,
    For,
    Free,
    Grow,
    If,
    Load,
    Parallel,
    Step,
    Steps,
    Store,
    Value,
    Var,
)
from sparsetune.compiler.passes.placement import place_large_arrays

pytestmark = pytest.mark.cc


def used_memory() -> int:
    """Bytes that the C library's allocator has handed out."""
    from sparsetune.compiler.native.library import foreign_interface

    library = foreign_interface("struct info { size_t field[10]; }; struct info mallinfo2(void); void malloc_trim(size_t);").dlopen(None)
    found = library.mallinfo2()
    return int(found.field[7]) + int(found.field[1])  # in use, and mapped


HUGE = whole(2**60)


def serial_failure() -> list[Step]:
    return [
        Allocate("first", F64, whole(100_000)),
        For(K, whole(0), whole(3), Steps((
            Allocate("second", F64, whole(100_000)),
            If(Binary("==", K, whole(2), BOOL), Steps((Allocate("third", F64, HUGE), Free("third")))),
            Free("second"),
        ))),
        Free("first"),
    ]  # fmt: skip


def growing_failure() -> list[Step]:
    capacity = Var("capacity", I64)
    return [Allocate("first", F64, whole(100_000)), Declare(capacity, whole(100_000)), Grow("first", F64, capacity, HUGE), Free("first")]


def map_failure() -> list[Step]:
    return [Allocate("first", F64, whole(100_000)), Allocate("m", MAP, HUGE), Free("m"), Free("first")]


def parallel_failure(where: str) -> list[Step]:
    """Every thread, or one iteration, asks for too much."""
    fails: Value = Const(True, BOOL) if where != "body" else Binary("==", I, whole(37), BOOL)
    huge = If(fails, Steps((Allocate("huge", F64, HUGE), Free("huge"))))
    parts: dict[str, tuple[Step, ...]] = {"private": (), "body": (), "finish": ()}
    parts[where] = (huge,)
    private = (Allocate("own", F64, whole(50_000)), *parts["private"], Allocate("own2", F64, whole(50_000)))
    body = Steps((Allocate("each", F64, whole(10_000)), *parts["body"], Free("each")))
    loop = For(I, whole(0), whole(100), body, Parallel("dynamic", 1), private, (*parts["finish"], Free("own"), Free("own2")))
    return [Allocate("first", F64, whole(100_000)), loop, Allocate("late", F64, whole(5)), Free("late"), Free("first")]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    "statements",
    [serial_failure(), growing_failure(), map_failure(), *(parallel_failure(where) for where in ("private", "body", "finish"))],
    ids=["serial", "grow", "map", "private", "body", "finish"],
)
def test_no_memory_ends_with_status_1_and_leaves_nothing(statements: list[Step], compiler: str) -> None:
    kernel = function(statements, {"unused": ("f64", False)})
    arrays: list[Any] = [np.zeros(1)]
    for _ in range(3):
        with pytest.raises(MemoryError):
            run_compiled(kernel, arrays, threads=4, compiler=compiler)
    before = used_memory()
    for _ in range(20):
        with pytest.raises(MemoryError):
            run_compiled(kernel, arrays, threads=4, compiler=compiler)
    assert used_memory() - before < 200_000  # 16 MB were allocated and freed


def test_large_local_arrays_do_not_overflow_the_stack() -> None:
    body = Steps((
        Allocate("w", F64, whole(4_000_000), "registers"),
        Store("w", whole(3_999_999), Const(2.0, F64)),
        Store("a", I, Load("w", whole(3_999_999), F64)),
    ))  # fmt: skip
    kernel = place_large_arrays(function([For(I, whole(0), whole(9), body, Parallel())], {"a": ("f64", True)}))
    array = np.zeros(9)
    run_both(kernel, [array], threads=4)
    assert array.tolist() == [2.0] * 9
