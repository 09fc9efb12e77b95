"""Volumes, memory and imbalance against listing every rank's part, and the chosen grid against all grids."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import sparsetune as st
from sparsetune.compiler.storage.construct import from_entries
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.datasets import load
from sparsetune.tuner.cli import run
from sparsetune.tuner.distributed.grid import coordinates_of, grid_shapes, local_extent

SMALL = "random:uniform:11x13x2:nnz=40"
MTTKRP = "A(i,r) = B(i,j,k) * C(j,r) * D(k,r)"


def dense(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape)


def parts(tensor: Tensor, grid: tuple[int, ...]) -> list[Tensor]:
    """Return what each rank of a grid has, entry by entry from the definition."""
    columns, values = tensor.to_coordinates()
    found = []
    for rank in range(math.prod(grid)):
        places = coordinates_of(rank, grid)
        mine = np.all([column % count == place for column, count, place in zip(columns, grid, places, strict=True)], axis=0)
        shape = tuple(local_extent(*mode) for mode in zip(tensor.shape, grid, places, strict=True))
        local = tuple(column[mine] // count for column, count in zip(columns, grid, strict=True))
        found.append(from_entries(shape, local, values[mine], tensor.format))
    return found


@pytest.mark.parametrize("ranks", [1, 2, 4, 7, 12])
@pytest.mark.parametrize("form", ["csf", "csf; 2, 0, 1", "dense, compressed, compressed", "compressed, dense, dense", "coo"])
def test_memory_and_imbalance_are_those_of_the_parts(ranks: int, form: str) -> None:
    tensor = load(SMALL, form)
    for grid in grid_shapes(ranks, 3):
        found = st.distributed.volume("a = B(i,j,k)", {"B": tensor}, grid=grid)
        made = parts(tensor, grid)
        assert found["grid"] == grid
        assert found["memory"] == max(part.nbytes for part in made) + 8 + 8  # a share of a scalar, and the scalar
        assert found["imbalance"] == pytest.approx(max(part.nnz for part in made) * ranks / tensor.nnz)


@pytest.mark.parametrize("ranks", [1, 2, 4, 7, 12])
def test_bytes_of_an_mttkrp_are_those_of_the_shares(ranks: int) -> None:
    operands = {"B": load(SMALL), "C": dense(13, 5), "D": dense(2, 5)}
    for grid in grid_shapes(ranks, 3):
        found = st.distributed.volume(MTTKRP, operands, grid=grid, factors="distributed")
        mates = [ranks // count for count in grid]
        assert found["replicate"] == {"C": (mates[1] - 1) * 13 * 5 * 8, "D": (mates[2] - 1) * 2 * 5 * 8}
        assert (found["reduce"], found["gather"]) == ((mates[0] - 1) * 11 * 5 * 8, (ranks - 1) * 11 * 5 * 8)
        assert found["bytes"] == sum(found["replicate"].values()) + found["reduce"] + found["gather"]
        whole = st.distributed.volume(MTTKRP, operands, grid=grid)
        assert whole["bytes"] == found["reduce"] + found["gather"]


@pytest.mark.parametrize("ranks", [1, 4, 7, 30, 64])
@pytest.mark.parametrize("gather", [True, False])
@pytest.mark.parametrize("factors", ["replicated", "distributed"])
@pytest.mark.parametrize(
    "expression", [MTTKRP, "A(i,r,s) = B(i,j,k) * C(j,r) * D(k,s)", "A(r,s) = B(i,j,k) * C(j,r) * D(k,s)", "a = B(i,j,k)"]
)
def test_the_chosen_grid_moves_little_more_than_the_best(expression: str, ranks: int, gather: bool, factors: str) -> None:
    operands = {"B": load("random:uniform:40x90x7:nnz=300"), "C": dense(90, 4), "D": dense(7, 4)}
    given = {name: data for name, data in operands.items() if f"{name}(" in expression}

    def bytes_of(grid: tuple[int, ...] | None) -> int:
        return st.distributed.volume(expression, given, ranks, grid, gather, factors=factors)["bytes"]

    assert bytes_of(None) <= 1.1 * min(bytes_of(grid) for grid in grid_shapes(ranks, 3))


def test_a_sparse_result_is_computed_where_nothing_has_to_be_summed() -> None:
    operands = {"B": load(SMALL), "C": dense(2, 5)}
    found = st.distributed.volume("A(i,j,r) = B(i,j,k) * C(k,r)", operands, ranks=4, output_format="csf")
    assert found["grid"][2] == 1
    assert found["reduce"] == 0
    split = st.distributed.volume("A(i,j,r) = B(i,j,k) * C(k,r)", operands, grid=(1, 1, 2), output_format="csf", gather=False)
    made = [{tuple(entry[:2]) for entry in part.to_coordinates()[0].T} for part in parts(operands["B"], (1, 1, 2))]
    stay = sum(entry[0] % 2 == rank for rank, entries in enumerate(made) for entry in entries)
    stay_in_turn = sum(entry[1] % 2 == rank for rank, entries in enumerate(made) for entry in entries)
    leaving = {sum(map(len, made)) - found for found in (stay, stay_in_turn)}
    assert split["reduce"] in {2 * 8 + count * 5 * (3 * 4 + 8) for count in leaving}


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("A(i,j) = B(i,k) * C(k,j)", "2 sparse operands, B, C"),
        ("A(i) = B(i,k) * x(k) + b(i)", "lacks the sparse operand B"),
        ("A(i) = x(i) / B(i,k)", "no product with B"),
        ("A(i,j) = B(i,j) * B(j,i)", "several subscripts"),
        ("A(i) = x(i)", "no sparse operand"),
    ],
)
def test_other_expressions_are_refused_in_one_line(expression: str, message: str) -> None:
    operands = {"B": load("random:uniform:6x6:nnz=9"), "C": load("random:uniform:6x6:nnz=9"), "x": dense(6), "b": dense(6)}
    given = {name: data for name, data in operands.items() if f"{name}(" in expression.partition("=")[2]}
    with pytest.raises(st.ExpressionError, match=message) as caught:
        st.distributed.volume(expression, given, ranks=2)
    assert "\n" not in str(caught.value)


def test_a_repeated_index_is_distributed_once() -> None:
    operands = {"B": load("random:uniform:8x8x5:nnz=60"), "x": dense(5)}
    assert st.distributed.volume("a(i) = B(i,i,k) * x(k)", operands, ranks=4)["grid"][1] == 1
    with pytest.raises(st.DataError, match="1 place along mode 1"):
        st.distributed.volume("a(i) = B(i,i,k) * x(k)", operands, grid=(2, 2, 1))


def test_explain_shows_volumes_and_the_best_grid(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explain", MTTKRP, "-i", f"B={SMALL}", "--dim", "r=5", "--ranks", "7"]
    assert run([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    whole = st.distributed.volume(MTTKRP, {"B": load(SMALL), "C": dense(13, 5), "D": dense(2, 5)}, ranks=7)
    assert found["volume"] == {**json.loads(json.dumps(whole)), "best_bytes": 6 * 11 * 5 * 8}
    assert found["volume_distributed"]["bytes"] <= 1.1 * found["volume_distributed"]["best_bytes"]
    assert run(arguments) == 0
    assert "7 x 1 x 1" in capsys.readouterr().out
    assert run(["explain", MTTKRP, "-i", f"B={SMALL}"]) == 2
    assert "--ranks" in capsys.readouterr().err
