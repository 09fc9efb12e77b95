"""Sizes of joins against exact ones, on patterns where entries are not spread evenly."""

from __future__ import annotations

from itertools import product as combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.space import joins as module
from sparsetune.compiler.space import tables
from sparsetune.compiler.space.joins import Joins
from sparsetune.compiler.space.relations import Scan, join

N = 1500


def _pattern(name: str) -> Any:
    source = np.random.default_rng(5)
    if name == "uniform":
        return sp.random_array((N, N), density=4 / N, format="csr", rng=source)
    if name == "banded":
        return sp.csr_array(np.triu(np.tril(np.ones((N, N)), 4), -4))
    if name == "blocks":
        return sp.csr_array(sp.block_diag([np.ones((6, 6))] * (N // 6)))
    if name == "hub":
        each, first = np.arange(N), np.zeros(N, int)
        entries = np.concatenate([each, first, each]), np.concatenate([each, each, first])
        return sp.csr_array(sp.coo_array((np.ones(3 * N), entries), shape=(N, N)))
    skewed = np.minimum((source.pareto(0.9, (2, 5 * N)) * 2).astype(int), N - 1)
    return sp.csr_array(sp.coo_array((np.ones(5 * N), tuple(skewed)), shape=(N, N)))


PATTERNS = ("uniform", "banded", "blocks", "hub", "skewed")
A, B, C = Scan("A", ("i", "k")), Scan("B", ("k", "j")), Scan("C", ("j", "l"))


def _product(*factors: Any) -> Any:
    """Return how often every place of a product is added to."""
    found = factors[0]
    for factor in factors[1:]:
        found = sp.csr_array(found @ factor)
    return found


def _ones(matrix: Any) -> Any:
    return sp.csr_array((np.ones(matrix.nnz, np.int64), matrix.indices, matrix.indptr), shape=matrix.shape)


@pytest.mark.parametrize(("first", "second"), [(name, name) for name in PATTERNS] + [("uniform", "hub"), ("banded", "skewed")])
def test_a_product_of_two_matrices(first: str, second: str) -> None:
    one, other = _ones(_pattern(first)), _ones(_pattern(second))
    joins = Joins({"A": st.tensor(one), "B": st.tensor(other)}, dict.fromkeys("ijk", N))
    exact, near = _product(one, other), 0.05 if first == second else 0.5  # few rows meet the hubs of another matrix
    assert joins.size(join({A, B})) == pytest.approx(exact.sum(), rel=0.05)
    assert joins.size(join({A, B}, frozenset("ij"))) == pytest.approx(exact.nnz, rel=near)
    assert joins.size(join({A, B}, frozenset("j"))) == pytest.approx(np.count_nonzero(exact.sum(axis=0)), rel=near)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_chain_of_three_through_what_the_first_two_leave(name: str) -> None:
    one = _ones(_pattern(name))
    operands = dict.fromkeys("ABC", st.tensor(one))
    joins = Joins(operands, dict.fromkeys("ijkl", N))
    pairs = join({A, B}, frozenset("ij"))
    between = _ones(_product(one, one))
    exact = _product(between, one)
    assert joins.size(join({pairs, C})) == pytest.approx(exact.sum(), rel=0.1)
    assert joins.size(join({pairs, C}, frozenset("il"))) == pytest.approx(exact.nnz, rel=0.1)


@pytest.mark.parametrize("form", ["csf", "coo", "csr"])
def test_fibres_of_a_tensor_against_those_of_another(form: str) -> None:
    """The loops of SpTTM-SpTTM, S(i,j,m) = T(i,j,k) * C(k,l) * D(l,m), where C and D are sparse too."""
    source = np.random.default_rng(3)
    stored = {tuple(entry) for entry in np.minimum(source.zipf(1.6, (3000, 3)) - 1, 59).tolist()}
    tensor = st.tensor((np.array(sorted(stored)).T, np.ones(len(stored))), shape=(60, 60, 60), format="csf")
    narrow = sp.random_array((60, 60), density=0.05, format="csr", rng=source)
    rows = {(k, l) for k, l in st.tensor(narrow).to_coordinates()[0].T.tolist()}  # noqa: E741 as in the expression
    joins = Joins({"T": tensor, "C": st.tensor(narrow, form if form != "csf" else "dcsr")}, dict.fromkeys("ijkl", 60))
    fibres, matrix = Scan("T", ("i", "j", "k")), Scan("C", ("k", "l"))
    exact = {(i, j, k, l) for i, j, k in stored for other, l in rows if other == k}  # noqa: E741
    cut: dict[str, set[tuple[int, ...]]] = {"ijkl": set(exact), "ijl": set(), "il": set()}
    for i, j, _, l in exact:  # noqa: E741
        cut["ijl"].add((i, j, l))
        cut["il"].add((i, l))
    for kept, known in cut.items():
        assert joins.size(join({fibres, matrix}, frozenset(kept))) == pytest.approx(len(known), rel=0.05)
    assert joins.size(Scan("T", ("i", "j"))) == len({(i, j) for i, j, _ in stored})


def test_small_joins_are_exact_and_empty_ones_are_empty() -> None:
    source = np.random.default_rng(7)
    for density, seed in combinations((0.0, 0.02, 0.3), range(3)):
        one, other = (_ones(sp.random_array((40, 40), density=density, format="csr", rng=source)) for _ in range(2))
        joins = Joins({"A": st.tensor(one), "B": st.tensor(other)}, dict.fromkeys("ijk", 40))
        exact = _product(one, other)
        assert (joins.size(join({A, B})), joins.size(join({A, B}, frozenset("ij")))) == (exact.sum(), exact.nnz), seed


def test_two_indices_in_common_with_more_values_than_an_array_tells_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    source = np.random.default_rng(11)
    one, other = (_ones(sp.random_array((200, 200), density=0.04, format="csr", rng=source)) for _ in range(2))
    both = join({Scan("A", ("i", "j")), Scan("B", ("i", "j"))})
    exact = (one != 0).multiply(other != 0).nnz
    for most in (200, 40_000):
        monkeypatch.setattr(module, "MOST_EXTENT", most)
        for second, expected in ((other, exact), (sp.csr_array((200, 200), dtype=np.int64), 0)):
            joins = Joins({"A": st.tensor(one), "B": st.tensor(second)}, dict.fromkeys("ij", 200))
            assert joins.size(both) == expected, most


def test_what_is_too_large_to_go_through_has_no_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STORED", 100)
    one = _ones(_pattern("uniform"))
    joins = Joins({"A": st.tensor(one), "B": st.tensor(one)}, dict.fromkeys("ijk", N))
    assert joins.size(join({A, B})) is None


def test_indices_of_huge_extents_have_no_tables() -> None:
    """A tensor of two entries does not take a terabyte."""
    far = st.tensor((np.array([[0, 2**40], [1, 2**40]]), np.ones(2)), shape=(2**40 + 1, 2**40 + 1), format="dcsr")
    joins = Joins({"A": far, "B": far}, dict.fromkeys("ijk", 2**40 + 1))
    assert joins.size(join({A, B})) is None


def test_columns_that_nobody_reads_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of combinations needs one column of a join."""
    made: list[str] = []
    read = tables._Columns.__getitem__
    monkeypatch.setattr(tables._Columns, "__getitem__", lambda table, index: made.append(index) or read(table, index))
    matrix = st.tensor(np.eye(5) + np.eye(5, k=1), "csr")
    sizes = Joins({"A": matrix, "B": matrix}, dict.fromkeys("ijk", 5))
    assert sizes.size(join([Scan("A", ("i", "k")), Scan("B", ("i", "k"))])) == 9
    assert len(made) == 1


@pytest.mark.parametrize("name", PATTERNS)
def test_compressed_rows_are_found_by_their_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are gone through in part only, and all sizes are those of other formats, which are gone through whole."""
    walked: list[Scan] = []
    scanned = Joins._scanned
    monkeypatch.setattr(Joins, "_scanned", lambda self, scan, marks: walked.append(scan) or scanned(self, scan, marks))
    one = _ones(_pattern(name))
    relations = [*(join({A, B}, frozenset(kept)) for kept in ("ikj", "ij", "i")), *(join({B}, frozenset(kept)) for kept in "jk")]
    found = []
    for form in ("csr", "dcsr"):
        operands = {"A": st.tensor(one, "csr"), "B": st.tensor(one, form)}
        joins = Joins(operands, dict.fromkeys("ijk", N))
        found.append([joins.size(relation) for relation in relations])
        assert (B in walked) == (form != "csr")
    assert found[0] == found[1]


def test_a_product_through_hubs_is_exact_however_few_rows_a_sample_has() -> None:
    """Two thirds of all products are those of one hub that few rows reach."""
    rows, source = 100_000, np.random.default_rng(3)
    first, second = source.integers(1, rows, (2, 200_000))
    first[:40], second[:40] = source.integers(1, rows, 40), 0
    hub = np.stack([np.zeros(20_000, int), np.arange(0, rows, 5)])
    entries = np.concatenate([np.stack([first, second]), hub], axis=1)
    one = _ones(sp.csr_array(sp.coo_array((np.ones(entries.shape[1]), tuple(entries)), shape=(rows, rows))))
    joins = Joins({"A": st.tensor(one), "B": st.tensor(one)}, dict.fromkeys("ijk", rows))
    assert joins.size(join({A, B})) == float(np.bincount(one.indices, minlength=rows) @ np.diff(one.indptr))


@pytest.mark.parametrize("name", PATTERNS)
def test_entries_that_loops_go_through_where_fibres_meet(name: str) -> None:
    """All entries of rows of like lengths; of a hub's row only those that are searched for."""
    mask, one, other = (_ones(_pattern(pattern)) for pattern in ("uniform", "uniform", name))
    joins = Joins({"A": st.tensor(one), "B": st.tensor(other), "M": st.tensor(mask)}, dict.fromkeys("ijk", N))
    rows, columns = one.nonzero()
    lengths = np.stack([np.diff(mask.indptr)[rows], np.diff(other.indptr)[columns]]).astype(float)
    shortest, longest = np.maximum(lengths.min(0), 1), np.maximum(lengths.max(0), 1)
    exact = np.minimum(lengths.sum(0), 2 * shortest * (1 + np.log2(longest / shortest))).sum()
    fibres = (Scan("M", ("i", "j")), "i"), (B, "k")
    assert joins.steps(A, fibres) == pytest.approx(exact, rel=0.15)
    assert joins.steps(A, fibres[1:]) == pytest.approx(lengths[1].sum(), rel=0.15)


def test_rows_of_large_extents_are_told_apart() -> None:
    """Their numbers do not fit into 32 bits: modulo 2**32 half of these would be the same."""
    wide, count = 2**20, 1000  # all of them are in the sample
    rows = np.arange(count) % (count // 2) + np.where(np.arange(count) < count // 2, 0, 2**12)
    columns = np.tile(np.arange(count // 2), 2)
    one = _ones(sp.csr_array((np.ones(count), (rows, columns)), shape=(wide, wide)))
    other = _ones(sp.csr_array(sp.eye_array(wide, format="csr")))
    joins = Joins({"A": st.tensor(one), "B": st.tensor(other)}, {"i": wide, "k": wide, "j": wide})
    assert joins.size(join({A, B}, frozenset("ij"))) == count
