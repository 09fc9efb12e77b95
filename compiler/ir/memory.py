"""Arrays of the interpreter: every access is checked, and reading an element that was never written is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..numpy_later import np
from .nodes import Type
from .races import Turn, Users

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NAMES = {"bool": "bool", "f32": "float32", "f64": "float64"}


class InterpreterError(Exception):
    """The interpreted program did something that a compiled one must never do."""


def numpy_type(kind: Type) -> np.dtype[Any]:
    """Return the numpy dtype of a scalar type."""
    name = kind.element.name
    return np.dtype(_NAMES.get(name) or f"{'uint' if name.startswith('u') else 'int'}{name[1:]}")


class Memory:
    """One array.

    Attributes:
        name: the name in messages.
        data: the elements.
        written: which elements have been written; None if all have.
        turn: tells which iteration of a parallel loop uses the array; None if it is private to a thread.
        freed: whether it may not be used any more.
    """

    def __init__(self, name: str, data: NDArray[Any], written: bool, turn: Turn | None = None) -> None:
        self.name = name
        self.data = data
        self.written: NDArray[np.bool_] | None = None if written else np.zeros(len(data), bool)
        self.turn = turn
        self.freed = False
        self._users: Users | None = None

    def _note(self, places: Any, writing: bool, atomic: bool = False) -> None:
        """Note a use of elements, and refuse it if another iteration of the parallel loop uses them and one of both writes.

        Raises:
            InterpreterError: there is such a race; the message names the array.
        """
        if self.turn is None or not self.turn.number:
            return
        if self._users is None or len(self._users.readers) < len(self.data):
            self._users = Users(len(self.data))
        users = self._users
        if users.write(places, self.turn, atomic) if writing else users.read(places, self.turn):
            raise InterpreterError(f"two iterations of a parallel loop use an element of array {self.name}, and one writes it")

    def check(self, first: int, count: int, reading: bool) -> None:
        """Refuse places outside of the array, reads of elements that were never written, and uses after ``Free``.

        Raises:
            InterpreterError: the access is refused; the message names the array and the place.
        """
        if self.freed:
            raise InterpreterError(f"array {self.name} is used after it was freed")
        if first < 0 or first + count > len(self.data):
            place = first if first < 0 else first + count - 1
            raise InterpreterError(f"array {self.name} has {len(self.data)} elements, but element {place} is used")
        if reading and self.written is not None and not self.written[first : first + count].all():
            raise InterpreterError(f"element {first} of array {self.name} is read before it was written")

    def load(self, index: int) -> Any:
        """Return one element.

        Raises:
            InterpreterError: see ``check``; or another iteration of the parallel loop writes the element.
        """
        self.check(index, 1, True)
        self._note(slice(index, index + 1), False)
        return self.data[index]

    def load_lanes(self, first: int, lanes: int) -> NDArray[Any]:
        """Return a copy of ``lanes`` neighbouring elements from ``first`` on.

        Raises:
            InterpreterError: see ``check``; or another iteration of the parallel loop writes one of them.
        """
        self.check(first, lanes, True)
        self._note(slice(first, first + lanes), False)
        return self.data[first : first + lanes].copy()

    def gather(self, places: NDArray[Any]) -> NDArray[Any]:
        """Return the elements at some places, in that order.

        Raises:
            InterpreterError: see ``check``; or another iteration of the parallel loop writes one of them.
        """
        for place in places:
            self.check(int(place), 1, True)
        self._note(places, False)
        return self.data[places]

    def held(self, first: int, lanes: int) -> Any:
        """Return the elements that an update reads. Only the write of the update is noted as a use."""
        self.check(first, lanes, True)
        return self.data[first : first + lanes].copy() if lanes > 1 else self.data[first]

    def store(self, first: int, value: Any, lanes: int = 1, atomic: bool = False) -> None:
        """Write ``lanes`` neighbouring elements from ``first`` on, and mark them as written.

        Args:
            value: a scalar, or an array of ``lanes`` elements.
            atomic: whether this is the write of an atomic update, which may meet other atomic updates.

        Raises:
            InterpreterError: see ``check``; another iteration of the parallel loop uses an element; or a value does not fit into the type.
        """
        self.check(first, lanes, False)
        self._note(slice(first, first + lanes), True, atomic)
        try:
            if lanes == 1:
                self.data[first] = value
            else:
                self.data[first : first + lanes] = value
        except OverflowError:
            raise InterpreterError(f"{value} does not fit into an element of array {self.name}, which is {self.data.dtype}") from None
        if self.written is not None:
            self.written[first : first + lanes] = True

    def grow(self, capacity: int) -> None:
        """Extend the array to ``capacity`` elements, the new ones never written."""
        old = len(self.data)
        held = np.ones(old, bool) if self.written is None else self.written
        self.data = np.concatenate((self.data, np.zeros(capacity - old, self.data.dtype)))
        self.written = np.concatenate((held, np.zeros(capacity - old, bool)))

    def touch_all(self) -> None:
        """Mark the whole array as written, after an intrinsic has run over it."""
        self.written = None
