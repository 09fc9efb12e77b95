"""What lookup found in earlier processes, so that the first lookup of a process need not find it again.

Choosing takes a tenth of a second, most of it for importing what chooses. So an answer is kept in a small file, under a digest of all that
it depends on: the question, the operands' types, shapes and patterns (features of the same sample as ``features.Input.pattern``), the
state of the database, of what ships, of the machine, of its compilers and measured constants; and with a note of the sources that it came
from (``sources``). If one of these changes, the answer is not found. Answers that rest on values are not kept: whether a matrix is
symmetric (``is_lasting``).

Little is imported here, since that is the point.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..compiler.errors import SparsetuneError
from ..compiler.native.folders import cache_folder
from ..compiler.native.machine import available_cores, this_machine
from ..compiler.native.toolchain import available_compilers
from ..compiler.native.trust import flaw, make_private
from ..compiler.schedule.schedule import Schedule
from ..compiler.shown import attribute
from .constants import constants_file
from .match import MEANING, Match
from .sources import LISTS, ROOT, hold, note, stamp
from .urls import shipped_file

ANSWERS = "SPARSETUNE_ANSWERS"
"""Environment variable: the folder for answers; if it is empty, none are kept."""

MOST = 4096
"""Most files that are kept; beyond that the oldest half is removed."""

RECORDINGS = ".runs"
"""How the names of files end that hold recordings of choices (``replay``), in the same folder."""

_SAMPLE = 4096  # numbers of an index array that are looked at
_TENSORS = f"{__name__.rpartition('.tuner.')[0]}.compiler.storage.tensor"
_SETTINGS = ROOT / "configs" / "machines.toml"
_ENVIRONMENT = ("SPARSETUNE_CC", "SPARSETUNE_THREADS", "PATH")


class _Unlike(Exception):
    """An argument of the question has no text that identifies it."""


def question(expression: Any, operands: Any, options: tuple[Any, ...], evidence: object) -> str | None:
    """Return a digest of the question and of all that the answer depends on; None if there is no such digest, or answers are not kept.

    Args:
        expression, operands: as for ``lookup``.
        options: the other arguments, in order, the database aside.
        evidence: changes with the records of the database; None: it has none.
    """
    return _digest(expression, operands, options, evidence, _operand)


def kind(expression: Any, operands: Any, options: tuple[Any, ...], evidence: object) -> str | None:
    """Return the same for all questions that differ in sizes and patterns of operands only."""
    return _digest(expression, operands, options, evidence, _kind)


def known_answer(asked: str) -> Match | None:
    """Return what an earlier process found, None where nothing is known or the file is damaged."""
    import json

    folder = answer_folder()
    try:
        if folder is None or flaw(folder) is not None:
            return None
        told = json.loads((folder / f"{asked}.json").read_text(encoding="utf-8"))
        schedule, origin, time, distance, remark = (told[name] for name in ("schedule", "origin", "time", "distance", "note"))
        numbers = all(number is None or isinstance(number, float) for number in (time, distance))
        if numbers and isinstance(schedule, str) and isinstance(remark, str) and origin in MEANING and hold(told["sources"], folder):
            return Match(Schedule.shown_as(schedule), origin, time, distance, remark)
    except (OSError, ValueError, TypeError, KeyError):
        pass
    return None


def keep_answer(asked: str, match: Match) -> None:
    """Keep an answer for other processes, where that is possible."""
    from .written import write_json

    folder = answer_folder()
    if folder is not None:
        told = {"schedule": str(match.schedule), "origin": match.origin, "time": match.time, "distance": match.distance, "note": match.note}
        with suppress(OSError):
            make_private(folder)
            make_room(folder)
            write_json(folder / f"{asked}.json", {**told, "sources": [note(folder)]})


def _digest(
    expression: Any, operands: Any, options: tuple[Any, ...], evidence: object, told: Callable[[Any], Iterator[str | bytes]]
) -> str | None:
    if answer_folder() is None or type(expression) is not str or not isinstance(operands, Mapping):
        return None
    found = hashlib.blake2b(told.__name__.encode(), digest_size=16)
    try:
        for part in _parts(expression, operands, options, evidence, told):
            found.update(part if isinstance(part, bytes) else f"{len(part)}:{part}".encode())
    except (_Unlike, OSError, SparsetuneError):
        return None
    return found.hexdigest()


def make_room(folder: Path) -> None:
    """Remove the oldest half of the files where there are too many. Raises ``OSError``: there is no folder yet."""
    with os.scandir(folder) as entries:
        kept = [entry for entry in entries if entry.name.endswith((".json", RECORDINGS, LISTS))]
    if len(kept) >= MOST:
        for entry in sorted(kept, key=lambda entry: entry.stat().st_mtime_ns)[: len(kept) // 2]:
            with suppress(FileNotFoundError):  # another process makes room as well
                os.unlink(entry.path)


def answer_folder() -> Path | None:
    """Return the folder for answers; None where none are kept."""
    chosen = os.environ.get(ANSWERS)
    if chosen is not None:
        return Path(chosen) if chosen else None
    return cache_folder().parent / "answers"


def _parts(
    expression: str, operands: Mapping[Any, Any], options: tuple[Any, ...], evidence: object, told: Callable[[Any], Iterator[str | bytes]]
) -> Iterator[str | bytes]:
    """Yield texts that identify a question; ``told``: what is told of an operand. Raises ``_Unlike``, ``OSError``, ``SparsetuneError``."""
    yield _surroundings(tuple(os.environ.get(name) for name in _ENVIRONMENT), evidence is not None)
    files = [_state(file) for file in (constants_file(), shipped_file(), _SETTINGS) if file is not None]
    yield repr((evidence, available_cores(), files))
    yield expression
    yield _plain(options)
    for name, operand in operands.items():
        yield _plain(name)
        yield from told(operand)


@cache
def _surroundings(environment: tuple[str | None, ...], with_records: bool) -> str:
    """Return a text of what does not change during a process: machine, compilers, sources.

    Args:
        environment: variables that matter.
        with_records: whether there are some; they depend on how code is made, of which nothing else does.
    """
    compilers = [compiler.identity for compiler in available_compilers()]
    sources = stamp(ROOT) if with_records else ""
    return repr((sources, np.__version__, this_machine().fingerprint, compilers, environment))


def _state(file: Path) -> tuple[str, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return str(file), status.st_size, status.st_mtime_ns


def _plain(value: Any) -> str:
    """Return the text of an option. Raises ``_Unlike`` if it is of an unusual kind."""
    if value is None or type(value) in (str, int, float, bool) or isinstance(value, np.dtype):
        return repr(value)
    if isinstance(value, type) and issubclass(value, np.generic):
        return repr(np.dtype(value))
    if type(value).__name__ == "Format" and type(value).__module__.endswith(".compiler.format"):
        return f"format {value}"
    if isinstance(value, (tuple, list)):
        parts: Sequence[Any] = value
        return f"({', '.join(map(_plain, parts))})"
    raise _Unlike


def _operand(data: Any) -> Iterator[str | bytes]:
    """Yield texts that identify an operand, without its values. Raises ``_Unlike`` if it is no array or number of a usual kind."""
    yield from _kind(data)
    if isinstance(data, (int, float, complex, np.generic)):
        return
    yield repr(data.shape)
    if type(data).__name__ == "Tensor":
        yield from _sampled(array for level in data.levels for _, array in sorted(level.parts.items()))
    elif type(data) is not np.ndarray:
        *indices, values = _parts_of(data)
        yield f"{len(values)}"
        yield from _sampled(indices)


def _kind(data: Any) -> Iterator[str]:
    """Yield texts that identify an operand, without sizes, pattern and values. Raises ``_Unlike`` as ``_operand``."""
    made = type(data)
    if made is np.ndarray:
        yield f"array {data.ndim} {data.dtype.str}"
    elif made in (int, float, bool, complex) or isinstance(data, np.generic):
        yield f"number {made.__module__}.{made.__name__}"
    elif made.__name__ == "Tensor" and made.__module__ == _TENSORS:
        yield f"tensor {data.format} {data.dtype.str} {data.fill_value!r}"
    elif made.__module__.startswith(("scipy.sparse", "sparse.")) and (parts := _parts_of(data)):
        yield f"{made.__module__}.{made.__name__} {len(data.shape)} {parts[-1].dtype.str} {attribute(data, 'fill_value')!r}"
    else:
        raise _Unlike


def _parts_of(data: Any) -> list[NDArray[Any]]:
    """Return the index arrays of a sparse array of another library and its values, empty where it is not stored as usual. Raises
    ``_Unlike`` if one of them is no array of one dimension."""
    names = {"csr": ("indptr", "indices"), "csc": ("indptr", "indices"), "coo": ("row", "col")}.get(attribute(data, "format"), ())
    if (coordinates := attribute(data, "coords")) is not None:  # of as many dimensions as there are
        indices = list(coordinates)
    elif names:
        indices = [attribute(data, name) for name in names]
    else:
        return []
    parts = [*indices, attribute(data, "data")]
    if not all(type(part) is np.ndarray and part.ndim == 1 for part in parts):
        raise _Unlike
    return parts


def _sampled(arrays: Iterable[NDArray[Any]]) -> Iterator[str | bytes]:
    """Yield the length of each array and an even sample of it; short arrays are taken whole."""
    for array in arrays:
        yield f"{array.dtype.str} {array.shape}"
        yield np.ascontiguousarray(array[:: max(1, len(array) // _SAMPLE)]).tobytes()
