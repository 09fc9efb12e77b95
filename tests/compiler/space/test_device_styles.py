"""How structures are laid over a GPU: numbers that stay open, and what is left out where it says nothing."""

from __future__ import annotations

import pytest
import sparsetune as st
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.space.candidates import candidates
from sparsetune.compiler.space.template import Template

SPMV = "y(i) = A(i,j) * x(j)"


def templates(expression: str, formats: dict[str, str]) -> list[Template]:
    assignment = parse(expression)
    return [found.template for found in candidates(assignment, formats_of(assignment, formats), target="cuda")]


@pytest.mark.parametrize("start", ["parallelize(i, gpu_warp, no_races, lanes, {lanes})", "collapse(i, j, f1); pos(f1, p, A); split("])
def test_numbers_of_a_mapping_are_open_and_read_back(start: str) -> None:
    chosen = [found for found in templates(SPMV, {"A": "csr"}) if found.text.startswith(start) and "unroll" in found.text]
    assert chosen
    for template in chosen:
        for rank in {0, template.count // 3, template.count - 1}:
            values = template.ranked(rank)
            schedule = template.fill(values)
            assert template.values(schedule) == values
            assert st.compile(SPMV, {"A": "csr"}, schedule=str(schedule), target="cuda", arch="sm_90").source


KERNELS = {
    "SpMM": ("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}),
    "SDDMM": ("Z(i,j) = A(i,j) * C(i,k) * D(k,j)", {"A": "csr", "Z": "csr"}),
    "MTTKRP": ("M(i,r) = A(i,j,k) * C(j,r) * D(k,r)", {"A": "csf"}),
}


@pytest.mark.parametrize(("expression", "formats"), KERNELS.values(), ids=KERNELS)
def test_mappings_can_be_lowered(expression: str, formats: dict[str, str]) -> None:
    """A lookup takes the one that the static model likes best, without generating code."""
    for found in templates(expression, formats):
        assert st.compile(expression, formats, schedule=str(found.fill()), target="cuda", arch="sm_90").default_kernel


def test_products_of_a_share_come_first_where_they_need_no_rows() -> None:
    assert sum("precompute(A(i,j) * x(j), n, m, v)" in found.text for found in templates(SPMV, {"A": "csr"})) == 2
    scaled = templates("y(i) = A(i,j) * x(j) * z(i)", {"A": "csr"})
    assert not any("n, m, v)" in found.text for found in scaled)
