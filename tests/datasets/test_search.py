"""Search over the bundled tables, and over what ssgetpy says, which runs in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from sparsetune.compiler.errors import DataError, NetworkError
from sparsetune.datasets import Query, search
from sparsetune.datasets.catalogue import Item
from sparsetune.tuner.cli import run

MODULE = "sparsetune.datasets.query"


def names(query: Query) -> list[str]:
    return [item.name for item in search(query)]


def test_all_conditions_hold() -> None:
    query = Query(kind="structural", rows=(1e4, 1e5), nnz=(1e5, 1e7), field="real", shape="square", symmetric=True, definite=True)
    found = search(query)
    assert len(found) > 20
    for item in found:
        assert item.shape is not None
        assert item.nnz is not None
        assert "structural" in item.kind
        assert 1e4 <= item.shape[0] <= 1e5
        assert item.shape[0] == item.shape[1]
        assert 1e5 <= item.nnz <= 1e7
        assert (item.field, item.symmetry, item.is_definite) == ("real", 1.0, True)
    assert [item.nnz for item in found] == sorted(item.nnz or 0 for item in found)


def test_each_condition_alone() -> None:
    assert names(Query(group="williams"))[0] == "Williams/mac_econ_fwd500"
    assert "vanHeukelum/cage15" in names(Query(name="CAGE15"))
    assert set(names(Query(source="frostt", order=5))) == {
        "frostt:lanl2", "frostt:lbnl-network", "frostt:vast-2015-mc1-5d",
    }  # fmt: skip
    assert all(item.shape and item.shape[0] != item.shape[1] for item in search(Query(shape="rectangular")))
    assert {item.field for item in search(Query(field="complex"))} == {"complex"}
    assert not {"frostt:flickr-3d"} & set(names(Query(nnz=(0, 1e12)))), "its nonzeros are not known"
    assert len(names(Query())) == 2893 + 27
    assert names(Query(group="no such")) == []


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that puts a module in the place of ssgetpy."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def put(source: str) -> None:
        (tmp_path / "ssgetpy.py").write_text(source)

    return put


def test_the_newest_index(library) -> None:
    library(
        "class M:\n    def __init__(self, *a): self.group, self.name, self.rows, self.cols, self.nnz, self.kind = a\n"
        "def search(limit): return [M('New', 'matrix', 5, 4, 9, 'graph'), M('HB', 'arc130', 130, 130, 1037, 'materials problem')]"
    )
    found = {item.name: item for item in search(Query(source="suitesparse"), newest=True)}
    assert found["New/matrix"] == Item(
        "New/matrix", "suitesparse", "https://sparse.tamu.edu/MM/New/matrix.tar.gz", (5, 4), 9, "graph"
    )
    assert found["HB/arc130"].nnz == 1282, "of what is bundled the file's own entries are known"
    assert len(search(Query(source="frostt"), newest=True)) == 27


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("raise ConnectionError('no route')", NetworkError, r"cannot be fetched: ConnectionError: no route; the bundled one"),
        ("def search(limit): return []", NetworkError, "cannot be fetched: it is empty"),
        ("raise ModuleNotFoundError(\"No module named 'ssgetpy'\")", DataError, "pip install ssgetpy==1.0rc2"),
    ],
)
def test_an_index_that_cannot_be_had(library, source: str, error: type[Exception], message: str) -> None:
    library(source)
    with pytest.raises(error, match=message):
        search(Query(), newest=True)


def test_an_index_that_does_not_come(library, monkeypatch: pytest.MonkeyPatch) -> None:
    library("import time; time.sleep(60)")
    monkeypatch.setattr(f"{MODULE}._SECONDS", 0.2)
    with pytest.raises(NetworkError, match=r"did not arrive within 0.2 s"):
        search(Query(), newest=True)


def test_without_a_network_the_command_goes_on(library, capsys: pytest.CaptureFixture[str]) -> None:
    library("raise ConnectionError('no route')")
    assert run(["data", "search", "west0479", "--newest"]) == 0
    shown = capsys.readouterr()
    assert "HB/west0479" in shown.out
    assert "no route" in shown.err
    assert len(shown.err.splitlines()) == 1
    assert run(["data", "search", "--rows", "9:3"]) == 2
    assert "goes from its lower to its higher" in capsys.readouterr().err
