"""Forests as schedules of the scheduling language: the directives that make a forest from the default program.

Every intermediate is computed in loops of its own over all indices that it keeps (``precompute``), the loops of every term are
ordered, and shared from the outside inwards (``join``). Where terms go through stored fibres, the loops of the first of these terms to be
taken out become one over positions (``collapse``, ``pos``). Paths to loops are found by applying the directives written so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...concrete.assembled import handing
from ...concrete.concretize import Concretized
from ...concrete.nodes import Assign, Forall, Stmt
from ...concrete.sharing import shared_pattern
from ...fresh import FreshNames
from ...notation.nodes import Access, Expr, Mul
from ...schedule import directives as d
from ...schedule.addresses import Address, chain, executed, frames, path_to
from ...schedule.apply import carry_out
from ...schedule.dependence import graph_of
from ...schedule.factors import flatten, product_factors
from ...schedule.schedule import Schedule
from .contraction import Contraction, members
from .forest import Forest, Loop, Tree
from .paths import Term, goes_by_position


def spelled(forest: Forest, default: Concretized, conversions: Sequence[d.Convert] = ()) -> Schedule:
    """Return the directives that make a forest from the default program of its expression, conversions of operands first."""
    return Schedule(_Speller(forest, default).directives(conversions))


class _Speller:
    """Writes the directives of one forest; terms are known by their operands."""

    def __init__(self, forest: Forest, default: Concretized) -> None:
        self.forest = forest
        self.contraction = forest.contraction
        self.formats = dict(default.formats)
        self.program = default.program
        self.names = workspace_names(self.contraction, forest.path)
        self.orders = {place.term.operands: names for place, names in zip(forest.placed, forest.orders, strict=True)}
        self.written: list[d.Directive] = []
        self.by_position = False

    def directives(self, conversions: Sequence[d.Convert]) -> list[d.Directive]:
        for conversion in conversions:
            self.write(conversion)
        if not _is_one_product(self.program.statement):
            self.write(d.Addends((self._product(self.contraction.everything),)))
        self._precompute(self.forest.path[-1])
        for place in self.forest.placed:
            self._reorder(place.term.operands)
        for tree in self.forest.trees:
            self._share(tree)
        self._kinds()
        return self.written

    def write(self, directive: d.Directive) -> None:
        self.program = carry_out(self.program, directive, self.formats)
        self.written.append(directive)

    def _precompute(self, consumer: Term) -> None:
        """Take the intermediates that a term reads out of it, then theirs, and so on; what is taken out last runs first."""
        if not self.by_position and goes_by_position(self.contraction, consumer):
            self._count_positions(consumer.operands)
        order = [term.operands for term in self.forest.path]
        inner = sorted(consumer.intermediates, key=order.index, reverse=True)
        for part in inner:
            over = self._modes(part, consumer)
            path = self._path(self._address(consumer.operands)) or None
            self.write(d.Precompute(self._product(part), over, over, self.names[part], path=path))
        for part in inner:
            self._precompute(self.forest.path[order.index(part)])

    def _modes(self, part: int, consumer: Term) -> tuple[str, ...]:
        """Return the modes of an intermediate in the order of the loops that read it. If it does not have the innermost of these,
        its last mode is that of the innermost loop that fills it, so that at least one of the two finds elements side by side."""
        kept = self.contraction.names(self.contraction.open(part))
        read, filled = self.orders[consumer.operands], self.orders[part]
        over = tuple(name for name in read if name in kept)
        if read[-1:] == over[-1:] or filled[-1] not in over:
            return over
        return (*(name for name in over if name != filled[-1]), filled[-1])

    def _count_positions(self, operands: int) -> None:
        """Make one loop over positions of those over the coordinates of fibres; terms that are taken out of this one have it too."""
        fibres = self.contraction.fibres
        assert fibres is not None
        names, nest = [self.contraction.indices[level] for level in fibres.levels], self._nest(self._address(operands))
        loops = chain(self.program.statement, nest)
        ordered = (*names, *(name for name in loops if name not in names))
        path = self._path(nest) or None
        if ordered != loops:
            self.write(d.Reorder(ordered, path=path))
        whole, taken = names[0], {*self.contraction.indices, *loops}
        for count, name in enumerate(names[1:], 1):
            fused = next(new for new in (f"f{'_' * more}{count}" for more in range(len(taken) + 1)) if new not in taken)
            self.write(d.Collapse(whole, name, fused, path=path))
            whole = fused
        self.write(d.Pos(whole, self.contraction.indices[fibres.index], self.contraction.operands[fibres.operand], path=path))
        self.by_position = True

    def _product(self, operands: int) -> Expr:
        factors = tuple(self.contraction.operands[number] for number in members(operands))
        return factors[0] if len(factors) == 1 else Mul(factors)

    def _reorder(self, operands: int) -> None:
        nest = self._nest(self._address(operands))
        if chain(self.program.statement, nest) != self.orders[operands]:
            self.write(d.Reorder(self.orders[operands], path=self._path(nest) or None))

    def _share(self, tree: Tree) -> None:
        """Bring the terms of a loop into it one after the other, the last ones first; then those of the loops inside."""
        if not isinstance(tree, Loop):
            return
        terms = [term.operands for term in _terms(tree)]
        name = self.contraction.indices[tree.index]
        last = terms[-1]
        for operands in terms[-2::-1]:
            self.write(d.Join(name, self._path(self._loop(operands, name)), self._path(self._loop(last, name))))
        for part in tree.parts:
            self._share(part)

    def _kinds(self) -> None:
        """Write that workspaces are dense, or have slots for positions. Those that pass their entries on to a sparse result with
        a pattern of its own keep a list of them."""
        target, statement = self.contraction.target, self.program.statement
        operands = {name: form for name, form in self.formats.items() if name != target.tensor}
        form, graph = self.formats[target.tensor], graph_of(self.program.relations)
        is_given = form.is_dense or shared_pattern(statement, graph, target, form, operands) is not None
        listed = frozenset() if is_given else handing(statement, {target.tensor})
        fibres = self.contraction.fibres
        counting = None if fibres is None else self.contraction.indices[fibres.index]
        for space in self.program.workspaces:
            if space.indices:
                kind = "positions" if counting in space.indices else "list" if space.name in listed else "dense"
                self.write(d.WorkspaceDirective(space.name, kind))

    # Places in the program as it is now

    def _name(self, operands: int) -> str:
        return self.contraction.target.tensor if operands == self.contraction.everything else self.names[operands]

    def _address(self, operands: int) -> Address:
        """Return the address of the assignment of a term."""
        wanted = self._name(operands)
        return next(address for address, assign in executed(self.program.statement) if assign.target.tensor == wanted)

    def _nest(self, address: Address) -> Address:
        """Return the address of the loops directly around an assignment."""
        outside = [depth for depth, frame in enumerate(frames(self.program.statement, address)) if not isinstance(frame, Forall)]
        return address[: outside[-1] + 1] if outside else ()

    def _loop(self, operands: int, index: str) -> Address:
        """Return the address of the loop over an index around a term."""
        address = self._address(operands)
        found = frames(self.program.statement, address)
        return address[: next(depth for depth, frame in enumerate(found) if isinstance(frame, Forall) and frame.index == index)]

    def _path(self, address: Address) -> tuple[int, ...]:
        return path_to(self.program.statement, address)


def workspace_names(contraction: Contraction, path: tuple[Term, ...]) -> dict[int, str]:
    """Return a name for every intermediate that no tensor and no index of the expression has."""
    names = FreshNames((contraction.target.tensor, *contraction.indices, *(access.tensor for access in contraction.operands)))
    return {term.operands: names.fresh("w") for term in path[:-1]}


def _is_one_product(statement: Stmt) -> bool:
    """Whether a program is one nest of loops around one product."""
    while isinstance(statement, Forall):
        statement = statement.body
    return isinstance(statement, Assign) and all(isinstance(factor, Access) for factor in product_factors(flatten(statement.value)))


def _terms(tree: Tree) -> Iterator[Term]:
    if isinstance(tree, Term):
        yield tree
        return
    for part in tree.parts:
        yield from _terms(part)
