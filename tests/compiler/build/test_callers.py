"""One bound kernel, called by several threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st

RNG = np.random.default_rng(0)
A = sp.random_array((600, 600), density=0.02, format="csr", rng=RNG)
X = RNG.random(600)
CALLERS, CALLS = 8, 40

KERNELS = {
    "dense": ("y(i) = A(i,j) * x(j)", {"A": "csr"}, {"A": A, "x": X}, A @ X),
    "scalar": ("a = A(i,j) * x(j)", {"A": "csr"}, {"A": A, "x": X}, (A @ X).sum()),
    "pattern of an operand": ("C(i,j) = A(i,j) * x(j)", {"A": "csr", "C": "csr"}, {"A": A, "x": X}, (A * X).toarray()),
    "assembled": ("C(i,j) = A(i,k) * A(k,j)", {"A": "csr", "C": "csr"}, {"A": A}, (A @ A).toarray()),
}


def dense(result) -> np.ndarray:
    return result.to_numpy() if isinstance(result, st.Tensor) else np.array(result)


@pytest.mark.cc
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KERNELS)
def test_every_caller_gets_a_right_result(kind: str, threads: int) -> None:
    expression, formats, operands, right = KERNELS[kind]
    bound = st.compile(expression, formats).bind(**operands, threads=threads)

    def caller(_number: int) -> bool:
        return all(np.allclose(dense(bound()), right) for _ in range(CALLS))

    with ThreadPoolExecutor(CALLERS) as pool:
        assert all(pool.map(caller, range(CALLERS)))


@pytest.mark.cc
def test_callers_fill_an_array_of_the_user_one_after_another() -> None:
    out = np.empty(600)
    bound = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}).bind(A=A, x=X, out=out)
    with ThreadPoolExecutor(CALLERS) as pool:
        assert all(found is out for found in pool.map(lambda _: bound(), range(CALLERS * CALLS)))
    np.testing.assert_allclose(out, A @ X)
