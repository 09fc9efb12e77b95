"""How far the indices of affine subscripts go (DESIGN 4.5).

An index that a plain subscript has, or that the caller gives, goes as far as that says. Any other index of compound subscripts goes from 0
to the last value at which all of these read inside their operands, for all values of the other indices. What is written at
``y(2*i + j)`` is as long as the largest subscript says, or as is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..errors import ShapeError
from ..frozen import frozen
from ..notation.nodes import Affine, Assignment, accesses, indices
from .arithmetic import INTEGERS
from .relations import SumRelation


@frozen
class Reading:
    """A mode of an operand at a compound subscript."""

    tensor: str
    mode: int
    subscript: Affine

    def __str__(self) -> str:
        return f"'{self.subscript}' of mode {self.mode} of operand '{self.tensor}'"


@frozen
class Writing:
    """A mode of the result at a compound subscript, and the index that stands for it."""

    index: str
    mode: int
    subscript: Affine


@frozen
class Ranges:
    """How the extents of indices in compound subscripts follow from those that are known.

    Attributes:
        inferred: (index, the readings that it must stay inside), in an order in which they follow from one another.
        written: what the result is written at.
        result: the name of the result.
        undetermined: (index, why nothing says how far it goes).
        fixed: the readings at constant subscripts.
    """

    inferred: tuple[tuple[str, tuple[Reading, ...]], ...]
    written: tuple[Writing, ...]
    result: str
    undetermined: tuple[tuple[str, str], ...]
    fixed: tuple[Reading, ...] = ()

    @property
    def inside(self) -> frozenset[Reading]:
        """The readings that never leave their operand, since the range of one of their indices was chosen so."""
        return frozenset((*self.fixed, *(reading for _, readings in self.inferred for reading in readings)))

    def complete(self, extents: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Return extents with those that follow from them.

        Args:
            extents: of indices that plain subscripts and callers determine.
            shapes: of the operands, by name.

        Raises:
            ShapeError: an index has no range, or a subscript of the result lies outside it.
        """
        found = dict(extents)
        for index, readings in self.inferred:
            most = min(_most(index, reading, shapes[reading.tensor][reading.mode], found) for reading in readings)
            if found.setdefault(index, most) > most:
                raise ShapeError(
                    f"index '{index}' was to follow from its subscripts, which give {most}, but the given shape says {found[index]};"
                    " compile the kernel with that shape"
                )
        for reading in self.fixed:
            extent = shapes[reading.tensor][reading.mode]
            if not 0 <= reading.subscript.constant < extent:
                raise ShapeError(f"{reading} is outside of its extent {extent}")
        for index, reason in self.undetermined:
            if index not in found:
                raise ShapeError(f"no operand says how far index '{index}' goes: {reason}; give its extent: shape={{'{index}': ...}}")
        for writing in self.written:
            found[writing.index] = self._length(writing, found)
        return found

    def _length(self, writing: Writing, extents: Mapping[str, int]) -> int:
        least, most = _span(writing.subscript, extents)
        where = f"subscript '{writing.subscript}' of the result '{self.result}'"
        if least < 0:
            raise ShapeError(f"{where} reaches {least}; results begin at 0: add {-least} to it")
        length = extents.get(writing.index, most + 1)
        if length <= most:
            wish = f"mode {writing.mode} of the result was to have extent {length}"
            raise ShapeError(f"{where} reaches {most}, but {wish}; give {most + 1} or more")
        return length


def ranges_of(assignment: Assignment, determined: Collection[str], writings: tuple[Writing, ...] = ()) -> Ranges:
    """Return how the extents of an assignment's indices follow from those that are known.

    Args:
        assignment: as it was written.
        determined: indices whose extents the caller gives.
        writings: the compound subscripts of the result.
    """
    read = [*accesses(assignment.value), *([assignment.target] if assignment.operator == "+=" else [])]
    known = {*determined, *(part.index for access in read for part in access.subscripts if part.is_index)}
    compound = tuple(dict.fromkeys(
        Reading(access.tensor, mode, part)
        for access in accesses(assignment.value) for mode, part in enumerate(access.subscripts) if not part.is_index
    ))  # fmt: skip
    readings = tuple(reading for reading in compound if reading.subscript.terms)
    fixed = tuple(reading for reading in compound if not reading.subscript.terms)
    open_ = [name for name in dict.fromkeys((*assignment.target.indices, *indices(assignment.value))) if name not in known]
    inferred: list[tuple[str, tuple[Reading, ...]]] = []
    while True:
        found = {index: tuple(one for one in readings if set(one.subscript.indices) - known == {index}) for index in open_}
        inferred += [(index, own) for index, own in found.items() if own]
        known |= {index for index, own in found.items() if own}
        if not any(found.values()):
            break
        open_ = [index for index in open_ if index not in known]
    undetermined = tuple((index, _reason(index, readings, open_)) for index in open_)
    return Ranges(tuple(inferred), writings, assignment.target.tensor, undetermined, fixed)


def _reason(index: str, readings: tuple[Reading, ...], undetermined: Collection[str]) -> str:
    for reading in readings:
        if index in reading.subscript.indices:
            other = next(name for name in reading.subscript.indices if name in undetermined and name != index)
            return f"it stands in {reading} beside '{other}', whose extent is not known either"
    return "it is only on the left side"


def _span(subscript: Affine, extents: Mapping[str, int]) -> tuple[int, int]:
    """Return the least and the largest value of a subscript; (0, -1) where an index has none."""
    if any(extents[name] == 0 for name in subscript.indices):
        return 0, -1
    spread = SumRelation(subscript).known(INTEGERS, extents.__getitem__, (), extents)
    return spread.least, spread.most


def _most(index: str, reading: Reading, extent: int, extents: Mapping[str, int]) -> int:
    """Return for how many values of an index, from 0 on, a reading stays inside its operand."""
    factor = dict(reading.subscript.terms)[index]
    rest = Affine(tuple(term for term in reading.subscript.terms if term[0] != index), reading.subscript.constant)
    least, most = _span(rest, extents)
    if least > most:
        return 0  # nothing is read
    start, room = (least, extent - 1 - most) if factor > 0 else (extent - 1 - most, least)
    if start < 0:
        reaches = least if factor > 0 else most
        advice = f"say how far it goes: shape={{'{index}': ...}}"
        raise ShapeError(f"at {index} = 0 {reading} reaches {reaches}, outside of its extent {extent}; {advice}")
    return max(0, room // abs(factor) + 1)
