"""Storage tests run on the native helpers and on NumPy alone."""

from __future__ import annotations

from functools import cache

import pytest
from sparsetune.compiler.storage import kernels, native


@pytest.fixture(params=["native", "numpy"])
def each_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with both implementations of the passes."""
    if request.param == "numpy":
        monkeypatch.setattr(kernels, "_native", cache(lambda: None))
        monkeypatch.setattr(native, "library", lambda *_names: None)
    elif kernels._native() is None:
        pytest.skip("no C compiler for the native helpers")
    return request.param
