"""Peers compute what numpy does, on the kernels that they have, and are left out elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sparsetune.compiler.errors import DataError
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.comparison import OURS, OURS_BY_DEFAULT, OURS_UNTUNED, agree, comparable, compare_with_peers
from sparsetune.tuner.measure.policy import Policy
from sparsetune.tuner.peers import Peer, all_peers, choose_peers
from sparsetune.tuner.peers.mkl_peer import MklPeer
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.settings import Settings

RNG = np.random.default_rng(0)
MATRIX = scipy.sparse.random_array((40, 30), density=0.2, rng=RNG, format="csr")
DENSE = MATRIX.toarray()
SQUARE = scipy.sparse.random_array((30, 30), density=0.2, rng=RNG, format="csr")
X, U = RNG.random((30, 5)), RNG.random(40)
CUBE = tensor((np.array([RNG.integers(0, n, 60) for n in (5, 6, 7)]), RNG.random(60)), "csf", (5, 6, 7))

KERNELS = {
    "y(i) = A(i,j) * x(j)": ({"A": MATRIX, "x": X[:, 0].copy()}, DENSE @ X[:, 0], {"scipy", "mkl", "sparse"}),
    "y(j) = x(i) * A(i,j)": ({"A": MATRIX, "x": U}, DENSE.T @ U, {"scipy", "mkl", "sparse"}),
    "Y(i,k) = A(i,j) * X(j,k)": ({"A": MATRIX, "X": X}, DENSE @ X, {"scipy", "mkl", "sparse"}),
    "C(i,j) = A(i,k) * B(k,j)": ({"A": MATRIX, "B": MATRIX.T.tocsr()}, DENSE @ DENSE.T, {"scipy", "mkl", "sparse"}),
    "S(i,j) = A(i,j) * B(i,j)": ({"A": MATRIX, "B": DENSE}, DENSE * DENSE, {"sparse"}),
    "Y(i,r) = B(i,j,k) * C(j,r) * D(k,r)": (
        {"B": CUBE, "C": (c := RNG.random((6, 4))), "D": (d := RNG.random((7, 4)))},
        np.einsum("ijk,jr,kr->ir", CUBE.to_numpy(), c, d),
        {"sparse"},
    ),
    "y(i) = s(i+p) * f(p)": (
        {"s": tensor(DENSE[0], "s"), "f": (f := np.array([1.0, -2, 3]))}, np.correlate(DENSE[0], f, "valid"), {"scipy"},
    ),
    "Y(i,j) = F(p,q) * A(i+p,q+j)": (
        {"A": MATRIX, "F": (w := np.arange(1.0, 13).reshape(3, 4))},
        sum(w[p, q] * DENSE[p : p + 38, q : q + 27] for p, q in np.ndindex(3, 4)), {"scipy"},
    ),
    "Y(i,j) = A(2*i+p,j+q) * F(p,q)": (
        {"A": MATRIX, "F": w}, sum(w[p, q] * DENSE[p : p + 37 : 2, q : q + 27] for p, q in np.ndindex(3, 4)), set(),
    ),
    "C(i,j) = A(i,j) + B(i,j)": ({"A": MATRIX, "B": MATRIX}, 2 * DENSE, {"scipy", "mkl"}),
    "C(i,j) = A(i,j) + B(j,i)": ({"A": SQUARE, "B": SQUARE}, SQUARE.toarray() + SQUARE.toarray().T, set()),
    "C(i,j) = A(i,k) * A(j,k)": ({"A": MATRIX}, DENSE @ DENSE.T, {"scipy", "mkl", "sparse"}),
    "C(i,j) = A(k,i) * B(j,k)": ({"A": SQUARE, "B": SQUARE}, (SQUARE @ SQUARE).toarray().T, {"scipy", "mkl", "sparse"}),
}


def dense(found) -> np.ndarray:
    return found.toarray() if hasattr(found, "toarray") else found.todense() if hasattr(found, "todense") else found


@pytest.mark.parametrize("expression", KERNELS)
@pytest.mark.parametrize("peer", all_peers(), ids=lambda peer: peer.name)
@pytest.mark.parametrize("threads", [1, 2])
def test_peers_agree_with_numpy(peer: Peer, expression: str, threads: int) -> None:
    if peer.version() is None:
        pytest.skip(f"needs {peer.name}: pip install 'sparsetune[peers]'")
    operands, expected, able = KERNELS[expression]
    call = peer.prepare(make_problem(expression, operands, threads=threads))
    assert (call is not None) == (peer.name in able)
    if call is not None:
        for _ in range(2):
            np.testing.assert_allclose(dense(call()), expected, rtol=1e-10)


@pytest.mark.parametrize("form", ["csr", "csc", "dcsr", "coo"])
def test_any_format_is_taken(form: str) -> None:
    problem = make_problem("y(i) = A(i,j) * x(j)", {"A": tensor(MATRIX).convert(form), "x": X[:, 0].copy()}, threads=1)
    for peer in choose_peers(()):
        call = peer.prepare(problem)
        assert call is not None
        np.testing.assert_allclose(dense(call()), DENSE @ X[:, 0], rtol=1e-10)


@pytest.mark.parametrize("expression", ["C(i,j) = A(i,k) * B(k,j)", "C(i,j) = A(k,i) * A(k,j)", "y(i) = A(i,j) * x(j)"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mkl_without_sorting_has_products_of_two_sparse_matrices(expression: str, dtype: str) -> None:
    unsorted = MklPeer(unsorted=True)
    if unsorted.version() is None:
        pytest.skip("needs mkl: pip install 'sparsetune[peers]'")
    matrix = MATRIX.astype(dtype)
    given = {"A": matrix, "B": matrix.T.tocsr(), "x": X[:, 0].astype(dtype)}
    problem = make_problem(expression, {name: value for name, value in given.items() if f"{name}(" in expression[6:]}, threads=2)
    call = unsorted.prepare(problem)
    if "x" in expression:
        assert call is None
    else:
        assert call is not None
        expected = matrix @ matrix.T if "B" in expression else matrix.T @ matrix
        assert agree(comparable(call()), expected)
        np.testing.assert_allclose(dense(call()), expected.toarray(), rtol=1e-5)


def test_large_broadcasts_are_refused() -> None:
    wide = make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": MATRIX, "X": np.ones((30, 400_000))}, threads=1)
    (pydata,) = (peer for peer in all_peers() if peer.name == "sparse")
    assert pydata.prepare(wide) is None


def test_unknown_peer() -> None:
    with pytest.raises(DataError, match="unknown peer 'taco'"):
        choose_peers(("taco",))


@pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")
class TestComparison:
    QUICK = Settings(policy=Policy(final_rounds=6, burst_seconds=0.001))

    def test_all_run_in_turn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rests = list[None]()
        monkeypatch.setattr("sparsetune.tuner.comparison.rest", lambda: rests.append(None))
        problem = make_problem("y(i) = A(i,j) * x(j)", {"A": MATRIX, "x": X[:, 0].copy()}, threads=1)
        found = compare_with_peers(problem, Schedule("unroll(j, 2)"), choose_peers(("scipy",)), self.QUICK)
        assert set(found.times) == {OURS, OURS_BY_DEFAULT, OURS_UNTUNED, "scipy"}
        assert found.best_peer == "scipy"
        assert found.ratio is not None
        ratio, low, high = found.ratios["scipy"]
        assert low <= ratio == found.ratio <= high
        assert found.wrong == ()
        assert len(rests) == 6 * len({OURS, OURS_BY_DEFAULT, "scipy"}), "threads of each fall asleep before the next one runs"

    def test_peers_that_are_wrong_are_not_timed(self) -> None:
        class Liar:
            name = "liar"

            def version(self) -> str:
                return "1"

            def prepare(self, problem):
                return lambda: np.zeros(40)

        problem = make_problem("y(i) = A(i,j) * x(j)", {"A": MATRIX, "x": X[:, 0].copy()}, threads=1)
        found = compare_with_peers(problem, Schedule(), (Liar(),), self.QUICK)
        assert found.wrong == ("liar",)
        assert (found.best_peer, found.ratio) == (None, None)

    def test_equal_schedules_run_as_one(self) -> None:
        problem = make_problem("y(i) = A(i,j) * x(j)", {"A": MATRIX, "x": X[:, 0].copy()}, threads=1)
        found = compare_with_peers(problem, Schedule(), choose_peers(("scipy",)), self.QUICK)
        assert found.ratios[OURS_BY_DEFAULT] == (1.0, 1.0, 1.0)
        assert found.times[OURS] == found.times[OURS_BY_DEFAULT]
        assert found.ratios["scipy"] != (1.0, 1.0, 1.0)

    def test_sparse_results_are_compared(self) -> None:
        problem = make_problem("C(i,j) = A(i,k) * B(k,j)", {"A": MATRIX, "B": MATRIX.T.tocsr()}, output_format="csr", threads=1)
        found = compare_with_peers(problem, Schedule(), choose_peers(("scipy",)), self.QUICK)
        assert found.wrong == ()
        assert "scipy" in found.times
