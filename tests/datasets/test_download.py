"""Downloads from a server on this machine that breaks off, refuses, lies and changes its mind."""

from __future__ import annotations

import hashlib
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from loopback_server import CONTENT, Server, send
from sparsetune.compiler.errors import DataError, NetworkError
from sparsetune.datasets import download


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


def test_missing_network_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="cannot fetch"):
        download.download("http://127.0.0.1:9/a.gz", tmp_path / "a.gz")
