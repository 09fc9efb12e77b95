"""The one door to inputs: paths, names, the data folder, and listings."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from sparsetune.compiler.errors import DataError
from sparsetune.datasets import describe, download, fetch, list_catalogue, load
from sparsetune.datasets.catalogue import bundled, find_item, well_known

MATRIX = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 4.5\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a few files, and no network."""
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices" / "494_bus.mtx.gz").write_bytes(gzip.compress(MATRIX.encode()))
    (tmp_path / "mine.mtx").write_text(MATRIX)
    (tmp_path / "nell-2.tns").write_text("1 2 1 7\n")
    (tmp_path / "notes.txt").write_text("not a tensor")
    monkeypatch.setenv("SPARSETUNE_DATA", str(tmp_path))

    def refuse(*_arguments: object, **_keywords: object) -> None:
        raise DataError("cannot fetch: no network")

    monkeypatch.setattr(download, "_fetch", refuse)
    return tmp_path


def test_local_files_come_first(folder: Path) -> None:
    assert fetch("HB/494_bus") == folder / "matrices" / "494_bus.mtx.gz"
    assert fetch("494_bus") == fetch("matrices/494_bus") == fetch("HB/494_bus")
    assert fetch("mine") == folder / "mine.mtx"
    assert fetch("frostt:nell-2") == folder / "nell-2.tns"
    assert load("frostt:nell-2").to_numpy().tolist() == [[[0], [7]]]
    assert load(str(folder / "mine.mtx"), "csc").format.order == (1, 0)
    with pytest.raises(DataError, match="no network"):
        fetch("HB/1138_bus")


def test_names_that_nothing_has(folder: Path) -> None:
    for name, message in {
        "494_bsu": r"'494_bsu' is no file and no name of the catalogue; near: .*494_bus",
        "frostt:nell2": r"near: frostt:nell-2",
        "frostt:zzzzzzzz": r"'frostt:zzzzzzzz' is no file and no name of the catalogue \(tune-kernel data list shows all\)",
        "no/such/file": "is no file and no name",
        "../up/x": "is no file and no name|no such file|end in",
        "x.mtx": "x.mtx: no such file",
        "./nothing": "files of tensors end in",
        "": "the name of an input is empty",
    }.items():
        with pytest.raises(DataError, match=message):
            load(name)
    with pytest.raises(DataError, match="is generated and has no file"):
        fetch("random:uniform:3x3:nnz=1")
    with pytest.raises(DataError, match=r"notes.txt: files of tensors end in .mtx"):
        load(folder / "notes.txt")


def test_descriptions(folder: Path) -> None:
    known = describe("HB/494_bus")
    assert known == {
        "name": "HB/494_bus",
        "source": "suitesparse",
        "shape": [494, 494],
        "nnz": 1666,
        "kind": "power network problem",
        "path": str(folder / "matrices" / "494_bus.mtx.gz"),
        "url": "https://sparse.tamu.edu/MM/HB/494_bus.tar.gz",
    }
    assert describe("frostt:uber")["path"] is None
    assert describe("mine")["nnz"] == 1
    assert describe(folder / "mine.mtx")["shape"] == [2, 2]
    made = describe("random:stencil5:4")
    assert (made["shape"], made["nnz"], made["source"]) == ([16, 16], 64, "random")
    assert describe("Some/unheard-of")["shape"] is None


def test_listing(folder: Path) -> None:
    rows = {row["name"]: row for row in list_catalogue()}
    assert rows["HB/494_bus"]["path"] == str(folder / "matrices" / "494_bus.mtx.gz")
    assert rows["mine"]["source"] == "file"
    assert "494_bus" not in rows
    assert sum(row["source"] == "random" for row in rows.values()) >= 8
    assert all(set(row) == set(rows["mine"]) for row in rows.values())


def test_tables() -> None:
    items = bundled()
    matrices = [item for item in items.values() if item.source == "suitesparse"]
    assert len(matrices) == 2893
    assert all(len(item.shape) == 2 and item.url.endswith(f"/{item.stem}.tar.gz") for item in matrices)
    tensors = [item for item in items.values() if item.source == "frostt"]
    assert len(tensors) == 27
    assert all(item.url.endswith(".tns.gz") for item in tensors)
    known = [item for item in items.values() if item.shape is not None and item.nnz is not None]
    assert len(known) == len(items) - 4  # the collection says nothing of three projections' nonzeros and of one tensor
    assert all(0 < item.nnz <= np.prod(np.array(item.shape, float)) for item in known)
    assert len(well_known()) == len(set(well_known())) >= 100 + len(tensors)
    assert set(well_known()) <= set(items)
    assert find_item("nell-2").name == "frostt:nell-2"
    assert find_item("cant").name == "Williams/cant"


OTHER_FILES = {
    "copter2": "without the diagonal",
    "lhr01": "without stored zeros",
    "CollegeMsg": "a tensor of the name of a matrix",
    "matmul_4-3-2": "generated, with another order of modes",
}
"""Files of the data folder that have the name of an item and are not it."""


@pytest.mark.data
def test_tables_agree_with_real_files(shared_data: Path) -> None:
    files = {path.name: path for folder in ("matrices", "tensors") for path in (shared_data / folder).glob("*.gz")}
    items = [item for item in bundled().values() if item.stem not in OTHER_FILES]
    found = [(item, files[name]) for item in items for name in (f"{item.stem}.mtx.gz", f"{item.stem}.tns.gz") if name in files]
    assert len(found) >= 10
    for item, path in found:
        read = load(path)
        assert read.shape == item.shape, item
        assert item.nnz in (read.nnz, np.count_nonzero(read.values)), item
