"""Synthetic inputs: what their names promise, and what bad names are told."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sparsetune.compiler.errors import DataError, ResourceError
from sparsetune.compiler.storage import kernels
from sparsetune.datasets import load
from sparsetune.datasets.generate import KINDS


@pytest.mark.parametrize(
    ("name", "shape", "nnz"),
    [
        ("random:uniform:200x300:nnz=1e3:seed=1", (200, 300), 1000),
        ("random:uniform:20x30x10x5:density=0.01", (20, 30, 10, 5), 300),
        ("random:uniform:50x50:density=0.95", (50, 50), 2375),
        ("random:uniform:9:nnz=9", (9,), 9),
        ("random:uniform:5x5:nnz=0", (5, 5), 0),
        ("random:zipf:120x90x280:nnz=5e3:alpha=1.3", (120, 90, 280), 5000),
        ("random:zipf:50x50:nnz=2000:alpha=1", (50, 50), 2000),
        ("random:rmat:scale=8:nnz=4e3", (256, 256), 4000),
        ("random:skewed:300x200:nnz=2e3:skew=8", (300, 200), 2000),
        ("random:skewed:300:nnz=2e3:skew=0", (300, 300), 2000),
        ("random:banded:100:bandwidth=3", (100, 100), 7 * 100 - 12),
        ("random:banded:5x9:bandwidth=1", (5, 9), 14),
        ("random:block:40x40:block=4x2:nnz=160", (40, 40), 160),
        ("random:stencil3:10", (10, 10), 28),
        ("random:stencil5:10x6", (60, 60), 5 * 60 - 2 * 16),
        ("random:stencil9:4", (16, 16), 100),
        ("random:stencil7:4x3x2", (24, 24), 7 * 24 - 2 * (6 + 8 + 12)),
        ("random:stencil27:3", (27, 27), 343),
    ],
)
def test_shapes_and_entries(name: str, shape: tuple[int, ...], nnz: int) -> None:
    made = load(name)
    assert (made.shape, made.nnz) == (shape, nnz)
    again = load(name)
    assert np.array_equal(made.to_coordinates()[0], again.to_coordinates()[0])
    assert np.array_equal(made.values, again.values)
    assert np.all(made.values != 0)


def test_seeds_types_and_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (load(f"random:uniform:100x100:nnz=500:seed={seed}") for seed in (1, 2))
    assert not np.array_equal(one.to_coordinates()[0], two.to_coordinates()[0])
    assert load("random:rmat:scale=5:nnz=50:dtype=float32").dtype == np.float32
    assert str(load("random:uniform:9x9:nnz=5", "coo").format) == "compressed, singleton"
    monkeypatch.setattr(kernels, "_native", lambda: None)
    plain = load("random:uniform:100x100:nnz=500:seed=1")
    assert np.array_equal(plain.to_coordinates()[0], one.to_coordinates()[0])


def test_distributions() -> None:
    rows = np.diff(load("random:rmat:scale=12:nnz=4e4").to_scipy().indptr)
    assert rows.max() > 30 * rows.mean()
    skewed = np.diff(load("random:skewed:1000x100000:nnz=5e4:skew=8").to_scipy().indptr)
    assert skewed[:100].sum() / skewed.sum() == pytest.approx((1 - np.exp(-0.8)) / (1 - np.exp(-8)), rel=0.05)
    uniform = np.diff(load("random:uniform:1000x1000:nnz=5e4").to_scipy().indptr)
    assert uniform.max() < 2 * uniform.mean()
    zipf = load("random:zipf:500x400x300:nnz=2e4:alpha=1.5")
    for mode, column in enumerate(zipf.to_coordinates()[0]):
        counts = np.sort(np.bincount(column, minlength=zipf.shape[mode]))[::-1]
        assert counts[:5].sum() > 20 * counts[100:105].sum()


def test_stencils_are_laplacians() -> None:
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(5, 5))
    eye = sp.eye_array(5)
    grid = sp.kron(line, eye) + sp.kron(eye, line)
    assert np.array_equal(load("random:stencil5:5").to_numpy(), grid.toarray())
    cube = sp.kron(grid, eye) + sp.kron(sp.kron(eye, eye), line)
    assert np.array_equal(load("random:stencil7:5").to_numpy(), cube.toarray())
    assert load("random:stencil27:4").to_numpy().diagonal().tolist() == [26.0] * 64


def test_extents_beyond_64_bits_together() -> None:
    made = load(f"random:uniform:{2**30}x{2**30}x{2**30}:nnz=100")
    assert made.nnz == 100


@pytest.mark.parametrize("kind", KINDS)
def test_examples_parse(kind: str) -> None:
    from sparsetune.datasets.generate import parse

    assert parse(KINDS[kind].example)[0].name == kind


BAD = {
    "random:": "there is no kind '' of synthetic inputs; there are uniform, zipf, rmat",
    "random:unifrom:3x3:nnz=1": "no kind 'unifrom' of synthetic inputs; there are uniform,",
    "random:uniform": "the size is missing, as in random:uniform:",
    "random:uniform:nnz=3": "the size is missing",
    "random:uniform:3x3": "nnz= or density= is missing",
    "random:uniform:3x3:nz=4": "'nz=4' is no option of uniform; there are nnz=, density=, seed=, dtype=",
    "random:uniform:3x3:nnz": "'nnz' is no option",
    "random:uniform:3x3:nnz=": "'nnz=' is no option",
    "random:uniform:3x3:nnz=10": "10 entries do not fit into the shape 3x3, which has 9",
    "random:uniform:0x3:nnz=1": "'0x3' is no size",
    "random:uniform:3x-1:nnz=1": "'3x-1' is no size",
    "random:uniform:3x3:nnz=4.5": "nnz=4.5 is not a whole number",
    "random:uniform:3x3:nnz=x": "nnz='x' is not a number",
    "random:uniform:3x3:nnz=inf": "nnz=inf is not finite",
    "random:uniform:3x3:density=1.5": "density=1.5 is not between 0 and 1",
    "random:uniform:3x3:nnz=1:seed=-1": "seed=-1 is not a whole number",
    "random:uniform:3x3:nnz=1:dtype=int8": "dtype=int8 is neither",
    "random:rmat:scale=40:nnz=4": "scale is from 1 to 30",
    "random:rmat:scale=4:nnz=4:a=0.9:b=0.2": "probabilities whose sum is at most 1",
    "random:banded:3x3x3": "this kind is a matrix",
    "random:block:10x10:nnz=5:block=3x3": "blocks of 3x3 do not divide the shape 10x10",
    "random:stencil7:4x4": "a stencil of 7 points does not have 2 dimensions",
    "random:uniform:100000000x100000000:nnz=1e15": "does not fit into memory",
    "random:zipf:1000000000000x3:nnz=10": "does not fit into memory",
    "random:banded:1000000000:bandwidth=1000": "does not fit into memory",
    "random:stencil27:10000x10000x10000": "does not fit into memory",
    "random:block:1000000000x1000000000:block=1000000x1000000:nnz=1e12": "does not fit into memory",
    "random:uniform:1000000000000x3:nnz=10": "does not fit into memory",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_names(name: str) -> None:
    with pytest.raises(ResourceError if "memory" in BAD[name] else DataError, match=BAD[name]) as caught:
        load(name)
    assert str(caught.value).startswith(f"'{name}'")
    assert "\n" not in str(caught.value)
