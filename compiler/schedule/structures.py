"""Structures of loop nests worth trying: loop orders, conversions, and workspaces that take reductions out of inner loops.

Rules over the structure of one product, none over the name of a kernel. Indices that a stored operand has are *tree* indices,
the others *dense*. The rules:

- orders: every order in which stored levels come after their parents;
- chain: along the tree, innermost reduction first, what depends on the reduced index is summed into a workspace over the
  dense indices that it shares with the rest (fibre workspaces, as in MTTKRP and TTMc; accumulators in SpMM; the dot products
  of SDDMM), with or without the last one, which holds a part of the result itself;
- blocks: the same where a dense index of the result is cut so that a piece of a row fits into registers;
- products: any factors of a product, summed or hoisted wherever the loops allow, one and two levels deep;
- conversions: the stored operand in an order that has the indices of the result first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from ..concrete.nodes import Assign, Block, Forall, Program, Stmt, Where, assignments
from ..concrete.provenance import Provenance
from ..errors import ScheduleError
from ..format import Format, LevelKind, parse_format
from ..notation.nodes import Access, Expr, Mul, accesses
from ..notation.printer import show
from .addresses import Address, enclosing_loops, frames, leaves
from .apply import apply_schedule
from .dependence import covers, graph_of, needs_of_expression, uses
from .factors import flatten, joined, product_factors
from .iteration import producers_inside

Choice = str | int
MAX_ORDERS = 24
MAX_PRODUCTS = 40
BLOCKS = (32, 16, 64, 8, 128)
REGISTER_ELEMENTS = 64  # a row up to here needs no blocks


@dataclass(frozen=True)
class Structure:
    """Directives that settle loops and workspaces, and the program that they make with the usual parameters."""

    steps: tuple[str, ...]
    parameters: tuple[tuple[str, tuple[Choice, ...]], ...]
    program: Program
    origin: str

    def then(self, step: str, situation: Situation, origin: str | None = None) -> Structure | None:
        """Return the structure with one more directive, or None where that is refused."""
        try:
            changed = apply_schedule(self.program, _filled(step, self.parameters), situation.formats, situation.extents)
        except ScheduleError:
            return None
        return Structure((*self.steps, step), self.parameters, changed, origin or self.origin)


@dataclass(frozen=True)
class Situation:
    """The expression as schedules see it.

    Attributes:
        program: the default program.
        formats: of operands and result.
        extents: what is known of extents.
    """

    program: Program
    formats: Mapping[str, Format]
    extents: Mapping[str, int]

    def stored(self, program: Program) -> tuple[Access, ...]:
        """Return the accesses of stored operands in a program."""
        found = [access for assign in assignments(program.statement) for access in accesses(assign.value)]
        return tuple(dict.fromkeys(access for access in found if not self.formats.get(access.tensor, Format()).is_dense))

    def tree(self, program: Program) -> frozenset[str]:
        """Return the indices of stored operands."""
        return frozenset(name for access in self.stored(program) for name in access.indices)


def _filled(step: str, parameters: Sequence[tuple[str, tuple[Choice, ...]]]) -> str:
    for name, choices in parameters:
        step = step.replace(f"{{{name}}}", str(choices[0]))
    return step


def structures(situation: Situation) -> Iterator[Structure]:
    """Yield structures, the default first, then roughly in the order in which they are worth trying. May repeat programs."""
    default = Structure((), (), situation.program, "default")
    yield default
    if len(assignments(situation.program.statement)) > 1:
        yield from _orders(default, situation)
        return
    for start in (default, *_conversions(default, situation)):
        orders = list(_orders(start, situation))
        first = [start, *(order for order in orders if _tree_first(order, situation))]
        for order in first:
            yield from _chains(order, situation)
            yield from _blocks(order, situation)
        yield from orders
        yield from _products([start, *orders], situation)


def _tree_first(structure: Structure, situation: Situation) -> bool:
    tree, loops = situation.tree(structure.program), _leaf_loops(structure.program)
    return [loop for loop in loops if loop in tree] == list(loops[: sum(loop in tree for loop in loops)])


def _leaf_loops(program: Program) -> tuple[str, ...]:
    """Return the loops around the assignment to the result."""
    address, _ = result_leaf(program)
    return enclosing_loops(program.statement, address)


def result_leaf(program: Program) -> tuple[Address, Assign]:
    """Return the first assignment to the result and its address."""
    local = {space.name for space in program.workspaces}
    return next((address, leaf) for address, leaf in leaves(program.statement) if leaf.target.tensor not in local)


# Orders and conversions


def _orders(start: Structure, situation: Situation) -> Iterator[Structure]:
    """Yield the other legal orders of the loops at the root."""
    loops: list[str] = []
    statement: Stmt = start.program.statement
    while isinstance(statement, Forall):
        loops.append(statement.index)
        statement = statement.body
    before = _storage_pairs(start.program, situation)
    found = 0
    for order in permutations(loops):
        if order == tuple(loops) or any(order.index(above) > order.index(below) for above, below in before):
            continue
        changed = start.then(f"reorder({', '.join(order)})", situation, "order" if start.origin == "default" else start.origin)
        if changed is not None:
            yield changed
            found += 1
        if found == MAX_ORDERS:
            return


def _storage_pairs(program: Program, situation: Situation) -> list[tuple[str, str]]:
    """Return (index, index of a stored level below it) for every operand, so that most illegal orders need no trial."""
    formats = {**situation.formats, **converted_formats(program, situation)}
    pairs = []
    for access in situation.stored(program):
        form = formats[access.tensor]
        names = [access.subscripts[mode].index for mode in form.order if access.subscripts[mode].is_index]
        below = [name for name, kind in zip(names, form.levels, strict=False) if kind is not LevelKind.DENSE]
        pairs += [(above, name) for name in below for above in names[: names.index(name)]]
    present = set(_leaf_loops(program))
    return [(above, below) for above, below in pairs if above in present and below in present]


def converted_formats(program: Program, situation: Situation) -> dict[str, Format]:
    """Return the formats of the operands that a program converts."""
    found = {}
    for key, text in program.conversions:
        name = key.split("(")[0]
        found[name] = parse_format(text, len(situation.formats[name]))
    return found


def _conversions(start: Structure, situation: Situation) -> Iterator[Structure]:
    """Yield the stored operand in another order: indices of the result outermost, reduced ones below, each in place."""
    stored = situation.stored(start.program)
    if len(stored) != 1:
        return
    (access,) = stored
    form, (_, leaf) = situation.formats[access.tensor], result_leaf(start.program)
    if not access.is_plain or len(set(access.indices)) < len(access.subscripts):
        return
    free = [mode for mode in form.order if access.subscripts[mode].index in leaf.target.indices]
    order = (*free, *(mode for mode in form.order if mode not in free))
    if order == form.order:
        return
    kinds = [LevelKind.DENSE if place == 0 and LevelKind.DENSE in form.levels else LevelKind.COMPRESSED for place in range(len(order))]
    loops = [access.subscripts[mode].index for mode in order]
    rest = [loop for loop in _leaf_loops(start.program) if loop not in loops]
    converted = start.then(f'convert({access.tensor}, "{Format(tuple(kinds), order)}"); reorder({", ".join(loops + rest)})', situation)
    if converted is not None:
        yield Structure(converted.steps, converted.parameters, converted.program, "conversion")


# Chains of workspaces


def _chains(start: Structure, situation: Situation) -> Iterator[Structure]:
    """Yield the chain of workspaces along the tree, after each of its steps that leaves a program of its own."""
    found, step = start, _chain_step(start, situation, 1)
    count = 1
    while step is not None:
        changed = found.then(step, situation, "chain" if start.origin in ("default", "order") else start.origin)
        if changed is None:
            return
        found, count = changed, count + 1
        step = _chain_step(found, situation, count)
        if step is None or len(product_factors(result_leaf(found.program)[1].value)) == 2:
            yield found


def _chain_step(structure: Structure, situation: Situation, count: int) -> str | None:
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
    return _precompute(part, rest, leaf, loops, situation, structure, count)


def _precompute(
    part: Sequence[Expr], rest: Sequence[Expr], leaf: Assign, loops: Sequence[str], situation: Situation, structure: Structure, count: int
) -> str | None:
    """Return the directive that moves a part into a workspace over the dense loops that it shares with the rest."""
    program = structure.program
    graph, producers = graph_of(program.relations), producers_inside(program.statement)
    tree = situation.tree(program)
    part_needs = frozenset().union(*(needs_of_expression(factor, producers, graph) for factor in part))
    rest_needs = frozenset(leaf.target.indices).union(*(needs_of_expression(factor, producers, graph) for factor in rest))
    shared = [loop for loop in loops if uses(part_needs, loop, graph) and uses(rest_needs, loop, graph)]
    over = f"[{', '.join(_over(shared, tree, graph))}]"
    names = {space.name for space in program.workspaces} | tree | set(graph_names(program))
    name = next(wish for wish in (f"w{number}" for number in range(count, count + 50)) if wish not in names)
    expression = show(joined(Mul(tuple(part)), list(part)))
    return f"precompute({expression}, {over}, {over}, {name})"


def _is_block_loop(loop: str, graph: Provenance) -> bool:
    """Return whether a loop runs through blocks, of which one at a time is worked on."""
    return graph.is_derived(loop) and loop == graph.made_by(loop).children[0] and len(graph.made_by(loop).children) == 2


def graph_names(program: Program) -> frozenset[str]:
    """Return tensors and indices of a program, which new names must avoid."""
    found = [access for assign in assignments(program.statement) for access in (assign.target, *accesses(assign.value))]
    return frozenset(name for access in found for name in (access.tensor, *access.indices))


def _blocks(start: Structure, situation: Situation) -> Iterator[Structure]:
    """Yield chains in which one dense index of the result is cut into blocks that stay in registers."""
    loops, (_, leaf) = _leaf_loops(start.program), result_leaf(start.program)
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
    order = [*rest[:rows], outer, *rest[rows:], inner]
    parameter = (f"{index}_block", choices)
    origin = "conversion" if start.origin == "conversion" else "blocks"
    opened = Structure(start.steps, (*start.parameters, parameter), start.program, origin)
    step = f"split({index}, {outer}, {inner}, {{{index}_block}}); reorder({', '.join(order)})"
    cut = opened.then(step, situation)
    if cut is not None:
        yield from _chains(cut, situation)


def _piece_names(index: str, program: Program) -> tuple[str, str]:
    taken = graph_names(program)
    names = (f"{index}{'_' * count}" for count in range(5))
    stem = next(name for name in names if f"{name}0" not in taken and f"{name}1" not in taken)
    return f"{stem}0", f"{stem}1"


# Sub-products


def _products(starts: Sequence[Structure], situation: Situation) -> Iterator[Structure]:
    """Yield workspaces for any factors of the product, one and two levels deep."""
    count, second = 0, []
    for start in starts:
        for found in _one_product(start, situation, 1):
            yield found
            count += 1
            if _tree_first(start, situation):
                second.append(found)
            if count == MAX_PRODUCTS // 2:
                break
        if count == MAX_PRODUCTS // 2:
            break
    for start in second:
        for found in _one_product(start, situation, 2):
            yield found
            count += 1
            if count == MAX_PRODUCTS:
                return


def _one_product(start: Structure, situation: Situation, level: int) -> Iterator[Structure]:
    """Yield workspaces for some of the factors that save work: a sum is taken out, or something is computed less often."""
    program = start.program
    graph, producers, tree = graph_of(program.relations), producers_inside(program.statement), situation.tree(program)
    for address, leaf in leaves(program.statement):
        loops = enclosing_loops(program.statement, address)
        own = len(loops) - _outside_of_leaf(program.statement, address)
        factors = product_factors(flatten(leaf.value))
        needed = {factor: needs_of_expression(factor, producers, graph) for factor in factors}
        for size in range(2, len(factors)):
            for part in combinations(factors, size):
                rest = [factor for factor in factors if factor not in part]
                needs = frozenset().union(*(needed[factor] for factor in part))
                others = frozenset(leaf.target.indices).union(*(needed[factor] for factor in rest))
                if not _saves(loops, own, needs, others, tree, graph):
                    continue
                step = _precompute(part, rest, leaf, loops, situation, start, level)
                changed = start.then(step, situation, "products") if step is not None else None
                if changed is not None:
                    yield changed


def _outside_of_leaf(statement: Stmt, address: Address) -> int:
    """Return how many loops around an assignment stand outside the producer or block that it belongs to."""
    around = frames(statement, address)
    edges = [depth for depth, frame in enumerate(around) if isinstance(frame, Block) or (isinstance(frame, Where) and address[depth] == 1)]
    return sum(isinstance(frame, Forall) for frame in around[: max(edges, default=0)])


def _saves(
    loops: Sequence[str], own: int, needs: frozenset[str], others: frozenset[str], tree: frozenset[str], graph: Provenance
) -> bool:
    """Return whether a workspace takes a loop away from the part or from the rest.

    A loop that only the part needs is summed before the rest is multiplied; a loop that only the rest needs, inside those
    around the workspace, no longer repeats the part. Only the innermost ``own`` loops can be taken apart.
    """
    scope = len(loops) - own
    if any(uses(needs, loop, graph) and not uses(others, loop, graph) for loop in loops[scope:]):
        return True
    shared = [loop for loop in loops if uses(needs, loop, graph) and uses(others, loop, graph)]
    listed = _over(shared, tree, graph)
    outside = [loop for loop in shared if loop not in listed]
    inside = loops[max(scope, loops.index(outside[-1]) + 1 if outside else 0) :]
    return any(not uses(needs, loop, graph) for loop in inside)


def _over(shared: Sequence[str], tree: frozenset[str], graph: Provenance) -> list[str]:
    """Return the loops that a workspace ranges over: the innermost shared ones, up to one of the tree or over blocks."""
    listed: list[str] = []
    for loop in reversed(shared):
        if tree.intersection(graph.originals(loop)) or _is_block_loop(loop, graph):
            break
        listed.insert(0, loop)
    return listed
