"""Sparse results that threads append to in pieces: the same bits as in serial, wherever pieces are kept meanwhile, and on every level."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sparsetune as st
from differential.interpreted import interpreted
from sparsetune.compiler.ir.arithmetic import ZERO
from sparsetune.compiler.lowering import pieces
from sparsetune.compiler.native.library import foreign_interface, load_source
from sparsetune.compiler.pipeline import compile_kernel

PIECES = "parallelize(i, cpu_thread, no_races, dynamic, 3)"
CASES = {
    "product": ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, (50, 40)),
    "masked product": ("C(i,j) = M(i,j) * A(i,k) * B(k,j)", {"M": "csr", "A": "csr", "B": "csr", "C": "csr"}, (40, 40)),
    "sum": ("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr", "C": "csr"}, (50, 40)),
    "chain": ("C(i,j) = A(i,k) * B(k,l) * D(l,j)", {"A": "csr", "B": "csr", "D": "csr", "C": "csr"}, (40, 40)),
    "rows that are there": ("C(i,j) = A(i,k) * B(k,j)", {"A": "dcsr", "B": "csr", "C": "dcsr"}, (50, 50)),
    "blocks": ("C(i,j) = A(i,k) * B(k,j)", {"A": "dcsr", "B": "dense", "C": "compressed, dense"}, (50, 50)),
    "one entry for each row": ("C(i) = A(i,k) * B(i,k)", {"A": "csr", "B": "csr", "C": "compressed"}, (50, 50)),
    "one entry for each of both": ("C(i) = A(i) * B(i)", {"A": "compressed", "B": "dense", "C": "compressed"}, (50,)),
    "third order": ("C(i,j,l) = A(i,j,k) * B(k,l)", {"A": "csf", "B": "csr", "C": "csf"}, (30, 30, 30)),
    "dense between": ("C(i,j,l) = A(i,k) * B(j,k,l)", {"A": "dcsr", "B": "dss", "C": "compressed, dense, compressed"}, (20, 20, 20)),
    "sum of order 3": ("C(i,j,l) = A(i,j,l) + B(i,j,l)", {"A": "dss", "B": "dss", "C": "dss"}, (30, 20, 10)),
}


def operands(expression: str, formats: dict[str, str], shape: tuple[int, ...]) -> dict[str, st.Tensor]:
    rng = np.random.default_rng(3)
    made = {}
    for name, form in formats.items():
        if name != "C":
            order = expression.partition(f"{name}(")[2].partition(")")[0].count(",") + 1
            values = rng.integers(1, 9, shape[:1] * order) * (rng.random(shape[:1] * order) < 0.15)
            values[3:9] = 0
            made[name] = st.tensor(values.astype(float), form)
    return made


def same(found: st.Tensor, expected: st.Tensor) -> bool:
    levels = zip(found.levels, expected.levels, strict=True)
    parts = [(a, b) for own, other in levels for a, b in ((own.pos, other.pos), (own.crd, other.crd)) if a is not None and b is not None]
    return all(np.array_equal(a, b) for a, b in [*parts, (found.values, expected.values)])


@pytest.mark.parametrize("case", CASES)
def test_pieces_give_the_serial_result(case: str) -> None:
    expression, formats, shape = CASES[case]
    given = operands(expression, formats, shape)
    expected = st.compile(expression, formats)(threads=1, **given)
    kernel = st.compile(expression, formats, schedule=PIECES)
    for threads in (1, 2, 5):
        bound = kernel.bind(threads=threads, **given)
        assert all(same(bound(), expected) for _ in range(20))


def test_no_iterations_and_no_entries() -> None:
    kernel = st.compile("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, schedule=PIECES)
    for rows in (0, 40):
        found = kernel(A=st.tensor(np.zeros((rows, 5)), "csr"), B=st.tensor(np.ones((5, 6)), "csr"), threads=3)
        assert found.shape == (rows, 6)
        assert found.nnz == 0


COPY = "void past(char *to, const char *from, int64_t bytes);"


def test_copies_past_caches_are_exact_wherever_they_begin() -> None:
    body = "void past(char *to, const char *from, int64_t bytes) { st_copy_past_caches(to, from, (size_t)bytes); }"
    past, numbers = load_source(f'#include "st_pieces.h"\n{body}', COPY).past, np.arange(400, dtype=np.uint8)

    def pointer(array: np.ndarray) -> object:
        return foreign_interface(COPY).cast("char *", array.ctypes.data)

    for begin, offset, count in itertools.product(range(66), (0, 1, 8), (0, 1, 63, 64, 130, 300)):
        copied, expected = np.zeros((2, 400), np.uint8)
        expected[begin : begin + count] = numbers[offset : offset + count]
        past(pointer(copied[begin:]), pointer(numbers[offset:]), count)
        assert np.array_equal(copied, expected)


def test_large_results_are_copied_past_caches() -> None:
    rng = np.random.default_rng(4)
    given = {name: st.tensor((rng.integers(0, 3000, (2, 350_000)), np.ones(350_000)), "csr", (3000, 3000)) for name in "AB"}
    expression, formats = "C(i,j) = A(i,j) + B(i,j)", dict.fromkeys("ABC", "csr")
    expected = st.compile(expression, formats)(threads=1, **given)
    assert expected.values.nbytes > 2**22  # ST_PAST_CACHES
    kernel = st.compile(expression, formats, schedule="parallelize(i, cpu_thread, no_races)")
    assert all(same(kernel(threads=threads, **given), expected) for threads in (1, 2, 5))
    for region in kernel.source.split("static __attribute__((noinline))")[1:]:
        assert "st_drain_stores();" in region, "what others read next waits for the copies of this thread"


@pytest.mark.parametrize("room", [0, 60])
@pytest.mark.parametrize("case", ["product", "third order", "blocks"])
def test_pieces_for_which_the_result_has_no_room_are_joined_at_the_end(case: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled, and interpreted, where every copy is checked."""
    expression, formats, shape = CASES[case]
    given = operands(expression, formats, shape)
    expected = st.compile(expression, formats)(threads=1, **given)
    monkeypatch.setattr(pieces, "expected_entries", lambda _context, _assembly: ZERO)
    monkeypatch.setattr(pieces, "START", room)
    compiled = compile_kernel(expression, formats, {}, f"parallelize(i, cpu_thread, no_races, dynamic, {room + 2})")
    bound = compiled.default_kernel.bind(threads=3, **given)
    assert same(bound(), expected)
    assert same(interpreted(bound)[0], expected)


@pytest.mark.parametrize(
    "loop", ["bound(j, o, 0, min_exact); parallelize(o, cpu_thread, no_races, static)", "parallelize(j, cpu_thread, no_races)"]
)
def test_room_is_made_inside_pieces_whatever_the_loop_is_called(loop: str) -> None:
    given = operands("C(j) = A(j) + B(j)", {"A": "compressed", "B": "compressed", "C": "compressed"}, (50,))
    expected = st.compile("C(j) = A(j) + B(j)", formats=dict.fromkeys("ABC", "compressed"))(threads=1, **given)
    through = f"precompute(A(j) + B(j), [j], [v], w); workspace(w, list); {loop}"
    kernel = st.compile("C(j) = A(j) + B(j)", formats=dict.fromkeys("ABC", "compressed"), schedule=through)
    assert all(same(kernel(threads=threads, **given), expected) for threads in (1, 2, 5))


@pytest.mark.parametrize("result", ["compressed", "hashed"])
def test_room_is_made_inside_pieces_of_positions_that_are_coordinates(result: str) -> None:
    matrix = np.where(np.arange(63).reshape(9, 7) % 5 == 0, 1.5, 0.0)
    schedule = "pos(i, p, A(i,j)); parallelize(p, cpu_thread, no_races)"
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "bitmap, compressed", "y": result}, schedule=schedule)
    for threads in (1, 2, 5):
        assert np.array_equal(kernel(A=st.tensor(matrix, "bitmap, compressed"), x=np.ones(7), threads=threads).to_numpy(), matrix.sum(1))
