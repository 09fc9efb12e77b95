"""Downloads that can be trusted: status checked, resumed, retried, verified, and put in place whole."""

from __future__ import annotations

import math
import os
import shutil
import tarfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from ..compiler.errors import DataError, NetworkError
from ..compiler.native.whole import whole_file
from .checksums import NAME, digest_of, remember, remembered
from .openfile import open_file

RETRIES = 4
TIMEOUT_SECONDS = 30
PAUSE_SECONDS = 1.0
"""Pause before the first retry; it doubles each time."""
SILENT_SECONDS = 60.0
"""Seconds for which a host that could not be reached is not asked again, so that a suite of many files does not wait for each of them."""

_CHUNK = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"

_unreached: dict[str, float] = {}
"""Hosts that could not be reached, and when that was noticed."""

Progress = Callable[[int, int | None], None]
"""Called with the bytes that have arrived and the bytes of the whole file (None: the server does not say)."""


def download(url: str, target: Path, sha256: str | None = None, progress: Progress | None = None) -> Path:
    """Fetch a gzip file into ``target``; a file that exists already is left alone.

    What arrived before a connection broke stays in ``target.part`` and is resumed, also by a later process. Two processes do not write at
    the same time. A web page in place of the file, a truncated file or one with a wrong checksum never reaches ``target``. The checksum of
    the first download is remembered, and later ones from the same address must match it. If the address fails, ``mirrors`` are tried in
    turn. A host that could not be reached is not asked again for ``SILENT_SECONDS``.

    Args:
        url: address of the file.
        target: path to write to.
        sha256: its checksum, in hexadecimal digits; None: the one remembered, if there is one.
        progress: called with the bytes so far and the bytes in all.

    Raises:
        NetworkError: the server cannot be reached.
        DataError: the server refuses or sends something else, or the folder cannot be written.
    """
    import filelock

    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{target}.lock"):
            if not target.exists():
                part = target.with_name(target.name + ".part")
                place = _fetch_from_some(url, part, progress)
                digest = _verify(place, part, sha256 or remembered(url), "given" if sha256 else "remembered of its first download")
                remember(url, digest)
                os.replace(part, target)
                _etag_file(part).unlink(missing_ok=True)
        Path(f"{target}.lock").unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{target}: cannot be written: {error.strerror or error}; set SPARSETUNE_DATA to another folder") from None
    return target


def mirrors(url: str) -> list[str]:
    """Return the address at each mirror: $SPARSETUNE_MIRRORS lists addresses, separated by spaces, that replace scheme and host."""
    from urllib.parse import urlsplit

    return [base.rstrip("/") + urlsplit(url).path for base in os.environ.get("SPARSETUNE_MIRRORS", "").split()]


def extract_member(archive: Path, member: str, target: Path) -> Path:
    """Copy one file out of a .tar.gz to ``target``, whole or not at all; path and permissions do not come from the archive.

    Raises:
        DataError: the archive is broken or has no such file, or the target cannot be written.
    """
    try:
        with open_file(archive) as file, tarfile.open(fileobj=file, mode="r:gz") as packed:
            for info in packed:
                if info.isreg() and (info.name == member or info.name.endswith(f"/{member}")):
                    source = packed.extractfile(info)
                    assert source is not None
                    _copy_whole(source, target)
                    return target
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{archive}: cannot be unpacked: {error}; remove it to fetch it again") from None
    raise DataError(f"{archive}: has no file {member}; remove it, or unpack it by hand and give the path of the file")


def _copy_whole(source: IO[bytes], target: Path) -> None:
    with whole_file(target) as out:
        shutil.copyfileobj(source, out, _CHUNK)


def _fetch_from_some(url: str, part: Path, progress: Progress | None) -> str:
    """Fetch from an address, or from the first of its mirrors that has the file; return the address that was used."""
    failure: DataError | None = None
    for place in (url, *mirrors(url)):
        if failure is not None:
            part.unlink(missing_ok=True)  # the file of another server may differ, so it cannot be resumed
        try:
            _fetch(place, part, progress)
            return place
        except DataError as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _fetch(url: str, part: Path, progress: Progress | None) -> None:
    import http.client
    import socket
    import urllib.error
    from urllib.parse import urlsplit

    host, pause, reason = urlsplit(url).netloc, PAUSE_SECONDS, ""
    if time.monotonic() - _unreached.get(host, -math.inf) < SILENT_SECONDS:
        raise _not_fetched(url, f"{host} could not be reached a moment ago")
    for attempt in range(RETRIES):
        try:
            _fetch_rest(url, part, progress)
            return
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in (408, 416, 429):
                raise DataError(f"the server answered {error.code} ({error.reason}) for {url}; check the name") from None
            if error.code == 416:
                part.unlink(missing_ok=True)
            reason = f"the server answered {error.code}"
        except urllib.error.URLError as error:  # there was no connection
            reason = str(error.reason)
            if attempt + 1 == RETRIES or isinstance(error.reason, socket.gaierror):
                _unreached[host] = time.monotonic()
                break
        except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
            reason = str(error) or type(error).__name__
        if attempt + 1 < RETRIES:
            time.sleep(pause)
            pause *= 2
    raise _not_fetched(url, reason)


def _not_fetched(url: str, reason: str) -> NetworkError:
    return NetworkError(
        f"cannot fetch {url}: {reason}; without a network put the file into a folder and set SPARSETUNE_DATA to it, or give its path"
    )


def _fetch_rest(url: str, part: Path, progress: Progress | None) -> None:
    """Append the rest of the file to the part; if the file has changed on the server since, start anew."""
    import http.client
    import urllib.request

    have, etag = part.stat().st_size if part.exists() else 0, _read_etag(part)
    request = urllib.request.Request(url, headers={"User-Agent": "sparsetune", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
        if etag:
            request.add_header("If-Range", etag)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        resumed = answer.status == 206 and _begins_at(answer.headers.get("Content-Range", ""), have)
        if have and not resumed:
            have = 0
        _etag_file(part).write_text(answer.headers.get("ETag", ""))
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length and length.isdecimal() else None
        with part.open("ab" if resumed else "wb") as out:
            while block := answer.read(_CHUNK):
                out.write(block)
                have += len(block)
                if progress is not None:
                    progress(have, total)
    if total is not None and have < total:
        raise http.client.IncompleteRead(b"", total - have)


def _begins_at(content_range: str, place: int) -> bool:
    return content_range.removeprefix("bytes ").partition("-")[0].strip() == str(place)


def _etag_file(part: Path) -> Path:
    return part.with_name(part.name + ".etag")


def _read_etag(part: Path) -> str:
    try:
        etag = _etag_file(part).read_text().strip()
    except OSError:
        return ""
    return "" if etag.startswith("W/") else etag


def _verify(url: str, part: Path, sha256: str | None, whence: str) -> str:
    """Return the checksum of a file. If it is no gzip file, or the checksum is wrong, remove it and raise ``DataError``."""
    with part.open("rb") as file:
        head = file.read(512)
    if head[:2] != _GZIP_MAGIC:
        part.unlink()
        what = "a web page" if head.lstrip()[:1] == b"<" else "something else"
        raise DataError(f"{url} is not a gzip file but {what}; check the name")
    digest = digest_of(part)
    if sha256 is not None and digest != sha256:
        part.unlink()
        raise DataError(
            f"{url} has checksum {digest}, not {sha256} ({whence}); it was changed or damaged on the way: if the collection has a new "
            f"version, remove {NAME} of the data folder"
        )
    return digest
