"""Downloads from a server on this machine that breaks off, refuses, lies and changes its mind."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from sparsetune.compiler.errors import DataError, NetworkError
from sparsetune.datasets import catalogue, check_file, download, fetch, load

CONTENT = gzip.compress(bytes(range(256)) * 5000 + b"end", mtime=0) + bytes(200_000)
MATRIX = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 4.5\n"


class Server(ThreadingHTTPServer):
    """Answers every path by a function, and keeps what was asked for."""

    answer: Callable[[BaseHTTPRequestHandler], None]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        self.server.asked.append((self.path, self.headers.get("Range")))
        self.server.answer(self)

    def log_message(self, format: str, *_arguments: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A running server; retries do not wait."""
    monkeypatch.setattr(download, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 5)
    running = Server()
    thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, length: int | None = None, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def test_whole_file(server: Server, tmp_path: Path) -> None:
    server.answer = lambda handler: send(handler, CONTENT)
    seen: list[tuple[int, int | None]] = []
    path = download.download(
        f"{server.url}/a.gz", tmp_path / "deep" / "a.gz", hashlib.sha256(CONTENT).hexdigest(), lambda *now: seen.append(now)
    )
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [one.name for one in path.parent.iterdir()] == ["a.gz"]
    download.download(f"{server.url}/a.gz", path)
    assert len(server.asked) == 1


def test_broken_connection_is_resumed(server: Server, tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        begin = int((handler.headers.get("Range") or "bytes=0-")[6:-1])
        end = min(len(CONTENT), begin + 100_000)
        whole = f"bytes {begin}-{len(CONTENT) - 1}/{len(CONTENT)}"
        send(handler, CONTENT[begin:end], 206 if begin else 200, len(CONTENT) - begin, ETag='"one"', Content_Range=whole)

    server.answer = answer
    assert download.download(f"{server.url}/a.gz", tmp_path / "a.gz").read_bytes() == CONTENT
    assert [asked for _, asked in server.asked] == [None, "bytes=100000-", "bytes=200000-"][: len(server.asked)]


def test_a_later_call_goes_on(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.gz.part").write_bytes(CONTENT[:1000])
    server.answer = lambda handler: send(handler, CONTENT[1000:], 206, Content_Range=f"bytes 1000-{len(CONTENT) - 1}/{len(CONTENT)}")
    assert download.download(f"{server.url}/a.gz", tmp_path / "a.gz").read_bytes() == CONTENT
    assert server.asked == [("/a.gz", "bytes=1000-")]


def test_server_without_ranges_begins_anew(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.gz.part").write_bytes(b"x" * 1000)
    server.answer = lambda handler: send(handler, CONTENT)
    assert download.download(f"{server.url}/a.gz", tmp_path / "a.gz").read_bytes() == CONTENT


def test_part_that_is_too_long_is_dropped(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.gz.part").write_bytes(b"x" * (len(CONTENT) + 5))
    server.answer = lambda handler: send(handler, b"", 416) if handler.headers.get("Range") else send(handler, CONTENT)
    assert download.download(f"{server.url}/a.gz", tmp_path / "a.gz").read_bytes() == CONTENT


def test_errors_that_pass(server: Server, tmp_path: Path) -> None:
    server.answer = lambda handler: send(handler, CONTENT) if len(server.asked) > 2 else send(handler, b"busy", 503)
    assert download.download(f"{server.url}/a.gz", tmp_path / "a.gz").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, b"<html>not here", r"the server answered 404 \(Not Found\) for http.*; check the name"),
        (403, b"no", "answered 403"),
        (500, b"ill", "cannot fetch http.*: the server answered 500; without a network .* SPARSETUNE_DATA"),
        (200, b"<html>welcome</html>", "is not a gzip file but a web page"),
        (200, b"", "is not a gzip file but something else"),
    ],
)
def test_what_is_not_the_file_is_never_kept(server: Server, tmp_path: Path, status: int, body: bytes, message: str) -> None:
    server.answer = lambda handler: send(handler, body, status)
    with pytest.raises(DataError, match=message) as caught:
        download.download(f"{server.url}/a.gz", tmp_path / "a.gz")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "a.gz").exists()
    assert not (tmp_path / "a.gz.part").exists()


def test_wrong_checksum(server: Server, tmp_path: Path) -> None:
    server.answer = lambda handler: send(handler, CONTENT)
    with pytest.raises(DataError, match=r"has checksum .* it was changed or damaged"):
        download.download(f"{server.url}/a.gz", tmp_path / "a.gz", "0" * 64)
    assert not (tmp_path / "a.gz").exists()


def test_connection_that_never_completes(server: Server, tmp_path: Path) -> None:
    server.answer = lambda handler: send(handler, CONTENT[:500], 200, len(CONTENT))
    with pytest.raises(DataError, match="cannot fetch"):
        download.download(f"{server.url}/a.gz", tmp_path / "a.gz")
    assert not (tmp_path / "a.gz").exists()


def test_no_server_and_no_folder(server: Server, tmp_path: Path) -> None:
    url = f"{server.url}/a.gz"
    server.server_close()
    with pytest.raises(DataError, match=r"cannot fetch http.*refused.* put the file into a folder and set SPARSETUNE_DATA to it"):
        download.download(url, tmp_path / "a.gz")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot be written: .*set SPARSETUNE_DATA to another folder"):
        download.download(url, tmp_path / "file" / "a.gz")


def test_a_host_that_cannot_be_reached_is_not_asked_for_every_file(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.server_close()
    opened: list[str] = []
    fetch_rest = download._fetch_rest
    monkeypatch.setattr(download, "_fetch_rest", lambda url, *rest: (opened.append(url), fetch_rest(url, *rest)))
    for name, reason in (("a", "refused"), ("b", "could not be reached a moment ago")):
        with pytest.raises(NetworkError, match=rf"cannot fetch http.*/{name}.gz: .*{reason}; .*SPARSETUNE_DATA"):
            download.download(f"{server.url}/{name}.gz", tmp_path / f"{name}.gz")
    assert opened == [f"{server.url}/a.gz"] * download.RETRIES
    monkeypatch.setattr(download, "SILENT_SECONDS", 0.0)
    with pytest.raises(NetworkError, match="refused"):
        download.download(f"{server.url}/b.gz", tmp_path / "b.gz")


def archive(**members: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        for name, text in members.items():
            info = tarfile.TarInfo(name.replace("__", "/").replace("_dot_", "."))
            info.size = len(text)
            packed.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


@pytest.fixture
def collection(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server in the place of both collections, and an empty data folder."""
    monkeypatch.setenv("SPARSETUNE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(catalogue, "_SUITESPARSE", f"{server.url}/MM/")
    items = {"HB/tiny": catalogue.Item("HB/tiny", "suitesparse", f"{server.url}/MM/HB/tiny.tar.gz", (2, 2), 1)}
    items["frostt:small"] = catalogue.Item("frostt:small", "frostt", f"{server.url}/frostt/small.tns.gz", (1, 2, 1), 1)
    monkeypatch.setattr(catalogue, "bundled", lambda: items)
    return server


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


def test_missing_network_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="cannot fetch"):
        download.download("http://127.0.0.1:9/a.gz", tmp_path / "a.gz")
