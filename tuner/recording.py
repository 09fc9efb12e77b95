"""Numbers that write down how they are computed, so that the same can be computed of other operands without what computed it.

The static model reads little of the operands: extents, how many entries they store, how evenly. Run on numbers of this kind, it leaves
a *recording*: questions about operands, arithmetic, and comparisons with their outcomes. What the model chose is what it chooses for all
operands for which every comparison comes out the same, as in compilers that trace loops (Gal et al., "Trace-based Just-in-Time Type
Specialization for Dynamic Languages", PLDI 2009, section 3). ``replay`` goes through recordings again.

A recorded number is neither an int nor a float, and a recorded operand is no tensor. Whoever takes the plain number out of one, or reads
what no question tells, gets it and thereby spoils the recording, which then is not kept: what is kept depends on nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .steps import COMPARISONS, OPERATIONS, Asked, Noted, Step

Answer = TypeVar("Answer")

_UNKNOWN = 0  # no recording has this outcome of a comparison: see ``replay.Recordings``


class Recording:
    """The steps of a run so far. Equal steps are written once.

    Attributes:
        steps: in order.
        is_whole: whether the run depends on nothing but what the steps tell.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.is_whole = True
        self._places: dict[tuple[Any, ...], int] = {}
        self._compared: set[tuple[str, int, int]] = set()

    def number(self, value: Any, *step: Any) -> Recorded:
        """Return the number that a step makes."""
        key = tuple((type(part), part) for part in step)  # 1, 1.0 and True are equal
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self._places)
            self.steps.append(list(step))
        return Recorded(self, place, value)

    def place(self, value: Any) -> int:
        """Return the place of a number; one that is not recorded is a constant."""
        if isinstance(value, Recorded):
            return value.place
        return self.number(value, "=", float(value) if isinstance(value, float) else value).place  # NumPy has floats of its own

    def asked(self, question: str, operand: str, arguments: Sequence[Any], value: Any) -> Recorded:
        """Return the answer to a question about an operand."""
        return self.number(value, "ask", question, operand, *map(self.place, arguments))

    def outcome(self, comparison: str, left: Any, right: Any) -> bool:
        """Compare two numbers, and note what comes out."""
        found = bool(COMPARISONS[comparison](plain(left), plain(right)))
        key = comparison, self.place(left), self.place(right)
        if key not in self._compared:
            self._compared.add(key)
            self.steps.append(["?", *key, found, _UNKNOWN])
        return found


class Recorded(Noted):
    """A number with its place in a recording."""

    __slots__ = ("place", "recording", "value")
    __array_ufunc__ = None  # NumPy's numbers leave arithmetic with these to them

    def __init__(self, recording: Recording, place: int, value: Any) -> None:
        self.recording, self.place, self.value = recording, place, value

    def made(self, operation: str, *operands: Any) -> Recorded:
        """Return what an operation makes of numbers, of which this is one."""
        places = [self.recording.place(one) for one in operands]
        return self.recording.number(OPERATIONS[operation](*map(plain, operands)), operation, *places)

    def _taken(self) -> Any:
        """Return the plain number. What is done with it is not recorded."""
        self.recording.is_whole = False
        return self.value

    def __bool__(self) -> bool:
        return self.recording.outcome("!=", self, 0)

    def __neg__(self) -> Recorded:
        return self.made("negative", self)

    def __abs__(self) -> Recorded:
        return self.made("size", self)

    def __ceil__(self) -> Recorded:
        return self.made("ceil", self)

    def __round__(self, digits: int | None = None) -> Recorded:
        return self.made("round", self) if digits is None else self.made("round", self, digits)

    def __float__(self) -> float:
        return float(self._taken())

    def __int__(self) -> int:
        return int(self._taken())

    def __index__(self) -> int:
        return operator.index(self._taken())

    def __hash__(self) -> int:
        return hash(self._taken())

    def __repr__(self) -> str:
        return repr(self._taken())

    def __format__(self, form: str) -> str:
        return format(self._taken(), form)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Recorded))


def _arithmetic(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the methods of an operation of two numbers, for the left one and for the right one."""

    def of_left(one: Recorded, other: Any) -> Any:
        return one.made(name, one, other) if _is_number(other) else NotImplemented

    def of_right(one: Recorded, other: Any) -> Any:
        return one.made(name, other, one) if _is_number(other) else NotImplemented

    return of_left, of_right


def _comparing(name: str) -> Callable[..., Any]:
    def compared(one: Recorded, other: Any) -> Any:
        return one.recording.outcome(name, one, other) if _is_number(other) else NotImplemented

    return compared


for _name, _method in {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow"}.items():
    for _side, _function in zip(("", "r"), _arithmetic(_name), strict=True):
        setattr(Recorded, f"__{_side}{_method}__", _function)
for _name, _method in {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}.items():
    setattr(Recorded, f"__{_method}__", _comparing(_name))


class RecordedOperand(Asked):
    """Stands for an operand while a recording is made. It tells what depends on the operand's format alone, and answers questions."""

    def __init__(self, recording: Recording, name: str, tensor: Any) -> None:
        self._recording, self._name, self._tensor = recording, name, tensor
        self.format, self.dtype, self.order, self.fill_value = tensor.format, tensor.dtype, tensor.order, tensor.fill_value

    def __getattr__(self, name: str) -> Any:
        self._recording.is_whole = False  # no question tells this
        return getattr(self._tensor, name)

    def by_format(self, find: Callable[[Any], Answer]) -> Answer:
        """Return what a function finds out about the operand of which only that is used that depends on the operand's format alone."""
        return find(self._tensor)

    def answer(self, question: Callable[..., Any], arguments: Sequence[Any]) -> Recorded:
        """Return the answer to a question (``asks``)."""
        name = f"{question.__module__.rpartition('.')[2]}.{question.__name__}"
        return self._recording.asked(name, self._name, arguments, question(self._tensor, *map(plain, arguments)))


def plain(value: Any) -> Any:
    """Return a number without its place."""
    return value.value if isinstance(value, Recorded) else value


def fixed(value: Any) -> Any:
    """Return a plain number where a recording holds for this very number only."""
    return value.value if isinstance(value, Recorded) and value == value.value else value
