"""NumPy's einsum notation, drawn at random, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as draws
from sparsetune.compiler.errors import SparsetuneError

RNG = np.random.default_rng(21)
LETTERS = "aBij"


@draws.composite
def einsums(draw: draws.DrawFn) -> tuple[str, list[np.ndarray]]:
    """Draw a text with one to three operands that fit it: letters twice, ellipses, extents of 1 that are stretched, spaces."""
    extents = {letter: draw(draws.sampled_from([0, 1, 2, 3])) for letter in LETTERS}
    leading = draw(draws.lists(draws.sampled_from([1, 2, 3]), max_size=2))
    parts, operands = [], []
    for _ in range(draw(draws.integers(1, 3))):
        letters = draw(draws.lists(draws.sampled_from(LETTERS), max_size=3))
        place = draw(draws.integers(0, len(letters))) if draw(draws.booleans()) else None
        narrow = {letter for letter in letters if draw(draws.integers(0, 4)) == 0}
        shape = [1 if letter in narrow else extents[letter] for letter in letters]
        if place is not None:
            unnamed = leading[draw(draws.integers(0, len(leading))) :]
            shape[place:place] = [1 if draw(draws.integers(0, 3)) == 0 else extent for extent in unnamed]
            letters.insert(place, "...")
        operands.append(RNG.integers(-3, 4, shape) * (RNG.random(shape) < 0.7))
        parts.append(draw(draws.sampled_from(["", " "])).join(letters))
    text = ",".join(parts)
    if draw(draws.booleans()):
        used = sorted(set(text) & set(LETTERS))
        chosen = draw(draws.permutations(used))[: draw(draws.integers(0, len(used)))] if used else []
        spread = ["..."] if "..." in text else []
        place = draw(draws.integers(0, len(chosen)))
        text += f" -> {''.join([*chosen[:place], *spread, *chosen[place:]])}"
    return text, operands


@pytest.mark.cc
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(einsums(), draws.booleans())
def test_einsum_is_that_of_numpy(drawn: tuple[str, list[np.ndarray]], sparse: bool) -> None:
    text, operands = drawn
    wanted = np.einsum(text.replace(" ", ""), *operands)
    ready = [st.tensor(values, "s" * values.ndim) if sparse and values.ndim else values for values in operands]
    found = st.einsum(text, *ready, schedule="default")
    assert np.shape(found) == np.shape(wanted)
    assert np.array_equal(found, wanted)


LISTS: list[tuple[Any, ...]] = [
    (np.ones((2, 3)), [0, 1], np.arange(3.0), [1], [0]),
    (np.arange(6.0).reshape(2, 3), [26, 1]),
    (np.arange(6.0).reshape(2, 3), [Ellipsis, 51], [51, Ellipsis]),
    (np.arange(9.0).reshape(3, 3), [np.int64(7), 7]),
    (np.ones((2, 3)), (0, 1), np.ones((3, 4)), (1, 2), []),
]


@pytest.mark.cc
@pytest.mark.parametrize("arguments", LISTS)
def test_lists_of_indices_are_numpys(arguments: tuple[Any, ...]) -> None:
    wanted = np.einsum(*arguments)
    found = st.einsum(*arguments, schedule="default")
    assert np.shape(found) == np.shape(wanted)
    assert np.array_equal(found, wanted)


@pytest.mark.cc
def test_stretching_fills_nothing() -> None:
    column, wide = sp.csr_array([[1.0], [0.0], [2.0]]), sp.csr_array(np.arange(12.0).reshape(3, 4))
    found = st.einsum("ij,ij->ij", column, wide, output_format="csr", schedule="default")
    assert found.nnz == 7
    assert np.array_equal(found.to_numpy(), column.toarray() * wide.toarray())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("ii", np.ones((1, 3))), "mode 0 .* has 1, but mode 1 .* has 3"),
        (("ij,ij", np.ones((2, 3)), np.ones((3, 3))), "mode 0 of operand 'A' has 2, but mode 0 of operand 'B' has 3"),
        ((np.ones((2, 3)),), "takes a text"),
        ((np.ones((2, 3)), [0, 52]), "52 in a list of indices"),
        ((np.ones((2, 3)), [0, "i"]), "'i' in a list of indices"),
        ((np.ones((2, 3)), 5), "followed by the list of its indices"),
        ((np.ones((2, 3)), [0]), "operand A has 2 modes, but 'A' names 1"),
    ],
)
def test_einsum_that_is_none(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(SparsetuneError, match=says):
        st.einsum(*arguments, schedule="default")
