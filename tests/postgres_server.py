"""A PostgreSQL server for one test module, if its programs are installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def programs() -> Path | None:
    """Return the folder of ``initdb`` and ``pg_ctl``, or None."""
    places = [Path(found).parent for name in ("initdb",) if (found := shutil.which(name))]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


def user() -> str | None:
    """Return the user to run the server as (it refuses to run as root), or None where there is none."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    return "postgres" if any(entry.pw_name == "postgres" for entry in pwd.getpwall()) else None


@contextmanager
def running_server(bin_folder: Path, owner: str) -> Iterator[str]:
    """Yield the URL of a fresh server that listens on a socket in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: the path of a socket has at most 107 characters
    as_owner = {"user": owner} if os.geteuid() == 0 else {}
    if as_owner:
        shutil.chown(folder, owner)

    def call(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=600, **as_owner)

    data = str(folder / "data")
    control = str(bin_folder / "pg_ctl")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    call(str(bin_folder / "initdb"), "-D", data, "-U", "tuner", "-A", "trust", "--no-sync")
    try:
        call(control, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://tuner@/postgres?host={folder}"
        finally:
            call(control, "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def installed_server() -> Iterator[str]:
    """Yield the URL of a fresh server, or skip the test where its programs or psycopg are not installed."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'sparsetune[postgres]'")
    folder, owner = programs(), user()
    if folder is None or owner is None:
        pytest.skip("needs the programs of a PostgreSQL server: apt install postgresql")
    with running_server(folder, owner) as url:
        yield url
