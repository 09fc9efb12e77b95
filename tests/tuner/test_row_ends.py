"""Which ends of rows branch prediction foresees, and what sums one by one and in batches take."""

from __future__ import annotations

import numpy as np
import pytest
from sparsetune import tensor
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.tuner.row_ends import RowEnds, row_ends
from sparsetune.tuner.surprises import surprising_share

RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("lengths", "least", "most"),
    [
        ([5] * 4000, 0.0, 0.0),
        ([3, 5] * 2000, 0.0, 0.01),
        ([1, 1, 2] * 1500, 0.0, 0.01),  # needs more than one length before
        ([*[1] * 9, 3] * 800, 0.0, 0.02),  # needs more than four
        (RANDOM.integers(1, 4, 4000), 0.6, 0.72),
        (RANDOM.integers(1, 9, 1000).repeat(4), 0.18, 0.25),  # one of four
        (np.where(RANDOM.random(4000) < 0.1, 2, 1), 0.08, 0.15),
        ([20, 30] * 2000, 0.0, 0.01),
        ([7], 0.0, 0.0),
        ([], 0.0, 0.0),
    ],
)
def test_lengths_are_foreseen_from_those_before(lengths: list[int], least: float, most: float) -> None:
    assert least <= surprising_share(np.array(lengths, dtype=np.int64)) <= most


def ends(lengths: np.ndarray, families: np.ndarray | None = None, joined: bool = False) -> RowEnds:
    """The ends of the rows of a matrix, or of the fibres of a tensor so many of which are in each slice."""
    inside = np.concatenate([np.arange(length) for length in lengths])
    rows = np.arange(len(lengths)).repeat(lengths)
    if families is None:
        return row_ends(_made([rows, inside], "csr"), 1)
    slices = np.arange(len(families)).repeat(families)
    fibres = np.concatenate([np.arange(family) for family in families])
    return row_ends(_made([slices[rows], fibres[rows], inside], "dense, compressed, compressed"), 2, joined)


def _made(coordinates: list[np.ndarray], form: str) -> Tensor:
    shape = tuple(int(along.max()) + 1 for along in coordinates)
    return tensor((np.stack(coordinates), np.ones(len(coordinates[0]))), form, shape)


def test_the_more_surprises_there_are_beyond_those_remembered_the_more_are_lost() -> None:
    found = ends(RANDOM.integers(1, 4, 9000))
    assert 4200 < found.surprises < 5100
    times = [found.alone_over_batched(share * found.surprises) for share in (1.1, 1.0, 0.9, 0.7, 0.3)]
    assert times[0] == times[1] < 0.95
    assert times[1] < times[2] < times[3] < times[4]
    assert times[2] < 2 < times[4]


def test_ends_of_longer_rows_are_harder_to_remember() -> None:
    """Branches over their entries are remembered too."""
    spread = RANDOM.integers(0, 8, 4000)
    short, usual, long = (ends(spread + least).surprises for least in (1, 3, 15))
    assert short < usual < long
    assert usual == pytest.approx(surprising_share(spread) * 4000, rel=0.1)
    assert long == pytest.approx(5 / 3 * usual, rel=0.1)


def test_samples_of_many_rows_tell_what_all_of_them_would() -> None:
    repeated = np.tile([*[1] * 11, *[2] * 7, 5], 8000)
    assert ends(repeated).surprises < 0.02 * len(repeated)
    assert ends(RANDOM.permutation(repeated)).surprises > 0.3 * len(repeated)


@pytest.mark.parametrize("period", [300, 1500])
def test_samples_are_long_enough_to_see_what_follows_a_history_again(period: int) -> None:
    """Lengths at random, again and again: after one period a processor foresees them."""
    repeated = np.tile(RANDOM.integers(1, 9, period), 60_000 // period)
    assert ends(repeated).surprises < 0.12 * len(repeated)


def test_equal_rows_of_one_entry_take_as_long_one_by_one_as_in_batches() -> None:
    assert 0.93 < ends(np.ones(5000, int)).alone_over_batched(0) < 1


def test_batches_take_longer_the_longer_the_longest_of_a_block_is() -> None:
    lengths = np.tile([1, 2, 1, 1], 2000)
    times = [ends(np.where(np.arange(8000) % 64 == 7, longest, lengths)).batched for longest in (2, 8, 16, 20)]
    assert times == sorted(times)
    assert times[-1] > times[0] + 5


def test_long_rows_wait_for_their_own_sums() -> None:
    equal, uneven = ends(np.full(4096, 20)), ends(np.where(np.arange(4096) % 64 == 0, 20 * 64, 0))
    assert uneven.alone > 1.5 * equal.alone


def test_fibres_of_small_slices_are_no_batch() -> None:
    lengths = RANDOM.integers(1, 4, 6000)
    small, large = (ends(lengths, np.full(6000 // size, size)) for size in (3, 40))
    assert small.batched > 1.5 * large.batched
    assert small.lost_batched == pytest.approx(small.lost_alone)
    assert large.lost_batched == 0  # slices of equal sizes
    assert ends(lengths, np.full(2000, 3), joined=True) == ends(lengths)


def test_uneven_slices_surprise_too() -> None:
    families = RANDOM.integers(1, 5, 2500)
    lengths = np.ones(int(families.sum()), int)
    assert ends(lengths, families).surprises > 1500
    assert ends(lengths, families, joined=True).surprises == 0


def test_few_rows_are_no_error() -> None:
    assert ends(np.array([2, 3])).batched > 0
