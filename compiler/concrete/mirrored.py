"""Products that read half of a symmetric matrix: every entry of the half is added twice, for itself and for the one across the diagonal.

``A(i,j) = L(i,j) + L(j,i)`` off the diagonal, so that ``y(i) += A(i,j) * x(j)`` is, in one loop over what ``L`` stores,
``y(i) += L(i,j) * x(j)`` and, unless ``i = j``, ``y(j) += L(i,j) * x(i)``: whatever else the product reads and writes has the two indices
exchanged. Values and coordinates are read once for two additions, half as often as from rows that are stored whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..errors import ScheduleError
from ..format import Format
from ..frozen import frozen
from ..notation import nodes as notation
from ..notation.nodes import Access, Expr, Literal, Mul, Neg, accesses, index_subscript
from ..notation.printer import show
from .loop_tag import LoopTag
from .nodes import Assign, Block, Forall, Program, Stmt, Unless, reads, transform, walk
from .provenance import Provenance
from .relations import Relation
from .said import said_of

_KEPT_APART = ("temporary", "parallel_reduction")


def mirrored(program: Program, formats: Mapping[str, Format]) -> Program:
    """Return a program that adds what it reads of a symmetric half twice; the same where it reads none, or does so already.

    Each thread then adds to its own copy of the result, since threads meet at components across the diagonal.

    Args:
        program: scheduled concrete notation.
        formats: of every operand and of the result, as they are handed over.

    Raises:
        ScheduleError: what reads the half is no product that adds to a dense result.
    """

    def form_of(access: Access) -> Format | None:
        return access.stored or said_of(access, program.conversions) or formats.get(access.tensor)

    halves = [access for access in reads(program.statement) if (form := form_of(access)) is not None and form.in_memory.mirrors]
    if not halves or any(isinstance(node, Unless) for node in walk(program.statement)):
        return program
    half = halves[0]
    if len(halves) > 1:
        raise _refusal(half, "is read several times, or beside another symmetric one")
    leaf = next(assign for assign in program.statement.assignments if half in accesses(assign.value))
    _check(program, leaf, half, form_of)
    graph = Provenance(relation for relation in program.relations if isinstance(relation, Relation))
    return replace(program, statement=_Mirroring(half, graph).placed(program.statement))


def is_mirrored(program: Program, formats: Mapping[str, Format]) -> bool:
    """Whether a program reads halves of symmetric matrices, if any, where ``mirrored`` can add them twice."""
    try:
        mirrored(program, formats)
    except ScheduleError:
        return False
    return True


def _check(program: Program, leaf: Assign, half: Access, form_of: Callable[[Access], Format | None]) -> None:
    result = leaf.target.tensor
    form = form_of(half)
    if form is None or form.in_memory is not form or len(set(half.indices)) < 2:
        raise _refusal(half, "is not read at two different indices")
    if any(space.name == result for space in program.workspaces) or not _is_dense(form_of(leaf.target)):
        raise _refusal(half, f"adds to {show(leaf.target)}, which is not the dense result")
    if not _is_product(leaf.value, half):
        raise _refusal(half, f"is no factor of {show(leaf.value)}")
    for access in accesses(leaf.value):
        if access != half and not _is_dense(form_of(access)):
            raise _refusal(half, f"meets {show(access)}, which is not a dense operand")
    if any(assign.operator == "=" and assign is not leaf for assign in program.statement.assignments if assign.target.tensor == result):
        raise _refusal(half, f"adds to {show(leaf.target)}, which is written elsewhere too")


def _is_dense(form: Format | None) -> bool:
    return form is not None and form.is_dense and form.in_memory is form


def _is_product(value: Expr, half: Access) -> bool:
    """Whether a value is a product of which the half is one factor."""
    match value:
        case Access() | Literal():
            return True
        case Mul() | Neg():
            return all(_is_product(child, half) for child in value.children)
        case _:
            return False


def _refusal(half: Access, reason: str) -> ScheduleError:
    return ScheduleError(f'{show(half)} is half of a symmetric matrix, and {reason}; convert({half.tensor}, "dense, compressed") reads all')


@frozen
class _Mirroring:
    """Puts what is added for the other half beside what is added for the stored one, once both indices are known."""

    half: Access
    graph: Provenance

    def placed(self, statement: Stmt) -> Stmt:
        if not isinstance(statement, Forall | Block) or self.half not in statement.reads:
            raise _refusal(self.half, "stands in a statement of several")
        if isinstance(statement, Block):
            return Block(tuple(self.placed(part) if self.half in part.reads else part for part in statement.statements))
        if self._is_innermost(statement):
            (first, second), body = self.half.indices, transform(statement.body, _adding)
            other = Unless(first, second, transform(body, self._across))
            return replace(statement, body=Block((body, other)), tag=self._tag(statement))
        return replace(statement, body=self.placed(statement.body), tag=self._tag(statement))

    def _is_innermost(self, loop: Forall) -> bool:
        """Whether no loop inside leads to an index of the half."""
        return not any(self._leads(node) for node in walk(loop.body) if isinstance(node, Forall) and self.half in node.reads)

    def _leads(self, loop: Forall) -> bool:
        return not set(self.half.indices).isdisjoint(self.graph.originals(loop.index))

    def _tag(self, loop: Forall) -> LoopTag:
        tag = loop.tag
        if tag.is_threaded and tag.race not in _KEPT_APART:
            return replace(tag, race="temporary")
        if tag.is_vector and self._leads(loop):
            return replace(tag, unit=None, race=None)
        return tag

    def _across(self, node: Stmt) -> Stmt | None:
        """Return an assignment with the two indices exchanged, except in the half itself."""
        if not isinstance(node, Assign):
            return None
        first, second = self.half.indices
        others = {first: second, second: first}

        def access(found: Expr) -> Expr | None:
            if not isinstance(found, Access) or found == self.half:
                return None
            exchanged = (index_subscript(others.get(part.index, part.index)) for part in found.subscripts)
            return replace(found, subscripts=tuple(exchanged))

        target = access(node.target)
        assert isinstance(target, Access)
        return Assign(target, node.operator, notation.transform_expression(node.value, access))


def _adding(node: Stmt) -> Stmt | None:
    return Assign(node.target, "+=", node.value) if isinstance(node, Assign) else None
