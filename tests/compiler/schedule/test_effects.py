"""Every directive, and every value that one may name, has an effect: a kernel whose code is another one with it than without.

The table must have a row for each keyword of the language and for each value, choices and truth values, that its parameters take. Code is
compared without comments and names, since directives rename loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
import sparsetune as st
from plain_code import plain
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.targets.c import compile_flags
from sparsetune.compiler.workspaces import WORKSPACES

Named = tuple[str, object]
Expression = tuple[str, dict[str, str]]

SPMV: Expression = ("y(i) = A(i,j) * x(j)", {"A": "csr"})
DENSE_MV: Expression = (SPMV[0], {})
DENSE: Expression = ("C(i,j) = A(i,k) * B(k,j)", {})
SPMM: Expression = (DENSE[0], {"A": "csr"})
SPGEMM: Expression = (DENSE[0], dict.fromkeys("ABC", "csr"))
MTTKRP: Expression = ("M(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": "csf"})
CHAIN: Expression = ("C(i,l) = A(i,j) * B(j,k) * D(k,l)", {"A": "csr"})
SUM: Expression = ("y(i) = A(i,j) * x(j) + B(i,j) * z(j)", {"A": "csr", "B": "csr"})
DOT: Expression = ("a = x(i) * z(i)", {"x": "compressed", "z": "compressed"})

ADDENDS = "addends(A(i,j) * x(j), B(i,j) * z(j))"
NONZEROS = "collapse(i, j, f); pos(f, p, A)"
ROW = "precompute(A(i,k) * B(k,j), [j], [j], v)"
FIBRES = "pos(k, p, B); precompute(B(i,j,k) * D(k,r), [p, r], [p, r], w)"
LANES = "parallelize(j, gpu_thread, parallel_reduction)"


@dataclass(frozen=True)
class Row:
    """A directive, the expression whose code it changes, and what the schedule is around it (``{}``) and without it."""

    directive: str
    expression: Expression
    around: str = "{}"
    without: str = ""
    extents: Mapping[str, int] = field(default_factory=dict)

    @property
    def schedule(self) -> str:
        return self.around.format(self.directive)


ROWS = (
    Row("reorder(i, k, j)", DENSE),
    Row("split(i, i0, i1, 8)", SPMV),
    Row("split_up(i, i0, i1, 8)", SPMV),
    Row("collapse(i, j, f)", SPMV, "{}; pos(f, p, A); split(p, p0, p1, 4)", "pos(j, p, A); split(p, p0, p1, 4)"),
    Row("pos(j, p, A)", SPMV, "{}; split(p, p0, p1, 4)", "split(j, p0, p1, 4)"),
    Row("coord(p, c)", SPMV, "pos(j, p, A); {}", "pos(j, p, A)"),
    Row("merge_path(p, m)", SPMV, f"{NONZEROS}; {{}}; split(m, m0, m1, 32)", f"{NONZEROS}; split(p, m0, m1, 32)"),
    Row("bound(j, b, 32, max_exact)", DENSE),
    Row("bound(j, b, 8, divisible)", DENSE, "{}; split(b, j0, j1, 8)", "split(j, j0, j1, 8)"),
    Row("unroll(j, 4)", SPMV),
    Row("prefetch(k, B, 8)", SPMM),
    Row("parallelize(i, cpu_thread, no_races)", SPMV),
    Row("parallelize(j, cpu_thread, ignore_races)", SPMV, without="parallelize(j, cpu_thread, atomics)"),
    Row("parallelize(j, cpu_thread, atomics)", SPMV, without="parallelize(j, cpu_thread, temporary)"),
    Row("parallelize(j, cpu_thread, temporary)", SPMV, without="parallelize(j, cpu_thread, atomics)"),
    Row("parallelize(j, cpu_vector, parallel_reduction)", SPMV),
    Row("parallelize(i, cpu_thread, no_races, static, 4)", SPMV, without="parallelize(i, cpu_thread, no_races)"),
    Row("parallelize(i, cpu_thread, no_races, dynamic)", SPMV, without="parallelize(i, cpu_thread, no_races, static)"),
    Row("parallelize(i, cpu_thread, no_races, guided)", SPMV, without="parallelize(i, cpu_thread, no_races, dynamic)"),
    Row("parallelize(i, gpu_thread, no_races)", SPMV, without="bound(i, ib, 0, min_exact)"),
    Row("parallelize(i, gpu_warp, no_races)", SPMV, without="parallelize(i, gpu_thread, no_races)"),
    Row("parallelize(i, gpu_block, no_races)", SPMV, without="parallelize(i, gpu_warp, no_races)"),
    Row(
        "parallelize(i, gpu_warp, no_races, lanes, 8)",
        SPMV,
        f"{{}}; {LANES}",
        f"parallelize(i, gpu_warp, no_races); {LANES}",
    ),
    Row("parallelize(i, gpu_thread, no_races, registers, 40)", SPMV, without="parallelize(i, gpu_thread, no_races)"),
    Row(ADDENDS, SUM),
    Row("factors(B, A)", SPMM),
    Row("precompute(A(i,k) * B(k,j), j, j, w)", SPMM),
    Row("accumulate(w)", DENSE_MV, "precompute(x(j), [j], [j], w); {}", "precompute(x(j), [j], [j], w)"),
    Row("join(i, [0], [1])", SUM, f"{ADDENDS}; {{}}", ADDENDS),
    Row("recompute(i, [0], [1])", SPMM, "precompute(B(k,j), [k, j], [k, j], v); {}", "precompute(B(k,j), [k, j], [k, j], v)"),
    Row("loopfuse(2, true, [])", CHAIN),
    Row("loopfuse(2, false, [])", CHAIN, without="loopfuse(2, true, [])"),
    Row("protocol(A, step, step)", SPMV, without="protocol(A, step, locate)"),
    Row("protocol(A, locate, locate)", SPMV),
    Row("protocol(C, append, append)", SPGEMM, without="assemble(C, insert)"),
    Row("protocol(C, insert, insert)", SPGEMM),
    Row("workspace(v, dense)", SPMM, f"{ROW}; {{}}", f"{ROW}; workspace(v, list)"),
    Row("workspace(v, list)", SPMM, f"{ROW}; {{}}", ROW),
    Row("workspace(v, bitmap)", SPMM, f"{ROW}; {{}}", f"{ROW}; workspace(v, list)"),
    Row("workspace(v, hashed)", SPMM, f"{ROW}; {{}}", f"{ROW}; workspace(v, list)"),
    Row("workspace(v, registers)", SPMM, f"{ROW}; {{}}", f"{ROW}; workspace(v, dense)", {"j": 8}),
    Row("workspace(w, positions)", MTTKRP, f"{FIBRES}; {{}}", f"{FIBRES}; workspace(w, hashed)"),
    Row('convert(A, "csc")', SPMV),
    Row("assemble(C, append)", SPGEMM, without="assemble(C, insert)"),
    Row("assemble(C, insert)", SPGEMM),
    Row("assemble(C, workspace)", SPGEMM),
    Row("merge(i, two_finger)", DOT),
    Row("merge(i, gallop)", DOT, without="merge(i, two_finger)"),
    Row("merge(i, locate)", DOT),
    Row("merge(i, bitmap)", DOT),
    Row("call(gemm)", DENSE),
    Row("call(gemv)", DENSE),
    Row("call(ger)", DENSE, "reorder(k, i, j); {}", "reorder(k, i, j)"),
    Row("call(axpy)", DENSE, "reorder(i, k, j); {}", "reorder(i, k, j)"),
    Row("call(dot)", DENSE),
)

WITHOUT_CODE: dict[Named, str] = {
    ("build", None): "says how code is compiled: test_build_options_reach_the_compiler",
    ("workspace", "scalar"): "is the only kind where there are no modes: test_scalars_have_one_kind",
    ("bound", "max_constraint"): "is checked when operands are bound: compiler/build/test_bounds.py",
    ("bound", "min_exact"): "states what is known, as loops begin at 0: test_a_known_beginning_is_checked",
    ("bound", "min_constraint"): "states what is known, as loops begin at 0: test_a_known_beginning_is_checked",
}
"""What changes no code, and the test of what it does."""


def code(expression: Expression, schedule: str, extents: Mapping[str, int]) -> str:
    """Return code with its variables numbered in the order in which they occur; functions and what we bring along keep their names."""
    gpu = {"target": "cuda", "arch": "sm_90"} if "gpu_" in schedule else {}
    source = st.compile(*expression, dict(extents), schedule, **gpu).source
    numbers: dict[str, str] = {}
    return re.sub(r"\b(?!st_)[A-Za-z_]\w*\b(?!\()", lambda found: numbers.setdefault(found[0], f"v{len(numbers)}"), plain(source))


def named(directive: d.Directive) -> Iterator[Named]:
    """Yield the keyword of a directive with each value that it names; with None if its parameters have no choices."""
    values = [getattr(directive, each.field) for each in directive.parameters if each.kind in ("choice", "boolean")]
    flat = [one for value in values for one in (value if isinstance(value, tuple) else (value,)) if one is not None]
    yield from ((directive.keyword, value) for value in flat or (None,))


def language() -> Iterator[Named]:
    """Yield the keyword of every directive with each value that it may name."""
    for keyword, kind in d.DIRECTIVES.items():
        choosing = [each for each in kind.parameters if each.kind in ("choice", "boolean")]
        values = [value for each in choosing for value in (each.choices or (True, False))]
        yield from ((keyword, value) for value in values or (None,))


def test_the_table_has_the_whole_language() -> None:
    found = {each for row in ROWS for each in named(Schedule(row.directive).directives[0])}
    assert found | set(WITHOUT_CODE) == set(language())
    assert not found & set(WITHOUT_CODE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.directive)
def test_it_changes_the_code(row: Row) -> None:
    assert code(row.expression, row.schedule, row.extents) != code(row.expression, row.without, row.extents)


@pytest.mark.parametrize("kind", sorted(set(WORKSPACES) - {"scalar"}))
def test_scalars_have_one_kind(kind: str) -> None:
    scalar, row = "precompute(A(i,j) * x(j), [], [], t)", f"{ROW}; workspace(v, scalar)"
    assert code(SPMV, f"{scalar}; workspace(t, scalar)", {}) == code(SPMV, scalar, {})
    for expression, schedule in ((SPMV, f"{scalar}; workspace(t, {kind})"), (SPMM, row)):
        with pytest.raises(ScheduleError, match=r"\(rule 26\)$"):
            code(expression, schedule, {})


@pytest.mark.parametrize("kind", ["min_exact", "min_constraint"])
def test_a_known_beginning_is_checked(kind: str) -> None:
    assert code(SPMV, f"bound(i, b, 0, {kind})", {}) == code(SPMV, "", {})
    with pytest.raises(ScheduleError, match=r"1 contradicts the range of i, which is 0 upwards \(rule 18\)$"):
        code(SPMV, f"bound(i, b, 1, {kind})", {})


def test_build_options_reach_the_compiler() -> None:
    usual, asked = (st.compile(*SPMV, schedule=schedule).default_kernel for schedule in ("", 'build(gcc, "-O1")'))
    assert plain(usual.source) == plain(asked.source)
    assert asked.spec.build == ("gcc", "-O1")
    assert "-O1" in compile_flags(asked.spec, asked.source)
    assert "-O1" not in compile_flags(usual.spec, usual.source)
