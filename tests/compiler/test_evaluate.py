"""What a demanding user hands over: odd subscripts, odd values and odd types give NumPy's answer or one clear line."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.errors import SparsetuneError
from sparsetune.compiler.native import memory
from sparsetune.compiler.notation import parser

RNG = np.random.default_rng(5)
MATRIX, SQUARE, CUBE, VECTOR = RNG.random((6, 5)), RNG.random((6, 6)), RNG.random((3, 4, 5)), RNG.random(5)


def default(expression: str, operands: dict[str, Any], **keywords: Any) -> Any:
    return st.evaluate(expression, operands, schedule="default", **keywords)


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
def test_constants_are_weak_as_in_numpy() -> None:
    whole = np.array([1, 2, 3])
    assert default("y(i) = 1.5 * a(i)", {"a": whole}).tolist() == [1.5, 3.0, 4.5]
    assert default("y(i) = 2 * a(i)", {"a": whole.astype("int8")}).dtype == np.int8
    assert default("y(i) = 2.5 * a(i)", {"a": whole.astype("float32")}).dtype == np.float32
    truth = np.array([True, False])
    assert default("y(i) = 2 * a(i)", {"a": truth}).tolist() == [2, 0]
    assert default("y(i) = a(i) / b(i)", {"a": truth, "b": np.array([2, 2])}).tolist() == [0.5, 0.0]


@pytest.mark.parametrize(
    ("expression", "operand", "dtype", "says"),
    [
        ("y(i) = 300 * a(i)", np.array([1, 2], np.int8), None, "constant 300"),
        ("y(i) = 3000000000 + a(i)", np.array([1, 2], np.int32), None, "constant 3000000000"),
        ("y(i) = 1.5 * a(i)", np.array([1, 2]), "int64", "constant 1.5"),
        ("y(i) = a(i) - a(i)", np.array([True, False]), None, "'-' has no meaning for values of type bool"),
        ("y(i) = a(i)", np.array([1.5]), "int64", "values of type float64"),
        ("y(i) = a(i)", np.array([1j]), None, "complex128"),
    ],
)
def test_values_without_meaning_are_refused(expression: str, operand: Any, dtype: Any, says: str) -> None:
    with pytest.raises(SparsetuneError, match=says):
        default(expression, {"a": operand}, dtype=dtype)


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


@pytest.mark.cc
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dense"])
@pytest.mark.parametrize(("semiring", "wanted"), [(("min", "+"), 2.0), (("max", "+"), 6.0), (("max", "*"), 5.0)])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_nan_goes_through_minima_and_maxima(format: str, semiring: tuple[str, str], wanted: float, place: int) -> None:
    values = np.array([5.0, 1.0, 2.0])
    matrix = st.tensor((np.array([[0, 1, 2], [0, 0, 0]]), values), "csc", (3, 2))
    operands = {"W": matrix.convert(format).astype("float64"), "d": np.ones(3)}
    fill = {"min": np.inf, "max": -np.inf}[semiring[0]]
    if format == "dense":
        operands["W"] = np.where(matrix.to_numpy() == 0, fill, matrix.to_numpy())
    assert default("y(j) = W(i,j) * d(i)", operands, semiring=semiring).tolist() == [wanted, fill]
    values[place] = np.nan
    if format == "dense":
        operands["W"][place, 0] = np.nan
    else:
        operands["W"] = st.tensor((np.array([[0, 1, 2], [0, 0, 0]]), values), format, (3, 2))
    found = default("y(j) = W(i,j) * d(i)", operands, semiring=semiring)
    assert np.isnan(found[0])
    assert found[1] == fill


@pytest.mark.cc
def test_signs_of_zeros() -> None:
    zeros, minus = np.array([0.0, -0.0]), np.array([0.0, 0.0])
    assert np.signbit(default("y(i) = a(i)", {"a": zeros})).tolist() == [False, True]
    assert np.signbit(default("y(i) = -a(i)", {"a": zeros})).tolist() == [True, False]
    assert np.signbit(default("y(i) = a(i) - b(i)", {"a": zeros, "b": minus})).tolist() == [False, True]
    sparse = st.tensor((np.array([[0, 1]]), zeros), "compressed", (2,))
    assert np.signbit(default("y(i) = -a(i)", {"a": sparse}, output_format="compressed").values).tolist() == [True, False]


@pytest.mark.cc
@pytest.mark.parametrize("zero", ["0", "0.0", "(1 - 1)", "(2 * 0)", "(0 / 3)"])
@pytest.mark.parametrize("format", [None, "csr", "coo"])
def test_quotients_by_zero_are_everywhere(zero: str, format: str | None) -> None:
    matrix = st.tensor(np.array([[0.0, 2.0, 0.0], [-1.0, 0.0, 0.0]]), "csr")
    found = default(f"C(i,j) = A(i,j) / {zero}", {"A": matrix}, output_format=format)
    whole = found if format is None else found.to_numpy()
    np.testing.assert_array_equal(whole, [[np.nan, np.inf, np.nan], [-np.inf, np.nan, np.nan]])
    assert format is None or found.nnz == 6


@pytest.mark.cc
@pytest.mark.parametrize("schedule", ["", "split(i, a, b, 1)"])
def test_sums_skip_quotients_without_a_numerator_wherever_the_loops_are(schedule: str) -> None:
    above = st.tensor(np.array([[0.0, 0.0], [0.0, 6.0]]), "dcsr")
    below = st.tensor((np.array([[0, 1]]), np.array([0.0, 3.0])), "compressed", (2,))
    found = st.compile("y(j,l) = B(l,i) / C(j)", {"B": "dcsr", "C": "compressed"}, schedule=schedule)(B=above, C=below)
    np.testing.assert_array_equal(found, [[0.0, np.inf], [0.0, 2.0]])


@pytest.mark.cc
@pytest.mark.parametrize("divisor", ["2", "(1 + 1)", "(3 - 1)", "-(-2)", "(4 / 2)"])
def test_quotients_by_other_constants_have_the_pattern_of_the_numerator(divisor: str) -> None:
    matrix = st.tensor(np.array([[0.0, 2.0, 0.0], [-1.0, 0.0, 0.0]]), "csr")
    found = default(f"C(i,j) = A(i,j) / {divisor}", {"A": matrix}, output_format="csr")
    assert found.nnz == 2
    assert found.to_numpy().tolist() == [[0.0, 1.0, 0.0], [-0.5, 0.0, 0.0]]


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
@pytest.mark.parametrize(
    ("semiring", "dtype", "expected"),
    [
        (("min", "+"), "int32", [0, 3, 2**31 - 1, 7]),
        (("min", "+"), "uint8", [0, 3, 255, 7]),
        (("min", "*"), "int64", [0, 0, 2**63 - 1, 12]),
        (("max", "+"), "int16", [-(2**15), -(2**15), -(2**15), -(2**15)]),
    ],
)
def test_the_fill_value_of_integers_annihilates(semiring: tuple[str, str], dtype: str, expected: list[int]) -> None:
    ends = np.iinfo(dtype)
    nothing = ends.max if semiring[0] == "min" else ends.min
    graph = st.tensor((np.array([[0, 1, 1], [1, 2, 3]]), np.array([3, 4, 4], dtype)), "csr", (4, 4))
    x = np.array([0, nothing, nothing, 3 if semiring == ("min", "*") else 7], dtype)
    if semiring[0] == "max":
        x[:] = nothing
    steps = {"A": graph, "x": x}
    found = default("y(j) = A(i,j) * x(i) + x(j)", steps, semiring=semiring)
    wanted = [min(v, w) for v, w in zip(expected, x.tolist(), strict=True)] if semiring[0] == "min" else expected
    assert found.tolist() == wanted
    assert default("y(j) = A(i,j) * x(i) + x(j)", steps | {"x": found}, semiring=semiring).min() >= ends.min


@pytest.mark.cc
@pytest.mark.parametrize("number", [1e300, -1e39, 3.4e38])
def test_constants_beyond_float32_are_infinite(number: float) -> None:
    matrix = st.tensor(np.eye(3, dtype=np.float32), "csr")
    found = default(f"C(i,j) = A(i,j) * {number!r}", {"A": matrix}, output_format="csr")
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found.values, np.full(3, np.float32(number)))


@pytest.mark.cc
@pytest.mark.parametrize(("number", "dtype"), [(2.5, "float32"), (3, "float32"), (np.float64(2.5), "float64"), (True, "float32")])
def test_numbers_of_python_are_weak(number: Any, dtype: str) -> None:
    matrix = st.tensor(np.eye(3, dtype=np.float32), "csr")
    assert default("C(i,j) = A(i,j) * c", {"A": matrix, "c": number}, output_format="csr").dtype == dtype
    assert st.compile("C(i,j) = A(i,j) * c", {"A": "csr", "C": "csr"})(A=matrix, c=number).dtype == dtype
    small = st.tensor(np.eye(3, dtype=np.uint8), "csr")
    assert default("C(i,j) = A(i,j) * c", {"A": small, "c": 300}, output_format="csr").values.tolist() == [300] * 3


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
    tokens = parser._tokens
    monkeypatch.setattr(parser, "_tokens", lambda text: (read.append(text), tokens(text))[1])
    default("once_1(i) = A(i,j) * x(j)", {"A": MATRIX, "x": VECTOR})
    st.compile("once_2(i) = A(i,j) * x(j)")(A=MATRIX, x=VECTOR)
    st.evaluate_all(["once_3(i) = A(i,j) * x(j)", "once_4 = once_3(i)"], {"A": MATRIX, "x": VECTOR})
    mine = sorted(text[:6] for text in read if text.startswith("once_"))
    assert mine == ["once_1", "once_2", "once_3", "once_4"]
