"""Every schedule on the frontiers of Ahrens et al. becomes a kernel that computes what NumPy computes (section 6.8)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from differential.batch import build_together
from space_samples import KERNELS
from sparsetune.compiler.concrete.nodes import Forall, Program, Where
from sparsetune.compiler.errors import ExpressionError
from sparsetune.compiler.pipeline import compile_program
from sparsetune.tuner.exploration import Exploration
from sparsetune.tuner.explore import explore

SUBSCRIPTS = {
    "SpMV": "ij,j->i",
    "SpMV2": "ij,jk,k->i",
    "SpGEMM": "ik,kj->ij",
    "SpGEMM2": "ik,kl,lj->ij",
    "SpGEMMH": "ik,kj,kj->ij",
    "SpMTTKRP": "ikl,kj,lj->ij",
}
EXTENTS = {"i": 7, "j": 5, "k": 6, "l": 4}


@cache
def explored(name: str, preset: str | None = "pigeon") -> Exploration:
    text = KERNELS[name].replace("+=", "=")
    given = explore(text, preset="pigeon").space.formats
    return explore(text, given, preset=preset)


def operands(name: str, seed: int, density: float) -> Iterator[np.ndarray]:
    """Yield arrays of small integers, exact in any order of summation, with empty rows and columns."""
    source = np.random.default_rng(seed)
    for subscripts in SUBSCRIPTS[name].split("->")[0].split(","):
        shape = tuple(EXTENTS[index] for index in subscripts)
        values = source.integers(1, 5, size=shape).astype(float)
        yield values if len(shape) == 1 else values * (source.random(shape) < density)


def wrong(name: str, found: Exploration, programs: list[Program], folder: Path) -> list[Program]:
    """Return the programs whose kernels give other values than NumPy, or entries that no product has."""
    compiled = [compile_program(found.expression, program, found.space.formats) for program in programs]
    build_together([one.default_kernel for one in compiled], folder, name)
    names = sorted({access for access in found.space.formats if access not in ("a", "A")})
    bad = []
    for seed, density in ((1, 0.35), (2, 0.1), (3, 0.0), (4, 1.0)):
        given = dict(zip(names, operands(name, seed, density), strict=True))
        expected = np.einsum(SUBSCRIPTS[name], *given.values())
        for program, one in zip(programs, compiled, strict=True):
            result = one(**given)
            dense = result if isinstance(result, np.ndarray) else result.to_numpy()
            fits = np.array_equal(dense, expected)
            if not isinstance(result, np.ndarray):
                fits = fits and str(result.format) == str(found.space.formats["A"]) and result.nnz == np.count_nonzero(expected)
            if not fits:
                bad.append(program)
    return bad


@pytest.mark.parametrize("name", KERNELS)
def test_the_frontier_compiles_and_is_right(name: str, tmp_path: Path) -> None:
    """Operands are positive, so a product of entries is never zero and the pattern of the result is known too."""
    found = explored(name)
    programs = list(dict.fromkeys(schedule.program for schedule in found.frontier))
    assert not wrong(name, found, programs, tmp_path)


@pytest.mark.parametrize("name", ["SpMV2", "SpGEMM", "SpGEMM2"])
def test_deeper_nests_compile_and_are_right(name: str, tmp_path: Path) -> None:
    """Without a preset, where what workspaces store counts too."""
    found = explored(name, None)
    places = range(0, len(found.frontier), max(1, len(found.frontier) // 20))
    programs = list(dict.fromkeys(found.frontier[place].program for place in places))
    assert not wrong(name, found, programs, tmp_path)


def test_gustavson_comes_out() -> None:
    """A row of the result is gathered over j alone, below the loop over i; no operand is converted (section 6.8)."""
    found = explored("SpGEMM")
    rows = [one.program for one in found.frontier if one.loop_nest.split()[:6] == ["for", "i:", "for", "k:", "for", "j:"]]
    assert rows
    for program in rows:
        (workspace,) = program.workspaces
        assert (workspace.indices, workspace.kind) == (("j",), "list")
        assert isinstance(program.statement, Forall)
        assert program.statement.index == "i"
        assert isinstance(program.statement.body, Where)
    assert () in [program.conversions for program in rows]


def test_a_program_needs_an_expression_without_accumulation() -> None:
    found = explored("SpMV")
    with pytest.raises(ExpressionError, match="write the expression with '='"):
        compile_program(KERNELS["SpMV"], found.frontier[0].program, found.space.formats)
