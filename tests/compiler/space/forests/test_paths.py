"""Contraction paths: how many there are, each once, and no term before what it reads."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from contraction_sequences import sequence_count, sequences
from forest_samples import TTTC6, forests
from sparsetune.compiler.space.forests.paths import Path, PathRules, path_count, paths, term_indices


@pytest.mark.parametrize(("tensors", "count"), [(2, 1), (3, 3), (4, 18), (5, 180), (6, 2700), (7, 56700)])
def test_sequences(tensors: int, count: int) -> None:
    assert sequence_count(tensors) == count
    if tensors < 7:
        assert len(set(sequences((1 << tensors) - 1))) == count


@pytest.mark.parametrize(("tensors", "count"), [(2, 1), (3, 3), (4, 18), (5, 150), (6, 1620), (7, 21420)])
def test_postorders(tensors: int, count: int) -> None:
    assert path_count(tensors) == count
    if tensors < 7:
        factors = " * ".join(f"T{number}(i)" for number in range(tensors))
        found = tuple(paths(forests(f"a = {factors}").contraction))
        assert len(set(found)) == count
        assert set(found) == {path for path in sequences((1 << tensors) - 1) if is_postorder(path)}


def is_postorder(path: Path) -> bool:
    """Whether everything below a node is computed in one go directly before it."""
    for place, term in enumerate(path):
        below = sum(other.operands | term.operands == term.operands for other in path)
        if any(other.operands | term.operands != term.operands for other in path[place - below + 1 : place]):
            return False
    return True


def test_paths_of_several_factors_at_once() -> None:
    """Trees whose inner nodes have two children or more: 1, 4, 26 (Schroeder's fourth problem), and orders of what they compute."""
    three = tuple(paths(forests("a = A(i) * B(i) * C(i)").contraction, PathRules(pairwise=False)))
    assert len(set(three)) == len(three) == 4
    four = tuple(paths(forests("a = A(i) * B(i) * C(i) * D(i)").contraction, PathRules(pairwise=False)))
    trees = {frozenset(term.parts for term in path) for path in four}
    assert (len(set(four)), len(trees)) == (29, 26)


def test_reducing_producers() -> None:
    """``C * D`` keeps both of its indices in ``B(i,k) * C(k,j) * D(k,j) * E(j,l)``, so it is no intermediate then."""
    contraction = forests("A(i,l) = T(i,k) * C(k,j) * D(k,j) * E(j,l)").contraction
    for path in paths(contraction, PathRules(pairwise=False, reducing=True)):
        for term in path[:-1]:
            assert term_indices(contraction, term) != contraction.open(term.operands)
            assert term.operands != 0b0110


def test_depths_of_a_tensor_train() -> None:
    contraction = forests(TTTC6).contraction

    def depth(path: Path) -> int:
        return max(term_indices(contraction, term).bit_count() for term in path)

    assert sum(depth(path) == 7 for path in sequences(contraction.everything)) == 213
    assert min(map(depth, paths(contraction))) == 7


def test_parts_come_in_a_canonical_order() -> None:
    for path in paths(forests("MTTKRP4").contraction):
        for term in path:
            assert all(a & -a < b & -b for a, b in pairwise(term.parts))
            assert term.parts in set(permutations(term.parts))
