"""Stretches of coordinates that are looked at at once count as they do one by one."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune.tuner import scattering


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("pattern", ["random", "band", "grid"])
def test_stretches_at_once_are_those_one_by_one(pattern: str, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source, rows, count = np.random.default_rng(5), 3000, 20_000
    coordinates = {
        "random": source.integers(0, rows, count),
        "band": (np.arange(count) // 3 + source.integers(0, 4, count)) % rows,
        "grid": np.abs(np.repeat(np.arange(count // 5), 5) + np.tile([-300, -1, 0, 1, 300], count // 5)) % rows,
    }[pattern].astype(np.int32)
    found = []
    for most in (1, 2**13, 2**30):
        monkeypatch.setattr(scattering, "_AT_ONCE", most)
        found.append(scattering._scattered(coordinates, -(-rows // together), 200.0, 0.1, together))
    assert found[0] == found[1] == found[2] > 0


def test_the_last_row_of_a_stretch_and_the_first_of_the_next_are_no_neighbours() -> None:
    """Rows 6 and 7 are the last of one stretch, and row 0 is the first of the next: together they would continue a stream."""
    one, other = [6, 7], [0, 3]
    coordinates = np.array([1, 2, *one, 1, 2, *other], np.int32)
    alone = sum(scattering._missed(coordinates, np.array([begin]), 2, 8, 1) for begin in (0, 4))
    assert scattering._missed(coordinates, np.array([0, 4]), 2, 8, 1) == alone == 4


@pytest.mark.parametrize("rows", [200.0, 2500.0, 3500.0])
def test_second_halves_do_not_look_at_the_same_coordinates_again(rows: float, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[tuple[int, int]] = []

    def counted(coordinates: np.ndarray, begins: np.ndarray, half: int, places: int, together: int) -> int:
        looked.append((len(begins), half))
        return missed(coordinates, begins, half, places, together)

    missed, count = scattering._missed, 30_000
    monkeypatch.setattr(scattering, "_missed", counted)
    coordinates = np.random.default_rng(5).integers(0, 3000, count).astype(np.int32)
    scattering._scattered(coordinates, 3000, rows, 0.1, 1)
    stretches, half = sum(number for number, _ in looked), looked[0][1]
    assert stretches == min(16, max(1, count // half - 1))
    assert stretches * half <= count
