"""Reads the forest of a program off its statement: loops, terms and their order."""

from __future__ import annotations

from ...concrete.loop_tag import PLAIN
from ...concrete.nodes import Assign, Forall, Program, Stmt, assignments
from ...concrete.relations.collapse import CollapseRelation
from ...concrete.relations.positions import PosRelation
from ...notation.nodes import Access, Mul, accesses
from ...schedule.dependence import graph_of
from ...schedule.factors import flatten, product_factors
from ...schedule.sequences import sequence
from .contraction import Contraction
from .forest import Forest, Loop, Tree
from .paths import Term


def forest_of(program: Program, contraction: Contraction) -> Forest | None:
    """Return the forest that a program is; None where it is none, or decides more than loops and terms.

    Names of workspaces and of loops over positions, kinds of workspaces, and the order of factors do not matter.
    """
    numbers = _loop_indices(program, contraction)
    if numbers is None or program.assembly:
        return None
    reader = _Reader(program, contraction, numbers)
    trees = reader.trees(program.statement)
    if trees is None or len(set(map(id, reader.terms))) != len(assignments(program.statement)):
        return None
    last = reader.terms[-1]
    read = [part for term in reader.terms for part in term.intermediates]
    made = [term.operands for term in reader.terms[:-1]]
    whole = last.operands == contraction.everything and sorted(read) == sorted(made) and len(set(made)) == len(made)
    return Forest(contraction, trees) if whole else None


def _loop_indices(program: Program, contraction: Contraction) -> dict[str, int] | None:
    """Return the index of each name that a loop may have; None where loops were transformed in a way that the contraction does not
    have."""
    numbers, fibres = {name: number for number, name in enumerate(contraction.indices)}, contraction.fibres
    if fibres is None:
        return None if program.relations else numbers
    graph, names = graph_of(program.relations), tuple(contraction.indices[level] for level in fibres.levels)
    made = [one for one in program.relations if isinstance(one, PosRelation)]
    collapsed = sum(isinstance(one, CollapseRelation) for one in program.relations)
    if len(made) != 1 or len(program.relations) != len(names) or collapsed != len(names) - 1:
        return None
    (positions,) = made
    if positions.access != contraction.operands[fibres.operand] or graph.originals(positions.position) != names:
        return None
    del numbers[contraction.indices[fibres.index]]
    return {**numbers, positions.position: fibres.index}


class _Reader:
    def __init__(self, program: Program, contraction: Contraction, numbers: dict[str, int]) -> None:
        self.contraction, self.numbers = contraction, numbers
        self.workspaces = {space.name for space in program.workspaces}
        self.made: dict[str, int] = {}
        self.terms: list[Term] = []

    def trees(self, statement: Stmt) -> tuple[Tree, ...] | None:
        found = tuple(self._tree(part) for part in sequence(statement))
        known = tuple(tree for tree in found if tree is not None)
        return known if len(known) == len(found) else None

    def _tree(self, statement: Stmt) -> Tree | None:
        if isinstance(statement, Assign):
            return self._term(statement)
        if not isinstance(statement, Forall) or statement.tag != PLAIN or statement.index not in self.numbers:
            return None
        parts = self.trees(statement.body)
        return None if parts is None else Loop(self.numbers[statement.index], parts)

    def _term(self, assign: Assign) -> Term | None:
        parts = self._parts(assign)
        target = assign.target.tensor
        expected = target in self.workspaces or target == self.contraction.target.tensor
        if parts is None or not expected or target in self.made:
            return None
        term = Term(tuple(sorted(parts, key=lambda part: part & -part)))
        if len(set(parts)) < len(parts) or sum(parts) != term.operands or sum(parts) != _union(parts):
            return None
        self.made[target] = term.operands
        self.terms.append(term)
        return term

    def _parts(self, assign: Assign) -> list[int] | None:
        """Return what an assignment multiplies as sets of operands."""
        value = flatten(assign.value)
        factors = product_factors(value) if isinstance(value, Mul) else (value,)
        operands = {Access(access.tensor, access.subscripts): 1 << place for place, access in enumerate(self.contraction.operands)}
        parts = []
        for factor in factors:
            if not isinstance(factor, Access):
                return None
            part = self.made.get(factor.tensor) or operands.get(Access(factor.tensor, factor.subscripts))
            if part is None:
                return None
            parts.append(part)
        return parts if len(accesses(value)) == len(factors) > 1 else None


def _union(parts: list[int]) -> int:
    found = 0
    for part in parts:
        found |= part
    return found
