"""Lists of passes: what each pass requires and gives, which orders are refused, and how a list runs.

A pass takes a kernel and gives a kernel that computes the same. Some find what they look for only in the form in which others leave
a kernel. Such a form is a ``Property``: a pass names those that it requires, those that it gives, and those that it ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count

from ..frozen import frozen
from ..ir.nodes import Allocate, Function, Load, Var
from ..ir.rewrite import nodes_of
from ..ir.verify import IllFormed, verify


@frozen
class VectorUnit:
    """The vectors of a processor, or what the threads of a GPU share, as passes know them.

    Attributes:
        bytes: how wide they are.
        masks: whether the first lanes of a vector are read alone in one instruction.
        gathers: from how many iterations on gathered elements are summed faster in vectors than one by one; None: never.
        gather_bytes: how wide vectors are at most in loops that gather.
        shared_bytes: of memory that the threads of a GPU's block share at most.
    """

    bytes: int
    masks: bool = False
    gathers: int | None = None
    gather_bytes: int = 64
    shared_bytes: int = 48 * 1024


class Setting:
    """The state that the passes over one kernel share: what they are for, and the names that are taken.

    A name that one pass makes no other makes again, so that it means the same after every pass.

    Attributes:
        unit: the vectors for which the kernel is generated.
        widest: bytes of the widest value that the kernel computes with.
        lanes: of all its vectors; 1 where it has none.
    """

    def __init__(self, unit: VectorUnit, function: Function) -> None:
        self.unit = unit
        self._taken = {parameter.name for parameter in (*function.arrays, *function.sizes)}
        self._taken |= {node.name for node in nodes_of(function.body, Var)} | {node.array for node in nodes_of(function.body, Allocate)}
        kinds = [node.type for node in nodes_of(function.body, Load, Var, Allocate)]
        self.widest = max((kind.bytes for kind in kinds if kind.is_float), default=8)
        self.lanes = max(unit.bytes // self.widest, 1)

    def fresh(self, wish: str) -> str:
        """Return a name that nothing else has."""
        candidates = chain((wish,), (f"{wish}_{number}" for number in count(1)))
        chosen = next(name for name in candidates if name not in self._taken)
        self._taken.add(chosen)
        return chosen

@frozen
class Property:
    """A form of kernels on which passes build.

    Attributes:
        meaning: what is true of such kernels, in words.
        fault: returns a text that says what contradicts it, None if nothing does.
    """

    meaning: str
    fault: Callable[[Function], str | None] | None = None


@frozen
class Pass:
    """One pass by its name.

    Attributes:
        requires: what has to be true before it.
        gives: what is true after it.
        ends: what need not be true any more after it.
    """

    name: str
    run: Callable[[Function, Setting], Function]
    requires: frozenset[Property] = frozenset()
    gives: frozenset[Property] = frozenset()
    ends: frozenset[Property] = frozenset()


class PassList:
    """Passes in an order in which each finds what it requires.

    Attributes:
        passes: in order.
        at_first: what is true of kernels as lowering makes them.
    """

    def __init__(self, passes: Iterable[Pass], at_first: Iterable[Property] = ()) -> None:
        """Create a list.

        Raises:
            ValueError: a pass requires what is not true where it stands, or two passes have one name.
        """
        self.passes, self.at_first = tuple(passes), frozenset(at_first)
        names = [each.name for each in self.passes]
        if len(names) > len(set(names)):
            raise ValueError(f"two passes have one name: {', '.join(names)}")
        held = self.at_first
        for each in self.passes:
            missing = each.requires - held
            if missing:
                meanings = ", and that ".join(sorted(one.meaning for one in missing))
                raise ValueError(f"pass '{each.name}' stands where it cannot: it requires that {meanings}")
            held = (held - each.ends) | each.gives

    def with_pass(self, added: Pass, before: str | None = None) -> PassList:
        """Return the list with one more pass: before another one, or at the end.

        Raises:
            ValueError: there is no pass of the name ``before``, or the list could not be made.
        """
        names = [each.name for each in self.passes]
        if before is not None and before not in names:
            raise ValueError(f"there is no pass '{before}' before which '{added.name}' could stand; there are {', '.join(names)}")
        place = len(names) if before is None else names.index(before)
        return PassList((*self.passes[:place], added, *self.passes[place:]), self.at_first)

    def without_pass(self, name: str) -> PassList:
        """Return the list without a pass. Raises ValueError where a later one requires what it gives."""
        return PassList((each for each in self.passes if each.name != name), self.at_first)

    def stages(self, function: Function, unit: VectorUnit) -> Iterator[tuple[Pass, Function]]:
        """Yield every pass with the kernel as it leaves it.

        Raises:
            IllFormed: where programs are verified, lowering or a pass made one that breaks a rule, or a property that was given.
        """
        setting, held, verifies = Setting(unit, function), self.at_first, is_verifying()
        if verifies:
            _check(function, "lowering", held)
        for each in self.passes:
            function = each.run(function, setting)
            held = (held - each.ends) | each.gives
            if verifies:
                _check(function, f"pass '{each.name}'", held)
            yield each, function

    def run(self, function: Function, unit: VectorUnit) -> Function:
        """Return the kernel after all passes."""
        for _, made in self.stages(function, unit):
            function = made
        return function


def is_verifying() -> bool:
    """Return whether programs are checked between passes: $SPARSETUNE_VERIFY says so."""
    return os.environ.get("SPARSETUNE_VERIFY", "0") not in ("", "0")


def _check(function: Function, maker: str, held: Iterable[Property]) -> None:
    verify(function, maker)
    for each in held:
        fault = each.fault(function) if each.fault is not None else None
        if fault is not None:
            raise IllFormed(f"{maker} made a program of which it is not true that {each.meaning}: {fault}")
