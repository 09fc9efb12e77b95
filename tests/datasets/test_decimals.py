"""Decimals to doubles: the native reader agrees with Python's float in every bit."""

from __future__ import annotations

import random
import struct
from fractions import Fraction

import numpy as np
import pytest
from sparsetune.datasets.layout import Layout
from sparsetune.datasets.lines import read_entries
from sparsetune.datasets.textfile import TextFile


def read(texts: list[str]) -> np.ndarray:
    return read_entries(TextFile("numbers", "\n".join(texts).encode()), 0, Layout(0, "real", ())).values


def check(texts: list[str]) -> None:
    expected = np.array([float(text) for text in texts])
    got = read(texts)
    same = (got.view(np.int64) == expected.view(np.int64)) | (np.isnan(got) & np.isnan(expected))
    assert same.all(), [(texts[place], got[place], expected[place]) for place in np.flatnonzero(~same)[:5]]


def halfway(source: random.Random) -> list[str]:
    """Return the exact decimals of a number between two doubles, and of its neighbours."""
    middle = Fraction(2 * (source.getrandbits(53) | 1 << 52) + 1) * Fraction(2) ** source.randint(-60, 60)
    digits = middle.denominator.bit_length() - 1
    whole = middle.numerator * 5**digits
    return [f"{whole}e-{digits}", f"{whole}0001e-{digits + 4}", f"{whole - 1}e-{digits}"]


def test_numbers_of_every_length_and_size(each_reader: str) -> None:
    source = random.Random(1)
    check([repr(struct.unpack("d", struct.pack("Q", source.getrandbits(64)))[0]) for _ in range(20_000)])
    check([f"{source.uniform(-10, 10) * 10.0 ** source.randint(-320, 300):.{source.randint(0, 30)}e}" for _ in range(20_000)])
    check([f"{source.getrandbits(70)}.{source.getrandbits(source.randint(1, 80))}e{source.randint(-360, 340)}" for _ in range(20_000)])
    check([text for _ in range(3000) for text in halfway(source)])


def test_corners(each_reader: str) -> None:
    zeros = "0" * 400
    check(["0", "-0", "+1", "1.", "0.0e5", ".5", "-.5e-3", "1e400", "-1e400", "1e-400", "4.9e-324", "inf", "-Infinity", "NaN", "1E5"])
    check(["2.4703282292062327e-324", "2.4703282292062328e-324", "2.2250738585072011e-308", "1.7976931348623159e308", "1e23"])
    check(["9007199254740993", "9007199254740992.5", f"1{zeros}e-400", f"0.{zeros}1e401", "123456789012345678901234567890e-20"])
    assert read(["1.5D+02", "2d0"]).tolist() == [150.0, 2.0]


def test_more_undecided_numbers_than_there_is_room_for(each_reader: str) -> None:
    check([text for text in halfway(random.Random(2))[:1] for _ in range(70_000)])


@pytest.mark.parametrize("text", ["pi", "1e", "1e+", "--1", "1_0", "0x10", ".", "e5", "1.2.3", "infinit", "nano", "1,5", "\x00", "٣"])
def test_what_is_no_number(each_reader: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"numbers:2: .*value .* is not a number"):
        read(["1", text])
