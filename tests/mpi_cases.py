"""What every rank runs in the tests of distributed tensors: results are compared with those of one rank, bytes with those computed
before."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from mpi4py import MPI
from mpi_counting import Counting
from sparsetune.compiler.storage.tensor import Tensor
from sparsetune.tuner.distributed.grid import grid_shapes

COMM = MPI.COMM_WORLD
COUNTED = Counting(COMM)
MPI.COMM_WORLD = COUNTED  # type: ignore[misc, assignment]  # before anything of sparsetune asks for it
SHAPE, R = (11, 13, 2), 5
OPTIONS: dict[str, Any] = {"schedule": "default", "threads": 1}


def dense(*shape: int, seed: int = 0, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(1, 9, shape).astype(dtype)  # exact in any order of summation


FACTORS = {"C": dense(11, R), "D": dense(13, R, seed=1), "E": dense(2, R, seed=2)}
MTTKRPS = ["A(i,r) = B(i,j,k) * D(j,r) * E(k,r)", "A(j,r) = B(i,j,k) * C(i,r) * E(k,r)", "A(k,r) = B(i,j,k) * C(i,r) * D(j,r)"]
DENSE = [
    "A(r,i,s) = B(i,j,k) * D(j,r) * E(k,s)",
    "a = B(i,j,k) * D(j,r)",
    "A(r,s) = B(i,j,k) * C(i,r) * D(j,s)",
    "A(i,r) = 2 * B(i,j,k) * (D(j,r) + E(k,r)) - B(i,j,k) * C(i,r)",
]
SPARSE = ["A(i,j,k) = B(i,j,k) * C(i,r) * D(j,r) * E(k,r)", "A(i,j,r) = B(i,j,k) * E(k,r)", "A(k,i) = B(i,j,k) * D(j,r)"]


def entries(nnz: int, seed: int = 3, shape: tuple[int, ...] = SHAPE) -> Tensor:
    rng = np.random.default_rng(seed)
    coordinates = np.array([rng.integers(0, extent, nnz) for extent in shape]).reshape(len(shape), nnz)
    return st.tensor((coordinates, rng.integers(1, 9, nnz).astype(float)), "csf", shape)


def used(expression: str, **more: Any) -> dict[str, Any]:
    return {name: data for name, data in {**FACTORS, **more}.items() if f"{name}(" in expression.partition("=")[2]}


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, Tensor):
        assert found.shape == expected.shape
        assert found.format == expected.format
        for mine, theirs in zip(found.to_coordinates(), expected.to_coordinates(), strict=True):
            assert np.array_equal(mine, theirs)
    else:
        assert type(found) is type(expected)
        assert np.array_equal(found, expected)
        assert np.asarray(found).dtype == np.asarray(expected).dtype


def counted(work: Any) -> tuple[Any, int]:
    """Return the result of some work, and the bytes that all ranks sent meanwhile."""
    before, objects = COUNTED.sent[0], COUNTED.objects[0]
    result = work()
    assert COUNTED.objects[0] == objects
    return result, COMM.allreduce(COUNTED.sent[0] - before)


def check(expression: str, whole: Tensor, spread: Any, output_format: str | None = None, **more: Any) -> None:
    """Compare a result, gathered and distributed, with that of one rank, and its bytes with those computed before."""
    expected = st.evaluate(expression, used(expression, B=whole, **more), output_format=output_format, **OPTIONS)
    for gather in (True, False):
        operands = used(expression, B=spread, **more)
        computed = st.distributed.volume(expression, operands, COMM.size, gather=gather, output_format=output_format)
        made, sent = counted(lambda: st.distributed.evaluate(expression, operands, None, gather, output_format, **OPTIONS))  # noqa: B023
        assert sent == computed["bytes"], (expression, computed, sent)
        same(made if gather else made.gather() if expected.ndim else made.gather()[()], expected)


def check_tensors() -> None:
    """Uneven sizes, extents smaller than the grid, ranks without entries, on every grid."""
    whole = entries(40)
    for grid in grid_shapes(COMM.size, 3):
        spread = st.distributed.tensor(whole if COMM.rank == 0 else None, grid=grid)
        assert (spread.grid, spread.nnz) == (grid, whole.nnz)
        assert spread.imbalance == st.distributed.volume("a = B(i,j,k)", {"B": whole}, grid=grid)["imbalance"]
        for expression in MTTKRPS[:1] + DENSE[:2]:
            check(expression, whole, spread)
        for expression in SPARSE:
            check(expression, whole, spread, "csf" if "A(k" not in expression else "csr")
    for nnz in (3, 0, 40):
        whole = entries(nnz)
        spread = st.distributed.tensor(whole if COMM.rank == 0 else None)
        for expression in (*MTTKRPS, *DENSE):
            check(expression, whole, spread)
        check(SPARSE[0], whole, spread, "csf")
        same(spread.gather(), whole)
        for expression in (MTTKRPS[1], DENSE[2]):
            check(expression, whole, whole)  # every rank has the whole operand and takes its part


def check_repeated_indices() -> None:
    whole = entries(60, shape=(7, 7, 5))
    spread = st.distributed.tensor(whole if COMM.rank == 0 else None)
    for expression in ("a(i) = B(i,i,k) * F(i,i) * G(k)", "a(k) = B(i,i,k) * H(i)"):
        operands = {"F": dense(7, 7), "G": dense(5), "H": dense(7)}
        given = {name: data for name, data in operands.items() if f"{name}(" in expression}
        expected = st.evaluate(expression, {"B": whole, **given}, **OPTIONS)
        same(st.distributed.evaluate(expression, {"B": spread, **given}, **OPTIONS), expected)


def check_distributed_factors() -> None:
    """Results stay where they are and are replicated from there; operands elsewhere are moved first."""
    whole = entries(40)
    spread = st.distributed.tensor(whole if COMM.rank == 0 else None)
    first = st.distributed.evaluate(MTTKRPS[0], used(MTTKRPS[0], B=spread), gather=False, **OPTIONS)
    expected = st.evaluate(MTTKRPS[0], used(MTTKRPS[0], B=whole), **OPTIONS)
    scattered = st.distributed.tensor(FACTORS["E"] if COMM.rank == 0 else None)
    same(scattered.gather(), FACTORS["E"])
    operands = {"B": spread, "C": first, "E": scattered}
    computed = st.distributed.volume(MTTKRPS[1], operands, COMM.size, gather=False)
    made, sent = counted(lambda: st.distributed.evaluate(MTTKRPS[1], operands, gather=False, **OPTIONS))
    assert sent == computed["bytes"]
    second = st.evaluate(MTTKRPS[1], {"B": whole, "C": expected, "E": FACTORS["E"]}, **OPTIONS)
    same(made.gather(), second)
    more = MTTKRPS[1].replace("=", "+=")
    for start in (second, made):
        found = st.distributed.evaluate(more, {**operands, "A": start}, **OPTIONS)
        same(found, 2 * second)
    other = (1, COMM.size, 1)
    moved = st.distributed.evaluate(MTTKRPS[1], operands, grid=other, gather=False, **OPTIONS)
    assert moved.layout.grid == other
    same(moved.gather(), second)
    assert spread.redistribute(other).redistribute(spread.grid).local.nnz == spread.local.nnz


def check_dtypes() -> None:
    for kind in ("float32", "int64"):
        whole = entries(40).astype(kind)
        spread = st.distributed.tensor(whole if COMM.rank == 0 else None)
        given = {"D": FACTORS["D"].astype(kind), "E": FACTORS["E"].astype(kind)}
        expected = st.evaluate(MTTKRPS[0], {"B": whole, **given}, **OPTIONS)
        same(st.distributed.evaluate(MTTKRPS[0], {"B": spread, **given}, **OPTIONS), expected)


def check_files(folder: Path) -> None:
    """Plain files are read in ranges of bytes, others by rank 0; a broken line is the error of every rank."""
    for name in ("few.tns", "many.tns", "head.tns", "symmetric.mtx", "integer.mtx", "pattern.mtx", "packed.tns.gz", "stored.npz"):
        same(st.distributed.tensor(folder / name).gather(), st.tensor(folder / name))
    for name in ("broken.tns", "short.mtx", "beyond.mtx", "absent.tns"):
        messages = []
        for read in (st.distributed.tensor, st.tensor):
            try:
                read(folder / name)
            except st.DataError as error:
                messages.append(str(error))
        assert messages[0].endswith(messages[1]), messages
    with pytest.raises(st.DataError, match="places, but there are"):
        st.distributed.tensor(entries(3), grid=(1, COMM.size, 2))


def check_real(path: str) -> None:
    whole, spread = st.tensor(path), st.distributed.tensor(path)
    indices = "ijklm"[: whole.order]
    factors = {f"F{index}": dense(extent, 4, seed=mode) for mode, (index, extent) in enumerate(zip(indices, whole.shape, strict=True))}
    product = " * ".join(f"F{index}({index},r)" for index in indices[1:])
    expression = f"A(i,r) = B({','.join(indices)}) * {product}"
    given = {name: data for name, data in factors.items() if name in expression}
    expected = st.evaluate(expression, {"B": whole, **given})
    found, sent = counted(lambda: st.distributed.evaluate(expression, {"B": spread, **given}))
    assert np.allclose(found, expected, rtol=1e-12, atol=0)
    assert sent == st.distributed.volume(expression, {"B": whole, **given}, grid=spread.grid)["bytes"]
    assert st.distributed.traffic() == COMM.allreduce(COUNTED.sent[0] - VERSIONS)


st.distributed.tensor(entries(1))
VERSIONS = 64 * (COMM.size - 1) if COMM.size > 1 else 0  # bytes for the comparison of versions, not for tensors
check_tensors()
check_repeated_indices()
check_distributed_factors()
check_dtypes()
check_files(Path(sys.argv[1]))
for real in sys.argv[2:]:
    check_real(real)
if COMM.rank == 0:
    print(f"{COMM.size} ranks agree")
