"""Where groupings: which parts of an expression are computed into workspaces (Ahrens et al., section 6.2).

Any two or more operands of a sum or product may be computed first, by a producer, into a workspace that stands for them;
again in the producer, and so on. ``w += e`` sums what the rest does not need, where the sum distributes over everything
between the producer and the sum it belongs to; ``w = e`` keeps every index. Sums inside an expression are always
producers. Workspaces have no indices yet: they follow from the loops (``naming``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from ..notation.nodes import Access, Add, Assignment, Div, Expr, Mul, Neg, accesses
from ..notation.printer import show
from .forms import Form, Sum, canonical_text


@dataclass(frozen=True)
class Hole(Expr):
    """Stands for the workspace that a producer fills; only while groupings are enumerated."""

    operator: str
    value: Expr
    summed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Statement:
    """One assignment of a grouped expression, without loops.

    Attributes:
        value: the right-hand side; workspace ``n`` is read as the access ``#n``.
        operator: "+=" if indices that nothing else uses are summed here, "=" if all are kept.
        parent: the statement that reads the workspace; None for an assignment to the result.
        summed: indices bound by an inner sum: they are reduced here and nowhere else.
        needs: the indices of the loops that the statement must be in.
        carries: the indices of the workspace if no loop outside is shared; those of the result for a root.
    """

    value: Expr
    operator: str
    parent: int | None
    summed: frozenset[str]
    needs: frozenset[str]
    carries: frozenset[str]


@dataclass(frozen=True)
class Grouping:
    """A grouped expression: statements, producers before their consumers; the roots assign to the result.

    ``loops`` are all indices in order of first appearance in the assignment: the canonical order of choices.
    """

    target: Access
    statements: tuple[Statement, ...]
    loops: tuple[str, ...] = field(compare=False)

    def roots(self) -> tuple[int, ...]:
        return tuple(number for number, statement in enumerate(self.statements) if statement.parent is None)

    def subtree(self, number: int) -> frozenset[int]:
        """Return a statement and everything that it is computed from."""
        return frozenset({number}).union(*map(self.subtree, self.workspaces(number)))

    def operands(self, number: int) -> tuple[Access, ...]:
        """Return the accesses of stored operands in a statement, in written order."""
        return tuple(access for access in accesses(self.statements[number].value) if workspace_number(access) is None)

    def workspaces(self, number: int) -> tuple[int, ...]:
        """Return the workspaces that a statement reads, in written order."""
        found = (workspace_number(access) for access in accesses(self.statements[number].value))
        return tuple(other for other in found if other is not None)

    def text(self, number: int) -> str:
        """Return the right-hand side with producers written out; orders of operands and names of workspaces do not matter."""
        return canonical_text(self.statements[number].value, self._leaf)

    def _leaf(self, value: Expr) -> str:
        number = workspace_number(value) if isinstance(value, Access) else None
        return show(value) if number is None else f"[{self.text(number)}]"

    def key(self) -> tuple[str, ...]:
        """Return what tells groupings of one expression apart, except for ``w = e`` against ``w += e``."""
        return tuple(sorted(map(self.text, self.roots())))


def workspace_access(number: int) -> Access:
    """Return the read of workspace ``number`` before it has a name; no tensor of an expression can be called so."""
    return Access(f"#{number}")


def workspace_number(access: Access) -> int | None:
    return int(access.tensor[1:]) if access.tensor.startswith("#") else None


def groupings(assignment: Assignment, form: Form, loops: tuple[str, ...], both_operators: bool = False) -> Iterator[Grouping]:
    """Yield every grouping of a form once, the one without workspaces first.

    Args:
        assignment: gives the result and its indices.
        form: the right-hand side.
        loops: every index, in canonical order.
        both_operators: also ``w += e`` where it sums nothing, and so is the program of ``w = e`` (the paper counts both).
    """
    choices = [list(_bodies(addend.value, True)) for addend in form.addends]
    seen = set()
    for values in product(*choices):
        key = tuple(sorted(canonical_text(value, _hole_text) for value in values))
        if key in seen:
            continue
        seen.add(key)
        found = _numbered(assignment.target, values, loops)
        if both_operators or all(_sums(statement) for statement in found.statements):
            yield found


def _sums(statement: Statement) -> bool:
    return statement.parent is None or statement.operator == "=" or statement.needs != statement.carries


def _hole_text(value: Expr) -> str:
    if isinstance(value, Hole):
        return f"[{value.operator} {sorted(value.summed)} {canonical_text(value.value, _hole_text)}]"
    return show(value)


def _bodies(value: Expr, linear: bool) -> Iterator[Expr]:
    """Yield the ways to write the right-hand side of one statement; ``linear``: sums distribute over all above it."""
    match value:
        case Add(operands) | Mul(operands):
            kind = type(value)
            for blocks in _partitions(operands):
                inner = linear and kind is Mul
                choices = [list(_block(kind, block, inner)) for block in blocks]
                for chosen in product(*choices):
                    yield kind(chosen)
        case Neg(operand):
            yield from map(Neg, _operands(operand, linear))
        case Div(numerator, denominator):
            for above, below in product(list(_operands(numerator, linear)), list(_operands(denominator, False))):
                yield Div(above, below)
        case _:
            yield value


def _block(kind: type[Add] | type[Mul], block: tuple[Expr, ...], linear: bool) -> Iterator[Expr]:
    if len(block) == 1:
        yield from _operands(block[0], linear)
    else:
        yield from _holes(kind(block), linear)


def _operands(value: Expr, linear: bool) -> Iterator[Expr]:
    """Yield the ways to write one operand of a statement: in place, or as a workspace."""
    if isinstance(value, Sum):
        yield from (Hole("+=", body, value.over) for body in _bodies(value.operand, True))
        return
    yield from _bodies(value, linear)
    if not isinstance(value, Neg) and len(accesses(value)) > 1:
        yield from _holes(value, linear)


def _holes(value: Expr, linear: bool) -> Iterator[Expr]:
    for body in _bodies(value, linear):
        yield Hole("=", body)
        if linear:
            yield Hole("+=", body)


def _partitions(operands: tuple[Expr, ...]) -> Iterator[tuple[tuple[Expr, ...], ...]]:
    """Yield partitions of operands into blocks, never all in one; constants stay alone. All apart comes first."""
    grouped = [operand for operand in operands if accesses(operand)]
    alone = tuple((operand,) for operand in operands if not accesses(operand))
    for blocks in sorted(_set_partitions(grouped), key=len, reverse=True):
        if len(blocks) > 1 or len(grouped) < 2:
            yield (*alone, *blocks)


def _set_partitions(items: Sequence[Expr]) -> Iterator[tuple[tuple[Expr, ...], ...]]:
    if not items:
        yield ()
        return
    for rest in _set_partitions(items[1:]):
        yield ((items[0],), *rest)
        for place, block in enumerate(rest):
            yield (*rest[:place], (items[0], *block), *rest[place + 1 :])


@dataclass(frozen=True)
class _Placed:
    """A statement that has a number, before its loops are known."""

    value: Expr
    operator: str
    summed: frozenset[str]
    children: tuple[int, ...]


def _numbered(target: Access, values: tuple[Expr, ...], loops: tuple[str, ...]) -> Grouping:
    """Number the producers, deepest first, and compute which loops each statement needs."""
    placed: list[_Placed] = []
    for value in values:
        _place(value, "+=", (), placed)
    parents = {child: number for number, statement in enumerate(placed) for child in statement.children}
    left = frozenset(target.indices)
    statements: list[Statement] = []
    for number, statement in enumerate(placed):
        own = frozenset(name for access in accesses(statement.value) for name in access.indices)
        root = number not in parents
        needs = own.union(*(statements[child].carries for child in statement.children), left if root else ())
        carries = left if root else needs - statement.summed
        if not root and statement.operator == "+=":
            carries = frozenset(name for name in carries if _used_outside(name, number, placed, parents, left))
        statements.append(Statement(statement.value, statement.operator, parents.get(number), statement.summed, needs, carries))
    return Grouping(target, tuple(statements), loops)


def _place(value: Expr, operator: str, summed: tuple[str, ...], placed: list[_Placed]) -> int:
    children: list[int] = []

    def fill(part: Expr) -> Expr:
        if isinstance(part, Hole):
            children.append(_place(part.value, part.operator, part.summed, placed))
            return workspace_access(children[-1])
        return part.rebuild(tuple(map(fill, part.children))) if part.children else part

    filled = fill(value)
    placed.append(_Placed(filled, operator, frozenset(summed), tuple(children)))
    return len(placed) - 1


def _used_outside(name: str, number: int, placed: list[_Placed], parents: dict[int, int], left: frozenset[str]) -> bool:
    """Whether an index occurs beside a statement: in what is computed from it, within the sum that binds the index."""
    inside = _subtree(number, placed)
    top = number
    while top in parents:
        top = parents[top]
        if name in placed[top].summed:
            break
    else:
        if name in left:
            return True
    beside = _subtree(top, placed) - inside
    return any(name in access.indices for other in beside for access in accesses(placed[other].value))


def _subtree(number: int, placed: list[_Placed]) -> frozenset[int]:
    return frozenset({number}).union(*(_subtree(child, placed) for child in placed[number].children))
