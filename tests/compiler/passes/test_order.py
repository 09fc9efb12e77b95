"""The order of passes: where another one would give other code, the list refuses it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from sparsetune.compiler.codegen.c import print_c
from sparsetune.compiler.codegen.cuda import print_cuda
from sparsetune.compiler.ir.nodes import Function
from sparsetune.compiler.passes.cpu import CPU
from sparsetune.compiler.passes.cuda import CUDA
from sparsetune.compiler.passes.manager import Pass, PassList, Property, VectorUnit
from sparsetune.compiler.pipeline import compile_kernel

UNITS = (VectorUnit(64, True, 24, 32), VectorUnit(32))
TILES = "collapse(i, j, f); pos(f, p, A); split(p, p0, p1, 512); parallelize(p0, cpu_thread, atomics)"
ROW = "precompute(A(i,k) * B(k,j), j, j, w)"
KERNELS = {
    "spmv": ("y(i) = A(i,j) * x(j)", {"A": "csr"}, "", {}),
    "spmv in tiles": ("y(i) = A(i,j) * x(j)", {"A": "csr"}, TILES, {}),
    "spmm": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, "parallelize(i, cpu_thread, no_races)", {"k": 32}),
    "spmm in tiles": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, TILES, {"k": 32}),
    "large row": ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr"}, f"{ROW}; workspace(w, registers)", {"j": 10000}),
    "product": ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, "assemble(C, insert)", {}),
    "tiled rows": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, "split(k, k0, k1, 8); reorder(i, k0, j, k1)", {"k": 32}),
    "sddmm": ("S(i,j) = A(i,j) * U(i,k) * V(j,k)", {"A": "csr", "S": "csr"}, "", {"k": 16}),
    "addition": ("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr", "C": "csr"}, "", {}),
    "diagonal": ("y(i) = B(i,i)", {}, "parallelize(i, cpu_vector, no_races)", {}),
    "function": ("R(i,j) = exp(A(i,j))", {"A": "csr", "R": "csr"}, "", {}),
    "slices": ("y(i) = A(i,j) * x(j)", {"A": "dense, sliced"}, "", {}),
    "column": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, "", {"k": 1}),
    "column of slices": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "dense, sliced"}, "", {"k": 1}),
    "row sums": ("y(i) = A(i,j) * b(i)", {"A": "csr", "y": "compressed"}, "", {}),
    "rows of factors": ("A(i,r) = T(i,j,k,l) * B(j,r) * C(k,r) * D(l,r)", {"T": "csf"}, "", {"r": 16}),
}  # fmt: skip
SWAPS = [(first, second) for first in range(len(CPU.passes)) for second in range(first + 1, len(CPU.passes))]


@cache
def kernel(name: str) -> Function:
    expression, formats, schedule, extents = KERNELS[name]
    return compile_kernel(expression, formats, extents, schedule).default_kernel.spec.function


@cache
def expected(name: str, unit: VectorUnit) -> str:
    return print_c(CPU.run(kernel(name), unit))


def moved(first: int, second: int, *, later: bool, passes: Sequence[Pass] = CPU.passes) -> list[Pass]:
    """Return passes with one moved behind another, or before it."""
    passes = list(passes)
    passes.insert(second if later else first, passes.pop(first if later else second))
    return passes


@pytest.mark.parametrize("later", [False, True], ids=["earlier", "later"])
@pytest.mark.parametrize(("first", "second"), SWAPS, ids=[f"{CPU.passes[a].name}-{CPU.passes[b].name}" for a, b in SWAPS])
def test_another_order_is_refused_or_does_not_matter(first: int, second: int, later: bool) -> None:
    try:
        other = PassList(moved(first, second, later=later), CPU.at_first)
    except ValueError:
        return
    for name in KERNELS:
        for unit in UNITS:
            assert print_c(other.run(kernel(name), unit)) == expected(name, unit), name


DEVICE = {
    "rows": (
        "y(i) = A(i,j) * x(j)", {"A": "csr"},
        "split(i, b, t, 64); parallelize(b, gpu_block, no_races); parallelize(t, gpu_thread, no_races)",
    ),
    "entries": (
        "Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"},
        "collapse(i, j, f); pos(f, p, A); split(p, b, q, 64); reorder(b, k, q);"
        " parallelize(b, gpu_block, no_races); parallelize(k, gpu_thread, atomics)",
    ),
    "counted": (
        "C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr", "C": "csr"},
        "assemble(C, insert); parallelize(i, gpu_thread, no_races)",
    ),
    "tables": (
        "C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"},
        "assemble(C, insert); parallelize(i, gpu_warp, no_races); parallelize([0], j, gpu_thread, no_races)",
    ),
    "temporary": (
        "y(i) = A(i,j) * x(j)", {"A": "csr"},
        "collapse(i, j, f); pos(f, p, A); split(p, b, q, 64); split(q, t, n, 4); precompute(A(i,j) * x(j), n, n2, w);"
        " parallelize(b, gpu_block, temporary); parallelize(t, gpu_thread, temporary)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEVICE)
def test_another_order_on_a_gpu_is_refused_or_does_not_matter(name: str) -> None:
    expression, formats, schedule = DEVICE[name]
    function = compile_kernel(expression, formats, {}, schedule, target="cuda-executor").default_kernel.spec.function
    usual, unit, refused = print_cuda(CUDA.run(function, UNITS[0])), UNITS[0], 0
    orders = [(first, second, later) for first in range(len(CUDA.passes)) for second in range(first) for later in (False, True)]
    for second, first, later in orders:
        try:
            other = PassList(moved(first, second, later=later, passes=CUDA.passes), CUDA.at_first)
        except ValueError:
            refused += 1
            continue
        assert print_cuda(other.run(function, unit)) == usual, [each.name for each in other.passes]
    assert refused > len(orders) // 2


def test_most_orders_are_refused() -> None:
    def stands(first: int, second: int) -> bool:
        try:
            PassList(moved(first, second, later=True), CPU.at_first)
        except ValueError:
            return False
        return True

    assert sum(stands(first, second) for first, second in SWAPS) < len(SWAPS) // 4


def test_every_pass_does_something() -> None:
    changing = set()
    for name in KERNELS:
        for unit in UNITS:
            before = kernel(name)
            for each, after in CPU.stages(before, unit):
                changing |= {each.name} if after != before else set()
                before = after
    assert changing == {each.name for each in CPU.passes}


def test_a_pass_that_ends_what_the_next_requires_is_refused() -> None:
    sorted_ = Property("rows are sorted")
    shuffle = Pass("shuffle", lambda function, _: function, ends=frozenset({sorted_}))
    search = Pass("search", lambda function, _: function, requires=frozenset({sorted_}))
    PassList([search, shuffle], [sorted_])
    with pytest.raises(ValueError, match="pass 'search' stands where it cannot: it requires that rows are sorted"):
        PassList([shuffle, search], [sorted_])


def test_two_passes_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two passes have one name"):
        PassList([CPU.passes[0], CPU.passes[0]])
