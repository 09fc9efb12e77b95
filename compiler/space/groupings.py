"""Where groupings: which parts of an expression are computed into workspaces (Ahrens et al., section 6.2).

Any two or more operands of a sum or product may be computed first, by a producer, into a workspace that stands for them;
again in the producer, and so on. ``w += e`` sums what the rest does not need, where the sum distributes over everything
between the producer and the sum it belongs to; ``w = e`` keeps every index. Sums inside an expression are always
producers. Some operands may also be put together alone before what they are multiplied with is read (``gathered``).
Workspaces have no indices yet: they follow from the loops (``naming``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import product

from ..frozen import frozen
from ..notation.nodes import Access, Add, Apply, Div, Expr, Mul, Neg, Sum, accesses, transform_expression
from ..notation.printer import show
from .forms import Form, canonical_text, unwatched
from .statements import Grouping, Hole, Statement, Statements, workspace_access, workspace_number


@frozen
class _Ways:
    """The options of an enumeration of right-hand sides.

    Attributes:
        gathered: operands that may be factors by a workspace of their own.
        watch: called again and again; it may raise to end the enumeration.
    """

    gathered: Collection[str]
    watch: Callable[[], None]


def groupings(
    table: Statements,
    form: Form,
    both_operators: bool = False,
    watch: Callable[[], None] = unwatched,
    accumulators: bool = False,
    gathered: Collection[str] = (),
) -> Iterator[Grouping]:
    """Yield every grouping of a form once, the one without workspaces first.

    Args:
        table: where the statements are put.
        form: the right-hand side.
        both_operators: also ``w += e`` where it sums nothing and is the same program as ``w = e`` (the paper counts both).
        watch: called again and again; it may raise to end the enumeration.
        accumulators: also compute all that is assigned to the result into a workspace first.
        gathered: operands that may be put together in a workspace of their own before other factors are read.
    """
    ways = _Ways(gathered, watch)
    choices = [list(_bodies(addend.value, True, ways)) for addend in form.addends]
    if accumulators:
        alone = _Ways((), watch)
        choices = [[*whole, *_holes(addend.value, True, alone)] for whole, addend in zip(choices, form.addends, strict=True)]
    seen = set()
    for values in product(*choices):
        watch()
        key = tuple(sorted(canonical_text(value, _hole_text) for value in values))
        if key in seen:
            continue
        seen.add(key)
        found = _numbered(values, table)
        if both_operators or all(_sums(table[number]) for number in found.statements):
            yield found


def _sums(statement: Statement) -> bool:
    return statement.root or statement.operator == "=" or statement.needs != statement.carries


def _hole_text(value: Expr) -> str:
    if isinstance(value, Hole):
        return f"[{value.operator} {sorted(value.summed)} {canonical_text(value.value, _hole_text)}]"
    return show(value)


def _bodies(value: Expr, linear: bool, ways: _Ways) -> Iterator[Expr]:
    """Yield the ways to write the right-hand side of one statement; ``linear``: sums distribute over everything above it."""
    match value:
        case Add(operands) | Mul(operands):
            kind = type(value)
            for blocks in _partitions(operands, ways.watch):
                inner = linear and kind is Mul
                for chosen in product(*(list(_block(kind, block, inner, ways)) for block in blocks)):
                    yield kind(chosen)
        case Neg(operand):
            yield from map(Neg, _operands(operand, linear, ways))
        case Div(numerator, denominator):
            for above, below in product(list(_operands(numerator, linear, ways)), list(_operands(denominator, False, ways))):
                yield Div(above, below)
        case Apply(_, arguments):
            for chosen in product(*(list(_operands(argument, False, ways)) for argument in arguments)):
                yield value.rebuild(chosen)
        case _:
            yield value


def _block(kind: type[Add] | type[Mul], block: tuple[Expr, ...], linear: bool, ways: _Ways) -> Iterator[Expr]:
    if len(block) == 1:
        yield from _operands(block[0], linear, ways)
        if kind is Mul and isinstance(block[0], Access) and block[0].tensor in ways.gathered:
            yield Hole("=", block[0])
    else:
        yield from _holes(kind(block), linear, ways)


def _operands(value: Expr, linear: bool, ways: _Ways) -> Iterator[Expr]:
    """Yield the ways to write one operand of a statement: in place, or as a workspace."""
    if isinstance(value, Sum):
        yield from (Hole("+=", body, value.over) for body in _bodies(value.operand, True, ways))
        return
    yield from _bodies(value, linear, ways)
    if not isinstance(value, Neg) and len(accesses(value)) > 1:
        yield from _holes(value, linear, ways)


def _holes(value: Expr, linear: bool, ways: _Ways) -> Iterator[Expr]:
    for body in _bodies(value, linear, ways):
        ways.watch()
        yield Hole("=", body)
        if linear:
            yield Hole("+=", body)


def _partitions(operands: tuple[Expr, ...], watch: Callable[[], None]) -> Iterator[tuple[tuple[Expr, ...], ...]]:
    """Yield partitions of operands into blocks, never all in one; constants stay alone. Single operands come first."""
    grouped = [operand for operand in operands if accesses(operand)]
    alone = tuple((operand,) for operand in operands if not accesses(operand))
    for blocks in sorted(_set_partitions(grouped, watch), key=len, reverse=True):
        if len(blocks) > 1 or len(grouped) < 2:
            yield (*alone, *blocks)


def _set_partitions(items: Sequence[Expr], watch: Callable[[], None]) -> Iterator[tuple[tuple[Expr, ...], ...]]:
    if not items:
        yield ()
        return
    for rest in _set_partitions(items[1:], watch):
        watch()
        yield ((items[0],), *rest)
        for place, block in enumerate(rest):
            yield (*rest[:place], (items[0], *block), *rest[place + 1 :])


@frozen
class _Placed:
    """A statement of one grouping, before its loops are known; ``children`` are the places of its producers."""

    value: Expr
    operator: str
    summed: frozenset[str]
    children: tuple[int, ...]

    @cached_property
    def indices(self) -> frozenset[str]:
        """The indices of what is read, workspaces aside."""
        return frozenset(name for access in accesses(self.value) for name in access.indices)


def _numbered(values: tuple[Expr, ...], table: Statements) -> Grouping:
    """Compute which loops each statement needs and enter the statements in the table, producers first."""
    placed: list[_Placed] = []
    for value in values:
        _place(value, "+=", (), placed)
    parents = {child: number for number, statement in enumerate(placed) for child in statement.children}
    left = frozenset(table.target.indices)
    numbers: list[int] = []
    for place, statement in enumerate(placed):
        root = place not in parents
        needs = statement.indices.union(*(table[numbers[child]].carries for child in statement.children), left if root else ())
        carries = left if root else needs - statement.summed
        if not root and statement.operator == "+=":
            carries = _used_outside(carries, place, placed, parents, left)
        value = transform_expression(statement.value, lambda part: _renumbered(part, numbers))
        numbers.append(table.add(Statement(value, statement.operator, root, statement.summed, needs, carries), numbers))
    roots = (number for place, number in enumerate(numbers) if place not in parents)
    return Grouping(tuple(sorted(numbers)), tuple(sorted(roots)))


def _renumbered(part: Expr, numbers: list[int]) -> Expr | None:
    place = workspace_number(part) if isinstance(part, Access) else None
    return None if place is None else workspace_access(numbers[place])


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


def _used_outside(
    names: frozenset[str], place: int, placed: list[_Placed], parents: dict[int, int], left: frozenset[str]
) -> frozenset[str]:
    """Return the indices that occur beside a statement: in what is computed from it, within the sum that binds the index."""
    found, inside, top = frozenset[str](), _subtree(place, placed), place
    while top in parents and names:
        top = parents[top]
        last = top not in parents
        here = names if last else names & placed[top].summed
        if here:
            beside = (placed[other].indices for other in _subtree(top, placed) - inside)
            bound = here & placed[top].summed
            found |= here.intersection(frozenset().union(*beside))
            found |= (here - bound) & left if last else frozenset()
        names -= here
    return found


def _subtree(number: int, placed: list[_Placed]) -> frozenset[int]:
    return frozenset({number}).union(*(_subtree(child, placed) for child in placed[number].children))
