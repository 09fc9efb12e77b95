"""Calls that are made again: operands of the same types, shapes and layouts go to the same kernel with the same sizes.

A ``Repeat`` keeps what a call found out, without its operands (``build.inputs``): the kernel, the sizes that it runs on, and the slots of
its arguments for the addresses of operands. The next call puts other addresses there and runs. This is done for results that are dense
and fit into the caches, that have the pattern of a ``Tensor``, or that the kernel assembles; other calls take so long that preparing them
costs little.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from ..format import Format
from ..frozen import frozen
from ..lowering.kernel_spec import ResultSpec
from ..native.machine import this_machine
from ..native.memory import FLOOR
from ..native.team import thread_count
from ..numpy_later import np
from ..storage.aligned import LINE_PAIR
from ..storage.level_arrays import LevelArrays
from ..storage.pooled import LEAST, pooled_empty
from ..storage.tensor import Tensor
from ..targets.c import interface
from ..targets.target import RepeatedLaunch
from .bound import BoundKernel, no_memory
from .copies import ALWAYS_AS_GIVEN, copy_rule, is_given
from .inputs import Input, Slots, make_input
from .results import Assembled, assembled_result, published, shared_levels

MISS: Final = object()
"""Returned in place of a result if a call is not like any that was kept."""

_SMALL = 4096  # bytes: a page
_NOTHING: Final = LevelArrays()
_KEPT = 8  # different calls of one kernel that are kept at hand


@frozen(eq=False)
class _Pattern:
    """Makes a sparse result from its values and the index arrays of an operand. It holds these weakly: the caller has the operand."""

    shape: tuple[int, ...]
    format: Format
    levels: tuple[weakref.ref[LevelArrays] | None, ...]
    fill_value: Any

    @classmethod
    def of(cls, bound: BoundKernel, shape: tuple[int, ...], operands: Mapping[str, Any]) -> tuple[_Pattern, int] | None:
        """Return the pattern that a result shares with an operand, and its number of values; None if the operand is not a ``Tensor``."""
        spec = bound.kernel.spec.result
        if spec.shares is None or spec.copies:
            return None
        pattern = bound.operands[spec.shares]
        data = operands.get(pattern.spec.tensor)
        levels, count = shared_levels(spec, pattern, shape)
        if not count or not isinstance(data, Tensor) or any(level.parts and level not in data.levels for level in levels):
            return None
        kept = tuple(weakref.ref(level) if level.parts else None for level in levels)
        return cls(shape, spec.format, kept, bound.kernel.fill), count

    def around(self, values: np.ndarray[Any, Any]) -> Tensor:
        levels = tuple([(None if kept is None else kept()) or _NOTHING for kept in self.levels])
        return Tensor.made(self.shape, self.format, levels, values, self.fill_value)


@frozen(eq=False)
class Result:
    """A result, or the values of one, that every call allocates anew. It is aligned, unless it is too small for that to matter."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bytes: int
    initial: Any
    slots: tuple[int, ...]
    is_scalar: bool
    pattern: _Pattern | None

    def make(self, pointers: Any, address: Callable[[Any], Any], cast: Callable[[str, Any], Any]) -> tuple[np.ndarray[Any, Any], Any]:
        """Allocate memory, put its address among the kernel's arguments, and return both."""
        if self.bytes <= _SMALL:
            made = np.empty(self.shape, self.dtype)
            memory = address(made)
        elif self.bytes >= LEAST:
            made = pooled_empty(self.bytes // self.dtype.itemsize, self.dtype).reshape(self.shape)
            memory = address(made)
        else:
            raw = np.empty(self.bytes + LINE_PAIR, np.uint8)
            begin = address(raw)
            start = -int(cast("uintptr_t", begin)) % LINE_PAIR
            made, memory = np.ndarray(self.shape, self.dtype, raw, start), begin + start
        for slot in self.slots:
            pointers[slot] = memory
        if self.initial is not None:
            made.fill(self.initial)
        return made, memory

    def handed_over(self, made: np.ndarray[Any, Any]) -> Any:
        """Return what the caller gets, once the kernel has written the memory."""
        if self.pattern is not None:
            return self.pattern.around(made)
        return made[0] if self.is_scalar else made


@frozen(eq=False)
class AssembledResult:
    """A sparse result that the kernel allocates, and hands over anew in every call."""

    spec: ResultSpec
    extents: Mapping[str, int]
    parts: tuple[Assembled, ...]
    fill_value: Any
    launch: RepeatedLaunch

    def make(self, _pointers: Any, _address: Callable[[Any], Any], _cast: Callable[[str, Any], Any]) -> tuple[Any, Any]:
        return None, None

    def handed_over(self, _made: Any) -> Tensor:
        return assembled_result(self.spec, self.extents, published(self.launch, self.parts), self.fill_value)


@frozen(eq=False)
class Repeat:
    """A call that can be made again, by one thread at a time, since all its calls share one list of arguments."""

    expression: str
    inputs: tuple[tuple[str, Input], ...]
    decided_for: tuple[tuple[str, weakref.ref[Any]], ...]
    results: tuple[Result | AssembledResult, ...]
    threads: int
    pointers: Any
    run: Callable[[], int]
    address: Callable[[Any], Any]
    cast: Callable[[str, Any], Any]

    def __call__(self, operands: Mapping[str, Any], threads: int) -> Any:
        kept: list[Any] = []
        if len(operands) != len(self.inputs) or threads != self.threads or not self.takes(self.inputs, operands, kept):
            return MISS
        return self.carried_out()[0][0]

    def takes(self, inputs: tuple[tuple[str, Input], ...], operands: Mapping[str, Any], kept: list[Any]) -> bool:
        """Put the addresses of operands among the arguments; what holds their memory goes into ``kept``.

        Returns:
            Whether these operands are as those before were.
        """
        for name, reference in self.decided_for:
            if reference() is not operands.get(name):
                return False
        pointers = self.pointers
        for name, found in inputs:  # noqa: SIM110 a generator would double the time
            if not found.place(operands.get(name), pointers, kept):
                return False
        return True

    def carried_out(self) -> list[tuple[Any, Any]]:
        """Run on the operands that ``takes`` has put in place. Returns every result and the address of its values."""
        pointers, address, cast = self.pointers, self.address, self.cast
        made = [(result, *result.make(pointers, address, cast)) for result in self.results]
        if self.run():
            raise no_memory(self.expression)
        return [(result.handed_over(array), memory) for result, array, memory in made]


class Again(Protocol):
    """What can be made again by one thread at a time: a call, or several in order."""

    def __call__(self, operands: Mapping[str, Any], threads: int) -> Any: ...


A = TypeVar("A", bound=Again)


class Repeats(Generic[A]):
    """The latest calls of a kernel, or of a request, that can be made again. Several threads may use it at once."""

    def __init__(self) -> None:
        self._known: list[A] = []

    def __call__(self, operands: Mapping[str, Any], threads: int | None) -> Any:
        """Make a call again and return its result, or ``MISS`` if no kept call is like it."""
        return self.with_threads(operands, thread_count(threads)) if self._known else MISS

    def with_threads(self, operands: Mapping[str, Any], threads: int) -> Any:
        """Make a call again with as many threads as ``thread_count`` has just said."""
        try:
            repeat = self._known.pop()  # so that no other thread makes it meanwhile
        except IndexError:
            return MISS
        result = repeat(operands, threads)
        if result is not MISS:
            self._known.append(repeat)
            return result
        result = self.with_threads(operands, threads)  # try the next one, which then stays first
        self._known.insert(0, repeat)
        return result

    def keep(self, repeat: A) -> None:
        """Keep a call that nobody else holds."""
        self._known.append(repeat)
        del self._known[:-_KEPT]

    def take(self) -> A | None:
        """Remove the latest call and return it."""
        try:
            return self._known.pop()
        except IndexError:  # another thread makes it, or has taken it
            return None

    def learn(self: Repeats[Repeat], bound: BoundKernel, operands: Mapping[str, Any], is_chosen: bool = False) -> None:
        """Keep a call that has just been made, if it can be made again.

        Args:
            bound: the bound kernel that made it; nobody else holds it.
            operands: as the caller gave them.
            is_chosen: whether its schedule was chosen for these operands. Then sparse operands are compared by identity.
        """
        repeat = repeated(bound, operands, is_chosen)
        if repeat is not None:
            self.keep(repeat)


def repeated(bound: BoundKernel, operands: Mapping[str, Any], is_chosen: bool = False) -> Repeat | None:
    """Return a call that has just been made as one that can be made again; None where it cannot. Arguments as for ``Repeats.learn``."""
    launch, function = bound.launch, bound.kernel.spec.function
    if any(operand.spec.point for operand in bound.operands.values()):
        return None  # their memory is the bound kernel's own
    if bound.claimed > FLOOR or any(spec.format != spec.requested for spec in bound.kernel.spec.results):
        return None
    if not isinstance(launch, RepeatedLaunch):
        return None
    launch = launch.without_operands()
    made = {spec.name: _result(bound, launch, spec, operands) for spec in bound.kernel.spec.results}
    if None in made.values():
        return None
    slots: dict[str, Slots] = {}
    for slot, parameter in enumerate(function.arrays):
        key, part = parameter.source[:2]
        level = parameter.source[2] if len(parameter.source) == 3 else None
        if key not in made:  # others are the result's own, or index arrays that it shares with an operand
            slots.setdefault(bound.operands[key].spec.tensor, {}).setdefault((part, level), []).append(slot)
    inputs = []
    for name, data in operands.items():
        read = [operand for operand in bound.operands.values() if operand.spec.tensor == name]
        rule = copy_rule(read[0], bound.operands) if is_given(read[0]) else ALWAYS_AS_GIVEN
        found = make_input(data, read, slots.get(name, {}), rule, bound.kernel)
        if found is None:
            return None
        inputs.append((name, found))
    others = [(name, data) for name, data in operands.items() if is_chosen and not isinstance(data, (np.ndarray, float, Tensor))]
    results = tuple(result for result in made.values() if result is not None)
    watched = tuple((name, weakref.ref(data)) for name, data in others)
    ffi, text = interface(), bound.kernel.spec.expression
    return Repeat(text, tuple(inputs), watched, results, bound.threads, launch.pointers, launch.run, ffi.from_buffer, ffi.cast)


def _result(
    bound: BoundKernel, launch: RepeatedLaunch, spec: ResultSpec, operands: Mapping[str, Any]
) -> Result | AssembledResult | None:
    """Return how a result is made in every call; None where that has to be found out again."""
    if not spec.format.is_dense and spec.shares is None:
        return AssembledResult(spec, bound.extents, bound.kernel.assembled, bound.kernel.fill, launch)
    shape = tuple(bound.extents[index] for index in spec.indices)
    kind, count, pattern = np.dtype(spec.dtype), math.prod(shape), None
    if not spec.format.is_dense:
        if (shared := _Pattern.of(bound, shape, operands)) is None:
            return None
        pattern, count = shared
    elif spec.format.order != tuple(range(len(shape))):
        return None
    if count * kind.itemsize > this_machine().last_level_cache // 2:
        return None  # whether large results bypass the caches depends on their address
    places = tuple(
        slot for slot, parameter in enumerate(bound.kernel.spec.function.arrays) if parameter.source[:2] == (spec.name, "values")
    )
    initial = bound.kernel.fill if spec.initial == "zero" else None
    array = (shape or (1,)) if pattern is None else (count,)
    return Result(array, kind, count * kind.itemsize, initial, places, not shape, pattern)
