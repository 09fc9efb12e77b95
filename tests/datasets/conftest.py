"""Readers are tested in C and in Python; real data lie beside the repository, where they are present; downloads come from a server here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback_server import Server
from sparsetune.compiler.storage import native
from sparsetune.datasets import catalogue, download

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(params=["native", "plain"])
def each_reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with both readers of entry lines."""
    library = native.library
    if request.param == "plain":
        monkeypatch.setattr(native, "library", lambda *names: None if names == ("st_text",) else library(*names))
    elif library("st_text") is None:
        pytest.skip("no C compiler for the native reader")
    return request.param


@pytest.fixture
def shared_data() -> Path:
    """The folder of real matrices and tensors."""
    if not SHARED.is_dir():
        pytest.skip("../shared/data is not here")
    return SHARED


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


@pytest.fixture
def collection(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server in the place of both collections, and an empty data folder."""
    monkeypatch.setenv("SPARSETUNE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(catalogue, "_SUITESPARSE", f"{server.url}/MM/")
    items = {"HB/tiny": catalogue.Item("HB/tiny", "suitesparse", f"{server.url}/MM/HB/tiny.tar.gz", (2, 2), 1)}
    items["frostt:small"] = catalogue.Item("frostt:small", "frostt", f"{server.url}/frostt/small.tns.gz", (1, 2, 1), 1)
    monkeypatch.setattr(catalogue, "bundled", lambda: items)
    return server
