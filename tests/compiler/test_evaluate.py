"""What a demanding user hands over: odd subscripts, odd values and odd types give NumPy's answer or one clear line."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from default_runs import default
from sparsetune.compiler import evaluate as evaluating
from sparsetune.compiler import kernel as kernels
from sparsetune.compiler.errors import SparsetuneError
from sparsetune.compiler.native import memory
from sparsetune.compiler.notation import parser
from sparsetune.compiler.storage.construct import borrowed

RNG = np.random.default_rng(5)
MATRIX, SQUARE, CUBE, VECTOR = RNG.random((6, 5)), RNG.random((6, 6)), RNG.random((3, 4, 5)), RNG.random(5)


EINSUMS: list[tuple[str, tuple[Any, ...]]] = [
    ("ij,jk->ik", (MATRIX, MATRIX.T)),
    ("ji", (MATRIX,)),
    ("ii", (SQUARE,)),
    ("ii->i", (SQUARE,)),
    ("i,i", (VECTOR, VECTOR)),
    ("i,j", (VECTOR, VECTOR)),
    (",ij->ij", (2.0, MATRIX)),
    ("", (3.0,)),
    (" b a ", (MATRIX,)),
    ("Aa,aB->BA", (MATRIX, MATRIX.T)),
    ("iij->j", (RNG.random((3, 3, 2)),)),
    ("ij,kl,mn->nkjmil", (SQUARE[:2, :2],) * 3),
    ("...", (CUBE,)),
    ("...ij->...ji", (CUBE,)),
    ("i...->...", (CUBE,)),
    ("...ij", (CUBE,)),
    ("...j,jk->...k", (CUBE, RNG.random((5, 2)))),
    ("ij...,jk...->ik...", (RNG.random((2, 3, 4)), RNG.random((3, 5, 4)))),
    ("...,...", (CUBE, CUBE[0])),
    ("...i,...i", (CUBE, CUBE)),
    ("ii...->i...", (RNG.random((3, 3, 2)),)),
    ("ij->...", (MATRIX,)),
    ("E...,e->...eE", (CUBE, VECTOR)),
]


@pytest.mark.cc
@pytest.mark.parametrize(("subscripts", "operands"), EINSUMS)
def test_einsum_is_that_of_numpy(subscripts: str, operands: tuple[Any, ...]) -> None:
    wanted = np.einsum(subscripts, *operands)
    found = st.einsum(subscripts, *operands, schedule="default")
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.cc
def test_einsum_of_sparse_operands_with_an_ellipsis() -> None:
    cube = np.where(CUBE < 0.3, CUBE, 0)
    found = st.einsum("...j,jk->...k", st.tensor(cube, "csf"), sp.csr_array(MATRIX.T), output_format="csf", schedule="default")
    np.testing.assert_allclose(found.to_numpy(), cube @ MATRIX.T)
    assert st.einsum("i...->...", [[1, 2], [3, 4]], schedule="default").tolist() == [4, 6]


@pytest.mark.parametrize(
    ("subscripts", "count", "says"),
    [
        ("ij->k", 1, "'k'"),
        ("ij,jk", 1, "names 2 operands, but 1 were given"),
        ("ij->ii", 1, "twice"),
        ("...i...", 1, "no text such as"),
        ("i..", 1, "no text such as"),
        ("ijk", 1, "operand A has 2 modes, but 'ijk' names 3"),
        ("ijk...", 1, "names 3 beside the ellipsis"),
        ("i", 1, "operand A has 2 modes"),
        ("...j->j", 1, "lacks the ellipsis"),
        (None, 1, "takes a text"),
    ],
)
def test_einsum_that_is_none(subscripts: Any, count: int, says: str) -> None:
    with pytest.raises(SparsetuneError, match=says):
        st.einsum(subscripts, *[MATRIX] * count)


@pytest.mark.cc
def test_values_in_foreign_byte_order() -> None:
    swapped = np.arange(3.0).astype(">f8")
    assert default("y(i) = 2 * a(i)", {"a": swapped}).tolist() == [0.0, 2.0, 4.0]


def test_extents_that_disagree_name_both_operands() -> None:
    with pytest.raises(SparsetuneError, match="mode 1 of operand 'A' has 5, but mode 0 of operand 'x' has 6"):
        default("y(i) = A(i,j) * x(j)", {"A": MATRIX, "x": SQUARE[0]})


def test_a_format_that_is_none() -> None:
    with pytest.raises(SparsetuneError, match="level kinds are a text"):
        st.Format(5)  # type: ignore[arg-type]


SUMS = " * ".join(f"(x({index}) + z)" for index in "abcdefgh")


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (f"y(i) = {' + '.join(['x(i)'] * 5000)}", "more than 256 operands"),
        (f"y(i) = {'-' * 5000}x(i)", "more than 256 operands"),
        (f"y(i) = {'(' * 5000}x(i){')' * 5000}", "nested deeper"),
        (f"y(i) = {'exp(' * 5000}1 * x(i){')' * 5000}", "nested deeper"),
        (f"y = {SUMS}", "different sums, more than 64"),
        ("y(i) = " + " * ".join(["(x(a) + z)"] * 40), "different sums, more than 64"),
    ],
)
def test_expressions_that_are_too_large(expression: str, says: str) -> None:
    with pytest.raises(SparsetuneError, match=says):
        st.compile(expression)


@pytest.mark.cc
def test_large_expressions() -> None:
    assert default(f"y(i) = {' + '.join(['x(i)'] * 250)}", {"x": np.ones(3)}).tolist() == [250.0] * 3
    assert default("y(i) = " + " * ".join(["(x(i) + z)"] * 12), {"x": np.ones(2), "z": 1.0}).tolist() == [4096.0] * 2
    assert default("y = (x(a) + z) * (x(b) + z) * (x(c) + z)", {"x": np.ones(3), "z": 1.0}) == 64.0


def test_formats_that_are_no_mapping() -> None:
    with pytest.raises(SparsetuneError, match="formats are given by tensor"):
        st.compile("y(i) = A(i,j) * x(j)", "csr")  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [slice(None, None, 0), slice("a", None), True, None, [0, 1], (0, 0, 0), 6, 1.5])
def test_subscripts_that_are_none(key: Any) -> None:
    with pytest.raises(SparsetuneError):
        st.tensor(SQUARE, "csr")[key]


@pytest.mark.parametrize("axis", [2, (0, 0), True, "a", [0]])
def test_axes_that_are_none(axis: Any) -> None:
    with pytest.raises(SparsetuneError, match="axis"):
        st.tensor(SQUARE, "csr").sum(axis)


@pytest.mark.parametrize("modes", [(0, 0), "ab", (0,), (0, 1, 1)])
def test_transpositions_that_are_none(modes: Any) -> None:
    with pytest.raises(SparsetuneError, match="each of the modes"):
        st.tensor(SQUARE, "csr").transpose(modes)


class OnlyDLPack:
    """An array that offers its memory by DLPack alone."""

    def __init__(self, held: np.ndarray) -> None:
        self.held = held

    def __dlpack__(self, **wishes: Any) -> Any:
        return self.held.__dlpack__(**wishes)

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()


class Broken(OnlyDLPack):
    def __dlpack__(self, **wishes: Any) -> Any:
        raise BufferError("on another device")


@pytest.mark.cc
def test_arrays_by_dlpack() -> None:
    assert default("y(i) = 2 * x(i)", {"x": OnlyDLPack(VECTOR)}).tolist() == (2 * VECTOR).tolist()
    assert np.shares_memory(st.tensor(OnlyDLPack(VECTOR)).values, VECTOR)
    with pytest.raises(SparsetuneError, match="on another device"):
        st.tensor(Broken(VECTOR))


@pytest.mark.cc
def test_products_of_blocked_matrices() -> None:
    plain = st.tensor(np.where(MATRIX < 0.4, MATRIX, 0), "csr")
    blocked = plain.block((4, 2))
    assert blocked.shape == (2, 3, 4, 2)
    found = default("y(i,p) = A(i,j,p,q) * x(j,q)", {"A": blocked, "x": np.append(VECTOR, 0).reshape(3, 2)})
    np.testing.assert_allclose(found.reshape(-1)[:6], plain @ VECTOR)
    assert (blocked.unblock((6, 5)).to_numpy() == plain.to_numpy()).all()


HUGE = 10**10


@pytest.mark.cc
@pytest.mark.parametrize("schedule", ["auto", "default"])
def test_workspaces_of_huge_extents_are_hashed(schedule: str) -> None:
    places, values = np.array([[3, 5, HUGE - 1], [5, HUGE - 1, 3]]), np.array([2.0, 3.0, 5.0])
    matrix = st.tensor((places, values), "dcsr", (HUGE, HUGE))
    product = st.evaluate("C(i,j) = A(i,k) * A(k,j)", {"A": matrix}, output_format="dcsr", schedule=schedule)
    assert sorted(zip(*product.to_coordinates()[0].tolist(), product.values.tolist(), strict=True)) == [
        (3, HUGE - 1, 6.0), (5, 3, 15.0), (HUGE - 1, 5, 10.0),
    ]  # fmt: skip
    summed = st.evaluate("c(k) = A(i,k)", {"A": matrix}, output_format="compressed", schedule=schedule)
    assert summed.to_coordinates()[0].tolist() == [[3, 5, HUGE - 1]]
    assert summed.values.tolist() == [5.0, 2.0, 3.0]


@pytest.mark.cc
def test_compiled_expressions_are_pickled_without_what_is_loaded() -> None:
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"})
    operands = {"A": st.tensor(MATRIX, "csr"), "x": VECTOR}
    expected = kernel(**operands)
    assert kernel.source
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(**operands), expected)


def test_a_database_is_a_path_or_a_url() -> None:
    with pytest.raises(st.DatabaseError, match="a path or a URL, not int"):
        st.evaluate("y(i) = x(i)", {"x": VECTOR}, database=5)  # type: ignore[arg-type]


@pytest.mark.cc
def test_einsum_takes_what_numpys_takes() -> None:
    np.testing.assert_allclose(st.einsum("ij,j", MATRIX, VECTOR, optimize="greedy"), MATRIX @ VECTOR)
    np.testing.assert_allclose(st.einsum(MATRIX, range(2), VECTOR, np.array([1]), [0]), MATRIX @ VECTOR)


@pytest.mark.cc
@pytest.mark.parametrize("formats", [("csf", "csf", "csf"), ("coo", "csf", "csf"), ("csf", "csf", "coo")])
def test_contractions_of_two_sparse_tensors(formats: tuple[str, str, str]) -> None:
    """Their loops below a workspace are in another nest than those at the root, which alone change places."""
    a, b = RNG.random((2, 3)), RNG.random((4, 3, 5))
    operands = {"A": st.tensor(a, "dcsr" if formats[0] == "csf" else "coo"), "B": st.tensor(b, formats[1])}
    found = st.evaluate("O(a,b,i) = A(a,j) * B(b,j,i)", operands, output_format=formats[2])
    np.testing.assert_allclose(found.to_numpy(), np.einsum("aj,bji->abi", a, b))
    batched = st.einsum("...ij,...jk", RNG.random((2, 2, 3, 3)), st.tensor(b, "csf")[:1, :, :], output_format="csf")
    assert batched.shape == (2, 2, 3, 5)


def test_memory_that_cannot_be_had_is_refused_before_anything_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 2**27  # positions take 0.5 GiB, and the result 1 GiB
    few = sp.coo_array((np.ones(2), ([0, rows - 1], [0, 1])), shape=(rows, 2))
    monkeypatch.setattr("sparsetune.compiler.native.memory.available", lambda: memory.Room(2**29 + 2**20, "a test"))
    packed: list[object] = []
    monkeypatch.setattr("sparsetune.compiler.storage.construct.pack", lambda *given: packed.append(given))
    with pytest.raises(st.ResourceError, match=r"what 'y\(i\) = .* does not fit into memory: 1.0 GiB where 513.0 MiB") as caught:
        st.evaluate("y(i) = A(i,j) * x(j)", {"A": few, "x": np.ones(2)})
    assert "output_format='csr'" in str(caught.value)
    assert not packed


@pytest.mark.parametrize("extent", [10**11, 2**63 - 1])
def test_results_that_cannot_be_had_name_a_sparse_format(extent: int) -> None:
    with pytest.raises(st.ResourceError, match=r"the result 'Y' .* does not fit into memory: .*output_format='csr'"):
        st.evaluate("Y(i,k) = A(i,j) * x(j)", {"A": sp.csr_array(np.eye(3)), "x": np.ones(3)}, shape={"k": extent})


def test_an_expression_is_read_once_in_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    tokens = parser.tokens_of
    monkeypatch.setattr(parser, "tokens_of", lambda text: (read.append(text), tokens(text))[1])
    default("once_1(i) = A(i,j) * x(j)", {"A": MATRIX, "x": VECTOR})
    st.compile("once_2(i) = A(i,j) * x(j)")(A=MATRIX, x=VECTOR)
    st.evaluate_all(["once_3(i) = A(i,j) * x(j)", "once_4 = once_3(i)"], {"A": MATRIX, "x": VECTOR})
    mine = sorted(text[:6] for text in read if text.startswith("once_"))
    assert mine == ["once_1", "once_2", "once_3", "once_4"]


@pytest.mark.cc
@pytest.mark.parametrize(("expression", "short"), [("C(i,j) = A(i,k) * B(k,j)", True), ("C(i,j) = A(i,j) + B(i,j)", False)])
def test_products_of_matrices_read_long_indices_short(expression: str, short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They go through indices again and again; what goes through them once reads them where they are."""
    wanted: list[bool] = []
    for module in (evaluating, kernels):
        monkeypatch.setattr(module, "borrowed", lambda data, short=False: wanted.append(short) or borrowed(data, short))
    source = np.random.default_rng(5)
    operands = {name: sp.random_array((40_000, 40_000), density=3e-5, format="csr", rng=source) for name in "AB"}
    for matrix in operands.values():
        matrix.indptr, matrix.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    first, second = operands.values()
    expected = first @ second if short else first + second
    formats = dict.fromkeys("ABC", "csr")
    for found in (st.evaluate(expression, operands, output_format="csr", schedule="default"), st.compile(expression, formats)(**operands)):
        assert abs(found.to_scipy() - expected).max() < 1e-12
    assert wanted == 4 * [short]
