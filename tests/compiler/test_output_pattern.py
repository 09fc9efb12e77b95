"""Results on the pattern of an operand: submanifold convolutions and others, against sums by NumPy on masked data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from numpy.typing import NDArray

pytestmark = pytest.mark.cc
RNG = np.random.default_rng(5)
LAYER = "O(x,y,z,m) = I(x+p-1,y+q-1,z+r-1,c) * F(p,q,r,c,m)"


def points(shape: tuple[int, ...], channels: int, share: float = 0.25) -> NDArray[Any]:
    """Return features at random points, all channels of which are stored."""
    return (RNG.random((*shape, channels)) + 0.5) * (RNG.random((*shape, 1)) < share)


def convolved(volume: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Return a convolution with 3 values a mode, zero outside, at every point."""
    shape = volume.shape[:3]
    wide = np.pad(volume, ((1, 1), (1, 1), (1, 1), (0, 0)))
    parts = (wide[p : p + shape[0], q : q + shape[1], r : r + shape[2]] @ weights[p, q, r] for p, q, r in np.ndindex(3, 3, 3))
    return sum(parts, start=np.zeros((*shape, weights.shape[-1])))


@pytest.mark.parametrize(("form", "left"), [("hhhd", None), ("dhhs", None), ("sssd", "hhhd"), ("ssss", "coo"), ("sssd", "dense")])
def test_submanifold_layers_stay_on_the_points_of_their_input(form: str, left: str | None) -> None:
    volume, weights = points((6, 5, 7), 3), RNG.random((3, 3, 3, 3, 2))
    here = (volume != 0).any(axis=3)
    found = st.evaluate(LAYER, {"I": st.tensor(volume, form), "F": weights}, left, "default", output_pattern="I(x,y,z,:)")
    wanted = np.where(here[..., None], convolved(volume, weights), 0.0)
    if left == "dense":
        assert np.allclose(found, wanted)
        return
    assert np.allclose(found.to_numpy(), wanted)
    coordinates, _ = found.to_coordinates()
    assert np.array_equal(np.unique(coordinates[:3], axis=1), np.argwhere(here).T)
    assert found.nnz == 2 * here.sum()


def test_work_follows_the_points_and_not_the_space() -> None:
    chosen = np.array(np.unravel_index(RNG.choice(50**3, 200, replace=False), (50, 50, 50)))
    counts = []
    for spread in (1, 1000):
        coordinates = np.concatenate([np.repeat(chosen * spread, 2, axis=1), np.tile([0, 1], 200)[None]])
        stored = st.tensor((coordinates, np.ones(400)), "hhhd", (50 * spread, 50 * spread, 50 * spread, 2))
        kernel = st.compile(LAYER, {"I": "hhhd"}, output_pattern="I(x,y,z,:)")
        counts.append(kernel.bind(I=stored, F=np.ones((3, 3, 3, 2, 4)), threads=1).count()["iterations"])
    assert counts[1] <= counts[0] <= 200 * (3 + 9 + 27) * 10


def test_everything_at_the_pattern_is_there_whatever_it_is() -> None:
    mask = st.tensor(np.array([[0.0, 2, 0], [1, 0, 3]]), "csr")
    other = st.tensor(np.array([[0.0, 0, 4], [5, 0, 0]]), "csr")
    found = st.evaluate("A(i,j) = B(i,j)", {"B": other, "M": mask}, output_pattern="M", schedule="default")
    assert found.nnz == 3
    assert np.array_equal(found.to_numpy(), [[0, 0, 0], [5, 0, 0]])
    across = st.evaluate("A(i,j) = B(j,i)", {"B": np.arange(6.0).reshape(3, 2), "M": mask}, output_pattern="M", schedule="default")
    assert np.array_equal(across.to_numpy(), [[0, 2, 0], [1, 0, 5]])
    rows = st.evaluate("A(j,i) = B(i,j) + 1", {"B": other, "M": mask}, output_pattern="M(:,j)", schedule="default")
    assert rows.shape == (3, 2)
    assert np.array_equal(rows.to_numpy(), other.to_numpy().T + 1)
    shortest = st.tensor((np.array([[0, 1], [1, 0]]), np.array([7.0, 2])), "csr", (2, 3), fill_value=np.inf)
    least = st.evaluate("A(i,j) = B(i,j)", {"B": shortest, "M": mask}, output_pattern="M", semiring=("min", "+"), schedule="default")
    assert np.array_equal(least.to_numpy(), [[np.inf, 7, np.inf], [2, np.inf, np.inf]])
    assert least.nnz == 3


def test_layers_on_a_pattern_are_tuned_and_looked_up(tmp_path: Any) -> None:
    image = points((8, 9), 2)
    operands = {"I": st.tensor(image, "ssd"), "F": RNG.random((3, 3, 2, 2))}
    told: dict[str, Any] = {"output_pattern": "I(x,y,:)", "threads": 1, "database": str(tmp_path / "schedules.sqlite")}
    layer = "O(x,y,m) = I(x+p-1,y+q-1,c) * F(p,q,c,m)"
    assert st.tune(layer, operands, trials=2, **told).failed_trials == 0
    assert st.lookup(layer, operands, **told).origin == "exact"
    one = st.evaluate(layer, operands, **told)
    assert np.allclose(one.to_numpy(), st.evaluate(layer, operands, output_pattern="I(x,y,:)", schedule="default").to_numpy())


def test_kernels_functions_and_lists_of_expressions_keep_results_on_a_pattern(tmp_path: Any) -> None:
    database = str(tmp_path / "schedules.sqlite")
    image, weights, other = points((8, 9), 2), RNG.random((3, 3, 2, 2)), points((8, 9), 2)
    layer = "O(x,y,m) = I(x+p-1,y+q-1,c) * F(p,q,c,m)"
    stored = st.tensor(image, "ssd")
    wanted = st.evaluate(layer, {"I": stored, "F": weights}, output_pattern="I(x,y,:)", schedule="default")
    for schedule in (None, "auto"):
        kernel = st.compile(layer, {"I": "ssd"}, schedule=schedule, output_pattern="I(x,y,:)", database=database)
        found = kernel(I=stored, F=weights)
        assert found.nnz == wanted.nnz
        assert np.allclose(found.to_numpy(), wanted.to_numpy())
        assert kernel(I=st.tensor(other, "ssd"), F=weights).nnz == 2 * (other != 0).any(axis=2).sum()
    function = st.autotune(layer, output_pattern="I(x,y,:)", database=database)
    assert np.allclose(function(I=stored, F=weights).to_numpy(), wanted.to_numpy())
    second = "P(x,y,m) = O(x+p-1,y+q-1,c) * F(p,q,c,m)"
    one, two = st.evaluate_all([layer, second], {"I": stored, "F": weights}, output_pattern="I(x,y,:)", schedule="default")
    assert one.nnz == two.nnz == wanted.nnz
    named = {"O": "I(x,y,:)"}
    first, dense = st.evaluate_all(
        [layer, second], {"I": stored, "F": weights}, output_pattern=named, schedule="default", shape={"x": 8, "y": 9}
    )
    assert first.nnz == wanted.nnz
    assert np.allclose(np.where((image != 0).any(axis=2)[..., None], dense, 0), two.to_numpy())
    with pytest.raises(st.ExpressionError, match="output_pattern names 'Q', which no expression computes"):
        st.evaluate_all([layer], {"I": stored, "F": weights}, output_pattern={"Q": "I(x,y,:)"})
    with pytest.raises(st.ExpressionError, match="there is no operand 'M'; there are F, I"):
        st.compile(layer, {"I": "ssd"}, output_pattern="M(x,y)")(I=stored, F=weights)


def test_numpys_notation_keeps_results_on_a_pattern() -> None:
    left, right = RNG.random((6, 4)), RNG.random((4, 5))
    mask = sp.random_array((6, 5), density=0.3, format="csr", rng=RNG)
    whole, stored = left @ right, mask.toarray() != 0
    sampled = st.einsum("ij,ik,kj->ij", mask, left, right, output_pattern="A", schedule="default")
    assert isinstance(sampled, st.Tensor)
    assert np.allclose(sampled.to_numpy(), mask.toarray() * whole)
    some = np.where(stored[:, :4], left, 0.0)
    rows = st.einsum("ik,kj->ij", sp.csr_array(some), right, output_pattern="A(i,:)", schedule="default")
    assert rows.nnz == 5 * stored[:, :4].any(axis=1).sum()
    assert np.allclose(rows.to_numpy(), some @ right)
    capitals = st.einsum("IJ,IK,KJ->IJ", mask, left, right, output_pattern="A(i_,j_)", schedule="default")
    assert np.array_equal(capitals.to_numpy(), sampled.to_numpy())
    with pytest.raises(st.ExpressionError, match="output_pattern 'M': there is no operand 'M'; there are A, B"):
        st.einsum("ik,kj->ij", left, right, output_pattern="M")


def test_the_space_of_what_is_computed_on_a_pattern_is_explored() -> None:
    formats = {"B": "csr", "C": "csr", "M": "csr"}
    found = st.explore("A(i,j) = B(i,k) * C(k,j)", formats, output_pattern="M")
    assert all("M_pattern" in one.loop_nest for one in found.frontier)
    assert len(found.frontier) > 0


@pytest.mark.parametrize(
    ("expression", "pattern", "message"),
    [
        ("A(i,j) = B(i,j)", "N(i,j)", "there is no operand 'N'; there are B"),
        ("A(i,j) = B(i,j)", "B(i,k)", "'k' is neither ':' nor an index of the left side, i, j"),
        ("A(i,j) = B(i,j)", "B(i,i)", "each once"),
        ("A(i,j) = B(i,j)", "B(:,:)", "has to name indices of the left side"),
        ("A(i,j) = B(i,j)", "B(i)", "is of 1 modes, but 'B' has 2"),
        ("a(i) = B(i,j)", "B", "is of 1 modes, but 'B' has 2"),
        ("A(i,j) = B(i,j)", "B(i", "is no access of an operand"),
        ("A(i,j) = B(i,j)", 3, "is no access of an operand"),
        ("A(i,j) = B(i,j)", "A", "'A' is the result; name an operand"),
        ("A(i+1,j) = B(i,j)", "B(i,j)", "scatters, which only dense results take"),
    ],
)
def test_what_is_no_pattern_is_refused(expression: str, pattern: Any, message: str) -> None:
    with pytest.raises(st.ExpressionError, match=message):
        st.evaluate(expression, {"B": np.eye(3)}, output_pattern=pattern)


@pytest.mark.parametrize("call", [st.evaluate, st.lookup, st.tune])
def test_operands_that_do_not_match_are_told_of_the_expression_as_it_was_written(call: Any) -> None:
    layer, image = "O(x,m) = I(x,c) * F(c,m)", np.eye(3)
    with pytest.raises(st.ExpressionError, match=r"^operand 'G' is not used in 'O\(x,m\) = I\(x,c\) \* F\(c,m\)'; its operands are I, F$"):
        call(layer, {"I": image, "F": image, "G": image}, output_pattern="I(x,:)")
    with pytest.raises(st.ExpressionError, match=r"^operand 'F' of 'O\(x,m\) = I\(x,c\) \* F\(c,m\)' is missing; give it by its name$"):
        call(layer, {"I": image}, output_pattern="I(x,:)")
