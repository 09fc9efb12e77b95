"""Provenance of derived indices: how loop variables and original coordinates follow from one another.

Scheduling replaces loops over original indices by loops over derived ones; what was done is kept as ``concrete.relations``.
``Provenance`` answers questions on the graph of all of them; ``Recovery`` computes values and ranges of variables from those
of the loops that are open (Senanayake et al., sections 3.2 and 5.1 to 5.3).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Generic

from ..frozen import frozen
from ..notation.nodes import Access
from .arithmetic import Arithmetic, Bounds, Value
from .relations import (
    PosRelation,
    Relation,
)
from .shapes import Shape, Through

__all__ = ["Derivation", "Provenance", "Recovery"]


@frozen
class Derivation:
    """How a variable is computed: by which relation, as its parent or as its child."""

    relation: Relation
    as_parent: bool


class Provenance:
    """The graph of all relations of a program. Variables that no relation made are original indices."""

    def __init__(self, relations: Iterable[Relation] = ()) -> None:
        self.relations = tuple(relations)
        self._made_by: dict[str, Relation] = {child: relation for relation in self.relations for child in relation.children}
        self._replaced_by: dict[str, list[Relation]] = {}
        self._originals: dict[str, tuple[str, ...]] = {}
        self._derivations: dict[frozenset[str], dict[str, Derivation]] = {}
        self._known_after: dict[tuple[str, ...], dict[str, int]] = {}
        for relation in self.relations:
            for parent in relation.parents if relation.replaces else ():
                self._replaced_by.setdefault(parent, []).append(relation)
        self._determined = {relation: relation.determines(self) for relation in self.relations}

    def __str__(self) -> str:
        return "\n".join(map(str, self.relations))

    def is_derived(self, variable: str) -> bool:
        """Return whether a relation made the variable, so that it is no original index."""
        return variable in self._made_by

    def made_by(self, variable: str) -> Relation:
        """Return the relation that made a derived variable."""
        return self._made_by[variable]

    def maker(self, variable: str) -> Relation | None:
        """Return the relation that made a variable, None for original indices."""
        return self._made_by.get(variable)

    def relations_from(self, variable: str) -> tuple[Relation, ...]:
        """Return the relations that replaced a variable; several where branches of the program treat it differently."""
        return tuple(self._replaced_by.get(variable, ()))

    def parents(self, variable: str) -> tuple[str, ...]:
        """Return the variables that the relation which made a variable replaced; none for original indices."""
        return self._made_by[variable].parents if variable in self._made_by else ()

    def children(self, variable: str) -> tuple[str, ...]:
        """Return the variables that were made from a variable directly, each once; none where nothing replaced it."""
        return tuple(dict.fromkeys(child for relation in self.relations_from(variable) for child in relation.children))

    def originals(self, variable: str) -> tuple[str, ...]:
        """Return the original indices that a variable comes from, outermost first; itself where it is original."""
        if variable not in self._made_by:
            return (variable,)
        if variable not in self._originals:
            found = (index for parent in self.parents(variable) for index in self.originals(parent))
            self._originals[variable] = tuple(dict.fromkeys(found))
        return self._originals[variable]

    def ancestors(self, variable: str) -> tuple[str, ...]:
        """Return a variable and everything it comes from."""
        if variable not in self._made_by:
            return (variable,)
        found = (variable, *(above for parent in self.parents(variable) for above in self.ancestors(parent)))
        return tuple(dict.fromkeys(found))

    def descendants(self, variable: str) -> tuple[str, ...]:
        """Return a variable and everything that was made from it."""
        found = (variable, *(below for child in self.children(variable) for below in self.descendants(child)))
        return tuple(dict.fromkeys(found))

    def leaves(self, index: str) -> tuple[str, ...]:
        """Return the variables derived from an index that nothing replaced; itself where there is none."""
        children = self.children(index)
        return tuple(dict.fromkeys(leaf for child in children for leaf in self.leaves(child))) if children else (index,)

    def space(self, variable: str) -> str:
        """Return "position" for variables that count stored entries, else "coordinate"."""
        relation = self._made_by.get(variable)
        return "coordinate" if relation is None else relation.space(variable, self)

    def shape(self, variable: str, known: Container[str] = ()) -> Shape | None:
        """Return what a loop over a derived variable goes through, at a place where some are known; None for original indices."""
        relation = self._made_by.get(variable)
        return None if relation is None else relation.shape(variable, self, known)

    def gone_through(self, index: str, known: Container[str]) -> tuple[str, Shape | None]:
        """Return the variable through whose range a loop goes, behind other names and open tiles, and the shape of that loop."""
        while isinstance(shape := self.shape(index, known), Through):
            index = shape.variable
        return index, shape

    def position_relation(self, variable: str) -> PosRelation:
        """Return the relation that brought a variable into position space; only where ``space`` is "position"."""
        return self._made_by[variable].counted(self)

    def position_access(self, variable: str) -> Access:
        """Return the access whose positions a variable counts; only where ``space`` is "position"."""
        return self.position_relation(variable).access

    def derivation(self, known: Iterable[str]) -> dict[str, Derivation]:
        """Return how every variable that follows from ``known`` is computed, in an order in which that can be done.

        Parents from children come first, so that originals are read from stored coordinates where there are some.
        """
        start = frozenset(known)
        if start not in self._derivations:
            self._derivations[start] = self._derive(start)
        return self._derivations[start]

    def _derive(self, known: frozenset[str]) -> dict[str, Derivation]:
        reached, steps = set(known), dict[str, Derivation]()
        while (found := self._next_step(reached)) is not None:
            variable, step = found
            steps[variable] = step
            reached.add(variable)
        return steps

    def _next_step(self, reached: set[str]) -> tuple[str, Derivation] | None:
        for relation in reversed(self.relations):
            for parent in self._determined[relation]:
                if parent not in reached and reached.issuperset(relation.sources_of_parent(parent, self)):
                    return parent, Derivation(relation, True)
        for relation in self.relations:
            for child in relation.children:
                if child not in reached and reached.issuperset(relation.sources_of_child(child, self)):
                    return child, Derivation(relation, False)
        return None

    def known_after(self, loops: Sequence[str]) -> Mapping[str, int]:
        """Return, for every variable that loops determine, the place in ``loops`` of the first at which it is known."""
        order = tuple(loops)
        if order not in self._known_after:
            found = dict(self.known_after(order[:-1])) if order else {}
            for variable in (*order, *self.derivation(order)):
                found.setdefault(variable, len(order) - 1)
            self._known_after[order] = found
        return self._known_after[order]

    def guards(self, loops: Sequence[str], extents: Mapping[str, int] | None = None) -> dict[str, tuple[str, ...]]:
        """Return, per loop, the variables that become known there and must be tested against the end of their range."""
        recovered = {variable for variable, step in self.derivation(loops).items() if step.as_parent}
        tested: dict[str, tuple[str, ...]] = {}
        for variable, place in self.known_after(loops).items():
            if variable in recovered and self.possibly_out_of_bounds(variable, extents):
                tested[loops[place]] = (*tested.get(loops[place], ()), variable)
        return tested

    def possibly_out_of_bounds(self, variable: str, extents: Mapping[str, int] | None = None) -> bool:
        """Return whether a variable, recovered from the loops that replaced it, may leave its range (section 5.3).

        Loops that do not go through stored entries in their order count through all positions of a level, those of other parents too.
        """
        counted = self.space(variable) == "position"
        return any((counted and not relation.in_order) or relation.overruns(variable, self, extents or {})
                   for relation in self.relations_from(variable))  # fmt: skip

    def divisible(self, variable: str, factor: int, extents: Mapping[str, int] | None = None) -> bool:
        """Return whether the length of a variable's range is known to be a multiple of ``factor``."""
        length = self.constant_extent(variable, extents or {})
        if length is not None:
            return length % factor == 0
        relation = self._made_by.get(variable)
        return relation is not None and relation.child_divisible(variable, factor, self, extents or {})

    def fixed_extents(self) -> dict[str, int]:
        """Return the extents of variables that relations make constants."""
        return {variable: extent for relation in self.relations for variable, extent in relation.fixed_extents().items()}

    def constant_extent(self, variable: str, extents: Mapping[str, int] | None = None) -> int | None:
        """Return the length of a variable's range where bounds, factors or known extents make it a constant."""
        relation = self._made_by.get(variable)
        return (extents or {}).get(variable) if relation is None else relation.child_extent(variable, self, extents or {})

    def constant_low(self, variable: str) -> int | None:
        """Return the first value of a variable's range where it is a constant."""
        relation = self._made_by.get(variable)
        return 0 if relation is None else relation.child_low(variable, self)


class Recovery(Generic[Value]):
    """Values and ranges of all variables that follow from the values of some (the loops that are open)."""

    def __init__(self, graph: Provenance, arithmetic: Arithmetic[Value], known: Mapping[str, Value]) -> None:
        self.graph = graph
        self.arithmetic = arithmetic
        self.known = dict(known)
        self._values = dict(known)

    def value(self, variable: str) -> Value:
        """Return the value of a variable.

        Raises:
            KeyError: it does not follow from the known ones.
        """
        if variable not in self._values:
            step = self.graph.derivation(self.known)[variable]
            recover = step.relation.recover_parent if step.as_parent else step.relation.recover_child
            self._values[variable] = recover(variable, self)
        return self._values[variable]

    def bounds(self, variable: str) -> Bounds[Value]:
        """Return the range ``[low, high)`` of a variable; KeyError where it depends on coordinates that are not known."""
        if self.graph.is_derived(variable):
            return self.graph.made_by(variable).child_bounds(variable, self)
        return self.arithmetic.constant(0), self.arithmetic.extent(variable)

    def length(self, variable: str) -> Value:
        """Return ``high - low`` of a variable's range."""
        low, high = self.bounds(variable)
        return high if self.graph.constant_low(variable) == 0 else self.arithmetic.sub(high, low)

    def given(self, more: Mapping[str, Value]) -> Recovery[Value]:
        """Return the recovery where some variables have other values; what was made from them is forgotten."""
        forgotten = {below for variable in more for below in self.graph.descendants(variable)}
        kept = {name: value for name, value in self.known.items() if name not in forgotten}
        return Recovery(self.graph, self.arithmetic, {**kept, **more})

    def compose(self, variable: str, coordinate: Callable[[str], Value]) -> Value:
        """Return the value of a coordinate variable from the coordinates of its originals."""
        originals = self.graph.originals(variable)
        if originals == (variable,):
            return coordinate(variable)
        related = {*self.graph.ancestors(variable), *self.graph.descendants(variable)}
        siblings = {name: value for name, value in self.known.items() if name not in related}
        found = {index: coordinate(index) for index in originals}
        return Recovery(self.graph, self.arithmetic, {**siblings, **found}).value(variable)
