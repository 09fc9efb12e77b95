"""A kernel stage by stage: which there are, and that each shows what its pass has made."""

from __future__ import annotations

import sparsetune as st
from sparsetune.compiler.build.stages import STAGES
from sparsetune.compiler.ir.printer import show_function
from sparsetune.compiler.passes.cpu import CPU


def test_stages_are_in_order_from_concrete_notation_to_c() -> None:
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"})
    assert tuple(kernel.stages) == STAGES == ("concrete", "lowering", *(each.name for each in CPU.passes), "c")
    assert kernel.stages["concrete"] == kernel.loop_nest
    assert kernel.stages["lowering"] == show_function(kernel.default_kernel.spec.function)
    assert kernel.stages["c"] == kernel.source


def test_sums_have_their_own_places_before_lowering() -> None:
    scalar = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"})
    assert scalar.loop_nest.split("\n")[2:] == ["    for j:", "      ty += A(i,j) * x(j)", "  consume:", "    y(i) = ty"]
    row = st.compile("Y(i,k) = A(i,j) * X(j,k)", {"A": "csr"}, shape={"k": 8})
    assert "tY(k) += A(i,j) * X(j,k)" in row.loop_nest
    assert "Y(i,k) = tY(k)" in row.loop_nest
    assert "tY" in row.stages["lowering"]


def test_a_stage_shows_what_its_pass_has_made() -> None:
    tiles = "collapse(i, j, f); pos(f, p, A); split(p, p0, p1, 512); parallelize(p0, cpu_thread, atomics)"
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule=tiles)
    assert kernel.stages["flags"].count("atomic y_vals") == 1
    assert "y_vals_sum" in kernel.stages["atomics"]
    assert "y_vals_sum" not in kernel.stages["flags"]
    assert "i_whole" in kernel.stages["segments"]
    assert "i_whole" not in kernel.stages["atomics"]


def test_a_kernel_for_other_values_has_stages_of_its_own() -> None:
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, dtype="float32")
    assert "A_vals: f32[]" in kernel.stages["lowering"]
