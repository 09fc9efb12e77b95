"""What all nodes of the loop IR have in common: children, descendants, the variables that they name, and rebuilding."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from itertools import count
from operator import attrgetter, is_not
from typing import ClassVar

from ...kept import Kept
from .types import Type


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(entry.name for entry in fields(kind))


@cache
def marks_of(kinds: tuple[type[Node], ...]) -> int:
    """Return the bits that stand for classes of nodes."""
    return sum(kind.mark for kind in kinds)


@cache
def _fields_of_nodes(kind: type) -> dict[str, str]:
    """Return the fields of a class whose annotations name a class of nodes, with these annotations."""
    types = {entry.name: str(entry.type) for entry in fields(kind)}
    return {name: held for name, held in types.items() if not _NODES.isdisjoint(re.findall(r"\w+", held))}


@cache
def _plan(kind: type) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a class, and whether they hold nodes."""
    held = _fields_of_nodes(kind)
    return tuple((name, name in held) for name in _field_names(kind))


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
        return _gathering(held)
    return attrgetter(*held) if others else lambda node: (getattr(node, name),)


def _gathering(held: dict[str, str]) -> Callable[[Node], tuple[Node, ...]]:
    """Return a function that gives the children of a node of which some fields hold several, or may hold none."""
    fields = [(name, kind.startswith("tuple[")) for name, kind in held.items()]

    def children(node: Node) -> tuple[Node, ...]:
        found: list[Node] = []
        for name, many in fields:
            value = getattr(node, name)
            if many:
                found.extend(value)
            elif value is not None:
                found.append(value)
        return tuple(found)

    return children


def _united(own: tuple[str, ...], parts: list[frozenset[str]]) -> frozenset[str]:
    """Return names and those of sets as one set. If only one of the sets has names, no new set is made."""
    parts = [part for part in parts if part]
    if own:
        return frozenset(own).union(*parts)
    return parts[0].union(*parts[1:]) if parts else _NO_NAMES


_marks = count()

_NODES: set[str] = set()
"""The names of all classes of nodes; each class adds its own when it is defined."""

_NO_NAMES: frozenset[str] = frozenset()


class Node:
    """Base of expressions and statements. Its children are the fields that are nodes or tuples of nodes."""

    mark: ClassVar[int]
    """The bit that stands for the class."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.mark = 1 << next(_marks)
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
    def marks(self) -> int:
        """The bits of the classes of the node and of everything below it."""
        found = self.mark
        for child in self.children:
            found |= child.marks
        return found

    @Kept
    def size(self) -> int:
        """How many nodes there are: this one and everything below it."""
        return 1 + sum([child.size for child in self.children])

    @Kept
    def variables(self) -> frozenset[str]:
        """The names of all variables in the node, including those that it declares."""
        return _united((), [child.variables for child in self.children])

    @Kept
    def declared(self) -> frozenset[str]:
        """The names of the variables that statements in the node declare, including the counters of loops."""
        return _united(self._declares(), [child.declared for child in self.children])

    @Kept
    def assigned(self) -> frozenset[str]:
        """The names of the variables that statements in the node assign."""
        return _united(self._assigns(), [child.assigned for child in self.children])

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
        kind, place = type(self), 0
        values: list[object] = []
        for name, holds_nodes in _plan(kind):
            value = getattr(self, name)
            if holds_nodes and isinstance(value, tuple):
                value = children[place : place + len(value)]
                place += len(value)
            elif holds_nodes and value is not None:
                value = children[place]
                place += 1
            values.append(value)
        assert place == len(children)
        return kind(*values)


class Value(Node):
    """An expression. It has a value of its type, and contains no statements."""

    type: Type
    declared: ClassVar[frozenset[str]] = _NO_NAMES  # type: ignore[assignment]  # no property of each expression
    assigned: ClassVar[frozenset[str]] = _NO_NAMES  # type: ignore[assignment]


class Leaf(Value):
    """An expression that contains no others. What is known of nodes is known of the class, so that none of its objects computes it."""

    children: ClassVar[tuple[Node, ...]] = ()  # type: ignore[assignment]  # no property of each expression
    variables: ClassVar[frozenset[str]] = _NO_NAMES  # type: ignore[assignment]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.marks = cls.mark  # type: ignore[assignment]


class Step(Node):
    """A statement."""

    all_marks: ClassVar[int] = 0
    """The bits of all classes of statements."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Step.all_marks |= cls.mark
