"""Table 3 of SparseAuto beside the stages of preset "sparseauto": which rules make the difference, switched one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from forest_samples import LEFT, SPARSEAUTO, forests
from sparsetune.tuner.forests.pipelines import SPARSEAUTO as RULES
from sparsetune.tuner.reports.forests import rules
from sparsetune.tuner.reports.forests_page import page
from sparsetune.tuner.reports.table_3 import PAPER, STEPS, TABLE_2, Counts, counts, with_copies

LEFT_BY_RULES: dict[str, Sequence[tuple[Counts, Counts]]] = {
    "SpMMH-GEMM": (((2, 1), (2, 1)),) * 6,
    "SpMM-GEMM": (((2, 1), (2, 1)),) * 6,
    "SpTTM-TTM": (((3, 1), (3, 1)),) * 6,
    "SpTTM-SpTTM": (*(((3, 1), (3, 1)),) * 4, *(((1, 1), (1, 1)),) * 2),
    "SDDMM-SpMM": (((2, 2), (2, 2)), *(((2, 1), (2, 1)),) * 2, *(((1, 1), (1, 1)),) * 3),
    "MTTKRP-GEMM": (((7, 3), (4, 2)), ((7, 3), (2, 1)), *(((5, 2), (2, 1)),) * 4),
    "SDDMM-SpMM-GEMM": (
        ((50, 15), (16, 8)), ((50, 13), (16, 5)), ((44, 10), (16, 5)), ((27, 7), (10, 4)), ((27, 7), (10, 4)), ((27, 7), (8, 3)),
    ),
    "SpTTM-TTM-TTM": (*(((36, 7), (20, 5)),) * 5, ((36, 7), (16, 3))),
}  # fmt: skip
"""Of ours, and after each rule of the paper."""

COPIED: dict[str, Counts] = {
    "SpMMH-GEMM": (2, 1), "SpMM-GEMM": (2, 1), "SpTTM-TTM": (3, 1), "SpTTM-SpTTM": (3, 1), "SDDMM-SpMM": (2, 1), "MTTKRP-GEMM": (5, 2),
    "SpTTM-TTM-TTM": (60, 17),
}  # fmt: skip
"""What the poset leaves with copies of one factor."""


@pytest.mark.parametrize("kernel", [name for name in TABLE_2 if name != "SDDMM-SpMM-GEMM"])
def test_rules_make_the_difference(kernel: str) -> None:
    """Without conversions, which leave no more: their copies have two modes."""
    assert LEFT_BY_RULES[kernel][0] == LEFT[kernel]
    assert [counts(kernel, letters) for letters in STEPS] == list(LEFT_BY_RULES[kernel])


@pytest.mark.nightly
def test_rules_make_the_difference_for_five_tensors() -> None:
    test_rules_make_the_difference("SDDMM-SpMM-GEMM")
    assert with_copies("SDDMM-SpMM-GEMM") == (102, 18)


def test_kernels_are_those_of_the_samples() -> None:
    assert TABLE_2 == SPARSEAUTO


def test_what_the_rules_explain() -> None:
    """All counts of the paper but what its depth poset leaves of two kernels that are split twice."""
    unexplained = {name for name, steps in LEFT_BY_RULES.items() if steps[-1] != PAPER[name]}
    assert unexplained == {"SDDMM-SpMM-GEMM", "SpTTM-TTM-TTM"}
    assert all(steps[-1][1] == PAPER[name][1] for name, steps in LEFT_BY_RULES.items())


@pytest.mark.parametrize("kernel", [name for name in TABLE_2 if name != "SDDMM-SpMM-GEMM"])
def test_copies_pass_the_poset_of_kernels_that_are_split_twice_alone(kernel: str) -> None:
    """Elsewhere one loop and one mode fewer are had at once, without a buffer that a copy could fill."""
    assert with_copies(kernel) == COPIED[kernel]
    without = LEFT_BY_RULES[kernel][2][0]
    assert (COPIED[kernel] != without) == (kernel == "SpTTM-TTM-TTM")


def test_counts_of_the_first_stage_have_producers_that_do_not_sum() -> None:
    """The scan has 128, 352 and 692 schedules of up to two modes; ours whose producers sum are fewer, although orders of passed
    indices need not agree, as the paper asks, and buffers have any number of modes."""
    all_that_sum = {name: forests(TABLE_2[name], replace(RULES, memory_depth=None)).count() for name in TABLE_2}
    assert (all_that_sum["SpMM-GEMM"], all_that_sum["SpTTM-TTM"], all_that_sum["SpMMH-GEMM"]) == (58, 275, 58)


def test_no_poset_by_depths_leaves_an_odd_number() -> None:
    """101 of SpTTM-TTM-TTM: forests of equal loop depth and equal modes of buffers come in even numbers."""
    all_forests = forests(TABLE_2["SpTTM-TTM-TTM"], replace(RULES, memory_depth=2)).forests()
    kinds = Counter((forest.loop_depth, *(edge.open.bit_count() for edge in forest.edges)) for forest in all_forests)
    assert all(count % 2 == 0 for count in kinds.values())
    assert PAPER["SpTTM-TTM-TTM"][0][0] % 2 == 1


def test_the_page_says_which_rule_changes_what() -> None:
    measured = dict(rules())
    written = page([point for name in ("MTTKRP-GEMM", "SpMM-GEMM") for point in measured[name]()])
    rule = "a: 7 (3), 2 (1); b: 5 (2), 2 (1)"
    assert f"| MTTKRP-GEMM | 5 (2), 2 (1) | 7 (3), 4 (2) | {rule} | 5 (2), 2 (1) | 5 (2) |" in written
    assert "| SpMM-GEMM | 2 (1), 2 (1) | 2 (1), 2 (1) |  | 2 (1), 2 (1) | 2 (1) |" in written
