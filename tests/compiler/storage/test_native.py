"""The native helpers: compiled once into the cache; without a compiler, or with a failing one, NumPy stands in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sparsetune.compiler.storage import kernels, native

pytestmark = pytest.mark.cc


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and no library loaded yet."""
    if kernels._native() is None:
        pytest.skip("no C compiler for the native helpers")
    monkeypatch.setenv("SPARSETUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(native, "library", native.library.__wrapped__)
    return tmp_path / "cache"


def test_built_once(cache_folder: Path) -> None:
    assert native.library("st_transpose", "st_pack") is not None
    built = {path: path.stat().st_mtime_ns for path in cache_folder.glob("*/*/kernel.so")}
    assert native.library("st_transpose", "st_pack") is not None
    assert built == {path: path.stat().st_mtime_ns for path in cache_folder.glob("*/*/kernel.so")}


@pytest.mark.parametrize("text", ["exit 1", "exit 0", "echo broken >&2; exit 77"])
def test_compiler_that_fails(cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    script = tmp_path / "failing-cc"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    monkeypatch.setenv("SPARSETUNE_CC", str(script))
    assert native.library("st_pack", "st_transpose") is None


def test_no_compiler(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_CC", "/nonexistent/cc")
    assert native.library("st_pack", "st_transpose") is None
    monkeypatch.delenv("SPARSETUNE_CC")
    monkeypatch.setenv("PATH", str(cache_folder))
    assert native.library("st_pack", "st_transpose") is None


def test_whole_conversions_without_compiler() -> None:
    code = """
import numpy as np
from sparsetune.compiler.storage import kernels
from sparsetune.compiler.storage.construct import tensor
assert kernels._native() is None
x = np.arange(24.0).reshape(2, 3, 4)
assert np.array_equal(tensor(x, "csf").convert("hss; 2, 0, 1").convert("coo").to_numpy(), x)
"""
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"SPARSETUNE_CC": "/nonexistent/cc"}, check=True, timeout=600)
