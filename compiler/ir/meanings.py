"""The functions that the loop IR calls, in Python for the interpreter, and what it keeps for maps and parts.

``intrinsics`` describes their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..numpy_later import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class KeyMap:
    """A map from keys to ordinals, as the interpreter keeps it."""

    def __init__(self) -> None:
        self.ordinals: dict[int, int] = {}
        self.keys: list[int] = []

    def insert(self, key: int) -> int:
        """Return the ordinal of a key. A new key gets the number of keys there were before it."""
        if key not in self.ordinals:
            self.ordinals[key] = len(self.keys)
            self.keys.append(key)
        return self.ordinals[key]

    def clear(self) -> None:
        """Remove all keys; the next one gets ordinal 0 again."""
        self.ordinals.clear()
        self.keys.clear()


class Parts:
    """Arrays that threads have left, by place, as the interpreter keeps them."""

    def __init__(self) -> None:
        self.arrays: dict[int, Any] = {}
        self.enlisted = 0

    def enlist(self) -> int:
        """Return the number of one more thread that uses the parts: 0, 1, 2 ..."""
        self.enlisted += 1
        return self.enlisted - 1


def copy(array: NDArray[Any], at: int, source: NDArray[Any], first: int, count: int, whole: int) -> None:
    """Copy elements into an array. How many this will have in the end changes nothing."""
    _copied(array, at, source, first, count)


def _copied(array: NDArray[Any], at: int, source: NDArray[Any], first: int, count: int) -> None:
    """Copy ``count`` elements from one place of an array to a place of another."""
    check_range(array, at, at + count)
    check_range(source, first, first + count)
    array[at : at + count] = source[first : first + count]


def copy_part(array: NDArray[Any], at: int, parts: Parts, place: int, first: int, count: int, whole: int) -> None:
    """Copy elements of the array that was left at a place of the parts."""
    if place not in parts.arrays:
        raise IndexError(f"nothing was left at place {place}")
    parts.arrays[place].check(first, count, True)
    _copied(array, at, parts.arrays[place].data, first, count)


# A table of pieces (csrc/st_pieces.h): how many are summed, a lock, then the sums, or counts, of all levels of one piece after another


def begin_pieces(table: NDArray[Any], levels: int, pieces: int) -> None:
    """Mark the numbers of entries of all pieces as unknown."""
    table[: 2 + levels], table[2 + levels : 2 + levels * (pieces + 1)] = 0, -1


def note_piece(table: NDArray[Any], levels: int, piece: int, level: int, count: int) -> None:
    """Note how many entries a piece has in a level."""
    table[2 + levels * (piece + 1) + level] = count


def sum_pieces(table: NDArray[Any], levels: int, pieces: int) -> int:
    """Add up the numbers of pieces up to the first unknown one; return how many pieces are added up."""
    rows = table[2 : 2 + levels * (pieces + 1)].reshape(-1, levels)
    while table[0] < pieces and rows[table[0] + 1, -1] >= 0:
        rows[table[0] + 1] += rows[table[0]]
        table[0] += 1
    return int(table[0])


def piece_place(table: NDArray[Any], levels: int, piece: int, level: int) -> int:
    """Return where the entries of a piece begin in a level; all pieces before it must be known."""
    if piece > table[0]:
        raise IndexError(f"the place of piece {piece} is not known yet")
    return int(table[2 + levels * piece + level])


def check_range(array: NDArray[Any], low: int, high: int) -> None:
    """Raise ``IndexError`` if a range that is not empty reaches beyond an array."""
    if not (0 <= low <= high <= len(array)) and low < high:
        raise IndexError(f"range {low} .. {high} of an array of {len(array)} elements")


# Dense loops (csrc/st_blas.h)


def _strided(array: NDArray[Any], first: int, strides: Sequence[int], extents: Sequence[int]) -> NDArray[Any]:
    """Return a strided view of an array, after checking that it lies inside."""
    reach = [stride * (extent - 1) for stride, extent in zip(strides, extents, strict=True)]
    check_range(array, first + sum(min(part, 0) for part in reach), first + sum(max(part, 0) for part in reach) + 1)
    return np.lib.stride_tricks.as_strided(array[first:], extents, [stride * array.itemsize for stride in strides])


def gemm(c: Any, at_c: int, c_m: int, c_n: int, a: Any, at_a: int, a_m: int, a_k: int, b: Any, at_b: int, b_k: int, b_n: int,
          m: int, n: int, k: int, scale: Any) -> None:  # fmt: skip
    """Add ``scale * a @ b`` to ``c``, all matrices with strides of their own (BLAS)."""
    if min(m, n, k) > 0:
        left, right = _strided(a, at_a, (a_m, a_k), (m, k)), _strided(b, at_b, (b_k, b_n), (k, n))
        _strided(c, at_c, (c_m, c_n), (m, n))[...] += scale * (left @ right)


def gemv(y: Any, at_y: int, y_m: int, a: Any, at_a: int, a_m: int, a_k: int, x: Any, at_x: int, x_k: int,
          m: int, k: int, scale: Any) -> None:  # fmt: skip
    """Add ``scale * a @ x`` to ``y`` (BLAS)."""
    gemm(y, at_y, y_m, 0, a, at_a, a_m, a_k, x, at_x, x_k, 0, m, 1, k, scale)


def ger(a: Any, at_a: int, a_m: int, a_n: int, x: Any, at_x: int, x_m: int, y: Any, at_y: int, y_n: int,
         m: int, n: int, scale: Any) -> None:  # fmt: skip
    """Add ``scale`` times the products of each element of ``x`` with each of ``y`` to ``a`` (BLAS)."""
    gemm(a, at_a, a_m, a_n, x, at_x, x_m, 0, y, at_y, 0, y_n, m, n, 1, scale)


def axpy(y: Any, at_y: int, y_n: int, x: Any, at_x: int, x_n: int, n: int, scale: Any) -> None:
    """Add ``scale * x`` to ``y`` (BLAS)."""
    if n > 0:
        _strided(y, at_y, (y_n,), (n,))[...] += scale * _strided(x, at_x, (x_n,), (n,))


def dot(x: Any, at_x: int, x_n: int, y: Any, at_y: int, y_n: int, n: int) -> Any:
    """Return the sum of the products of elements of ``x`` and ``y`` (BLAS)."""
    if n <= 0:
        return x.dtype.type(0)
    return _strided(x, at_x, (x_n,), (n,)) @ _strided(y, at_y, (y_n,), (n,))


def sort(array: NDArray[Any], count: int) -> None:
    """Sort the first elements of an array."""
    sort_range(array, 0, count)


def sort_range(array: NDArray[Any], low: int, high: int) -> None:
    """Sort the elements of an array from ``low`` to ``high``."""
    check_range(array, low, high)
    if low < high:
        array[low:high] = np.sort(array[low:high])


def scan(array: NDArray[Any], count: int) -> None:
    """Replace the first elements of an array by their running sums."""
    check_range(array, 0, count)
    array[:count] = np.cumsum(array[:count])


def load_wide(row: NDArray[Any], array: NDArray[Any], first: int, count: int) -> None:
    """Copy consecutive elements of an array to the first places of a row."""
    _copied(row, 0, array, first, count)


def load_wide_from(row: NDArray[Any], array: NDArray[Any], base: int, first: int, count: int) -> None:
    """Copy consecutive elements of an array, counted from ``base``, to the first places of a row."""
    _copied(row, 0, array, base + first, count)


def store_wide(array: NDArray[Any], first: int, row: NDArray[Any], count: int) -> None:
    """Copy the first elements of a row to consecutive places of an array."""
    _copied(array, first, row, 0, count)


def load_from(array: NDArray[Any], base: int, place: int) -> Any:
    """Return an element of an array, counted from ``base``."""
    check_range(array, base + place, base + place + 1)
    return array[base + place]


def carry(to: NDArray[Any], kept: NDArray[Any], result: NDArray[Any], slots: int, width: int, operator: int) -> None:
    """Add the values that threads kept to their places of the result, slot after slot."""
    update = (np.add, np.multiply, np.minimum, np.maximum, np.logical_and, np.logical_or)[operator]
    for place, value in zip(to[: slots * width], kept[: slots * width], strict=True):
        if place >= 0:
            result[place] = update(result[place], value)


def table_insert(table: NDArray[Any], size: int, key: int) -> int:
    """Put a key into a hash table of ``size`` slots, a power of two, and return its slot."""
    check_range(table, 0, size)
    home = (key * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 65 - size.bit_length() if size > 1 else 0
    place = next(slot for step in range(size) if table[slot := home + step & size - 1] in (-1, key))
    table[place] = key
    return place


def table_keys(keys: NDArray[Any], table: NDArray[Any], size: int) -> int:
    """Copy the keys of a hash table, in the order of their slots, and return how many there are."""
    found = table[:size][table[:size] >= 0]
    keys[: len(found)] = found
    return len(found)


def table_count(table: NDArray[Any], size: int) -> int:
    """Return how many keys a hash table holds."""
    return int((table[:size] >= 0).sum())


def places(begin: int, low: int, high: int) -> int:
    """Return a bit for each of 32 numbers from ``begin`` on: whether it is one of ``low .. high``."""
    if low < high and not begin <= low < high <= begin + 32:
        raise IndexError(f"{low} .. {high} are not among 32 numbers from {begin} on")
    return sum(1 << (number - begin) for number in range(low, high))


def has_place(found: int, place: int) -> bool:
    """Return whether the bit of a place is set."""
    return bool(found >> place & 1)


def bits_insert(bits: NDArray[Any], n: int, key: int) -> bool:
    """Insert a key into the set of csrc/st_bits.h. Its upper levels only make draining faster, so they are not kept here."""
    check_range(bits, 0, -(-n // 64))
    if not 0 <= key < n:
        raise IndexError(f"key {key} of a set of {n}")
    word, mask = key >> 6, 1 << (key & 63)
    new = not int(bits[word]) & mask
    bits[word] = int(bits[word]) | mask
    return new


def bits_drain(keys: NDArray[Any], bits: NDArray[Any], n: int) -> int:
    """List the numbers of the bits that are set, clear them, and return how many there were."""
    found = [word * 64 + bit for word in np.flatnonzero(bits) for bit in range(64) if int(bits[word]) >> bit & 1]
    check_range(keys, 0, len(found))
    keys[: len(found)] = found
    bits[:] = 0
    return len(found)


def few_drain(keys: NDArray[Any], bits: NDArray[Any], n: int, count: int) -> int:
    """Check that the listed keys are those of the set, sort them and clear the set."""
    listed = sorted(int(key) for key in keys[:count])
    if bits_drain(keys, bits, n) != count or listed != keys[:count].tolist():
        raise IndexError("the keys that are listed are not those of the set")
    return count


def quiet(name: str) -> Callable[..., Any]:
    """Return NumPy's function of numbers of a name. It gives inf and NaN without a warning, and Python numbers except for float32."""

    def meaning(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            found = getattr(np, name)(*arguments)
        return found if found.dtype == np.float32 else found.item()

    return meaning


def holds(condition: Any) -> bool:
    """Return a condition."""
    return bool(condition)


def one(_arguments: Sequence[Any], _result: Any) -> int:
    """Return the number of comparisons of a function that looks at one place."""
    return 1
