"""Lists of passes: what each pass requires and gives, how wrong orders are refused, and how a list runs.

A pass changes a kernel into one that computes the same. Some passes work only on kernels in a form that other passes produce. Such a
form is a ``Property``: a pass names the properties that it requires, those that it gives, and those that no longer hold after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from ..fresh import FreshNames
from ..frozen import frozen
from ..ir.nodes import Allocate, Function, Load, Var
from ..ir.rewrite import nodes_of
from ..ir.verify import IllFormed, verify


@frozen
class VectorUnit:
    """What passes know of the vectors of a processor, or of the shared memory of a GPU.

    Attributes:
        bytes: the width of vectors.
        masks: whether one instruction can load only the first lanes of a vector.
        gathers: the least number of iterations for which summing gathered elements is faster in vectors than one by one; None: never.
        gather_bytes: the largest width of vectors in loops that gather.
        shared_bytes: the most shared memory of a GPU's block.
    """

    bytes: int
    masks: bool = False
    gathers: int | None = None
    gather_bytes: int = 64
    shared_bytes: int = 48 * 1024


class Setting:
    """The state that the passes over one kernel share: the properties of the processor, and the names in use.

    A name that one pass makes no other makes again, so that it means the same after every pass.

    Attributes:
        unit: the vectors for which the kernel is generated.
        widest: bytes of the widest value that the kernel computes with.
        lanes: of all its vectors; 1 where it has none.
    """

    def __init__(self, unit: VectorUnit, function: Function) -> None:
        self.unit = unit
        taken = {parameter.name for parameter in (*function.arrays, *function.sizes)}
        taken |= function.body.variables | {node.array for node in nodes_of(function.body, Allocate)}
        self._names = FreshNames(taken, "_")
        kinds = [node.type for node in nodes_of(function.body, Load, Var, Allocate)]
        self.widest = max((kind.bytes for kind in kinds if kind.is_float), default=8)
        self.lanes = max(unit.bytes // self.widest, 1)

    def fresh(self, wish: str) -> str:
        """Return a name that nothing else has."""
        return self._names.fresh(wish)


@frozen
class Property:
    """A form of kernels that passes may require.

    Attributes:
        meaning: a statement that is true of such kernels, in words.
        fault: returns a text about what contradicts it; None if nothing does.
    """

    meaning: str
    fault: Callable[[Function], str | None] | None = None


@frozen
class Pass:
    """One pass with its name.

    Attributes:
        requires: the properties that must hold before it.
        gives: the properties that hold after it.
        ends: the properties that need not hold any more after it.
    """

    name: str
    run: Callable[[Function, Setting], Function]
    requires: frozenset[Property] = frozenset()
    gives: frozenset[Property] = frozenset()
    ends: frozenset[Property] = frozenset()


class PassList:
    """Passes in an order in which the requirements of each are met.

    Attributes:
        passes: the passes in order.
        at_first: the properties of kernels after lowering.
    """

    def __init__(self, passes: Iterable[Pass], at_first: Iterable[Property] = ()) -> None:
        """Create a list.

        Raises:
            ValueError: a requirement of a pass is not met at its place, or two passes have the same name.
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
            ValueError: there is no pass named ``before``, or a requirement is not met in the new list.
        """
        names = [each.name for each in self.passes]
        if before is not None and before not in names:
            raise ValueError(f"there is no pass '{before}' before which '{added.name}' could stand; there are {', '.join(names)}")
        place = len(names) if before is None else names.index(before)
        return PassList((*self.passes[:place], added, *self.passes[place:]), self.at_first)

    def without_pass(self, name: str) -> PassList:
        """Return the list without a pass. Raises ``ValueError`` if a later pass requires what it gives."""
        return PassList((each for each in self.passes if each.name != name), self.at_first)

    def stages(self, function: Function, unit: VectorUnit) -> Iterator[tuple[Pass, Function]]:
        """Yield every pass with the kernel after it.

        Raises:
            IllFormed: if programs are verified: lowering or a pass has made one that breaks a rule or a property.
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
    """Return whether programs are verified between passes, by $SPARSETUNE_VERIFY."""
    return os.environ.get("SPARSETUNE_VERIFY", "0") not in ("", "0")


def _check(function: Function, maker: str, held: Iterable[Property]) -> None:
    verify(function, maker)
    for each in held:
        fault = each.fault(function) if each.fault is not None else None
        if fault is not None:
            raise IllFormed(f"{maker} made a program of which it is not true that {each.meaning}: {fault}")
