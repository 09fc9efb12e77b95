"""Structures of loop nests worth trying: loop orders, conversions, and workspaces that take reductions out of inner loops.

The rules look at the structure of one product, never at the name of a kernel. Indices that a stored operand has are *tree* indices,
the others *dense*. The rules:

- orders: every order in which stored levels come after their parents;
- chain: along the tree, innermost reduction first, what depends on the reduced index is summed into a workspace over the
  dense indices that it shares with the rest (fibre workspaces, as in MTTKRP and TTMc; accumulators in SpMM; the dot products
  of SDDMM), with or without the last one, which holds a part of the result itself;
- blocks: the same where a dense index of the result is cut so that a piece of a row fits into registers;
- products: any factors of a product, summed or hoisted wherever the loops allow, one and two levels deep (``products``);
- forests: nests that share outer loops, of least work for every contraction tree;
- gathers: what each place of a filter reads is put together, then multiplied (``gathers``);
- marked: a fibre that many others meet is marked once, and their entries are looked up (``marked``);
- conversions: stored operands in orders that suit other orders of the loops, and dense ones in orders that suit vectors
(``conversions``).

Every rule is a filter of the schedule space that can be left out (``selection.RULES``). Nests that were drawn, or that no other is
asymptotically better than, are listed with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from ..concrete.apart import covers
from ..concrete.nodes import Program, assignments
from ..notation.nodes import Access
from ..schedule import directives as d
from ..schedule.addresses import enclosing_loops
from ..schedule.dependence import graph_of, needs_of_expression, uses
from ..schedule.factors import flatten, product_factors
from ..schedule.iteration import producers_inside
from ..schedule.schedule import Schedule
from .conversions import copies, in_order, result_first, root_loops, stored_below, straightened
from .gathers import gathers
from .marked import marked
from .orders import Orders
from .products import products, stored_products
from .situation import FEW_FACTORS, Situation, Structure, graph_names, leaf_loops, precompute_step, result_leaf, tree_first
from .template import Hole, Template, opened

MAX_ORDERS = 24
BLOCKS = (32, 16, 64, 8, 128)
REGISTER_ELEMENTS = 64  # rows of at most so many elements need no blocks


def structures(
    situation: Situation, forests: Iterable[Structure] = (), nests: Mapping[str, Sequence[Schedule]] = MappingProxyType({})
) -> Iterator[Structure]:
    """Yield structures, the default first, then roughly in the order in which they are worth trying. May repeat programs.

    Args:
        situation: the expression.
        forests: structures of forests (``forests.structures``), in their order.
        nests: schedules of loops and workspaces by their origin; they come last, since the rules write the same nests more simply.
    """
    for structure in _by_rule(situation, forests, nests):
        yield structure
        straight = straightened(structure, situation)
        if straight is not None:
            yield straight


def _by_rule(situation: Situation, forests: Iterable[Structure], nests: Mapping[str, Sequence[Schedule]]) -> Iterator[Structure]:
    default = Structure(Template(), situation.program, "default")
    yield default
    forests = iter(forests)
    if len(assignments(situation.program.statement)) > 1:
        yield from forests
        orders = list(_orders(default, situation))
        yield from orders
        yield from stored_products([default, *orders], situation)
        yield from marked(default, situation)
        yield from copies(default, situation)
        yield from _given(default, nests, situation)
        return
    if len(product_factors(flatten(result_leaf(default.program)[1].value))) > FEW_FACTORS:
        yield from forests  # before the products, which may take all the time that is left
    yield from copies(default, situation)
    for start in (default, *result_first(default, situation)):
        yield from _chains(start, situation)
        yield from forests
        yield from _blocks(start, situation)
        orders = list(_orders(start, situation))
        for order in orders:
            if tree_first(order, situation):
                yield from _chains(order, situation)
                yield from _blocks(order, situation)
        yield from orders
        yield from products([start, *orders], situation)
        yield from stored_products([start, *orders], situation)
    yield from marked(default, situation)
    for place in gathers(default, situation):
        yield place
        if not place.program.workspaces:
            yield from _chains(place, situation)
    yield from _given(default, nests, situation)


def _given(default: Structure, nests: Mapping[str, Sequence[Schedule]], situation: Situation) -> Iterator[Structure]:
    found = (default.then(situation, *schedule, origin=origin) for origin, schedules in nests.items() for schedule in schedules)
    return (structure for structure in found if structure is not None)


# Orders


def _orders(start: Structure, situation: Situation) -> Iterator[Structure]:
    """Yield the other legal orders of the loops at the root."""
    loops = root_loops(start.program)
    rules = stored_below(situation.stored(start.program), start.program, situation, frozenset(loops))
    found = 0
    for order in Orders(loops, [in_order(rules)]).all():
        if order == tuple(loops):
            continue
        changed = start.then(situation, d.Reorder(order), origin="order" if start.origin == "default" else start.origin)
        if changed is not None:
            yield changed
            found += 1
        if found == MAX_ORDERS:
            return


# Chains of workspaces


def _chains(start: Structure, situation: Situation) -> Iterator[Structure]:
    """Yield the chain of workspaces along the tree, after each of its steps that makes a new program."""
    found, step = start, _chain_step(start, situation, 1)
    count = 1
    while step is not None:
        changed = found.then(situation, step, origin="chain" if start.origin in ("default", "order") else start.origin)
        if changed is None:
            return
        found, count = changed, count + 1
        step = _chain_step(found, situation, count)
        if step is None or len(product_factors(result_leaf(found.program)[1].value)) == 2:
            yield found


def _chain_step(structure: Structure, situation: Situation, count: int) -> d.Precompute | None:
    """Return the precompute of what depends on the innermost reduced loop around the result, None where there is none."""
    program, graph = structure.program, graph_of(structure.program.relations)
    address, leaf = result_leaf(program)
    producers = producers_inside(program.statement)
    loops = enclosing_loops(program.statement, address)
    reduced = [loop for loop in loops if not covers(leaf.target.indices, loop, graph)]
    if not reduced or leaf.operator == "=":
        return None
    factors = product_factors(flatten(leaf.value))
    part = [factor for factor in factors if uses(needs_of_expression(factor, producers, graph), reduced[-1], graph)]
    rest = [factor for factor in factors if factor not in part]
    if not part or (len(part) == 1 and isinstance(part[0], Access) and part[0].tensor in producers):
        return None
    return precompute_step(part, rest, leaf, loops, situation, structure, count)


def _blocks(start: Structure, situation: Situation) -> Iterator[Structure]:
    """Yield chains in which one dense index of the result is cut into blocks that stay in registers."""
    loops, (_, leaf) = leaf_loops(start.program), result_leaf(start.program)
    tree = situation.tree(start.program)
    dense = [loop for loop in loops if loop not in tree and loop in leaf.target.indices]
    reduced = [loop for loop in loops if loop not in leaf.target.indices]
    if not dense or not reduced:
        return
    index = dense[-1]
    extent = situation.extents.get(index)
    if extent is not None and extent <= REGISTER_ELEMENTS // 2:
        return
    fitting = [block for block in BLOCKS if extent is None or block < extent]
    dividing = [block for block in fitting if extent is not None and extent % block == 0]
    choices = tuple(dict.fromkeys((*dividing, *fitting)))
    if not choices:
        return
    outer, inner = _piece_names(index, start.program)
    rest = [loop for loop in loops if loop != index]
    rows = rest.index(reduced[0])
    order = (*rest[:rows], outer, *rest[rows:], inner)
    tiles = opened(d.Split(index, outer, inner, choices[0]), factor=Hole(f"{index}_block", choices))
    cut = start.then(situation, tiles, d.Reorder(order), origin="conversion" if start.origin == "conversion" else "blocks")
    if cut is not None:
        yield from _chains(cut, situation)


def _piece_names(index: str, program: Program) -> tuple[str, str]:
    taken = graph_names(program)
    names = (f"{index}{'_' * count}" for count in range(5))
    stem = next(name for name in names if f"{name}0" not in taken and f"{name}1" not in taken)
    return f"{stem}0", f"{stem}1"
