"""What a program of concrete index notation means, by running its loops over dense arrays.

The oracle for everything that rewrites programs: loops run over coordinates or, for position variables, over the entries that
the operand's format stores; derived indices go through ``concrete.provenance``; workspaces start at the identity of the add.
Slow, and meant to be obviously right.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Mapping

import numpy as np

from ..format import Format
from ..frozen import frozen
from ..notation.functions import number_of
from ..notation.nodes import Access, Add, Apply, Div, Expr, Literal, Mul, Neg, accesses
from .arithmetic import Integers
from .nodes import Assign, Block, Forall, Program, Stmt, Where, assignments, reads, targets
from .provenance import Provenance, Recovery
from .relations import Relation, SumRelation
from .said import operand_of, said_of

Scalar = float | int | bool
_OPERATORS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "+": operator.add, "*": operator.mul, "min": min, "max": max,
    "and": lambda left, right: bool(left) and bool(right), "or": lambda left, right: bool(left) or bool(right),
}  # fmt: skip
_IDENTITIES: dict[str, Scalar] = {"+": 0.0, "*": 1.0, "min": np.inf, "max": -np.inf, "or": False, "and": True}


def evaluate(program: Program, arrays: Mapping[str, np.ndarray], formats: Mapping[str, Format]) -> dict[str, np.ndarray]:
    """Return the results of a program.

    Args:
        program: any program; conversions count for position spaces.
        arrays: a dense array for every operand; entries equal to zero count as not stored.
        formats: of the operands, for position spaces.
    """
    return _Machine(program, arrays, formats).run()


class _Machine:
    def __init__(self, program: Program, arrays: Mapping[str, np.ndarray], formats: Mapping[str, Format]) -> None:
        self.program = program
        self.graph = Provenance(relation for relation in program.relations if isinstance(relation, Relation))
        self.arrays = dict(arrays)
        self.extents = _extents(program, arrays)
        self.arithmetic = _Integers(self.extents, _trees(program, arrays, formats))
        self.identity = _IDENTITIES[program.add]
        self.lows: dict[str, tuple[int, ...]] = {}
        self.spaces = {space.name: space for space in program.workspaces}
        self.guards: dict[tuple[str, ...], tuple[str, ...]] = {}

    def run(self) -> dict[str, np.ndarray]:
        results = {}
        for assign in assignments(self.program.statement):
            name = assign.target.tensor
            if name not in self.spaces:
                shape = tuple(self.extents[index] for index in assign.target.indices)
                results[name] = np.full(shape, self.identity, dtype=np.float64)
        self.arrays.update(results)
        self.statement(self.program.statement, Recovery(self.graph, self.arithmetic, {}))
        return results

    def statement(self, statement: Stmt, known: Recovery[int]) -> None:
        match statement:
            case Forall(index, body, _):
                low, high = known.bounds(index)
                for value in range(low, high):
                    inner = Recovery(self.graph, self.arithmetic, {**known.known, index: value})
                    if all(inner.value(name) < inner.bounds(name)[1] for name in self.guarded(tuple(inner.known))):
                        self.statement(body, inner)
            case Where(consumer, producer):
                for name in owned(statement):
                    self.allocate(name, known)
                self.statement(producer, known)
                self.statement(consumer, known)
            case Block(statements):
                for part in statements:
                    self.statement(part, known)
            case Assign():
                self.assign(statement, known)

    def guarded(self, loops: tuple[str, ...]) -> tuple[str, ...]:
        """Return the variables to test in the innermost of some loops."""
        if loops not in self.guards:
            self.guards[loops] = self.graph.guards(loops).get(loops[-1], ())
        return self.guards[loops]

    def allocate(self, name: str, known: Recovery[int]) -> None:
        bounds = [known.bounds(index) for index in self.spaces[name].indices]
        self.lows[name] = tuple(low for low, _ in bounds)
        self.arrays[name] = np.full(tuple(max(0, high - low) for low, high in bounds), self.identity, dtype=np.float64)

    def assign(self, assign: Assign, known: Recovery[int]) -> None:
        place = self.place(assign.target, known)
        value = self.value(assign.value, known)
        array = self.arrays[assign.target.tensor]
        array[place] = value if assign.operator == "=" else _OPERATORS[self.program.add](array[place], value)

    def place(self, access: Access, known: Recovery[int]) -> tuple[int, ...]:
        lows = self.lows.get(access.tensor, (0,) * len(access.subscripts))
        sums = map(SumRelation, access.subscripts)
        return tuple(one.recover_child(one.coordinate, known) - low for one, low in zip(sums, lows, strict=True))

    def value(self, expr: Expr, known: Recovery[int]) -> Scalar:
        match expr:
            case Literal(value):
                return value
            case Access(tensor):
                place, array = self.place(expr, known), self.arrays[tensor]
                inside = all(0 <= at < extent for at, extent in zip(place, array.shape, strict=True))
                return array[place] if inside else self.identity
            case Neg(operand):
                return -self.value(operand, known)
            case Apply(function, arguments):
                return number_of(function, *(float(self.value(argument, known)) for argument in arguments))
            case Div(numerator, denominator):
                return np.divide(self.value(numerator, known), self.value(denominator, known))
            case Add(operands) | Mul(operands):
                combine = _OPERATORS[self.program.add if isinstance(expr, Add) else self.program.multiply]
                whole = self.value(operands[0], known)
                for operand in operands[1:]:
                    whole = combine(whole, self.value(operand, known))
                return whole
            case _:
                raise TypeError(f"no value of {type(expr).__name__}")


def owned(where: Where) -> tuple[str, ...]:
    """Return the workspaces that live for a where: those its producer fills, less those of wheres inside the producer.

    A where inside owns what it both fills and reads; what it only fills belongs to the where around it.
    """
    return tuple(name for name in targets(where.producer) if name not in _owned_inside(where.producer))


def _owned_inside(statement: Stmt) -> frozenset[str]:
    inside = frozenset().union(*(_owned_inside(child) for child in statement.children))
    if not isinstance(statement, Where):
        return inside
    read = {access.tensor for access in reads(statement.consumer)}
    return inside | (read & set(targets(statement.producer)))


def _extents(program: Program, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Return the extent of every index that is a plain subscript of an operand."""
    found: dict[str, int] = {}
    for assign in assignments(program.statement):
        for access in accesses(assign.value):
            if access.tensor in arrays:
                for subscript, extent in zip(access.subscripts, np.shape(arrays[access.tensor]), strict=True):
                    if subscript.is_index:
                        found[subscript.index] = extent
    return found


@frozen
class _Node:
    """A position of a level: the coordinates on the way to it, and the stored entries below it."""

    path: tuple[int, ...]
    entries: tuple[tuple[int, ...], ...]


class _Tree:
    """The levels of a stored tensor, as lists of positions."""

    def __init__(self, array: np.ndarray, form: Format) -> None:
        array = np.asarray(array)
        self.format = form
        stored = np.argwhere(array)
        entries = sorted(tuple(int(entry[mode]) for mode in form.order) for entry in stored)
        nodes = [_Node((), tuple(entries))]
        self.levels: list[list[_Node]] = []
        for level in range(len(form)):
            extent = array.shape[form.order[level]]
            nodes = [child for node in nodes for child in self._children(node, level, extent)]
            self.levels.append(nodes)

    def _children(self, node: _Node, level: int, extent: int) -> list[_Node]:
        if self.format.levels[level].full:
            coordinates = list(range(extent))
        elif self.format.unique(level):
            coordinates = sorted({entry[level] for entry in node.entries})
        else:
            return [_Node((*node.path, entry[level]), (entry,)) for entry in node.entries]
        return [_Node((*node.path, at), tuple(entry for entry in node.entries if entry[level] == at)) for at in coordinates]

    def range_below(self, path: tuple[int, ...], level: int) -> tuple[int, int]:
        """Return the positions of a level whose path begins with the given one."""
        paths = [node.path for node in self.levels[level]]
        return bisect_left(paths, path), bisect_left(paths, (*path[:-1], path[-1] + 1)) if path else len(paths)


def _trees(program: Program, arrays: Mapping[str, np.ndarray], formats: Mapping[str, Format]) -> tuple[tuple[Access, _Tree], ...]:
    """Return the levels of what is converted, then of every operand."""
    copies = dict.fromkeys((operand_of(read), read.stored) for read in reads(program.statement) if read.stored is not None)
    converted = ((operand, _Tree(arrays[operand.tensor], form)) for operand, form in (*program.conversions, *copies))
    return (*converted, *((Access(name), _Tree(arrays[name], formats[name])) for name in arrays))


class _Integers(Integers):
    """Arithmetic of ``concrete.arithmetic`` on integers, over the trees of the operands."""

    def __init__(self, extents: Mapping[str, int], trees: tuple[tuple[Access, _Tree], ...]) -> None:
        self.extents = extents
        self.trees = trees

    def extent(self, index: str, /) -> int:
        return self.extents[index]

    def _tree(self, access: Access) -> _Tree:
        found = said_of(access, [pair for pair in self.trees if pair[1].format == (access.stored or pair[1].format)])
        assert found is not None
        return found

    def _level(self, access: Access, index: str) -> int:
        order = self._tree(access).format.order
        return next(level for level, mode in enumerate(order) if index in access.subscripts[mode].indices)

    def _path(self, access: Access, level: int, value: Callable[[str], int]) -> tuple[int, ...]:
        order = self._tree(access).format.order
        return tuple(value(access.subscripts[mode].index) for mode in order[:level])

    def segment(self, access: Access, indices: tuple[str, ...], value: Callable[[str], int], /) -> tuple[int, int]:
        path = self._path(access, self._level(access, indices[0]), value)
        return self._tree(access).range_below(path, self._level(access, indices[-1]))

    def coordinate(self, access: Access, index: str, position: int, last: str, /) -> int:
        nodes = self._tree(access).levels[self._level(access, last)]
        return nodes[position].path[self._level(access, index)] if position < len(nodes) else -1  # guarded by the caller

    def search(self, access: Access, index: str, coordinate: int, value: Callable[[str], int], /) -> int:
        level = self._level(access, index)
        low, high = self.segment(access, (index,), value)
        nodes = self._tree(access).levels[level]
        return next((place for place in range(low, high) if nodes[place].path[level] >= coordinate), high)

    def fibre(self, access: Access, index: str, position: int, /) -> int:
        level, tree = self._level(access, index), self._tree(access)
        path = tree.levels[level][position].path[:level]
        return next(place for place, node in enumerate(tree.levels[level - 1]) if node.path == path)

    def on_path(self, access: Access, index: str, item: int, /) -> int:
        count = len(self._tree(access).levels[self._level(access, index)])
        return next((place for place in range(count) if place + self.fibre(access, index, place) == item), count)
