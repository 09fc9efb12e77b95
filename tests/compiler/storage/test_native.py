"""The native helpers' build: found compilers, failing ones, caches that are broken or cannot be written."""

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
    built = list(cache_folder.iterdir())
    assert len(built) == 1
    stamp = built[0].stat().st_mtime_ns
    assert native.library("st_transpose", "st_pack") is not None
    assert built[0].stat().st_mtime_ns == stamp


def test_broken_entry_is_built_again(cache_folder: Path) -> None:
    key = native._key(native._compiler(), (*native.FLAGS, "-fopenmp"))
    cache_folder.mkdir()
    path = cache_folder / f"st_pack-{key}.so"
    path.write_bytes(b"\x7fELF but not really")
    assert native.library("st_pack", "st_transpose") is not None
    assert path.stat().st_size > 1000


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


def test_compiler_without_openmp(cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "serial-cc"
    real = native._compiler()
    script.write_text(f'#!/bin/sh\ncase "$*" in *-fopenmp*) exit 1;; esac\nexec {real[0]} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("SPARSETUNE_CC", str(script))
    assert native.library("st_pack", "st_transpose") is not None


def test_cache_that_cannot_be_written(cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_folder.write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    assert native.library("st_pack", "st_transpose") is not None
    assert cache_folder.is_file()


def test_two_processes_at_once(cache_folder: Path) -> None:
    code = "from sparsetune.compiler.storage import native; assert native.library('st_pack', 'st_transpose') is not None"
    running = [subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"SPARSETUNE_CACHE": str(cache_folder)}) for _ in range(2)]
    assert [process.wait(120) for process in running] == [0, 0]
    assert len(list(cache_folder.iterdir())) == 1


def test_whole_conversions_without_compiler() -> None:
    code = """
import numpy as np
from sparsetune.compiler.storage import kernels
from sparsetune.compiler.storage.construct import tensor
assert kernels._native() is None
x = np.arange(24.0).reshape(2, 3, 4)
assert np.array_equal(tensor(x, "csf").convert("hss; 2, 0, 1").convert("coo").to_numpy(), x)
"""
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"SPARSETUNE_CC": "/nonexistent/cc"}, check=True, timeout=60)
