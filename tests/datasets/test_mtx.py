"""Matrix Market files against the dense matrix that they were written from, and what broken ones are told."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sparsetune.compiler.errors import DataError, FormatError, ResourceError
from sparsetune.datasets.files import read_file
from sparsetune.datasets.mtx import read_mtx

HEAD = "%%MatrixMarket matrix coordinate real general\n"


def written(folder: Path, text: str | bytes, name: str = "case.mtx") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, np.ndarray]:
    """Draw a file of any field, symmetry and layout, with odd spaces and line ends, and the dense matrix that it says."""
    field = draw(st.sampled_from(["real", "integer", "complex", "pattern"]))
    symmetries = {"pattern": 2, "real": 3, "integer": 3, "complex": 4}[field]
    symmetry = draw(st.sampled_from(["general", "symmetric", "skew-symmetric", "hermitian"][:symmetries]))
    layout = "coordinate" if field == "pattern" else draw(st.sampled_from(["coordinate", "array"]))
    rows = draw(st.integers(1, 5))
    columns = rows if symmetry != "general" else draw(st.integers(1, 5))
    everywhere = [(row, column) for column in range(columns) for row in range(rows)]
    allowed = [
        (row, column) for row, column in everywhere if symmetry == "general" or row > column or (row == column and symmetry[:2] != "sk")
    ]
    places = allowed if layout == "array" else draw(st.lists(st.sampled_from(allowed), max_size=6)) if allowed else []
    dense = np.zeros((rows, columns), {"integer": np.int64, "complex": np.complex128}.get(field, np.float64))
    lines = []
    for row, column in places:
        number, value = draw(_numbers(field))
        lines.append((f"{row + 1}{draw(st.sampled_from([' ', '  ', chr(9)]))}{column + 1} " if layout == "coordinate" else "") + number)
        dense[row, column] += value
        if symmetry != "general" and row != column:
            dense[column, row] += {"symmetric": value, "skew-symmetric": -value, "hermitian": np.conj(value)}[symmetry]
    size = f"{rows} {columns}" + (f" {len(lines)}" if layout == "coordinate" else "")
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join([f"%%MatrixMarket matrix {layout} {field} {symmetry}", "% a comment", size, *lines]) + draw(st.sampled_from([end, ""]))
    return text, dense


def _numbers(field: str) -> st.SearchStrategy[tuple[str, complex]]:
    """Draw the text of a value, and the value; quarters, so that sums of duplicates are exact."""
    quarters = st.integers(-40, 40).map(lambda number: (repr(number / 4), number / 4))
    if field == "complex":
        return st.tuples(quarters, quarters).map(lambda parts: (f"{parts[0][0]} {parts[1][0]}", complex(parts[0][1], parts[1][1])))
    return {"real": quarters, "integer": st.integers(-9, 9).map(lambda number: (str(number), number)), "pattern": st.just(("", 1.0))}[field]


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=texts())
def test_every_field_symmetry_and_layout(each_reader: str, tmp_path: Path, drawn: tuple[str, np.ndarray]) -> None:
    text, expected = drawn
    got = read_mtx(written(tmp_path, text))
    assert got.format.is_dense == ("array" in text.splitlines()[0])
    assert got.dtype == expected.dtype
    assert np.array_equal(got.to_numpy(), expected)


def test_comments_and_blank_lines_anywhere(each_reader: str, tmp_path: Path) -> None:
    text = HEAD + "% one\n\n  % two\n 3  3 2 \n\n1 1 2.5\n%three\n   \n\t2\t3\t-1e2  \n\n"
    assert read_mtx(written(tmp_path, text)).to_numpy().tolist() == [[2.5, 0, 0], [0, 0, -100], [0, 0, 0]]


def test_duplicates_are_summed_and_zeros_stay(each_reader: str, tmp_path: Path) -> None:
    read = read_mtx(written(tmp_path, HEAD + "2 2 4\n1 1 2\n1 1 3\n2 2 0\n2 1 1\n"))
    assert read.nnz == 3
    assert read.to_numpy().tolist() == [[5, 0], [1, 0]]


def test_gzip_is_told_by_its_bytes(each_reader: str, tmp_path: Path) -> None:
    text = (HEAD + "1 2 1\n1 2 7\n").encode()
    for name in ("a.mtx.gz", "misnamed.mtx"):
        assert read_mtx(written(tmp_path, gzip.compress(text), name)).to_numpy().tolist() == [[0, 7]]


def test_many_chunks_and_lines(each_reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSETUNE_THREADS", "3")
    monkeypatch.setattr("sparsetune.datasets.native_lines._CHUNK", 1 << 14)
    rng = np.random.default_rng(4)
    rows, columns, values = rng.integers(0, 900, 20_000), rng.integers(0, 700, 20_000), rng.integers(-99, 99, 20_000)
    lines = [f"{row + 1} {column + 1} {value}" for row, column, value in zip(rows, columns, values, strict=True)]
    read = read_mtx(written(tmp_path, HEAD + "900 700 20000\n" + "\n".join(lines)))
    expected = np.zeros((900, 700))
    np.add.at(expected, (rows, columns), values)
    assert np.array_equal(read.to_numpy(), expected)
    for place in (0, 7000, 19_999):
        broken = [*lines[:place], "1 x 1", *lines[place + 1 :]]
        with pytest.raises(DataError, match=rf"case.mtx:{place + 3}: coordinate 'x' of mode 2"):
            read_mtx(written(tmp_path, HEAD + "900 700 20000\n" + "\n".join(broken)))


def test_formats_and_bases(each_reader: str, tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + "2 3 2\n0 2 5\n1 0 6\n")
    read = read_mtx(path, "csc", index_base=0)
    assert str(read.format) == "dense, compressed; 1, 0"
    assert read.to_numpy().tolist() == [[0, 0, 5], [6, 0, 0]]
    with pytest.raises(FormatError, match="3 levels"):
        read_mtx(path, "sss", index_base=0)


def test_without_banner_the_first_entry_tells(each_reader: str, tmp_path: Path) -> None:
    assert read_mtx(written(tmp_path, "2 2 1\n1 2 3\n")).to_numpy().tolist() == [[0, 3], [0, 0]]
    assert read_mtx(written(tmp_path, "% comment\n2 2 1\n1 2\n")).to_numpy().tolist() == [[0, 1], [0, 0]]
    assert read_mtx(written(tmp_path, "2 2 1\n1 2 3 4\n")).to_numpy().tolist() == [[0, 3 + 4j], [0, 0]]


def test_values_of_a_pattern_are_ones(each_reader: str, tmp_path: Path) -> None:
    text = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2 7\n2 1 x y\n"
    assert read_mtx(written(tmp_path, text)).to_numpy().tolist() == [[0, 1], [1, 0]]


def test_integers_of_64_bits(each_reader: str, tmp_path: Path) -> None:
    head = "%%MatrixMarket matrix coordinate integer general\n1 2 2\n"
    assert read_mtx(written(tmp_path, f"{head}1 1 {-(2**63)}\n1 2 {2**63 - 1}")).values.tolist() == [-(2**63), 2**63 - 1]
    unsigned = read_mtx(written(tmp_path, f"{head}1 1 0\n1 2 {2**64 - 1}"))
    assert (unsigned.dtype, unsigned.values.tolist()) == (np.uint64, [0, 2**64 - 1])
    with pytest.raises(DataError, match=r"case.mtx:3: -1 does not fit into 64 bits, beside"):
        read_mtx(written(tmp_path, f"{head}1 1 -1\n1 2 {2**63}"))
    with pytest.raises(DataError, match=rf"case.mtx:4: {2**64} does not fit"):
        read_mtx(written(tmp_path, f"{head}1 1 1\n1 2 {2**64}"))


def test_tensors_of_taco(each_reader: str, tmp_path: Path) -> None:
    array = "%%MatrixMarket tensor array real general\n%\n2 3 2\n" + "\n".join(map(str, range(12)))
    assert np.array_equal(read_mtx(written(tmp_path, array)).to_numpy(), np.arange(12.0).reshape(2, 3, 2, order="F"))
    sparse = read_mtx(written(tmp_path, "%%MatrixMarket tensor coordinate real general\n2 3 2 1\n2 3 1 4\n"))
    assert sparse.shape == (2, 3, 2)
    assert sparse.to_numpy()[1, 2, 0] == 4


BROKEN = {
    "": "case.mtx: there is no size line; the file is truncated",
    "%%MatrixMarket matrix coordinate real general\n% only comments\n": "case.mtx: there is no size line",
    "%%MatrixMarket matrix coordinate real\n1 1 0\n": "case.mtx:1: .*words are missing",
    "%%MatrixMarket matrix coordinate rational general\n1 1 0\n": "case.mtx:1: the banner says 'rational' where one of real,",
    "%%MatrixMarket vector coordinate real general\n1 1 0\n": "case.mtx:1: the banner says 'vector'",
    "%%MatrixMarkt matrix coordinate real general\n1 1 0\n": "case.mtx:1: the banner is '%%MatrixMarkt', not '%%MatrixMarket'",
    "%%MatrixMarket matrix array pattern general\n1 1\n": "case.mtx:1: an array has values",
    "%%MatrixMarket matrix coordinate pattern hermitian\n1 1 0\n": "case.mtx:1: a pattern is general or symmetric, not hermitian",
    "%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n": "case.mtx:2: a symmetric matrix is square, not 2 x 3",
    HEAD.replace("general", "skew-symmetric")
    + "2 2 3\n1 1 0\n2 1 1\n2 2 5\n": r"case.mtx: a skew-symmetric matrix has zeros on its diagonal, but entry \(2, 2\) is not 0",
    HEAD + "2 2\n1 1 1\n": "case.mtx:2: the size line gives 1 extents; a matrix has rows and columns",
    HEAD + "2 2 2 2\n": "case.mtx:2: the size line gives 3 extents",
    HEAD + "2 two 2\n": "case.mtx:2: the size line holds whole numbers, not 'two'",
    HEAD + "2 -2 2\n": "case.mtx:2: the size line holds whole numbers, not '-2'",
    HEAD + "2 2 2\n1 1 1\n": "case.mtx: the header promises 2 entries, but the file holds 1; the file is truncated",
    HEAD + "2 2 1\n1 1 1\n2 2 2\n": "case.mtx: the header promises 1 entries, but the file holds 2; the header is wrong",
    HEAD + "2 2 1\n3 1 1\n": "case.mtx:3: coordinate 3 of mode 1 is out of range: the header says 2",
    HEAD + "2 2 1\n1 99999999999 1\n": "case.mtx:3: coordinate 99999999999 of mode 2 is out of range",
    HEAD + "2 2 1\n1 99999999999999999999 1\n": "case.mtx:3: coordinate '99999999999999999999' of mode 2 is too large",
    HEAD + "2 2 1\n0 1 1\n": "case.mtx:3: coordinate 0 of mode 1 is below 1: coordinates count from 1; read .* with index_base=0",
    HEAD + "2 2 1\n1 -1 1\n": "case.mtx:3: coordinate -1 of mode 2 is below 1: coordinates count from 1$",
    HEAD + "2 2 1\n1 1.0 1\n": "case.mtx:3: coordinate '1.0' of mode 2 is not a whole number",
    HEAD + "2 2 1\n+1 1 1\n": "case.mtx:3: coordinate .*1' of mode 1 is not a whole number",
    HEAD + "2 2 1\n1 1 pi\n": "case.mtx:3: value 'pi' is not a number",
    HEAD + "2 2 1\n1 1\n": "case.mtx:3: 2 fields, but an entry has 3: 2 coordinates and a value",
    HEAD + "2 2 1\n1\n": "case.mtx:3: 1 fields, but an entry has 3",
    HEAD + "2 2 1\n1 1 1 1\n": "case.mtx:3: 4 fields, but an entry has 3",
    HEAD + "2 2 2\n1 1 1 2\n1 1\n": "case.mtx:3: 4 fields, but an entry has 3",
    HEAD.replace("real", "integer") + "2 2 1\n1 1 1.5\n": "case.mtx:3: value '1.5' is not an integer",
    HEAD.replace("real", "complex")
    + "2 2 1\n1 1 1.5\n": "case.mtx:3: 3 fields, but an entry has 4: 2 coordinates and the two parts of a value",
    HEAD.replace("real", "pattern") + "2 2 1\n1\n": "case.mtx:3: 1 fields, but an entry has 2: 2 coordinates",
    HEAD.replace("coordinate", "array") + "2 2\n1\n2\n3\n": "case.mtx: the header promises 4 entries, but the file holds 3",
    "\x89PNG\r\n\x1a\n\0\0": "size line",
}


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_broken_files(each_reader: str, tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=BROKEN[text]) as caught:
        read_mtx(written(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_files_of_more_rows_than_there_is_memory_for(each_reader: str, tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match=r"case.mtx: a tensor of shape .* does not fit into memory: .*; name a sparse format"):
        read_file(written(tmp_path, HEAD + "999999999999 9 0\n"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing.mtx: no such file"):
        read_mtx(tmp_path / "nothing.mtx")
    with pytest.raises(DataError, match="is a folder"):
        read_mtx(tmp_path)
    with pytest.raises(DataError, match=r"plain.mtx.gz: not a gzip file; remove .gz"):
        read_mtx(written(tmp_path, HEAD, "plain.mtx.gz"))
    with pytest.raises(DataError, match=r"page.mtx.gz: not a gzip file; it looks like a web page"):
        read_mtx(written(tmp_path, "<!DOCTYPE html>", "page.mtx.gz"))
    packed = gzip.compress((HEAD + "1 1 1\n1 1 1\n" * 50).encode())
    for cut in (packed[:-4], packed[:30], packed[:20] + b"\0\0\0" + packed[23:]):
        with pytest.raises(DataError, match=r"cut.mtx.gz: the gzip stream is broken"):
            read_mtx(written(tmp_path, cut, "cut.mtx.gz"))
    with pytest.raises(DataError, match="cannot be read"):
        read_mtx("null\0byte.mtx")
