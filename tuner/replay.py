"""Choices of the static model for operands that no process has seen, from recordings of choices for others.

Recordings (``recording``) of one kind of question are a tree, as they are equal up to the first comparison with another outcome. It is kept
in a small file among the ``answers``, under a digest of the kind of question and of all that choices depend on besides the operands. To
go through it needs neither the compiler nor the static model, and takes a fraction of a millisecond besides the questions. It gives what
the model chooses, or nothing where a comparison comes out as in no recording.

Little is imported here, since that is the point.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..compiler.native.trust import flaw, make_private
from ..compiler.schedule.schedule import Schedule
from .answers import RECORDINGS, answer_folder, make_room
from .match import Match
from .sources import Note, hold, note
from .steps import COMPARISONS, OF_TWO, OPERATIONS, Step

if TYPE_CHECKING:
    from .recording import Recording

Found = TypeVar("Found")

MOST = 256
"""Most recordings of a kind that are kept; beyond that they are collected anew."""

Runs = list[list[Step]]
"""Recordings as a tree: the first run is that of the first recording. Every other one goes on from a comparison in an earlier run, whose
last entry is the number of the run, with the other outcome; 0: no recording has that."""

_VERSION = 2  # of ``marshal``, whose lists are read in a quarter of the time of text
_DIGEST = 16  # bytes of the digest before them
_SKETCH = "sketches.sketch"
_END = "end"  # a run's last step: schedule, origin and note


class Operands:
    """The operands that are asked about, each sketched when it is first asked about."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._found: dict[str, Any] = {}

    def answer(self, question: str, name: str, *numbers: Any) -> Any:
        """Return the answer to a question about an operand; an empty name: about all operands."""
        return _question(question)(self._sketch(name) if name else self, *numbers)

    def sketches(self) -> dict[str, Any]:
        """Return the sketches of all operands."""
        return {name: self._sketch(name) for name in self._data}

    def once(self, key: str, find: Callable[[], Found]) -> Found:
        """Return what is found out about all operands, found once."""
        if key not in self._found:
            self._found[key] = find()
        return self._found[key]

    def _sketch(self, name: str) -> Any:
        sketch = _question(_SKETCH)
        return self.once(f" {name}", lambda: sketch(self._data[name]))


def replayed(kind: str, operands: Mapping[str, Any]) -> Match | None:
    """Return what the static model chooses for operands; None where no recording tells."""
    _, runs = _read(kind)
    if not runs:
        return None
    try:
        end = followed(runs, Operands(operands).answer)
        return None if end is None else Match(Schedule.shown_as(end[1]), end[2], note=end[3])
    except Exception:  # of data that are no operand, which are refused where the choice is made in full
        return None


def keep_recording(kind: str, recording: Recording, match: Match) -> None:
    """Keep a recording and what was chosen for other processes, where that is possible."""
    from .written import write_whole  # imported here: mostly nothing is kept

    folder = answer_folder()
    if folder is None:
        return
    notes, known = _read(kind)
    runs = merged(known, [*recording.steps, [_END, str(match.schedule), match.origin, match.note]])
    with suppress(OSError):
        make_private(folder)
        make_room(folder)
        _question(_SKETCH)  # on which what is replayed rests too
        new = note(folder)
        content = marshal.dumps([[*(one for one in notes if one != new), new] if len(runs) > 1 else [new], runs], _VERSION)
        write_whole(_file(folder, kind), _checked(content) + content, 0o600)


def followed(runs: Runs, ask: Callable[..., Any], values: list[Any] | None = None) -> Step | None:
    """Go through recordings with other operands. Return the end of the one that fits, None where none does.

    Args:
        runs: at least one.
        ask: returns the answer to a question, by its name, about an operand, by its name, with further numbers.
        values: an empty list, which gets the values of all steps; None: nobody wants them.
    """
    values = [] if values is None else values
    run: int | Step = 0
    while isinstance(run, int):
        run = _gone_through(runs[run], values, ask)
        if run == 0:
            return None
    return run


def _gone_through(steps: Iterable[Step], values: list[Any], ask: Callable[..., Any]) -> int | Step:
    """Go through a run, adding to the values. Return its end, or the run that goes on after another outcome of a comparison."""
    value, add, of_two = values.__getitem__, values.append, OF_TWO.get
    for step in steps:
        name = step[0]
        if operation := of_two(name):
            _, one, other = step
            add(operation(values[one], values[other]))
        elif name == "?":
            _, comparison, one, other, outcome, run = step
            if bool(COMPARISONS[comparison](values[one], values[other])) is not outcome:
                return run
        elif name in OPERATIONS:
            add(OPERATIONS[name](*map(value, step[1:])))
        elif name == "=":
            add(step[1])
        elif name == "ask":
            add(ask(step[1], step[2], *map(value, step[3:])))
        else:
            return step
    return 0


def merged(runs: Runs, steps: list[Step]) -> Runs:
    """Return recordings with one more. They are dropped where they do not begin as it does, and where there are too many."""
    run, place = 0, 0
    for number, step in enumerate(steps):
        known = runs[run][place] if run < len(runs) and place < len(runs[run]) else None
        if known is None or repr(known[:4]) != repr(step[:4]):
            return [steps]
        place += 1
        if step[0] == "?" and known[4] is not step[4]:
            run, place = known[5], 0
            if not run:
                known[5] = len(runs)
                return [*runs, steps[number + 1 :]] if len(runs) < MOST else [steps]
    return runs


@cache
def _question(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(".")
    return getattr(import_module(f".{module}", __package__), function)


def _read(kind: str) -> tuple[list[Note], Runs]:
    """Return the notes of the sources of recordings of a kind, and these; none where the file is damaged, or a source has changed."""
    folder = answer_folder()
    with suppress(OSError, ValueError):
        if folder is not None and flaw(folder) is None:
            found = _file(folder, kind).read_bytes()
            content = found[_DIGEST:]
            notes, runs = marshal.loads(content) if found[:_DIGEST] == _checked(content) else ([], [])
            if hold(notes, folder):
                return notes, runs
    return [], []


def _checked(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


def _file(folder: Path, kind: str) -> Path:
    return folder / f"{kind}{RECORDINGS}"
