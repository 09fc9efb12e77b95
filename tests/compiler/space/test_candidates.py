"""Candidates: legal, without repeats, the known good schedules among them, and every one computes the same."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from effort import calls
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import Concretized, concretize
from sparsetune.compiler.concrete.evaluate import evaluate
from sparsetune.compiler.concrete.nodes import Program
from sparsetune.compiler.concrete.printer import show_statement
from sparsetune.compiler.format import Format
from sparsetune.compiler.notation.nodes import Assignment, accesses
from sparsetune.compiler.notation.parser import parse, parse_expression
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.space.candidates import Candidate, candidates
from sparsetune.compiler.space.template import Template, Value

KERNELS = {
    "SpMV": ("y(i) = A(i,j) * x(j)", {"A": "csr"}, "ij,j->i", {}),
    "SpMV, columns": ("y(i) = A(i,j) * x(j)", {"A": "csc"}, "ij,j->i", {}),
    "SpMM": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, "ij,jk->ik", {"k": 128}),
    "SDDMM": ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", {"B": "csr", "Z": "csr"}, "ij,ik,jk->ij", {"k": 128}),
    "TTV": ("T(i,j) = B(i,j,k) * c(k)", {"B": "csf", "T": "dcsr"}, "ijk,k->ij", {}),
    "TTM": ("T(i,j,l) = B(i,j,k) * C(k,l)", {"B": "csf"}, "ijk,kl->ijl", {"l": 32}),
    "MTTKRP": ("A(i,r) = B(i,j,k) * C(j,r) * D(k,r)", {"B": "csf"}, "ijk,jr,kr->ir", {"r": 32}),
    "MTTKRP, second mode": ("A(j,r) = B(i,j,k) * C(i,r) * D(k,r)", {"B": "csf"}, "ijk,ir,kr->jr", {"r": 32}),
    "MTTKRP, order 4": ("A(i,r) = B(i,j,k,l) * C(j,r) * D(k,r) * E(l,r)", {"B": "csf"}, "ijkl,jr,kr,lr->ir", {"r": 32}),
    "MTTKRP, order 5": ("A(i,r) = B(i,j,k,l,m) * C(j,r) * D(k,r) * E(l,r) * F(m,r)", {"B": "csf"}, "ijklm,jr,kr,lr,mr->ir", {"r": 32}),
    "TTMc": ("A(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", {"B": "csf"}, "ijk,jl,km->ilm", {"l": 16, "m": 16}),
    "TTTP": ("A(i,j,k) = B(i,j,k) * C(i,r) * D(j,r) * E(k,r)", {"B": "csf", "A": "csf"}, "ijk,ir,jr,kr->ijk", {"r": 32}),
    "SpGEMM": ("A(i,j) = B(i,k) * C(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, "ik,kj->ij", {}),
    "dense": ("A(i,j) = B(i,k) * C(k,j)", {}, "ik,kj->ij", {}),
}


def fresh(kernel: str, threads: int = 2) -> tuple[Concretized, tuple[Candidate, ...]]:
    expression, formats, _, extents = KERNELS[kernel]
    assignment = parse(expression)
    known = formats_of(assignment, formats)
    return concretize(assignment, known), candidates(assignment, known, extents, threads)


def nests(kernel: str) -> set[str]:
    """Return the loop nests of all candidates, with their usual parameters."""
    found, items = of(kernel)
    return {show_statement(_program(found, item, KERNELS[kernel][3]).statement) for item in items}


def _program(found: Concretized, item: Candidate, extents: dict[str, int], **values: Value) -> Program:
    return apply_schedule(found.program, item.template.fill(values), found.formats, extents)


@cache
def of(kernel: str, threads: int = 2) -> tuple[Concretized, tuple[Candidate, ...]]:
    return fresh(kernel, threads)


@pytest.mark.parametrize("kernel", KERNELS)
def test_default_first_no_repeats_same_every_time(kernel: str) -> None:
    _, items = of(kernel)
    assert (items[0].template, items[0].origin) == (Template(), "default")
    assert len({item.template.fill() for item in items}) == len(items)
    assert kernel == "MTTKRP, order 5" or fresh(kernel)[1] == items
    assert all(len(set(hole.labels)) == len(hole.choices) > 1 for item in items for hole in item.template.holes)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_choice_is_legal(kernel: str) -> None:
    found, items = of(kernel)
    draw = random.Random(0)
    for item in items if len(items) < 40 else draw.sample(items, 40):
        _program(found, item, KERNELS[kernel][3])
        values = {hole.name: draw.choice(hole.choices) for hole in item.template.holes}
        _program(found, item, KERNELS[kernel][3], **values)


@pytest.mark.parametrize("kernel", KERNELS)
def test_candidates_compute_the_same(kernel: str) -> None:
    expression, _, einsum, _ = KERNELS[kernel]
    found, items = of(kernel)
    draw = np.random.default_rng(1)
    extents = dict(zip("ijklmr", (3, 2, 3, 2, 2, 2), strict=True))
    operands = list(accesses(parse(expression).value))
    arrays = {
        access.tensor: draw.integers(1, 9, [extents[name] for name in access.indices]) * (draw.random() < 0.6) for access in operands
    }
    arrays[operands[0].tensor] = arrays[operands[0].tensor] * (draw.random(arrays[operands[0].tensor].shape) < 0.5)
    expected = np.einsum(einsum, *(arrays[access.tensor] for access in operands))
    chosen = random.Random(0).sample(items, min(len(items), 8))
    for item in chosen:
        (result,) = evaluate(_program(found, item, {}), arrays, found.formats).values()
        np.testing.assert_array_equal(result, expected, err_msg=item.template.text)


def test_known_good_structures_come_from_rules_alone() -> None:
    assert "forall(i) forall(k0) (forall(k1) Y(i,k) = w1(k1) where forall(j) forall(k1) w1(k1) += A(i,j) * X(j,k))" in nests("SpMM")
    assert "forall(i) forall(j) (Z(i,j) = B(i,j) * w1 where forall(k) w1 += C(i,k) * D(j,k))" in nests("SDDMM")
    fibres = "forall(j) (forall(r) w2(r) += w1(r) * C(j,r) where forall(k) forall(r) w1(r) += B(i,j,k) * D(k,r))"
    assert f"forall(i) (forall(r) A(i,r) = w2(r) where {fibres})" in nests("MTTKRP")
    factorized = "(forall(l) forall(m) A(i,l,m) += C(j,l) * w1(m) where forall(k) forall(m) w1(m) += B(i,j,k) * D(k,m))"
    assert any(nest.replace("w1(m) * C(j,l)", "C(j,l) * w1(m)") == f"forall(i) forall(j) {factorized}" for nest in nests("TTMc"))
    assert "forall(i) forall(j) (T(i,j) = w1 where forall(k) w1 += B(i,j,k) * c(k))" in nests("TTV")
    assert "forall(i) forall(j) (forall(l) T(i,j,l) = w1(l) where forall(k) forall(l) w1(l) += B(i,j,k) * C(k,l))" in nests("TTM")
    hoisted = "forall(k) (A(i,j,k) = B(i,j,k) * w2 where forall(r) w2 += w1(r) * E(k,r)) where forall(r) w1(r) = C(i,r) * D(j,r)"
    assert any(hoisted in nest for nest in nests("TTTP"))


@pytest.mark.parametrize("order", [4, 5])
def test_fibre_workspaces_nest_as_deep_as_the_tree(order: int) -> None:
    _, items = of(f"MTTKRP, order {order}")
    assert any(item.origin == "chain, rows" and item.template.text.count("precompute") == order - 1 for item in items)


def test_skewed_rows_have_position_splits() -> None:
    _, items = of("SpMV")
    assert any("collapse(i, j" in item.template.text and "split_up(p, p0, p1, {tiles})" in item.template.text for item in items)
    assert all("no_races" not in item.template.text for item in items if item.origin == "default, entries")


def test_one_thread_means_no_parallel_loops() -> None:
    assert not any("cpu_thread" in item.template.text for item in of("MTTKRP", threads=1)[1])


def test_operands_in_an_unsuited_order_may_be_converted() -> None:
    rows, fibres = 'convert(A, "dense, compressed"); reorder(i, j)', 'convert(B, "compressed, compressed, compressed; 1, 0, 2")'
    assert any(item.template.text.startswith(rows) for item in of("SpMV, columns")[1])
    assert any(item.template.text.startswith(fibres) for item in of("MTTKRP, second mode")[1])


def test_one_access_of_an_operand_is_converted_without_the_other() -> None:
    """A(i,j) stays in rows while A(j,i) is read in columns, so the loop over k may stand anywhere around them."""
    assignment = parse("y(i,k) = A(i,j) * A(j,i) * x(k)")
    formats = formats_of(assignment, {"A": "csr"})
    orders = {show_statement(item.program.statement) for item in candidates(assignment, formats, {"k": 4000}) if item.origin == "order"}
    assert {order[: order.index(" y")] for order in orders} >= {"forall(k) forall(i) forall(j)", "forall(i) forall(k) forall(j)"}


def test_what_is_said_of_a_tensor_replaces_what_was_said_of_its_reads() -> None:
    assignment = parse("B(i,j) = A(i,j) * A(j,i)")
    found = concretize(assignment, formats_of(assignment, {"A": "csr"}))
    (one,) = found.program.conversions
    assert one == (parse_expression("A(j,i)"), Format("dc", (1, 0)))
    both = apply_schedule(found.program, 'convert(A, "dcsr"); reorder(i, j)', found.formats)
    assert both.conversions == ((parse_expression("A"), Format("cc")),)


def test_depth_and_memory() -> None:
    _, items = of("TTMc")
    default = items[0]
    factorized = next(item for item in items if item.origin == "chain, rows")
    assert (default.depth, default.memory) == (5, "0")
    assert (factorized.depth, factorized.memory) == (4, "0")  # 16 elements fit into registers
    large = candidates(*_checked("TTMc"), {"l": 64, "m": 640}, 2)
    assert next(item for item in large if item.origin == "chain, rows").memory == "m"
    assert next(item for item in large if item.origin == "chain, rows").elements({"m": 640}) == 640


def _checked(kernel: str) -> tuple[Assignment, dict[str, Format]]:
    assignment = parse(KERNELS[kernel][0])
    return assignment, formats_of(assignment, KERNELS[kernel][1])


def test_quick() -> None:
    assert calls(lambda: fresh("MTTKRP")) < 1_000_000  # a tenth of a second where nothing else runs


@pytest.mark.parametrize(("stored", "vectors"), [(4_000, False), (24_000, False), (25_000, True)])
def test_sums_of_short_rows_usually_have_no_vectors_of_their_own(stored: int, vectors: bool) -> None:
    """Without a directive many such rows are summed together; whoever searches may ask for vectors all the same."""
    assignment = parse("y(i) = A(i,j) * x(j)")
    formats = formats_of(assignment, {"A": "csr"})
    found = candidates(assignment, formats, {}, 2, None, {"i": 1000, "j": 1000}, {"A": (1000, stored)})
    rows = [item for item in found if item.origin in ("default, rows", "default, entries")]
    assert {item.origin for item in rows} == {"default, rows", "default, entries"}
    assert all(("cpu_vector" in str(item.template.fill())) == vectors for item in rows)
    assert all(any(hole.name.startswith("vector_") for hole in item.template.holes) for item in rows)
