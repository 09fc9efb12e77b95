"""Readers are tested in C and in Python; real data lie beside the repository, where they are present."""

from __future__ import annotations

from pathlib import Path

import pytest
from sparsetune.compiler.storage import native

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(params=["native", "plain"])
def each_reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with both readers of entry lines."""
    library = native.library
    if request.param == "plain":
        monkeypatch.setattr(native, "library", lambda *names: None if names == ("st_text",) else library(*names))
    elif library("st_text") is None:
        pytest.skip("no C compiler for the native reader")
    return request.param


@pytest.fixture
def shared_data() -> Path:
    """The folder of real matrices and tensors."""
    if not SHARED.is_dir():
        pytest.skip("../shared/data is not here")
    return SHARED
