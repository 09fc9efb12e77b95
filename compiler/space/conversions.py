"""Stored operands in other orders of their levels, so that other orders of the loops go through them as they are stored.

Where one stored operand is read, it is stored with the indices of the result first. Where several are, as in ``C(i,j) = A(i,k) * A(j,k)``,
an order of the loops suits some of the reads, and the others are served by copies, as few as the order needs: with the second read
stored by columns, row i of the result is a sum of rows of that copy (Gustavson, "Two Fast Algorithms for Sparse Matrices", 1978)
instead of a dot product of row i with every row. Each read has a copy of its own.

Dense operands are transposed where the innermost loop steps through another mode than their last (``straightened``), where vectors could
not load neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice

from ..concrete.nodes import Forall, Program, Stmt, assignments
from ..concrete.said import operand_of, said_of
from ..format import Format
from ..levels import COMPRESSED, DENSE
from ..notation.nodes import Access, Mul, accesses
from ..schedule import directives as d
from ..schedule.addresses import enclosing_loops, leaves
from ..schedule.dependence import graph_of
from ..schedule.iteration import inlined, producers_inside
from ..views import View
from .orders import Allowed, Orders
from .situation import Situation, Structure, format_read, leaf_loops, precompute_over, result_leaf

CONVERSION = 30.0
"""Operations to convert one stored entry, or one element of a dense operand."""

SORTING = 150.0
"""The same where entries of three modes or more get another order of these: a matrix is transposed by counting, others are sorted."""

MOST_COPIES = 2
MOST_ORDERS = 24


def converting(stored: Format, wanted: Format) -> float:
    """Return the operations to convert one entry from a format into another one."""
    return CONVERSION if stored.is_dense or stored.order == wanted.order else turning(len(stored.order))


def turning(modes: int) -> float:
    """Return the operations to bring one entry of a sparse operand of so many modes into another order of these."""
    return SORTING if modes > 2 else CONVERSION


def result_first(start: Structure, situation: Situation) -> Iterator[Structure]:
    """Yield the one stored operand in another order: indices of the result outermost, reduced ones below, each group in its given
    order."""
    stored = situation.stored(start.program)
    if len(stored) != 1 or not _is_movable(stored[0]):
        return
    (access,) = stored
    form, (_, leaf) = situation.formats[access.tensor], result_leaf(start.program)
    form = reordered(form, [mode for mode in form.order if access.subscripts[mode].index in leaf.target.indices])
    if form.order == situation.formats[access.tensor].order:
        return
    loops = [access.subscripts[mode].index for mode in form.order]
    rest = [loop for loop in leaf_loops(start.program) if loop not in loops]
    converted = start.then(situation, d.Convert(Access(access.tensor), str(form)), d.Reorder((*loops, *rest)), origin="conversion")
    if converted is not None:
        yield converted


def copies(start: Structure, situation: Situation) -> Iterator[Structure]:
    """Yield orders of the loops of a product in which one or two of several stored reads are served by copies, all others by what is
    stored; those with one copy first.

    The outermost loop goes through the outermost level of a sparse result, which is appended row by row then, and through some
    index of a dense one.
    """
    stored = situation.stored(start.program)
    plain = _unordered(start, situation) if len(stored) > 1 else None
    if plain is None:
        return
    loops, target = root_loops(plain.program), result_leaf(plain.program)[1].target
    form = situation.formats[target.tensor]
    first = {target.subscripts[mode].index for mode in (form.order if form.is_dense else form.order[:1])} or set(loops)
    below = {read: stored_below([read], plain.program, situation, frozenset(loops)) for read in stored}
    movable = [read for read in stored if _is_movable(read) and said_of(read, plain.program.conversions) is None]
    for count in range(1, MOST_COPIES + 1):
        for copied in combinations(movable, count):
            kept = in_order([rule for read, rules in below.items() if read not in copied for rule in rules])
            orders = Orders(loops, [lambda placed, loop: bool(placed) or loop in first, kept]).all()
            needed = (order for order in orders if not any(_suits(order, below[read]) for read in copied))
            for order in islice(needed, MOST_ORDERS):
                steps = (d.Convert(operand_of(read), str(_followed(read, order, situation))) for read in copied)
                converted = plain.then(situation, *steps, d.Reorder(order), origin="conversion")
                collected = None if converted is None else _collected(converted, situation)
                if collected is not None:
                    yield collected


def straightened(start: Structure, situation: Situation) -> Structure | None:
    """Return a structure whose dense operands are stored so that innermost loops run over their last modes; None where all are already.

    Loops over stored coordinates gather in any order. An operand that two innermost loops go through differently follows the first of
    them.
    """
    program, wanted = start.program, dict[Access, Format]()
    graph, forms = graph_of(program.relations), situation.formats
    for address, leaf in leaves(program.statement):
        loops = enclosing_loops(program.statement, address)
        inner, reads = set(graph.originals(loops[-1]) if loops else ()), [one for one in accesses(leaf.value) if one.tensor in forms]
        if any(inner.intersection(access.indices) for access in reads if not forms[access.tensor].is_dense):
            continue
        for access in reads:
            form = forms[access.tensor]
            if isinstance(form, View) or not _is_movable(access):
                continue
            last = [mode for mode in form.order if access.subscripts[mode].index in inner]
            if len(last) == 1 and last != [form.order[-1]] and said_of(access, program.conversions) is None:
                order = (*(mode for mode in form.order if mode not in last), *last)
                wanted.setdefault(Access(access.tensor), Format(form.levels, order))
    steps = [d.Convert(operand, str(form)) for operand, form in wanted.items()]
    return start.then(situation, *steps, origin="conversion") if steps else None


def _collected(structure: Structure, situation: Situation) -> Structure | None:
    """Return a structure in which a sparse result is summed in a workspace over the loops inside of the first reduced one.

    Lowering would do that by itself, but the cost models count only workspaces that the schedule names.
    """
    loops, leaf = root_loops(structure.program), result_leaf(structure.program)[1]
    reduced = [place for place, loop in enumerate(loops) if loop not in leaf.target.indices]
    below = [loop for loop in loops[reduced[0] :] if loop in leaf.target.indices] if reduced else []
    if not below or situation.formats[leaf.target.tensor].is_dense:
        return structure
    return structure.then(situation, precompute_over([leaf.value], below, structure.program, situation, 1))


def _unordered(start: Structure, situation: Situation) -> Structure | None:
    """Return a product without the workspace that puts a sparse result in order, which lowering makes again if it is needed; None if
    the structure is not one product."""
    found = start
    if len(assignments(start.program.statement)) > 1:
        value = inlined(result_leaf(start.program)[1].value, producers_inside(start.program.statement))
        found = start.then(situation, d.Addends((value,)))
    if found is None or len(assignments(found.program.statement)) > 1:
        return None
    return found if isinstance(result_leaf(found.program)[1].value, Mul) else None


def _followed(read: Access, order: Sequence[str], situation: Situation) -> Format:
    """Return the format of a copy of what is read, whose levels follow the loops."""
    form = situation.formats[read.tensor]
    return reordered(form, sorted(form.order, key=lambda mode: order.index(read.subscripts[mode].index)))


def reordered(form: Format, first: Sequence[int]) -> Format:
    """Return the format that stores some modes of a tensor above the others, which keep their order."""
    order = (*first, *(mode for mode in form.order if mode not in first))
    kinds = [DENSE if place == 0 and DENSE in form.levels else COMPRESSED for place in range(len(order))]
    return Format(tuple(kinds), order)


def _is_movable(access: Access) -> bool:
    return access.is_plain and len(set(access.indices)) == len(access.subscripts)


def root_loops(program: Program) -> list[str]:
    """Return the loops at the root."""
    loops: list[str] = []
    statement: Stmt = program.statement
    while isinstance(statement, Forall):
        loops.append(statement.index)
        statement = statement.body
    return loops


Below = tuple[frozenset[str], frozenset[str]]
"""The indices of a stored level, and those of the levels above it: once all of the first are known, all of the second have to be."""


def stored_below(reads: Iterable[Access], program: Program, situation: Situation, loops: frozenset[str]) -> list[Below]:
    """Return what the stored levels of some reads require of an order of the loops, so that most illegal orders need not be tried."""
    found = []
    for access in reads:
        above: frozenset[str] = frozenset()
        for modes, is_stored in format_read(access, program, situation).stored_modes:
            own = frozenset(access.subscripts[mode].index for mode in modes)
            if is_stored and own | above <= loops and own.isdisjoint(above):
                found.append((own, above))
            above |= own
    return found


def in_order(rules: Sequence[Below]) -> Allowed:
    """Return one rule that allows the orders that all given rules allow."""

    def allowed(placed: frozenset[str], loop: str) -> bool:
        return all(above <= placed for own, above in rules if loop in own and own <= placed | {loop})

    return allowed


def _suits(order: Sequence[str], rules: Sequence[Below]) -> bool:
    allowed = in_order(rules)
    return all(allowed(frozenset(order[:place]), loop) for place, loop in enumerate(order))
