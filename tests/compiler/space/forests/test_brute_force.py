"""Counts of the presets against forests written out one by one, by code that knows nothing of theirs.

A forest is nested tuples: (index, child, ...) is a loop, a frozenset of operands a term. Trees, postorders, index orders and fusion are
tried in all ways, and what breaks a rule is thrown away afterwards.
"""

from __future__ import annotations

import pytest
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.format import Format
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.forests.space import Forests
from sparsetune.tuner.explore import explore
from written_forests import MOST_WRITTEN, Case, depth, fibres_count, sparseauto_count, spttn_counts, spttn_nests, turned

CASES = {
    "three, two intermediates of a matrix": Case("il", ("ij", "jk", "kl"), {0: "ij"}),
    "three, result of a vector": Case("k", ("ij", "jk", "ik"), {0: "ij"}),
    "three, a scalar": Case("", ("ijk", "ij", "k"), {0: "ijk"}),
    "three, stored the other way": Case("il", ("ijk", "jl", "kl"), {0: "kji"}),
    "three, two of them sparse": Case("il", ("ij", "jk", "kl"), {0: "ij", 1: "jk"}),
    "three, an outer product": Case("ikl", ("ij", "jk", "l"), {0: "ij"}),
    "four, a chain": Case("im", ("ij", "jk", "kl", "lm"), {0: "ij"}),
    "four, the acceptance's": Case("in", ("ijk", "jl", "kl", "ln"), {0: "ijk"}),
    "four, a ring": Case("", ("ij", "jk", "kl", "li"), {0: "ij"}),
    "four, a star": Case("i", ("ijk", "i", "j", "k"), {0: "ijk"}),
    "four, two of them sparse": Case("il", ("ij", "jk", "ik", "kl"), {0: "ij", 2: "ik"}),
    "three, a tensor and a matrix, both sparse": Case("il", ("ijk", "jk", "kl"), {0: "ijk", 1: "jk"}),
    "three, an index of the result alone in one": Case("ijl", ("ij", "i", "jl"), {0: "ji"}),
    "three, all sparse": Case("", ("ij", "jk", "ki"), {0: "ij", 1: "jk", 2: "ik"}),
    "four, vectors on both sides": Case("", ("ij", "jk", "i", "k"), {0: "ij"}),
    "four, stored the other way": Case("l", ("ijk", "i", "jl", "kl"), {0: "kij"}),
    "four, two pairs": Case("il", ("ij", "j", "jk", "kl"), {0: "ij", 2: "jk"}),
    "three, a tensor of order four": Case("im", ("ijkl", "jkm", "lm"), {0: "ijkl"}),
    "three, sampled products": Case("ij", ("ij", "ikl", "jkl"), {0: "ij"}),
    "three, stored from the middle": Case("jm", ("ijk", "im", "km"), {0: "jki"}),
    "three, an index of all": Case("ijr", ("ir", "ijr", "jr"), {1: "rij"}),
    "four, a pair and a pair": Case("il", ("ij", "jk", "km", "ml"), {2: "mk"}),
    "four, one index in all": Case("r", ("ijr", "ir", "jr", "r"), {0: "ijr"}),
    "four, two tensors": Case("il", ("ijk", "jkl", "j", "k"), {0: "ijk", 1: "jkl"}),
    "four, a scalar of two matrices": Case("", ("ij", "ik", "jk", "j"), {0: "ij", 2: "kj"}),
}


def explored(case: Case, preset: str) -> dict[str, int]:
    """Return what the stages of a preset kept."""
    return {stage["stage"]: stage["kept"] for stage in explore(case.text, case.formats, preset=preset).stages}


@pytest.mark.parametrize("name", CASES)
def test_spttn(name: str) -> None:
    stages, counts = explored(CASES[name], "spttn"), spttn_counts(CASES[name])
    assert stages["generated"] == sum(counts.values())
    assert stages["min_depth"] == counts[min(counts)]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if sum(spttn_counts(case).values()) <= MOST_WRITTEN])
def test_each_combination_of_orders_is_one_fully_fused_forest(name: str) -> None:
    """Listed by what they share, not by their orders (Definitions 4.3 to 4.5), those of least depth too."""
    case, counts = CASES[name], spttn_counts(CASES[name])
    written = spttn_nests(case)
    depths = [max(map(depth, nest)) for nest in written]
    assert len(written) == sum(counts.values())
    assert depths.count(min(depths)) == counts[min(counts)]
    space = Forests(parse(case.text), formats_of(parse(case.text), case.formats))
    assert space.count() == len(written)


@pytest.mark.parametrize("name", ["four, the acceptance's", "three, stored the other way", "four, a star", "three, a scalar"])
def test_pairwise_nests_over_stored_fibres(name: str) -> None:
    case = CASES[name]
    assignment = parse(case.text)
    modes = tuple(case.operands[0].index(one) for one in case.stored[0])
    form = Format(", ".join(["compressed"] * len(modes)), modes)
    spaces = Forests(assignment, formats_of(assignment, {"T0": form})).over_fibres
    assert [space.count() for space in spaces] == [fibres_count(case, levels) for levels in range(1, len(modes) + 1)]
    assert any(space.count() for space in spaces)


@pytest.mark.parametrize("name", CASES)
def test_sparseauto(name: str) -> None:
    case = CASES[name]
    found = explored(case, "sparseauto")
    assert found["generated"] == sum(map(sparseauto_count, turned(case)))
    assert found["memory_depth"] == sum(sparseauto_count(one, 2) for one in turned(case))
