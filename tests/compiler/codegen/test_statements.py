"""Statements in C: memory that runs out, maps, sorts, atomics, parallel loops, names; against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loop_kernels import squares
from loop_runs import COMPILERS, function, run_both, run_compiled, source_of
from short_nodes import I, K, N, less, plus, whole
from sparsetune.compiler.codegen.c import print_c
from sparsetune.compiler.ir.nodes import (
    BOOL,
    F64,
    I32,
    I64,
    MAP,
    SHARE_NUMBER,
    Allocate,
    ArrayRef,
    Binary,
    Call,
    Comment,
    Const,
    Declare,
    Fill,
    For,
    Free,
    Function,
    Grow,
    If,
    Load,
    Parallel,
    Prefetch,
    Run,
    Select,
    SetVar,
    Step,
    Steps,
    Store,
    Type,
    Unroll,
    Var,
    Vector,
    While,
)

pytestmark = pytest.mark.cc


@pytest.mark.parametrize("kind", ["i32", "i64"])
@pytest.mark.parametrize("count", [0, 1, 2, 24, 25, 40, 41, 2048, 2049, 70_000])
def test_sort(kind: str, count: int) -> None:
    random = np.random.default_rng(count)
    spread = {0: 5, 1: 2**31 - 1}[count % 2]
    for keys in (random.integers(0, spread, count), np.arange(count)[::-1], np.repeat(3, count), random.integers(-9, 9, count)):
        array = np.append(keys, -100).astype(kind.replace("i", "int"))
        expected = np.append(np.sort(keys), -100)
        kernel = function([Run("sort", (ArrayRef("a", Type(kind)), N))], {"a": (kind, True)}, ["n"])
        run_compiled(kernel, [array], [count])
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_searches(kind: str) -> None:
    crd = np.array([-5, 1, 3, 3, 3, 8, 9, 20, 21, 22, 40], kind.replace("i", "int"))
    names = ("lower_bound", "upper_bound", "gallop")
    low, high, key = Var("low", I64), Var("high", I64), Var("key", I64)
    place = Var("place", I64)
    stride = Call("gallop_stride", (high, Binary("+", low, whole(1), I64)), I64)
    search = [
        Store(name, place, Call(name, (ArrayRef("crd", Type(kind)), low, high, key, *([stride] if name == "gallop" else [])), I64))
        for name in names
    ]
    count = SetVar(place, whole(1), "+")
    loops = For(low, whole(0), whole(12), For(high, low, whole(12), For(key, whole(-7), whole(43), Steps((*search, count)))))
    kernel = function([Declare(place, whole(0)), loops], {"crd": (kind, False), **dict.fromkeys(names, ("i64", True))})
    size = 50 * 12 * 13
    arrays = [crd, *(np.zeros(size, np.int64) for _ in names)]
    run_both(kernel, arrays)
    np.testing.assert_array_equal(arrays[1], arrays[3])


def test_scan_and_ranges() -> None:
    counts = np.array([0, 2, 0, 3, 1, 7], np.int32)
    statements = [Run("scan", (ArrayRef("pos", I32), whole(5))), Run("sort_range", (ArrayRef("a", I64), whole(2), whole(5)))]
    kernel = function(statements, {"pos": ("i32", True), "a": ("i64", True)})
    arrays = [counts, np.array([9, 8, 7, 6, 5, 4])]
    run_both(kernel, arrays)
    assert arrays[0].tolist() == [0, 2, 2, 5, 6, 7]
    assert arrays[1].tolist() == [9, 8, 5, 6, 7, 4]


def test_hashed_level_is_found_as_storage_packs_it() -> None:
    from sparsetune.compiler.storage.hashing import insert, table_sizes

    coordinates = np.array([3, 70_001, 12, 999_999_937, 4, 0], np.int64)
    size = int(table_sizes(np.array([len(coordinates)]))[0])
    crd = np.full(size + 3, -1, np.int64)
    insert(crd, np.array([3, 3 + size]), np.zeros(len(coordinates), np.int64), coordinates)
    keys = np.append(coordinates, [5, 6, 1])
    find = Store("slot", I, Call("hash_find", (ArrayRef("crd", I64), whole(3), whole(3 + size), Load("keys", I, I64)), I64))
    empty = Store("slot", whole(9), Call("hash_find", (ArrayRef("crd", I64), whole(3), whole(3), whole(0)), I64))
    kernel = function([For(I, whole(0), whole(9), find), empty], {"crd": ("i64", False), "keys": ("i64", False), "slot": ("i64", True)})
    slots = np.zeros(10, np.int64)
    run_both(kernel, [crd, keys, slots])
    np.testing.assert_array_equal(crd[slots[:6]], coordinates)
    assert slots[6:].tolist() == [-1] * 4


def map_kernel(expected: int) -> Function:
    """Number keys, count how often each came, clear, and do it again with the later half."""
    ordinal, capacity = Var("ordinal", I64), Var("capacity", I64)
    keys = ArrayRef("m", MAP)
    first = If(
        less(Var("size", I64), Call("map_size", (keys,), I64)),
        Steps((Grow("counts", I64, capacity, plus(ordinal, whole(1))), Store("counts", ordinal, whole(0)))),
    )
    body = Steps((
        Declare(Var("size", I64), Call("map_size", (keys,), I64)),
        Declare(ordinal, Call("map_insert", (keys, Load("given", I, I64)), I64)),
        first,
        Store("counts", ordinal, whole(1), "+"),
    ))  # fmt: skip
    report = For(K, whole(0), Call("map_size", (keys,), I64), Steps((
        Store("key", K, Call("map_key", (keys, K), I64), "+"),
        Store("count", K, Load("counts", Call("map_find", (keys, Call("map_key", (keys, K), I64)), I64), I64), "+"),
    )))  # fmt: skip
    statements = [
        Allocate("m", MAP, whole(expected)),
        Declare(capacity, whole(1)),
        Allocate("counts", I64, whole(1)),
        For(I, whole(0), N, body),
        report,
        Store("missing", whole(0), Call("map_find", (keys, whole(-77)), I64)),
        Run("map_clear", (keys,)),
        For(I, Binary("/", N, whole(2), I64), N, body),
        report,
        Free("counts"),
        Free("m"),
    ]
    arrays = {"given": ("i64", False), "key": ("i64", True), "count": ("i64", True), "missing": ("i64", True)}
    return function(statements, arrays, ["n"])


@pytest.mark.parametrize("expected", [0, 1, 5000])
@pytest.mark.parametrize("count", [0, 1, 3000])
def test_maps(expected: int, count: int) -> None:
    given = np.random.default_rng(1).integers(-(10**12), 10**12, 800)[np.random.default_rng(2).integers(0, 800, count)]
    run_both(map_kernel(expected), [given, np.zeros(900, np.int64), np.zeros(900, np.int64), np.zeros(1, np.int64)], [count])


@pytest.mark.parametrize("count", [0, 1, 3, 1000, 300_000])
def test_growing_and_publishing(count: int) -> None:
    published = run_compiled(squares(), [None], [count])["out"]
    np.testing.assert_array_equal(published, np.arange(count) ** 2)
    if count:
        assert published.ctypes.data % 64 == 0


def test_control() -> None:
    """While, if, else if, else, blocks that hide names, unrolled loops, fills, comments, register arrays."""
    t, x = Var("t", I64), Var("x", I64)
    third = If(less(t, whole(6)), Store("a", t, whole(2)), Store("a", t, whole(3)))
    statements: list[Step] = [
        Comment("a comment with */ in it"),
        Declare(t, whole(0)),
        While(less(t, whole(9)), Steps((If(less(t, whole(3)), Store("a", t, whole(1)), third), SetVar(t, whole(1), "+")))),
        Declare(x, whole(10)),
        Steps((Declare(x, whole(20)), Store("a", whole(9), x))),
        Store("a", whole(10), x),
        Steps((Declare(Var("y", I64), whole(4)),)),
        Store("a", whole(11), Var("y", I64)),
        Allocate("r", I64, whole(4), "registers"),
        Fill("r", whole(0), whole(4), whole(-1)),
        Fill("a", whole(12), whole(15), Load("r", whole(2), I64)),
        Fill("a", whole(15), whole(17), whole(0)),
        For(K, whole(17), plus(t, whole(13)), Store("a", K, K), Unroll(4)),
        Store("a", whole(25), whole(7), "min"),
        Store("a", whole(26), whole(200), "max"),
        Prefetch("a", plus(t, whole(10**9)), 64),
    ]
    array = np.full(30, 99, np.int64)
    for compiler in COMPILERS:
        run_both(function(statements, {"a": ("i64", True)}), [array.copy()], compiler=compiler)


def test_blocks_in_which_others_hide_names_leave_their_own() -> None:
    """Only the block that hides ``x`` gets braces: ``y`` and ``z`` of the block around it are read after it."""
    x, y, z = (Var(name, I64) for name in "xyz")
    statements: list[Step] = [
        Steps((Declare(x, whole(1)), Store("a", whole(0), x))),
        Steps((Declare(y, whole(5)), Steps((Declare(x, whole(2)), Store("a", whole(1), x))), Declare(z, plus(x, y)))),
        Store("a", whole(2), z),
        Store("a", whole(3), plus(x, y)),
    ]
    array = np.zeros(4, np.int64)
    outcome = run_both(function(statements, {"a": ("i64", True)}), [array])
    assert outcome is not None
    np.testing.assert_array_equal(array, [1, 2, 6, 6])


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("chunking", [None, "static", "dynamic", "guided"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_parallel_histogram(compiler: str, chunking: str | None, threads: int) -> None:
    """Private arrays, merged atomically when each thread is done; atomics of every operator."""
    bucket = Binary("%", Load("keys", I, I64), whole(7), I64)
    merge = For(K, whole(0), whole(7), Store("sum", K, Load("own", K, I64), "+", atomic=True))
    body = Steps((
        Store("own", bucket, whole(1), "+"),
        Store("low", bucket, Load("values", I, F64), "min", atomic=True),
        Store("high", bucket, Load("values", I, F64), "max", atomic=True),
        Store("product", bucket, Const(2.0, F64), "*", atomic=True),
        Store("any", bucket, Binary(">", Load("values", I, F64), Const(0.99, F64), BOOL), "or", atomic=True),
        Store("share", whole(0), Call(SHARE_NUMBER, (), I64), "min", atomic=True),
    ))  # fmt: skip
    private = (Allocate("own", I64, whole(7), zero=True),)
    loop = For(I, whole(0), N, body, Parallel(chunking, 3 if chunking else None), private, (merge, Free("own")))
    arrays = {"keys": ("i64", False), "values": ("f64", False), "sum": ("i64", True), "low": ("f64", True), "high": ("f64", True)}
    arrays |= {"product": ("f64", True), "any": ("bool", True), "share": ("i64", True)}
    random = np.random.default_rng(0)
    data = [random.integers(0, 100, 400), random.random(400), np.zeros(7, np.int64), np.ones(7), np.zeros(7), np.ones(7)]
    run_both(function([loop], arrays, ["n"]), [*data, np.zeros(7, bool), np.full(1, -1)], [400], threads=threads, compiler=compiler)


@pytest.mark.parametrize(
    ("chunking", "chunk"), [(None, None), ("static", 5), ("dynamic", None), ("dynamic", 3), ("guided", None), ("guided", 4)]
)
@pytest.mark.parametrize("threads", [1, 3, 8])
def test_exactly_so_many_shares(threads: int, chunking: str | None, chunk: int | None) -> None:
    """Chunks belong to shares by their number, in every run."""
    loop = For(I, whole(0), whole(64), Store("share", I, Call(SHARE_NUMBER, (), I64)), Parallel(chunking, chunk))
    kernel = function([loop], {"share": ("i64", True)})
    runs = [np.full(64, -1) for _ in range(5)]
    for share in runs:
        run_compiled(kernel, [share], threads=threads)
        assert set(share.tolist()) == set(range(threads))
        np.testing.assert_array_equal(share, runs[0])
    if chunk and chunking != "guided" and threads > 1:
        np.testing.assert_array_equal(runs[0], np.arange(64) // chunk % threads)


# Memory that runs out


# Names and shapes of the text


def test_awkward_names() -> None:
    names = ["for", "for_", "main", "int32_t", "I", "unix", "linux", "NULL", "st_kernel", "_Bool", "omp_x", "f64x8", "free", "memset",
             "x_t", "asm", "bool", "errno", "SIZE_MAX", "st_arrays", "double", "alloca", "true", "assert"]  # fmt: skip
    loops: Step = Store("restrict", whole(0), Const(1.0, F64), "+")
    for name in names[:6]:
        loops = For(Var(name, I64), whole(0), whole(2), loops)
    statements = [Declare(Var(name, F64), Load("restrict", whole(1), F64)) for name in names[6:]]
    uses = [Store("restrict", whole(place), Var(name, F64)) for place, name in enumerate(names[6:])]
    kernel = function([loops, *statements, *uses], {"restrict": ("f64", True)})
    for compiler in COMPILERS:
        run_both(kernel, [np.arange(40.0)], compiler=compiler)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_macro_of_the_headers_keeps_its_name(compiler: str, tmp_path: Any) -> None:
    import subprocess

    from sparsetune.compiler.codegen.names import is_reserved
    from sparsetune.compiler.native.library import CSRC

    includes = "".join(f'#include "{name}"\n' for name in ("st_runtime.h", "st_sort.h", "st_map.h", "st_atomic.h", "st_loop.h"))
    (tmp_path / "all.c").write_text(includes)
    command = [compiler, "-std=gnu11", "-march=native", "-dM", "-E", "-I", str(CSRC), str(tmp_path / "all.c")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    macros = {line.split()[1].partition("(")[0] for line in shown.splitlines()}
    assert len(macros) > 300
    assert [name for name in sorted(macros) if not is_reserved(name)] == []


def test_reductions_that_stay_scalar_are_marked_for_the_compiler() -> None:
    total = Var("total", F64)
    value = Load("x", K, F64)
    chosen = Select(Binary("<", value, Const(0.0, F64), BOOL), Const(0.0, F64), value, F64)
    loop = For(K, whole(0), N, SetVar(total, chosen, "+"), Vector())
    kernel = function([Declare(total, Const(0.0, F64)), loop, Store("x", whole(0), total)], {"x": ("f64", True)}, ["n"])
    assert "#pragma omp simd reduction(+:total)" in source_of(kernel, 64)


def test_no_dead_parameters() -> None:
    text = print_c(function([Store("a", whole(0), Const(1.0, F64))], {"a": ("f64", True), "unused": ("f64", False)}, ["n"]))
    assert "unused" not in text
    assert " n " not in text
