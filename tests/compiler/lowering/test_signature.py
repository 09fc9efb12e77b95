"""What kernels take: parameters in an order that no schedule changes, and only those that are used."""

from __future__ import annotations

from itertools import combinations

import pytest
import sparsetune as st

KERNELS = (
    ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, ("", "reorder(k, i, j)", "split(k, k0, k1, 8)", "split_up(i, i0, i1, 4); reorder(i1, i0)")),
    ("y(i) = A(i,j) * x(j)", {"A": "csr"}, ("", "pos(j, p, A)", "collapse(i, j, f); pos(f, p, A)", "bound(i, b, 7, max_constraint)")),
    ("Y(i,k) = A(i,j) * X(j,k)", {}, ("", "reorder(k, j, i)", "reorder(j, i, k)", "parallelize(i, cpu_thread, no_races)")),
    ("A(i,j) = B(i,k) * C(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, ("", "parallelize(i, cpu_thread, no_races)", "assemble(A, insert)")),
)


@pytest.mark.parametrize(("expression", "formats", "schedules"), KERNELS, ids=["spmm", "spmv", "dense", "spgemm"])
def test_no_schedule_changes_the_order_of_parameters(expression: str, formats: dict[str, str], schedules: tuple[str, ...]) -> None:
    taken = [_parameters(expression, formats, schedule, kind) for kind in ("st_arrays", "st_sizes") for schedule in schedules]
    for first, second in combinations(taken, 2):
        common = set(first) & set(second)
        assert [one for one in first if one in common] == [one for one in second if one in common]


def _parameters(expression: str, formats: dict[str, str], schedule: str, kind: str) -> list[str]:
    source = st.compile(expression, formats=formats, schedule=schedule).source
    lines = [line for line in source.splitlines() if f" = {kind}[" in line]
    return [line.partition(" = ")[0].replace("const ", "").split()[-1] for line in lines]
