"""Schedules on the frontiers of Ahrens et al., as texts, become kernels that compute what NumPy computes (section 6.8)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from differential.batch import build_together
from space_samples import KERNELS
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.tuner.exploration import Exploration
from sparsetune.tuner.explore import explore

SUBSCRIPTS = {
    "SpMV": "ij,j->i",
    "SpMV2": "ij,jk,k->i",
    "SpGEMM": "ik,kj->ij",
    "SpGEMM2": "ik,kl,lj->ij",
    "SpGEMMH": "ik,kj,kj->ij",
    "SpMTTKRP": "ikl,kj,lj->ij",
}
MOST = 200  # schedules of a frontier that are compiled
EXTENTS = {"i": 7, "j": 5, "k": 6, "l": 4}


@cache
def explored(name: str, preset: str | None = "pigeon") -> Exploration:
    text = KERNELS[name].replace("+=", "=")
    given = explore(text, preset="pigeon").formats
    return explore(text, given, preset=preset)


def operands(name: str, seed: int, density: float) -> Iterator[np.ndarray]:
    """Yield arrays of small integers, exact in any order of summation, with empty rows and columns."""
    source = np.random.default_rng(seed)
    for subscripts in SUBSCRIPTS[name].split("->")[0].split(","):
        shape = tuple(EXTENTS[index] for index in subscripts)
        values = source.integers(1, 5, size=shape).astype(float)
        yield values if len(shape) == 1 else values * (source.random(shape) < density)


def wrong(name: str, found: Exploration, schedules: list[Schedule], folder: Path) -> list[str]:
    """Return the schedules whose kernels give other values than NumPy, or entries that no product has."""
    compiled = [compile_kernel(found.expression, found.formats, schedule=schedule) for schedule in schedules]
    build_together([one.default_kernel for one in compiled], folder, name)
    names = sorted({access for access in found.formats if access not in ("a", "A")})
    bad = []
    for seed, density in ((1, 0.35), (2, 0.1), (3, 0.0), (4, 1.0)):
        given = dict(zip(names, operands(name, seed, density), strict=True))
        expected = np.einsum(SUBSCRIPTS[name], *given.values())
        for schedule, one in zip(schedules, compiled, strict=True):
            result = one(**given)
            dense = result if isinstance(result, np.ndarray) else result.to_numpy()
            fits = np.array_equal(dense, expected)
            if not isinstance(result, np.ndarray):
                fits = fits and str(result.format) == str(found.formats["A"]) and result.nnz == np.count_nonzero(expected)
            if not fits:
                bad.append(str(schedule))
    return bad


@pytest.mark.parametrize("name", KERNELS)
def test_the_frontier_compiles_and_is_right(name: str, tmp_path: Path) -> None:
    """Operands are positive, so a product of entries is never zero and the pattern of the result is known too."""
    found = explored(name)
    places = range(0, len(found.frontier), max(1, len(found.frontier) // MOST))
    assert not wrong(name, found, [found.frontier[place].schedule for place in places], tmp_path)


@pytest.mark.parametrize("name", ["SpMV2", "SpGEMM", "SpGEMM2"])
def test_deeper_nests_compile_and_are_right(name: str, tmp_path: Path) -> None:
    """Without a preset, where what workspaces store counts too."""
    found = explored(name, None)
    places = range(0, len(found.frontier), max(1, len(found.frontier) // 20))
    assert not wrong(name, found, [found.frontier[place].schedule for place in places], tmp_path)


def test_gustavson_comes_out() -> None:
    """A row of the result is collected over j alone, below the loop over i; no operand is converted (section 6.8)."""
    found = explored("SpGEMM")
    rows = [one for one in found.frontier if one.loop_nest.split()[:6] == ["for", "i:", "for", "k:", "for", "j:"]]
    assert rows
    unconverted = [one.schedule for one in rows if not one.program.conversions]
    assert unconverted
    for schedule in unconverted:
        kernel = compile_kernel(found.expression, found.formats, schedule=schedule)
        assert "A_entries(j)" in kernel.loop_nest
