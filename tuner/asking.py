"""``lookup`` with a memory: a question that was asked before, in this process or in another one, is not searched for again.

A warm lookup, the same operands again while the database has not changed, costs microseconds; the first one in a process, where another
process has asked the same, milliseconds (``answers``). Otherwise the module ``lookup`` is imported and searches. Little is imported here.
"""

from __future__ import annotations

import os
import time
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.attention import tell
from ..compiler.errors import ShapeError, SparsetuneError
from ..compiler.schedule.schedule import Schedule
from ..compiler.shown import attribute
from ..compiler.units import is_processor
from .answers import keep_answer, kind, known_answer, question
from .match import TARGETS, Match
from .sources import first_states
from .together import together
from .urls import database_url, file_stamp, sqlite_path

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import DTypeLike

    from ..compiler.concrete.affine import Boundary
    from ..compiler.format import Format

_REMEMBERED = 1024
_SERVER_SECONDS = 30.0  # how long an answer from a database server is used before it is asked again
_TENSORS = f"{__name__.rpartition('.tuner.')[0]}.compiler.storage.tensor"


def lookup(
    expression: str,
    operands: Mapping[str, Any],
    output_format: Format | str | None = None,
    target: str = "cpu",
    threads: int | None = None,
    database: str | os.PathLike[str] | None = None,
    *,
    arch: str | None = None,
    memory_bound: float | None = None,
    cache_share: float | None = None,
    semiring: tuple[str, str] | None = None,
    dtype: DTypeLike | None = None,
    shape: Mapping[str, Any] | None = None,
    boundary: Boundary = None,
) -> Match:
    """Return the schedule to use, and where it comes from: ``sparsetune.lookup``.

    Raises:
        TuningError: no schedule keeps the memory bound.
        SparsetuneError: the expression, an operand or the database is not meaningful.
        BuildError: the target is cuda, this machine has no GPU, and arch names none.
    """
    url = database_url(database)
    edges = tuple(sorted(boundary.items())) if isinstance(boundary, Mapping) else boundary
    extents = None if shape is None else tuple(shape.items())
    given = output_format, target, arch, threads, memory_bound, cache_share, semiring, dtype, extents, edges
    stamp = _stamp(url)
    key = _Key(expression, operands, (*given, url, os.environ.get("SPARSETUNE_THREADS"), stamp))
    if (known := _remembered(key)) is not None:
        return known
    asked = question(expression, operands, given, stamp) if is_processor(target) and sqlite_path(url) is not None else None
    match, like = None if asked is None else known_answer(asked), None
    if match is None and asked is not None and shape is None and boundary is None:
        like = kind(expression, operands, given, stamp)
        match = None if like is None else _alike(like, operands)
    if match is None:
        if asked is not None:
            first_states()  # before what chooses is imported
        match, is_lasting = _finding().look_up(
            url, expression, operands, output_format, target, threads, arch, memory_bound, cache_share, semiring, dtype, shape, boundary,
            like,
        )  # fmt: skip
        if is_lasting and asked is not None:
            keep_answer(asked, match)
    tell(f"'{expression}': {match.reason}")
    _remember(key, match)
    return match


def _alike(like: str, operands: Mapping[str, Any]) -> Match | None:
    """Return what recordings of a kind of question tell; what the questions in them need is imported as they are asked."""
    with together("alike"):
        from .replay import replayed

        return replayed(like, operands)


@cache
def _finding() -> ModuleType:
    """Import what finds schedules."""
    with together("lookup"):
        from . import lookup as module

    return module


def evidence(database: str | os.PathLike[str] | None) -> tuple[str, object] | None:
    """Return a value that changes when the records of the database may have changed; None if the database's name is wrong."""
    try:
        url = database_url(database)
        return url, _stamp(url)
    except SparsetuneError:  # searching raises it again
        return None


def choose(
    expression: str,
    operands: Mapping[str, Any],
    output_format: Format | str | None = None,
    target: str = "cpu",
    threads: int | None = None,
    database: str | os.PathLike[str] | None = None,
    memory_bound: float | None = None,
    cache_share: float | None = None,
    semiring: tuple[str, str] | None = None,
    dtype: DTypeLike | None = None,
    shape: Mapping[str, Any] | None = None,
    boundary: Boundary = None,
    arch: str | None = None,
) -> Schedule:
    """Return the schedule for ``evaluate``: as ``lookup``, but the default one for targets that nothing is tuned for, and where only the
    caller knows an extent."""
    if target not in TARGETS:
        return Schedule()
    try:
        return lookup(
            expression, operands, output_format, target, threads, database, arch=arch, memory_bound=memory_bound, cache_share=cache_share,
            semiring=semiring, dtype=dtype, shape=shape, boundary=boundary,
        ).schedule  # fmt: skip
    except ShapeError:
        return Schedule()


class _Key:
    """What a lookup depends on, cheap to compare.

    Of a dense array: its shape. Of a ``Tensor``: its index arrays, which never change, so that other values on the same pattern are the
    same question. Of everything else: its identity, shape and number of nonzeros. If the pattern of another library's array is changed
    in place, it keeps its schedule, which may no longer be the best but is still right.
    """

    __slots__ = ("parts", "watched")

    def __init__(self, expression: Any, operands: Any, rest: tuple[Any, ...]) -> None:
        self.watched: list[Any] = []
        parts: list[Any] = [expression, rest]
        for name, operand in operands.items() if isinstance(operands, Mapping) else ():
            kind = type(operand)
            if kind is np.ndarray:
                parts.append((name, operand.shape, operand.dtype.char))
            elif isinstance(operand, (int, float, np.generic)):
                parts.append((name, kind))
            elif kind.__name__ == "Tensor" and kind.__module__ == _TENSORS:
                parts.append((name, operand.shape, operand.format, operand.dtype.char, operand.fill_value, *map(id, operand.levels)))
                self.watched += operand.levels if any(level.parts for level in operand.levels) else (operand,)
            else:
                parts.append((name, id(operand), attribute(operand, "shape"), attribute(operand, "nnz")))
                self.watched.append(operand)
        self.parts = tuple(parts)


_memory: OrderedDict[tuple[Any, ...], tuple[Match, list[weakref.ref[Any]]]] = OrderedDict()


def _remembered(key: _Key) -> Match | None:
    try:
        found = _memory.get(key.parts)
    except Exception:  # an argument cannot be hashed or compared; the slow path refuses it
        return None
    if found is None:
        return None
    match, watched = found
    return match if all(reference() is operand for reference, operand in zip(watched, key.watched, strict=True)) else None


def _remember(key: _Key, match: Match) -> None:
    """Keep a match as long as its operands live."""
    try:
        _memory[key.parts] = (match, [weakref.ref(operand) for operand in key.watched])
    except TypeError:  # an operand of a type without weak references, such as a list
        return
    while len(_memory) > _REMEMBERED:
        _memory.popitem(last=False)


def _stamp(url: str) -> object:
    """Return a value that changes when the records of a file change; for a server, one that changes every ``_SERVER_SECONDS``."""
    path = sqlite_path(url)
    return time.monotonic() // _SERVER_SECONDS if path is None else file_stamp(os.path.expanduser(path))
