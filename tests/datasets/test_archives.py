"""Matrices and tensors by their names, from archives of a server on this machine: unpacked safely, checked, and mirrored."""

from __future__ import annotations

import gzip
import io
import tarfile
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from loopback_server import MATRIX, Server, archive, send
from sparsetune.compiler.errors import DataError
from sparsetune.datasets import catalogue, check_file, fetch, load


def test_matrix_by_name(collection: Server, tmp_path: Path) -> None:
    collection.answer = lambda handler: send(handler, archive(tiny__tiny_b_dot_mtx="not this one", tiny__tiny_dot_mtx=MATRIX))
    assert load("HB/tiny").to_numpy().tolist() == [[0, 4.5], [0, 0]]
    assert fetch("HB/tiny") == tmp_path / "data" / "suitesparse" / "HB" / "tiny.mtx"
    assert [path.name for path in fetch("tiny").parent.iterdir()] == ["tiny.mtx"]
    assert collection.asked == [("/MM/HB/tiny.tar.gz", None)]


def test_matrix_beyond_the_table(collection: Server) -> None:
    collection.answer = lambda handler: send(handler, archive(other__other_dot_mtx=MATRIX))
    assert load("Group/other").nnz == 1
    assert collection.asked == [("/MM/Group/other.tar.gz", None)]
    collection.answer = lambda handler: send(handler, b"", 404)
    with pytest.raises(DataError, match=r"'HB/tyni' is no file and no name of the catalogue; near: HB/tiny"):
        load("HB/tyni")


def test_tensor_by_name(collection: Server, tmp_path: Path) -> None:
    collection.answer = lambda handler: send(handler, gzip.compress(b"1 2 1 3.5\n"))
    assert load("frostt:small").to_numpy().tolist() == [[[0], [3.5]]]
    assert fetch("frostt:small") == tmp_path / "data" / "frostt" / "small.tns.gz"


@pytest.mark.parametrize(
    "content",
    [archive(tiny__else_dot_mtx=MATRIX), archive(tiny__tiny_dot_mtx=MATRIX * 500)[:-40], gzip.compress(b"no tar")],
    ids=["another file inside", "cut off", "no archive"],
)
def test_broken_archives(collection: Server, content: bytes) -> None:
    collection.answer = lambda handler: send(handler, content)
    with pytest.raises(DataError, match=r"tiny.tar.gz: (has no file tiny.mtx|cannot be unpacked)"):
        load("HB/tiny")
    assert not list(catalogue.data_folder().glob("**/*.mtx*"))


def test_an_archive_does_not_choose_where_it_is_unpacked(collection: Server, tmp_path: Path) -> None:
    collection.answer = lambda handler: send(handler, archive(__dot__dot____tiny_dot_mtx=MATRIX, tiny__tiny_dot_mtx=MATRIX))
    assert fetch("HB/tiny").is_relative_to(tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def linked(kind: bytes, target: str) -> bytes:
    """Return an archive whose first member is a link in the place of the matrix."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        link = tarfile.TarInfo("tiny/tiny.mtx")
        link.type, link.linkname = kind, target
        packed.addfile(link)
        info = tarfile.TarInfo("tiny/more/tiny.mtx")
        info.size = len(MATRIX)
        packed.addfile(info, io.BytesIO(MATRIX.encode()))
    return out.getvalue()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../secret"])
def test_links_in_an_archive_are_not_followed(collection: Server, tmp_path: Path, kind: bytes, target: str) -> None:
    (tmp_path / "secret").write_text("not for anyone")
    collection.answer = lambda handler: send(handler, linked(kind, target))
    assert fetch("HB/tiny").read_text() == MATRIX
    assert fetch("HB/tiny").stat().st_mode & 0o777 == 0o644
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "secret"]


@pytest.mark.parametrize("name", ["/tiny.mtx", "//etc/tiny.mtx", "a/../../../tiny.mtx", "./tiny.mtx"])
def test_paths_in_an_archive_lead_nowhere(collection: Server, tmp_path: Path, name: str) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        info = tarfile.TarInfo("x")
        info.name, info.size = name, len(MATRIX)
        packed.addfile(info, io.BytesIO(MATRIX.encode()))
    collection.answer = lambda handler: send(handler, out.getvalue())
    assert fetch("HB/tiny") == tmp_path / "data" / "suitesparse" / "HB" / "tiny.mtx"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_checksum_is_remembered_and_asked_of_later_downloads(collection: Server, tmp_path: Path) -> None:
    first = archive(tiny__tiny_dot_mtx=MATRIX)
    collection.answer = lambda handler: send(handler, first)
    path = fetch("HB/tiny")
    assert check_file(path) == "as downloaded"
    path.unlink()
    collection.answer = lambda handler: send(handler, archive(tiny__tiny_dot_mtx=MATRIX.replace("4.5", "4.6")))
    with pytest.raises(DataError, match=r"has checksum .* \(remembered of its first download\).*remove checksums.json"):
        fetch("HB/tiny")
    assert not path.exists()
    collection.answer = lambda handler: send(handler, first)
    fetch("HB/tiny")
    path.write_text(MATRIX.replace("4.5", "9"))
    with pytest.raises(DataError, match="is not what was downloaded: it was changed or damaged since; remove it to fetch it again"):
        check_file(path)
    own = tmp_path / "data" / "own.mtx"
    own.write_text(MATRIX)
    assert check_file(own) == "not checked"


def test_checksums_that_cannot_be_read_are_none(collection: Server, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "checksums.json").write_text('{"frostt/small.tns.gz": 3}')
    collection.answer = lambda handler: send(handler, gzip.compress(b"1 2 1 3.5\n"))
    assert check_file(fetch("frostt:small")) == "not checked"
    (tmp_path / "data" / "checksums.json").write_text("no json")
    assert check_file(fetch("frostt:small")) == "not checked"


def test_mirrors_stand_in(collection: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.path.startswith("/two/"):
            send(handler, archive(tiny__tiny_dot_mtx=MATRIX))
        else:
            send(handler, b"gone", 404)

    collection.answer = answer
    with pytest.raises(DataError, match="answered 404"):
        fetch("HB/tiny")
    monkeypatch.setenv("SPARSETUNE_MIRRORS", f"{collection.url}/one {collection.url}/two/")
    assert fetch("HB/tiny").read_text() == MATRIX
    assert [path for path, _ in collection.asked][1:] == [f"{base}/MM/HB/tiny.tar.gz" for base in ("", "/one", "/two")]
