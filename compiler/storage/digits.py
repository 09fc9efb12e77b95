"""Orders of whole numbers, found digit by digit: some ten thousand numbers take a third of the time of a sort that compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..numpy_later import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BITS = 16  # of a digit: NumPy orders numbers of so many bits by what they are, without comparing them


def stable_order(numbers: NDArray[Any], end: int) -> NDArray[np.intp]:
    """Return the places of numbers in their order, equal ones as they stand. All are at least 0 and less than ``end``."""
    order = np.argsort(_digit(numbers, 0, end), kind="stable")
    for shift in range(_BITS, (end - 1).bit_length(), _BITS):
        order = order.take(np.argsort(_digit(numbers, shift, end).take(order), kind="stable"))
    return order


def first_places(ordered: NDArray[Any]) -> NDArray[np.intp]:
    """Return the first place of each of some numbers in order."""
    return np.flatnonzero(np.concatenate((np.ones(min(1, len(ordered)), bool), ordered[1:] > ordered[:-1])))


def _digit(numbers: NDArray[Any], shift: int, end: int) -> NDArray[Any]:
    return (numbers >> shift if shift else numbers).astype(np.uint8 if end >> shift < 2**8 else np.uint16)
