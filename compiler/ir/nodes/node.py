"""What all nodes of the loop IR have in common: children, descendants, the variables that they name, and rebuilding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from operator import attrgetter, is_not
from typing import ClassVar, TypeVar

from ...kept import Kept
from .types import Type

T = TypeVar("T")


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(entry.name for entry in fields(kind))


@cache
def _kind_alone(kind: type[Node]) -> frozenset[type[Node]]:
    return frozenset((kind,))


@cache
def _fields_of_nodes(kind: type) -> dict[str, str]:
    """Return the fields of a class whose annotations name a class of nodes, with these annotations."""
    types = {entry.name: str(entry.type) for entry in fields(kind)}
    return {name: held for name, held in types.items() if not _NODES.isdisjoint(re.findall(r"\w+", held))}


@cache
def _children_of(kind: type) -> Callable[[Node], tuple[Node, ...]]:
    """Return a function that gives the children of a node of a class. It is quick if fields hold one child each, or one holds all."""
    held = _fields_of_nodes(kind)
    if not held:
        return lambda node: ()
    (name, own), *others = held.items()
    if not others and own.startswith("tuple["):
        return attrgetter(name)
    if not _NODES.issuperset(held.values()):
        return lambda node: _children_in(getattr(node, name) for name in held)
    return attrgetter(*held) if others else lambda node: (getattr(node, name),)


def _united(own: frozenset[T], parts: list[frozenset[T]]) -> frozenset[T]:
    """Return the union of sets. If only one of them may have elements, no new set is made."""
    if len(parts) == 1 and not own:
        return parts[0]
    return own.union(*parts) if parts else own


def _children_in(values: Iterable[object]) -> tuple[Node, ...]:
    found: list[Node] = []
    for value in values:
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(item for item in value if isinstance(item, Node))
    return tuple(found)


_NODES: set[str] = set()
"""The names of all classes of nodes; each class adds its own when it is defined."""

_NO_NAMES: frozenset[str] = frozenset()


class Node:
    """Base of expressions and statements. Its children are the fields that are nodes or tuples of nodes."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _NODES.add(cls.__name__)

    @Kept
    def children(self) -> tuple[Node, ...]:
        """Return the nodes directly below this one, in written order."""
        return _children_of(type(self))(self)

    @Kept
    def below(self) -> tuple[Node, ...]:
        """Everything below the node, parents first, in written order."""
        found: list[Node] = []
        for child in self.children:
            found.append(child)
            found.extend(child.below)
        return tuple(found)

    @Kept
    def steps_below(self) -> tuple[Step, ...]:
        """The statements below the node, parents first, in written order."""
        found: list[Step] = []
        for child in self.children:
            if isinstance(child, Step):
                found.append(child)
                found.extend(child.steps_below)
        return tuple(found)

    @Kept
    def kinds(self) -> frozenset[type[Node]]:
        """The classes of the node and of everything below it."""
        own, children = _kind_alone(type(self)), self.children
        return own.union(*[child.kinds for child in children]) if children else own

    @Kept
    def variables(self) -> frozenset[str]:
        """The names of all variables in the node, including those that it declares."""
        own, children = self._named(), self.children
        if not children:
            return frozenset(own)
        return _united(frozenset(own), [child.variables for child in children])

    @Kept
    def declared(self) -> frozenset[str]:
        """The names of the variables that statements in the node declare, including the counters of loops."""
        return _united(frozenset(self._declares()), [child.declared for child in self.children])

    @Kept
    def assigned(self) -> frozenset[str]:
        """The names of the variables that statements in the node assign."""
        return _united(frozenset(self._assigns()), [child.assigned for child in self.children])

    def _named(self) -> tuple[str, ...]:
        """Return the name of the variable that the node itself is, if it is one."""
        return ()

    def _declares(self) -> tuple[str, ...]:
        """Return the name of the variable that the node itself declares, if it does."""
        return ()

    def _assigns(self) -> tuple[str, ...]:
        """Return the name of the variable that the node itself assigns, if it does."""
        return ()

    settled: ClassVar[Callable[[Node], Node] | None] = None
    """The change that is known not to change the node (``rewrite.settle``)."""

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in _field_names(type(self))}

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """Return the node with other children, given in the order of ``children``; the node itself if they are its own."""
        if len(children) == len(self.children) and not any(map(is_not, children, self.children)):
            return self
        kind, rest = type(self), iter(children)
        held = _fields_of_nodes(kind)
        values: list[object] = []
        for name in _field_names(kind):
            value = getattr(self, name)
            if name in held:
                if isinstance(value, Node):
                    value = next(rest)
                elif isinstance(value, tuple) and value:
                    value = tuple([next(rest) if isinstance(item, Node) else item for item in value])
            values.append(value)
        assert next(rest, None) is None
        return kind(*values)


class Value(Node):
    """An expression. It has a value of its type, and contains no statements."""

    type: Type
    steps_below: ClassVar[tuple[Step, ...]] = ()  # type: ignore[assignment]  # no property of each expression
    declared: ClassVar[frozenset[str]] = _NO_NAMES  # type: ignore[assignment]  # no property of each expression
    assigned: ClassVar[frozenset[str]] = _NO_NAMES  # type: ignore[assignment]


class Step(Node):
    """A statement."""
