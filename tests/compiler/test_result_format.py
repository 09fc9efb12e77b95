"""``output_format="auto"``: sparse where all operands are and nothing fills, else dense; and what is told where dense is too much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.errors import ResourceError

RNG = np.random.default_rng(3)
M: Any = sp.random_array((6, 6), density=0.3, format="csr", rng=RNG)
T = st.tensor(sp.random_array((4, 5, 6), density=0.1, rng=RNG))
V = st.tensor(RNG.random(6) * (RNG.random(6) < 0.5), "s")
D = RNG.random((6, 6))
X = RNG.random(6)
CASES: list[tuple[str, dict[str, Any], str | None]] = [
    ("C(i,j) = A(i,k) * B(k,j)", {"A": M, "B": M}, "dense, compressed"),
    ("C(i,j) = -2 * A(i,k) * B(k,j) / 3", {"A": M, "B": M}, "dense, compressed"),
    ("C(i,j) = s * A(i,j)", {"A": M, "s": 2.0}, "dense, compressed"),
    ("C(i,j) = A(i,j) + B(j,i) - A(i,j) * B(i,j)", {"A": M, "B": M}, "dense, compressed"),
    ("C(i,j) = A(i,j) / B(i,j)", {"A": M, "B": M}, "dense, compressed"),
    ("C(i,j) += A(i,j)", {"A": M, "C": M}, "dense, compressed"),
    ("y(i) = A(i,j) * v(j)", {"A": M, "v": V}, "compressed"),
    ("y(i) = v(i)", {"v": V}, "compressed"),
    ("S(k,j,i) = 2 * T(i,j,k)", {"T": T}, "compressed, compressed, compressed"),
    ("C(i,j) = A(i,k) * B(k,j)", {"A": M, "B": D}, None),
    ("C(i,j) = A(i,j) * B(i,j)", {"A": M, "B": D}, None),
    ("y(i) = A(i,j) * x(j)", {"A": M, "x": X}, None),
    ("C(i,j) = A(i,j) + 1", {"A": M}, None),
    ("C(i,j) = A(i,j) + s", {"A": M, "s": 2.0}, None),
    ("C(i,j) = (1 + s) * A(i,j)", {"A": M, "s": 2.0}, "dense, compressed"),
    ("C(i,j) = 1 / A(i,j)", {"A": M}, None),
    ("C(i,j) = A(i,k) * B(k,j) + A(i,j)", {"A": M, "B": M}, None),
    ("C(i,j) = A(i,j) + v(i)", {"A": M, "v": V}, None),
    ("C(i,j) += A(i,k) * B(k,j)", {"A": M, "B": M, "C": M}, None),
    ("s = A(i,j) * B(i,j)", {"A": M, "B": M}, None),
]


@pytest.mark.parametrize(("expression", "operands", "format"), CASES)
def test_the_format_that_nobody_named(expression: str, operands: dict[str, Any], format: str | None) -> None:
    found = st.evaluate(expression, operands, output_format="auto")
    dense = st.evaluate(expression, {name: _filled(data) for name, data in operands.items()})
    if format is None:
        assert not isinstance(found, st.Tensor)
        assert np.allclose(found, st.evaluate(expression, operands), equal_nan=True)
    else:
        assert isinstance(found, st.Tensor)
        assert str(found.format) == format
        whole = found.to_numpy()
        assert np.allclose(whole, np.where(np.isnan(dense) & (whole == 0), 0, dense), equal_nan=True)


def _filled(data: Any) -> Any:
    return data.to_numpy() if isinstance(data, st.Tensor) else data.toarray() if sp.issparse(data) else data


def test_einsum_lookup_and_tune_take_it(tmp_path) -> None:
    product = st.einsum("ik,kj->ij", M, M, output_format="auto")
    assert isinstance(product, st.Tensor)
    assert np.allclose(product.to_numpy(), (M @ M).toarray())
    text, operands, database = "C(i,j) = A(i,k) * B(k,j)", {"A": M, "B": M}, tmp_path / "s.sqlite"
    tuned = st.tune(text, operands, output_format="auto", trials=2, threads=1, database=database)
    assert str(tuned.problem.formats["C"]) == "dense, compressed"
    assert "<table>" in tuned._repr_html_()
    assert st.lookup(text, operands, "csr", threads=1, database=database).origin == "exact"
    assert st.lookup(text, operands, "auto", threads=1, database=database).origin == "exact"


@pytest.mark.parametrize("matrix", [sp.csr_array, sp.coo_array])
def test_a_dense_result_that_does_not_fit_names_a_sparse_one(matrix) -> None:
    large = matrix((np.ones(1), ([5], [7])), shape=(10**7, 10**7))
    with pytest.raises(ResourceError, match="output_format='csr'") as caught:
        st.evaluate("C(i,j) = A(i,k) * B(k,j)", {"A": large, "B": large})
    assert "\n" not in str(caught.value)
    assert st.evaluate("C(i,j) = A(i,k) * B(k,j)", {"A": large, "B": large}, output_format="auto").nnz == 0
