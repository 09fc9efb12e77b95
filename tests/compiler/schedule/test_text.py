"""Schedules as text: every directive, every mistake, and the way back."""

from __future__ import annotations

import contextlib
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.notation.nodes import Access, Add, Assignment, Literal, Mul, Neg, index_subscript
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.schedule.schedule import Schedule, canonical_names

DESIGN = """
reorder(i, k, j); split(i, i0, i1, 32); split_up(i, i0, i1, 4); collapse(i, j, f); pos(f, p, A); pos(f, p, A(i,j)); coord(p, i);
merge_path(p, m); bound(k, kb, 32, max_exact); bound(k, kb, 1, min_exact); bound(k, kb, 1, min_constraint); bound(k, kb, 9, max_constraint);
bound(k, kb, 8, divisible); unroll(kb, 4); prefetch(p, C, 8); parallelize(i0, cpu_thread, no_races);
parallelize(i0, cpu_thread, no_races, dynamic, 64); parallelize(i0, gpu_block, atomics, static); factors(C, B, D);
precompute(B(i,k) * C(k,j), j, jw, w); precompute(B(i,k) * C(k,j), [i, j], [iw, jw], w); precompute(B(i,k), [], [], t);
loopfuse(2, true, []); loopfuse(3, false, [1, 0]); protocol(B, step, locate); workspace(w, hashed); convert(B, "csc");
assemble(A, insert); merge(j, gallop); call([1], gemm); build(gcc, "-O3 -march=native"); build(auto, "-O2"); build(clang);
reorder([1], m, k, n, j); split([], i, a, b, 2); addends(w(i) = B(i,j) * x(j), w(i) + c(i)); join(i, [0], [1, 0]);
recompute(i, [0], []); accumulate(w); protocol([1], B(i,j), 2, step, locate); convert(B(i,j), 1, "csc")
"""


def test_every_directive_of_the_language_round_trips() -> None:
    schedule = Schedule(DESIGN)
    assert {type(directive) for directive in schedule} == set(d.DIRECTIVES.values())
    assert Schedule(str(schedule)) == schedule
    assert [Schedule([directive]) for directive in schedule] == [Schedule(str(Schedule([directive]))) for directive in schedule]
    assert str(Schedule(str(schedule))) == str(schedule)


def test_canonical_text() -> None:
    assert str(Schedule(" fuse( i ,j,f ) ;; precompute(B[i,k]*C(k,j),[j],[jw],w);loopfuse([1],2,true);")) == (
        "collapse(i, j, f); precompute(B(i,k) * C(k,j), j, jw, w); loopfuse(2, true, [1])"
    )
    assert str(Schedule("convert(B, csc); build(auto)")) == 'convert(B, "csc"); build(auto)'
    assert Schedule("") == Schedule() == Schedule(" ; ") == Schedule("default")
    assert str(Schedule()) == ""


def test_values() -> None:
    (directive,) = Schedule("parallelize([1, 0], i0, cpu_thread, no_races, dynamic, 64)")
    assert directive == d.Parallelize("i0", "cpu_thread", "no_races", "dynamic", 64, path=(1, 0))
    assert Schedule("loopfuse(2, true)").directives == (d.Loopfuse(2, True),)
    assert Schedule([d.Split("i", "i0", "i1", 32)]) == Schedule("split(i, i0, i1, 32)")
    assert hash(Schedule("unroll(i, 4)")) == hash(Schedule("unroll( i,4 )"))
    assert Schedule("unroll(i, 4)") != Schedule("unroll(i, 5)")
    assert pickle.loads(pickle.dumps(Schedule("unroll(i, 4)"))) == Schedule("unroll(i, 4)")


@pytest.mark.parametrize(
    ("text", "number", "column", "expected"),
    [
        ("splt(i, i0, i1, 32)", 1, 1, "did you mean split?"),
        ("Autoo", 1, 1, "did you mean 'auto', which stands for a whole schedule?"),
        ("auto", 1, 1, "'auto' stands alone, for a whole schedule"),
        ("default; unroll(i, 4)", 1, 1, "'default' stands alone, for a whole schedule"),
        ("frobnicate(i)", 1, 1, "expected one of reorder"),
        ("reorder(i, j); split(i, i0, i1)", 2, 31, "expected an integer (factor)"),
        ("split(i, i0, i1, x)", 1, 18, "expected an integer (factor), found 'x'"),
        ("split(i, i0, i1, 3, 4)", 1, 21, "one argument too many; write split(index, outer, inner, factor)"),
        ("split(i, , i1, 3)", 1, 10, "expected a new name (outer), found nothing"),
        ("split i", 1, 6, "expected '(' after split"),
        ("split(i, i0", 1, 12, "expected ')'"),
        ("unroll(i, 4) unroll(j, 4)", 1, 13, "expected ';'"),
        ("unroll(2i, 4)", 1, 8, "expected a loop (index), found '2i'"),
        ("reorder()", 1, 9, "expected a loop (order)"),
        ("parallelize(i, cpu, no_races)", 1, 16, "expected one of cpu_thread, cpu_vector"),
        ("parallelize(i, cpu_thread, no_races, dynamic, many)", 1, 47, "expected an integer (chunk)"),
        ("unroll(i, 4); precompute(B(i,k) *, j, jw, w)", 2, 34, "expected a tensor, a number or '('"),
        ("prefetch(p, B + C, 3)", 1, 13, "expected an operand"),
        ("loopfuse(2, maybe, [])", 1, 13, "expected true or false"),
        ("precompute(B, [j, jw, w)", 1, 25, "expected ')'"),
        ("bound(k, kb, 32, exact)", 1, 18, "expected one of min_exact"),
        ("4 + 3", 1, 1, "expected a directive"),
        ("unroll(i, " + "1" * 5000 + ")", 1, 11, "expected an integer (factor), found '1111"),
        ("unroll([" + "1" * 5000 + "], i, 2)", 1, 8, "a path has small numbers"),
        ("precompute(1e400 * B(i), [], [], w)", 1, 12, "larger than a float64 can be"),
    ],
)
def test_mistakes_name_directive_column_and_what_is_expected(text: str, number: int, column: int, expected: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule(text)
    first, source, caret = str(caught.value).split("\n")[:3]
    assert f"directive {number}" in first
    assert expected in first
    assert first.endswith(f"(column {column})")
    assert source.strip() == text.strip()
    assert caret.index("^") == column + 3


@pytest.mark.parametrize("given_value", [3, None, [3], ["reorder(i, j)"]])
def test_what_is_no_schedule_is_refused(given_value: object) -> None:
    with pytest.raises(ScheduleError):
        Schedule(given_value)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        (d.Parallelize("i", "nounit", "no_races"), "expected one of cpu_thread"),
        (d.Parallelize("i", "cpu_thread", "no_races", None, 4), "expected one of static"),
        (d.Bound("i", "q", 3, "foo"), "expected one of min_exact"),
        (d.Reorder(()), "expected a loop (order)"),
        (d.Reorder(None), "expected a loop (order), found nothing"),  # type: ignore[arg-type]
        (d.Split("i", "a", "b", 2.5), "expected an integer (factor)"),  # type: ignore[arg-type]
        (d.Split("i", "a b", "c", 2), "expected a new name (outer)"),
    ],
)
def test_directives_without_text_are_refused(directive: d.Directive, expected: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(expected)):
        Schedule([directive])


def test_directives_given_as_objects_are_kept() -> None:
    assert Schedule([d.Unroll("i", 4)]).directives == (d.Unroll("i", 4),)
    nested = Mul((Mul((Access("B"), Access("C"))), Access("D")))
    assert Schedule([d.Factors((nested,))]) == Schedule(str(Schedule([d.Factors((nested,))])))


def test_arguments_are_as_their_text_is_read() -> None:
    loose = [d.Build("auto"), d.Reorder(["i", "j"]), d.Split("i", "a", "b", np.int64(4))]  # type: ignore[arg-type]
    assert Schedule(loose) == Schedule("build(auto); reorder(i, j); split(i, a, b, 4)")
    assert Schedule(loose).directives[0] == d.Build(None)


def test_rename_carries_a_schedule_to_other_names() -> None:
    schedule = Schedule("split(i, i0, i1, 32); precompute(B(i1,k) * C(k,j), j, jw, w); prefetch(k, C, 8); workspace(w, registers)")
    renamed = schedule.rename({"i": "row", "j": "col", "k": "n", "B": "M", "C": "X"})
    assert str(renamed) == (
        "split(row, i0, i1, 32); precompute(M(i1,n) * X(n,col), col, jw, w); prefetch(n, X, 8); workspace(w, registers)"
    )


def test_made_names_give_way_to_the_names_of_the_expression() -> None:
    schedule = Schedule("split(i, i0, i1, 32); precompute(B(i,k) * C(k,j), j, j, w); unroll(i1, 4)")
    renamed = schedule.rename({"i": "w", "j": "i1"}, avoid=["i0"])
    assert str(renamed) == "split(w, i0_2, i1_2, 32); precompute(B(w,k) * C(k,i1), i1, i1, w_2); unroll(i1_2, 4)"


def test_canonical_names() -> None:
    one = Schedule("split(i, io, ii, 32); precompute(B(i,k) * C(k,j), j, j, w); unroll(ii, 4)")
    other = Schedule("split(i, d2, d1, 32); precompute(B(i,k) * C(k,j), j, j, a); unroll(d1, 4)")
    assert canonical_names(one) == canonical_names(other) == canonical_names(canonical_names(one))
    assert str(canonical_names(one, avoid=["d1"])).startswith("split(i, d2, d3, 32)")


NAMES = st.sampled_from(["i", "j", "k", "i0", "w", "B", "for", "_x9"])
INTEGERS = st.integers(-3, 10**6)
ACCESSES = st.builds(lambda name, subscripts: Access(name, tuple(map(index_subscript, subscripts))), NAMES, st.lists(NAMES, max_size=3))
EXPRESSIONS = st.recursive(
    ACCESSES | st.builds(Literal, st.integers(0, 9)),
    lambda inner: st.one_of(
        st.builds(lambda a, b: Mul((a, b)), inner, inner), st.builds(lambda a, b: Add((a, b)), inner, inner), st.builds(Neg, inner)
    ),
    max_leaves=4,
)


def values(parameter: d.Parameter) -> st.SearchStrategy[object]:
    match parameter.kind:
        case "indices" | "news":
            found: st.SearchStrategy[object] = st.lists(NAMES, max_size=3).map(tuple)
        case "integer" | "ordinal":
            found = INTEGERS
        case "addend":
            found = EXPRESSIONS | st.builds(lambda target, value: Assignment(target, "=", value), ACCESSES, EXPRESSIONS)
        case "path":
            found = st.lists(st.integers(0, 3), max_size=3).map(tuple)
        case "boolean":
            found = st.booleans()
        case "choice":
            found = st.sampled_from(list(parameter.choices))
        case "expression":
            found = EXPRESSIONS
        case "access":
            found = ACCESSES
        case "text":
            found = st.sampled_from(["csc", "dense, compressed; 1, 0", ""])
        case "compiler":
            found = st.sampled_from([None, "gcc", "gcc-12", "clang"])
        case "flags":
            found = st.sampled_from(["-O3 -march=native", "-O2", ""])
        case _:
            found = NAMES
    if parameter.many:
        return st.lists(found, min_size=1, max_size=4).map(tuple)
    return found | st.none() if parameter.default is None else found


@st.composite
def any_directive(draw: st.DrawFn) -> d.Directive:
    kind = draw(st.sampled_from(list(d.DIRECTIVES.values())))
    fields = {parameter.field: draw(values(parameter)) for parameter in kind.parameters}
    if kind is d.Parallelize and fields["chunking"] is None:
        fields["chunk"] = None
    path = draw(st.lists(st.integers(0, 3), max_size=3).map(tuple) | (st.nothing() if kind is d.Loopfuse else st.none()))
    path = path if kind.takes_path else None
    return kind(**fields, path=path)


@given(st.lists(any_directive(), max_size=5))
def test_round_trip(found: list[d.Directive]) -> None:
    schedule = Schedule(found)
    assert Schedule(str(schedule)) == schedule
    assert str(Schedule(str(schedule))) == str(schedule)


@given(st.text(alphabet="ijB(),;[]\"123 *+splitreorder", max_size=40))
def test_no_text_ends_in_anything_but_a_schedule_or_a_schedule_error(text: str) -> None:
    with contextlib.suppress(ScheduleError):
        schedule = Schedule(text)
        assert Schedule(str(schedule)) == schedule
