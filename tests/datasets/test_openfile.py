"""Only regular files are read: pipes, devices, sockets and folders are refused at once, and so is what fills the memory."""

from __future__ import annotations

import gzip
import os
import socket
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.errors import DataError, ResourceError
from sparsetune.compiler.native.memory import Room
from sparsetune.datasets.openfile import open_file

ENDINGS = (".mtx", ".mtx.gz", ".tns", ".tns.gz", ".ttx", ".npz", ".npy")
HEAD = "%%MatrixMarket matrix coordinate real general\n"

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")


def refused(path: Path, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        st.tensor(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).count(str(path)) == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, ending: str) -> None:
    pipe, link, folder, device = (tmp_path / f"{name}{ending}" for name in ("pipe", "link", "folder", "device"))
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    folder.mkdir()
    device.symlink_to("/dev/zero")
    refused(pipe, "is a pipe")
    refused(link, "is a pipe")
    refused(folder, "is a folder")
    refused(device, "is a device")
    refused(tmp_path / f"nothing{ending}", "no such file")
    device.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(device))
        refused(device, "is a socket")


def test_a_name_that_changes_its_meaning_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was opened counts, not what the name stood for before: the pipe has no writer, so that reading it would not end."""
    path, seen = tmp_path / "a.mtx", os.stat(__file__)
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda *_given, **_more: seen)
    with pytest.raises(DataError, match="is a pipe"):
        open_file(path)


def test_files_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsetune.compiler.native.memory.available", lambda: Room(2**27, "a test"))
    for ending in (".mtx", ".npy"):
        path = tmp_path / f"sparse{ending}"
        with path.open("wb") as file:
            file.truncate(2**30)
        with pytest.raises(ResourceError, match=r"the file does not fit into memory: 1.0 GiB where 128.0 MiB") as caught:
            st.tensor(path)
        assert str(caught.value).count(str(path)) == 1


def test_text_that_unpacks_to_more_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "a.mtx.gz"
    with gzip.open(packed, "wb", compresslevel=1) as file:
        file.write((HEAD + "3 3 1\n1 1 5\n").encode())
        for _ in range(80):
            file.write(b"\n" * 2**20)
    assert st.tensor(packed).nnz == 1
    monkeypatch.setattr("sparsetune.compiler.native.memory.available", lambda: Room(2**27, "a test"))
    with pytest.raises(ResourceError, match=r"a.mtx.gz: the unpacked text does not fit into memory"):
        st.tensor(packed)


def test_archives_that_unpack_to_more_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "a.npz"
    sp.save_npz(packed, sp.csr_array(np.eye(3)))
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("more.npy", bytes(80 * 2**20))
    assert st.tensor(packed).nnz == 3
    monkeypatch.setattr("sparsetune.compiler.native.memory.available", lambda: Room(2**26, "a test"))
    with pytest.raises(ResourceError, match=r"a.npz: the unpacked content does not fit into memory"):
        st.tensor(packed)


def test_gzip_members_and_padding(tmp_path: Path) -> None:
    whole = HEAD + "3 3 2\n1 1 5\n2 3 7\n"
    cut = len(HEAD) + 5
    path = tmp_path / "a.mtx.gz"
    parts = [gzip.compress(part.encode()) for part in (whole[:cut], "", whole[cut:])]
    for padding in (b"", bytes(1000)):
        for data in (b"".join(parts) + padding, padding.join(parts)):
            path.write_bytes(data)
            assert st.tensor(path).to_numpy()[1, 2] == 7
    path.write_bytes(parts[0] + parts[2] + b"rubbish")
    refused(path, "the gzip stream is broken")
    large = HEAD + "100000 3 100000\n" + "".join(f"{row} 1 {row}\n" for row in range(1, 100001))
    path.write_bytes(gzip.compress(large.encode()))
    assert st.tensor(path).values.sum() == 5000050000
