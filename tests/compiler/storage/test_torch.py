"""Tensors of torch in and out, where torch is installed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.errors import DataError

MATRIX = sp.random_array((6, 5), density=0.5, format="csr", rng=np.random.default_rng(0))


def test_without_torch_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(DataError, match="torch is not installed"):
        st.tensor(MATRIX).to_torch()


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dcsr", "dense"])
def test_there_and_back(form: str) -> None:
    torch: Any = pytest.importorskip("torch")
    stored = st.tensor(MATRIX, form)
    made = stored.to_torch()
    layouts = {"csr": torch.sparse_csr, "csc": torch.sparse_csc, "dense": torch.strided}
    assert made.layout == layouts.get(form, torch.sparse_coo)
    assert np.array_equal(made.to_dense().numpy(), MATRIX.toarray())
    assert np.array_equal(st.tensor(made).to_numpy(), MATRIX.toarray())
    if form in ("csr", "csc"):
        stored.values[:] = 7
        assert made.values().tolist() == [7] * MATRIX.nnz
    with pytest.raises(DataError, match="fill value"):
        st.tensor(MATRIX, fill_value=np.inf).to_torch()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["bfloat16", "float16", "complex32", "float8_e5m2"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_types_of_torch_that_kernels_lack_are_refused_by_name(kind: str, is_sparse: bool) -> None:
    torch: Any = pytest.importorskip("torch")
    if is_sparse:
        data = torch.sparse_coo_tensor(torch.zeros((1, 1), dtype=torch.int64), torch.ones(1).to(getattr(torch, kind)), (3,))
    else:
        data = torch.ones(3).to(getattr(torch, kind))
    for call in (lambda: st.tensor(data), lambda: st.evaluate("y = b(i)", {"b": data}), lambda: st.compile("y = b(i)")(b=data)):
        with pytest.raises(DataError, match=kind):
            call()
