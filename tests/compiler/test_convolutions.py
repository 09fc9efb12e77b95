"""What compound subscripts are for, each one line of notation, against SciPy and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sparsetune as st
from numpy.typing import NDArray
from scipy import ndimage, signal

pytestmark = pytest.mark.cc
RNG = np.random.default_rng(11)


def sparse(*shape: int) -> NDArray[Any]:
    return RNG.integers(1, 6, shape) * (RNG.random(shape) < 0.2) * 1.0


def value(expression: str, formats: dict[str, str], **operands: NDArray[Any]) -> Any:
    ready = {name: st.tensor(data, formats[name]) if name in formats else data for name, data in operands.items()}
    return st.evaluate(expression, ready, schedule="default")


def test_three_dimensional_correlation() -> None:
    volume, weights = sparse(6, 7, 8), RNG.integers(-3, 4, (3, 3, 3)) * 1.0
    found = value("Y(i,j,k) = B(i+p,j+q,k+r) * F(p,q,r)", {"B": "csf"}, B=volume, F=weights)
    assert np.allclose(found, signal.correlate(volume, weights, "valid"))


def test_a_strided_dilated_layer_with_channels() -> None:
    images, weights = sparse(2, 9, 9, 3), RNG.integers(-3, 4, (2, 2, 3, 4)) * 1.0
    found = value("O(n,h,w,f) = I(n,2*h+3*p,2*w+3*q,c) * F(p,q,c,f)", {"I": "dsss"}, I=images, F=weights)
    size = found.shape[1]
    wanted = sum(images[:, 3 * p :: 2, 3 * q :: 2][:, :size, :size] @ weights[p, q] for p in range(2) for q in range(2))
    assert size == 3
    assert np.allclose(found, wanted)


def test_a_depthwise_layer_with_sparse_weights() -> None:
    image, weights = sparse(4, 7, 7), sparse(4, 3, 3)
    found = value("O(c,h,w) = I(c,h+p,w+q) * F(c,p,q)", {"I": "dss", "F": "csf"}, I=image, F=weights)
    assert np.allclose(found, [signal.correlate2d(image[c], weights[c], "valid") for c in range(4)])


def test_a_periodic_stencil() -> None:
    grid = sparse(8, 9)
    expression = "Y(i,j) = A(i-1,j) + A(i+1,j) + A(i,j-1) + A(i,j+1) - 4 * A(i,j)"
    found = st.evaluate(expression, {"A": st.tensor(grid, "csr")}, schedule="default", boundary="wrap")
    assert np.allclose(found, ndimage.convolve(grid, [[0, 1, 0], [1, -4, 1], [0, 1, 0]], mode="wrap"))


def test_signals_that_are_both_sparse_are_correlated() -> None:
    left, right = sparse(40), sparse(12)
    assert np.allclose(value("y(i) = a(i+j) * b(j)", {"a": "s", "b": "s"}, a=left, b=right), np.correlate(left, right, "valid"))
    assert np.allclose(value("y(i+j) = a(i) * b(j)", {"a": "s", "b": "s"}, a=left, b=right), np.convolve(left, right))


def test_layers_of_channels_first_and_transposed_layers() -> None:
    images, weights = sparse(2, 3, 9, 8), RNG.integers(-3, 4, (4, 3, 3, 2)) * 1.0
    found = value("O(n,f,h,w) = I(n,c,2*h+p,2*w+q) * F(f,c,p,q)", {"I": "dsss"}, I=images, F=weights)
    whole = [[sum(signal.correlate2d(image[c], one[c], "valid") for c in range(3)) for one in weights] for image in images]
    assert np.allclose(found, np.array(whole)[:, :, ::2, ::2])
    back = st.evaluate("I(n,c,2*h+p,2*w+q) = O(n,f,h,w) * F(f,c,p,q)", {"O": found, "F": weights}, schedule="default")
    inside = images[:, :, : back.shape[2], : back.shape[3]]
    assert np.isclose((back * inside).sum(), (found * found).sum(), rtol=1e-12)


def test_windows_are_pooled_by_their_maximum_and_by_their_mean() -> None:
    image = sparse(8, 10)
    windows = np.lib.stride_tricks.sliding_window_view(image, (2, 2))[::2, ::2]
    stored = st.tensor(image, "csr")
    mean = st.evaluate("P(i,j) = 0.25 * A(2*i+p,2*j+q)", {"A": stored}, shape={"p": 2, "q": 2}, schedule="default")
    assert np.allclose(mean, windows.mean(axis=(2, 3)))
    coordinates, values = stored.to_coordinates()
    largest = st.tensor((coordinates, values), "csr", image.shape, fill_value=-np.inf)
    found = st.evaluate("P(i,j) = A(2*i+p,2*j+q)", {"A": largest}, shape={"p": 2, "q": 2}, semiring=("max", "+"), schedule="default")
    wanted = windows.max(axis=(2, 3))
    assert np.array_equal(found, np.where(wanted > 0, wanted, -np.inf))


def test_a_sparse_filter_on_a_sparse_signal_of_a_chain() -> None:
    signals, weights = sparse(60), sparse(7)
    found = value("y(i) = x(i+2*j) * F(j)", {"x": "s", "F": "s"}, x=signals, F=weights)
    dilated = np.zeros(13)
    dilated[::2] = weights
    assert np.allclose(found, np.correlate(signals, dilated, "valid"))


@pytest.mark.parametrize("forms", [("s", "s"), ("d", "s"), ("s", "d"), ("h", "b")])
def test_unions_and_intersections_with_shifted_operands(forms: tuple[str, str]) -> None:
    left, right = sparse(6), sparse(10)
    shifted = np.lib.stride_tricks.sliding_window_view(right, 5)
    operands = {"B": st.tensor(left, forms[0]), "C": st.tensor(right, forms[1])}
    total = st.evaluate("A(i,j) = B(i) + C(i+j)", operands, shape={"j": 5}, schedule="default")
    assert np.array_equal(total, left[:, None] + shifted)
    product = st.evaluate("A(i,j) = B(i) * C(i+j)", operands, "csr", shape={"j": 5}, schedule="default")
    assert np.array_equal(product.to_numpy(), left[:, None] * shifted)
    swapped = st.evaluate("A(i,j) = B(i) * C(i+j)", operands, shape={"j": 5}, schedule="reorder(j, i)")
    assert np.array_equal(swapped, left[:, None] * shifted)


@pytest.mark.parametrize("form", ["csr", "dcsr", "coo", "csc", "dp", "db"])
@pytest.mark.parametrize("subscripts", ["i+p,j+q", "i+p,2*j+q", "i+2*p-1,j-q+2", "i+p,3*j+2*q"])
@pytest.mark.parametrize("entries", [0, 12, 900])
def test_subsections_begin_where_the_loops_outside_have_found_them(form: str, subscripts: str, entries: int) -> None:
    """Output loops first, then those of the filter: few entries, whose subsections are stepped through, and many, where all are visited."""
    rows, columns = 40, 61
    rng = np.random.default_rng(entries)
    data = np.zeros((rows, columns))
    data.flat[rng.choice(data.size, entries, replace=False)] = rng.random(entries) + 1
    weights = rng.random((3, 2))
    stored = st.tensor(data, format=form)
    shape, text = {"i": 30, "j": 17}, f"y(i,j) = B({subscripts}) * F(p,q)"
    expected = st.evaluate(text, {"B": data, "F": weights}, shape=shape, boundary="fill", schedule="default")
    order = "reorder(j,i,q,p)" if form == "csc" else "reorder(i,j,p,q)"
    found = st.evaluate(text, {"B": stored, "F": weights}, shape=shape, boundary="fill", schedule=order)
    assert np.allclose(found, expected)


@pytest.mark.parametrize("form", ["csf", "dds", "ssd", "dss", "sds", "coo"])
@pytest.mark.parametrize("entries", [0, 9, 700])
def test_subsections_below_two_open_levels(form: str, entries: int) -> None:
    rng = np.random.default_rng(entries)
    data = np.zeros((11, 12, 40))
    data.flat[rng.choice(data.size, entries, replace=False)] = rng.random(entries) + 1
    weights = rng.random((2, 3, 3))
    text = "y(i,j,k) = B(i+p,j+q,k+r) * F(p,q,r)"
    expected = st.evaluate(text, {"B": data, "F": weights}, schedule="default")
    found = st.evaluate(text, {"B": st.tensor(data, format=form), "F": weights}, schedule="reorder(i,j,k,p,q,r)")
    assert np.allclose(found, expected)


def test_inner_loops_begin_at_the_buffer() -> None:
    text = st.compile("y(i,j) = B(i+p,j+q) * F(p,q)", {"B": "csr"}, schedule="reorder(i,j,p,q)").source
    inner = text[text.index("all p") :]
    assert "narrow_j ? first_j[p + i - from_p]" in inner
    assert "lower_bound" not in inner
