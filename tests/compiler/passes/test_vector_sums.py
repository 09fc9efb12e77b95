"""Sums in vectors: accumulators, narrow vectors for short sums, the rest, signs of zeros."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import loop_kernels
import numpy as np
import pytest
import scipy.sparse as sp
from loop_runs import vectorized
from short_nodes import K, plus, whole
from sparsetune.compiler.ir.interpret import interpret
from sparsetune.compiler.ir.nodes import (
    F64,
    I64,
    Allocate,
    Binary,
    Call,
    Declare,
    For,
    Function,
    SetVar,
    Steps,
    Store,
    Var,
    Vector,
)
from sparsetune.compiler.ir.rewrite import walk
from sparsetune.compiler.passes.simplify import simplify
from vector_loops import SIZE, TOTAL, buffers, element, loop, outputs, times, widths, with_total


@pytest.mark.parametrize(("extent", "count"), [(32, 4), (21, 3), (8, 1), (128, 16)])
def test_accumulators_are_registers(extent: int, count: int) -> None:
    made = vectorized(simplify(loop_kernels.spmm(extent)), 64)
    assert not any(isinstance(node, Allocate) for node in walk(made.body))
    registers = [node for node in walk(made.body) if isinstance(node, Declare) and node.variable.name.startswith("w_")]
    assert len(registers) == count
    sparse = next(node for node in walk(made.body) if isinstance(node, For) and node.variable.name == "p")
    assert not any(isinstance(node, Store) for node in walk(sparse))


@pytest.mark.parametrize(("extent", "halvings"), [(28, 1), (20, 0), (14, 1), (13, 0), (44, 1), (46, 2), (32, 0), (7, 1)])
def test_a_rest_is_summed_with_the_vectors_before_it(extent: int, halvings: int) -> None:
    product = times(element("x", K), element("y", K))
    made = vectorized(simplify(with_total(loop(whole(extent), SetVar(TOTAL, product, "+"), tag=Vector()))), 64)
    called = Counter(node.function for node in walk(made.body) if isinstance(node, Call))
    assert called == Counter({"sum_halves": halvings, "sum_lanes": 1})
    begun = [node.value for node in walk(made.body) if isinstance(node, Declare) and node.variable.name != TOTAL.name]
    assert [value for value in begun if not isinstance(value, Binary)] == []  # none with zeros


@pytest.mark.parametrize(("extent", "bytes_", "lanes"), [(8, 64, 4), (24, 64, 4), (32, 64, 8), (24, 32, 4), (200, 64, 8)])
def test_short_sums_take_narrower_vectors(extent: int, bytes_: int, lanes: int) -> None:
    product = SetVar(TOTAL, times(element("x", K), element("y", K)), "+")
    assert widths(vectorized(with_total(loop(whole(extent), product, tag=Vector())), bytes_)) == {lanes}


def test_rows_that_sums_read_again_and_again_are_held_in_vectors_as_narrow() -> None:
    p, held = Var("p", I64), Allocate("held", F64, whole(20), "registers")
    product = SetVar(TOTAL, times(element("held", K), element("y", plus(K, p))), "+")
    copied, summed = loop(whole(20), Store("held", K, element("x", K))), loop(whole(20), product, tag=Vector())
    kernel = with_total(Steps((held, copied, For(p, whole(0), whole(5), summed))))
    made = vectorized(kernel, 64)
    assert not any(isinstance(node, Allocate) for node in walk(made.body))
    assert widths(made) == {4}
    np.testing.assert_array_equal(outputs(made, [0])[4], outputs(kernel, [0])[4])


def test_rows_that_are_updated_too_keep_wide_vectors() -> None:
    product = SetVar(TOTAL, times(element("x", K), element("y", K)), "+")
    update = Store("z", K, times(element("x", K), element("y", K)), "+")
    both = Steps((loop(whole(16), product, tag=Vector()), loop(whole(16), update)))
    assert 8 in widths(vectorized(with_total(both), 64))


def test_a_sum_of_negative_zeros_keeps_its_sign() -> None:
    kernel = with_total(loop(whole(20), SetVar(TOTAL, element("x", K), "+"), tag=Vector()))
    for made in (kernel, vectorized(kernel, 64)):
        arrays = [np.full(SIZE, -0.0), *buffers()[1:]]
        interpret(made, arrays, [0])
        assert math.copysign(1, arrays[4][0]) == 1


def test_too_many_registers_stay_in_memory() -> None:
    made = vectorized(simplify(loop_kernels.spmm(512)), 64)
    assert any(isinstance(node, Allocate) for node in walk(made.body))
    assert any(isinstance(node, For) and node.step == 8 for node in walk(made.body))


@pytest.mark.parametrize("kernel", [loop_kernels.spmm(21), loop_kernels.spmm(512), loop_kernels.sddmm(40), loop_kernels.spmv()])
def test_whole_kernels(kernel: Function) -> None:
    random = np.random.default_rng(0)
    matrix: Any = sp.random_array((9, 9), density=0.4, format="csr", rng=random)
    dense = [random.integers(-5, 6, 9 * 512).astype(float) for _ in range(2)]
    matrix.data[:] = random.integers(1, 5, matrix.nnz)
    sizes = [9, matrix.nnz][: len(kernel.sizes)]
    results = []
    for made in (kernel, vectorized(simplify(kernel), 32)):
        arrays = [np.zeros(9 * 512), matrix.indptr, matrix.indices, matrix.data, *dense][: len(kernel.arrays)]
        interpret(made, arrays, sizes)
        results.append(arrays[0])
    np.testing.assert_array_equal(*results)
