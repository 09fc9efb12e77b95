"""Table 3 of SparseAuto compared with the stages of preset "sparseauto": the rules that make the difference, added one after the other.

The paper's own rules are inferred from its counts (Dias et al., "SparseAuto", section 6, Table 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from ...compiler.concrete.check import formats_of
from ...compiler.notation.nodes import Access, Assignment, Mul, accesses
from ...compiler.notation.parser import parse
from ...compiler.space.forests.contraction import Contraction
from ...compiler.space.forests.costs import Costs, costs_of, driven_iterations
from ...compiler.space.forests.forest import Forest, Placed
from ...compiler.space.forests.paths import Path, PathRules, Term, term_indices
from ...compiler.space.forests.peeling import ForestRules, Peeling
from ...compiler.space.forests.posynomial import Posynomial
from ...compiler.space.forests.space import Forests
from ..forests.domain import domain_of
from ..forests.dominance import Dominance
from ..forests.pipelines import SPARSEAUTO

Counts = tuple[int, int]
"""Numbers of schedules and of buckets of equal cost."""

TABLE_2 = {
    "SpMMH-GEMM": "A(i,l) = T(i,k) * C(k,j) * D(k,j) * E(j,l)",
    "SpMM-GEMM": "A(i,l) = T(i,j) * C(j,k) * D(k,l)",
    "SpTTM-TTM": "A(i,l,m) = T(i,j,k) * C(j,l) * D(k,m)",
    "SpTTM-SpTTM": "S(i,j,m) = T(i,j,k) * C(k,l) * D(l,m)",
    "SDDMM-SpMM": "A(i,l) = T(i,j) * C(i,k) * D(j,k) * E(j,l)",
    "MTTKRP-GEMM": "A(i,m) = T(i,k,l) * C(l,j) * D(k,j) * E(j,m)",
    "SDDMM-SpMM-GEMM": "A(i,m) = T(i,j) * C(i,k) * D(j,k) * E(j,l) * F(l,m)",
    "SpTTM-TTM-TTM": "A(l,m,n) = T(i,j,k) * C(i,l) * D(j,m) * E(k,n)",
}
"""The kernels of SparseAuto: T is sparse, S has its pattern."""

PAPER: Mapping[str, tuple[Counts, Counts]] = {
    "SpMMH-GEMM": ((2, 1), (2, 1)),
    "SpMM-GEMM": ((2, 1), (2, 1)),
    "SpTTM-TTM": ((3, 1), (3, 1)),
    "SpTTM-SpTTM": ((1, 1), (1, 1)),
    "SDDMM-SpMM": ((1, 1), (1, 1)),
    "MTTKRP-GEMM": ((5, 2), (2, 1)),
    "SDDMM-SpMM-GEMM": ((224, 43), (8, 3)),
    "SpTTM-TTM-TTM": ((101, 26), (16, 3)),
}
"""The paper's counts after the depth poset, and after costs over all sizes."""

RANK, MODE, LAST = (32.0, 32.0), (1e3, 1e6), (1.0, 1e3)
"""Ranges of the extents that factors add, of those of the sparse operand, and of the quotient of its last extent and its middle one."""


def iterations(space: Forests, forest: Forest) -> Costs:
    """Return the costs of a forest whose time is the iterations around its terms."""
    found = costs_of(forest, space.formats)
    time = (driven_iterations(forest, place, space.formats, len(place.order)) for place in forest.placed)
    return replace(found, time=sum(time, Posynomial()))


def own_loops(forest: Forest) -> Iterator[tuple[Placed, int]]:
    """Yield terms, each with the number of loops around it that it shares with no other term."""
    around = Counter(loop for place in forest.placed for loop in place.loops)
    return ((place, sum(around[loop] == 1 for loop in place.loops)) for place in forest.placed)


def has_loops_for_all(forest: Forest) -> bool:
    """Return whether every term has a loop of its own."""
    return all(own for _, own in own_loops(forest))


def shares_stored_loops_alone(forest: Forest) -> bool:
    """Return whether terms without the sparse operand share no loops."""
    sparse = forest.contraction.sparse
    return all(place.term.operands & sparse or own == len(place.loops) for place, own in own_loops(forest))


def sums_below_a_sparse_result(forest: Forest) -> bool:
    """Return whether no summed index is outside the indices that a sparse result shares with the sparse operand."""
    contraction = forest.contraction
    if contraction.target.tensor != "S":
        return True
    order = [contraction.indices[index] for index in forest.placed[-1].order]
    stored = _stored(contraction) & set(contraction.target.indices)
    inner = max(map(order.index, stored))
    return set(order[:inner]) <= set(contraction.target.indices)


FILTERS: Mapping[str, Callable[[Forest], bool]] = {
    "b": has_loops_for_all, "c": shares_stored_loops_alone, "d": sums_below_a_sparse_result,
}  # fmt: skip
"""The rules that decide which forests exist; rule "a" changes costs, rule "e" ranges."""

STEPS = ("", "a", "ab", "abc", "abcd", "abcde")
"""The rules of the paper, added one at a time."""

COPIES = "poset with copies"
"""Name of the row of ``with_copies``."""


def counts(kernel: str, rules: str) -> tuple[Counts, Counts]:
    """Return how many schedules the last two stages leave of a kernel under some rules of the paper, by their definitions.

    Conversions of operands are left out, since they add no schedules: a copy is a buffer of two modes or more.
    """
    space = _space(TABLE_2[kernel], replace(SPARSEAUTO, memory_depth=2))
    kept = shallowest(_costs(space, _shallow(kernel), rules))
    left = Dominance(domain_of(space.contraction, _ranges(space.contraction) if "e" in rules else None)).undominated(list(kept))
    return _counted(kept.values()), _counted(kept[one] for one in left)


def with_copies(kernel: str) -> Counts:
    """Return how many schedules the depth poset leaves under rules a and b if a split may separate a single factor, which copies it.

    Only buffers of at most one mode and forests of least depth are counted: no kernel of Table 2 needs more.
    """
    space = _space(TABLE_2[kernel], replace(SPARSEAUTO, memory_depth=1))
    found = _costs(space, space.forests(), "ab")
    for factor in dict.fromkeys(accesses(space.assignment.value)):
        copied = _space_with_copies(space.assignment, factor)
        found.update(_costs(copied, copied.forests(), "ab"))
    return _counted(shallowest(found).values())


def shallowest(found: Mapping[Costs, int]) -> dict[Costs, int]:
    """Return the costs that no other beats in the depth poset: less loop depth or memory depth, and not more of the other (section 5.2)."""
    depths = {(one.loop_depth, one.memory_depth) for one in found}
    best = {one for one in depths if not any(other != one and other[0] <= one[0] and other[1] <= one[1] for other in depths)}
    return {one: count for one, count in found.items() if (one.loop_depth, one.memory_depth) in best}


def _costs(space: Forests, forests: Iterable[Forest], rules: str) -> Counter[Costs]:
    admitted = (forest for forest in forests if all(holds(forest) for letter, holds in FILTERS.items() if letter in rules))
    return Counter(iterations(space, forest) if "a" in rules else costs_of(forest, space.formats) for forest in admitted)


def _counted(counts: Iterable[int]) -> Counts:
    all_counts = tuple(counts)
    return sum(all_counts), len(all_counts)


def _space(text: str, rules: ForestRules) -> Forests:
    assignment = parse(text)
    return Forests(assignment, formats_of(assignment, _stored_formats(assignment)), rules)


@cache
def _shallow(kernel: str) -> tuple[Forest, ...]:
    return tuple(_space(TABLE_2[kernel], replace(SPARSEAUTO, memory_depth=2)).forests())


def _stored_formats(assignment: Assignment) -> dict[str, str]:
    return {access.tensor: "csf" for access in (assignment.target, *accesses(assignment.value)) if access.tensor in ("S", "T")}


def _stored(contraction: Contraction) -> set[str]:
    return {contraction.indices[index] for _, chain in contraction.chains for index in chain}


def _ranges(contraction: Contraction) -> dict[str, tuple[float, float]]:
    modes = _stored(contraction)
    return {name: MODE if name in modes else RANK for name in contraction.indices} | ({"k/j": LAST} if modes >= {"j", "k"} else {})


class _Copying(Peeling):
    """The forests that copy a factor. The copy is modelled as a product of the factor with a further operand of ones."""

    def __init__(self, contraction: Contraction, rules: ForestRules, factor: int) -> None:
        super().__init__(contraction, rules)
        self._copy = Term((1 << factor, 1 << len(contraction.operands) - 1))

    def paths(self) -> Iterator[Path]:
        for path in super().paths():
            producers = [term for term in path[:-1] if term != self._copy]
            sums = all(term_indices(self.contraction, term) != self.contraction.open(term.operands) for term in producers)
            if len(producers) < len(path) - 1 and sums:
                yield path


def _space_with_copies(assignment: Assignment, factor: Access) -> Forests:
    factors = tuple(dict.fromkeys(accesses(assignment.value)))
    ones = Access("ones", factor.subscripts)
    whole = replace(assignment, value=Mul((*factors, ones)))
    rules = replace(SPARSEAUTO, paths=PathRules(pairwise=False), memory_depth=1)
    space = Forests(whole, formats_of(whole, _stored_formats(assignment)), rules)
    space.peeling = _Copying(space.contraction, rules, factors.index(factor))
    return space
