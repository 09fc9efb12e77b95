"""FROSTT files, and what broken ones are told."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sparsetune.compiler.errors import DataError
from sparsetune.datasets.tns import read_tns


def written(folder: Path, text: str, name: str = "case.tns") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_entries_of_any_order(each_reader: str, tmp_path: Path, data: st.DataObject) -> None:
    order = data.draw(st.integers(1, 6))
    header = data.draw(st.booleans())
    entries = data.draw(st.lists(st.tuples(*[st.integers(1, 4)] * order, st.integers(-9, 9)), min_size=0 if header else 1, max_size=8))
    shape = (4,) * order if header else tuple(max(entry[mode] for entry in entries) for mode in range(order))
    dense = np.zeros(shape)
    for *coordinates, value in entries:
        dense[tuple(coordinate - 1 for coordinate in coordinates)] += value
    head = f"{order}\n{' '.join(map(str, shape))}\n" if header else "# no header\n"
    read = read_tns(written(tmp_path, head + "\n".join(" ".join(map(str, entry)) for entry in entries)))
    assert read.shape == shape
    assert np.array_equal(read.to_numpy(), dense)
    assert str(read.format) == ("dense, compressed" if order == 2 else ", ".join(["compressed"] * order))


def test_coordinates_of_64_bits(each_reader: str, tmp_path: Path) -> None:
    read = read_tns(written(tmp_path, f"1 {2**40} 1 2.5\n1 1 {2**31 + 5} 1.5\n"))
    assert read.shape == (1, 2**40, 2**31 + 5)
    coordinates, values = read.to_coordinates()
    assert coordinates.tolist() == [[0, 0], [0, 2**40 - 1], [2**31 + 4, 0]]
    assert values.tolist() == [1.5, 2.5]


def test_gzip_format_and_base(each_reader: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tns.gz"
    path.write_bytes(gzip.compress(b"0 1 0 2\n1 0 0 3\n"))
    read = read_tns(path, "coo; 2, 0, 1", index_base=0)
    assert read.to_numpy()[:, :, 0].tolist() == [[0, 2], [3, 0]]
    assert str(read.format) == "compressed, singleton, singleton; 2, 0, 1"


BROKEN = {
    "": "case.tns: there is no entry to tell the order from",
    "# only\n% comments\n": "case.tns: there is no entry",
    "1 1 1 2\n1 1 2\n": "case.tns:2: 3 fields, but an entry has 4: 3 coordinates and a value",
    "1 1 1 2\n1 1 1 2 3\n": "case.tns:2: 5 fields, but an entry has 4",
    "1 1 1 2\n1 0 1 2\n": "case.tns:2: coordinate 0 of mode 2 is below 1",
    "1 1 1 2\n1 x 1 2\n": "case.tns:2: coordinate 'x' of mode 2 is not a whole number",
    "1 1 1 two\n": "case.tns:1: value 'two' is not a number",
    "3\n": "case.tns:1: the header ends after the order",
    "3\n2 2\n1 1 1\n": "case.tns:2: the header says order 3, but gives 2 extents",
    "3\n2 2 x\n": "case.tns:2: the header holds whole numbers, not 'x'",
    "2\n2 2\n1 3 1\n": "case.tns:3: coordinate 3 of mode 2 is out of range: the header says 2",
    "x\n2 2\n": "case.tns:1: the header holds whole numbers, not 'x'",
    "1 " * 40 + "\n": "case.tns:1: 39 coordinates on a line; tensors in text files have at most 32 modes",
}


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_broken_files(each_reader: str, tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=BROKEN[text]) as caught:
        read_tns(written(tmp_path, text))
    assert "\n" not in str(caught.value)
