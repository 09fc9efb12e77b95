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


def test_sums_of_rows_of_a_collapsed_loop_show_before_lowering() -> None:
    row = ["  produce:", "    for j:", "      ty += A(i,j) * x(j)", "  consume:", "    y(i) = ty"]
    expression = "y(i) = A(i,j) * x(j)"
    assert st.compile(expression, schedule="collapse(i, j, f)").loop_nest.split("\n") == ["for f:", *row]
    positions = st.compile(expression, {"A": "csr"}, schedule="collapse(i, j, f); pos(f, p, A)")
    assert positions.loop_nest.split("\n") == ["for p:", *row]
    tiled = st.compile(expression, schedule="collapse(i, j, f); split(f, f0, f1, 8)")
    assert tiled.loop_nest.split("\n") == ["for f0:", "  for f1:", *(f"  {line}" for line in row[:-1]), "      y(i) += ty"]
    assert "ty2" not in tiled.source


def test_the_pairs_of_a_collapsed_loop_on_a_gpu_have_no_rows() -> None:
    pairs = "collapse(i, j, f); parallelize(f, gpu_thread, atomics)"
    assert "for j" not in st.compile("y(i) = A(i,j) * x(j)", schedule=pairs, target="cuda", arch="sm_90").loop_nest


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
