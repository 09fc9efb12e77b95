"""``merge(j, bitmap)``: operands are laid out over the range, so that each entry is touched a constant number of times."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
import sparsetune as st
from differential.interpreted import interpreted
from sparsetune.compiler.storage.tensor import Tensor

NAMES = "ABDE"
EXPRESSIONS = {
    "A(i,j) * B(i,j)": ("csr", "csr"),
    "A(i,j) + B(i,j)": ("coo", "dn"),
    "A(i,j) * B(i,j) + A(i,j)": ("dp", "csr"),
    "A(i,j) * B(i,j) + D(i,j) * E(i,j)": ("dp", "csr", "coo", "dn"),
    "A(i,j) * B(i,j) - D(i,j) * 2": ("csr", "dcsr", "csr"),
}


THREADS = "; parallelize(i, cpu_thread, no_races, static)"


def deals(text: str, more: str) -> bool:
    """Whether a schedule is legal: rows of entries are not dealt out to threads."""
    return not more or "coo" not in EXPRESSIONS[text]


def matrix(form: str, seed: int, shape: tuple[int, int] = (9, 200)) -> Tensor:
    rng = np.random.default_rng(seed)
    return st.tensor(np.where(rng.random(shape) < 0.2, rng.standard_normal(shape), 0.0), form)


@pytest.mark.cc
@pytest.mark.parametrize("made", ["dense", "csr"])
@pytest.mark.parametrize(("text", "more"), [(text, more) for text in EXPRESSIONS for more in ("", THREADS) if deals(text, more)])
def test_sums_and_products(text: str, made: str, more: str) -> None:
    formats = dict(zip(NAMES, EXPRESSIONS[text], strict=False))
    operands = {name: matrix(form, seed) for seed, (name, form) in enumerate(formats.items())}
    kernel = st.compile(f"C(i,j) = {text}", {**formats, "C": made}, schedule=f"merge(j, bitmap){more}")
    found = kernel(**operands, threads=3)
    dense = {name: operand.to_numpy() for name, operand in operands.items()}
    expected = eval(text.replace("(i,j)", ""), {}, dense)
    assert np.allclose(found if made == "dense" else found.to_numpy(), expected)
    again = st.compile(f"C(i,j) = {text}", {**formats, "C": made}, schedule="merge(j, two_finger)")(**operands)
    if isinstance(found, Tensor):
        assert all(np.array_equal(one, other) for one, other in zip(found.to_coordinates(), again.to_coordinates(), strict=True))


def test_the_code_has_bits_and_compares_no_coordinates() -> None:
    formats = dict.fromkeys("ABC", "csr")
    source = st.compile("C(i,j) = A(i,j) + B(i,j)", formats, schedule="merge(j, bitmap)").source
    assert source != st.compile("C(i,j) = A(i,j) + B(i,j)", formats, schedule="merge(j, two_finger)").source
    assert "st_bits_drain" in source
    assert "j_A == j_B" not in source
    driven = st.compile("C(i,j) = A(i,j) * B(i,j)", formats, schedule="merge(j, bitmap)").source
    assert "st_bits_drain" not in driven
    assert "at_B[j]" in driven


@pytest.mark.parametrize("operator", ["*", "+"])
@pytest.mark.parametrize(("first", "second"), list(combinations_with_replacement(("csr", "dcsr", "coo", "dn", "dp"), 2)))
def test_the_code_is_another_one_wherever_coordinates_would_be_compared(operator: str, first: str, second: str) -> None:
    formats = {"A": first, "B": second}
    text = f"C(i,j) = A(i,j) {operator} B(i,j)"
    laid, stepped = (st.compile(text, formats, schedule=f"merge(j, {strategy})").source for strategy in ("bitmap", "two_finger"))
    assert "at_B[" in laid
    assert "at_B[" not in stepped


@pytest.mark.cc
def test_the_work_is_linear_in_what_is_stored() -> None:
    """Two fingers compare the coordinates of all operands for each; bits touch each entry three times however many there are."""
    names = "BDE"
    operands = {name: matrix("csr", seed, (4, 1000)) for seed, name in enumerate(names)}
    text = f"A(i,j) = {' + '.join(f'{name}(i,j)' for name in names)}"
    bound = st.compile(text, dict.fromkeys(("A", *names), "csr"), schedule="merge(j, bitmap)").bind(**operands)
    found, counts = interpreted(bound)
    stored = sum(operand.nnz for operand in operands.values())
    assert np.allclose(found.to_numpy(), sum(operand.to_numpy() for operand in operands.values()))
    assert counts.iterations == 2 * stored + found.nnz + 4


@pytest.mark.cc
def test_ranges_that_no_array_has_room_for_are_merged_by_fingers() -> None:
    kernel = st.compile("A(j) = B(j) + D(j)", dict.fromkeys("ABD", "compressed"), schedule="merge(j, bitmap)")
    far = st.tensor((np.array([[2**39]]), np.ones(1)), "compressed", shape=(2**40,))
    assert kernel(B=far, D=far).to_coordinates()[1].tolist() == [2.0]
