"""Narrow levels: what they hold, what they refuse, and that kernels read them as they read compressed ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import sparsetune as st
from level_cases import SCHEDULES
from sparsetune.compiler.format import parse_format
from sparsetune.compiler.levels.narrow import REACH
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.tuner.features import operand_features


def banded(rows: int, columns: int, reach: int, seed: int = 0) -> scipy.sparse.csr_array:
    """Return a matrix whose rows, some of them empty, lie far apart and reach over so many columns."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 40, rows) * (rng.random(rows) < 0.8)
    starts = rng.integers(0, columns - reach + 1, rows)
    found = [start + rng.choice(reach, length, replace=False) for start, length in zip(starts, lengths, strict=True)]
    entry_rows = np.repeat(np.arange(rows), lengths)
    entry_columns = np.concatenate(found)
    places = entry_rows.astype(np.int32), entry_columns.astype(np.int32)
    return scipy.sparse.coo_array((rng.standard_normal(len(entry_rows)), places), shape=(rows, columns)).tocsr()


def processor_flags() -> set[str]:
    """Return the instruction sets of this processor, where Linux tells them."""
    info = Path("/proc/cpuinfo")
    return set(info.read_text().split()) if info.exists() else set()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_kernels_read_rows_that_begin_far_from_zero(schedule: str) -> None:
    matrix = banded(60, 300_000, REACH)
    stored = st.tensor(matrix, "dense, narrow")
    x = np.random.default_rng(1).standard_normal(matrix.shape[1])
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "dense, narrow"}, schedule=schedule)
    assert np.allclose(kernel(A=stored, x=x), matrix @ x, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("columns", [1, 7, 16, 33])
def test_rows_of_dense_operands(columns: int) -> None:
    matrix = banded(50, 200_000, 5000)
    dense = np.random.default_rng(2).standard_normal((matrix.shape[1], columns))
    kernel = st.compile("Y(i,k) = A(i,j) * X(j,k)", {"A": "dn"}, extents={"k": columns}, schedule="prefetch(j, X, 8)")
    assert np.allclose(kernel(A=st.tensor(matrix, "dn"), X=dense), matrix @ dense)


def test_products_with_other_sparse_operands() -> None:
    left, right = banded(40, 100_000, 3000, 3), banded(40, 100_000, 3000, 3)
    right.data[::3] = 2.0
    narrow = {"A": st.tensor(left, "dense, narrow"), "B": st.tensor(right, "narrow, narrow")}
    for form in ("csr", "dense, narrow", "dcsr", "narrow, narrow"):
        for sign, expected in (("+", left + right), ("*", left * right)):
            made = st.evaluate(f"C(i,j) = A(i,j) {sign} B(i,j)", narrow, output_format=form)
            assert made.format == parse_format(form, 2)
            assert abs(made.to_scipy() - expected).max() == 0
    product = st.evaluate("C(i,k) = A(i,j) * B(k,j)", narrow, output_format="csr")
    assert np.allclose(product.to_numpy(), (left @ right.T).toarray())


@pytest.mark.parametrize("schedule", ["assemble(A, insert)", "pos(i, p, B); parallelize(p, cpu_thread, no_races); assemble(A, insert)"])
@pytest.mark.parametrize("form", ["dense, dense, compressed", "compressed, narrow, narrow"])
def test_two_passes_over_a_narrow_first_level(schedule: str, form: str) -> None:
    dense = np.arange(15.0).reshape(5, 3) * np.array([[1], [0], [1], [1], [0]])
    kernel = st.compile("A(i,k,j) = B(i,k)", {"B": "narrow, dense", "A": form}, schedule=schedule)
    made = kernel.bind_operands({"B": st.tensor(dense, "narrow, dense")}, extents={"j": 4})()
    assert np.array_equal(made.to_numpy(), np.broadcast_to(dense[:, :, None], (5, 3, 4)))


@pytest.mark.parametrize("form", ["dcd", "dcc", "csf"])
def test_several_passes_that_read_narrow_first_levels(form: str) -> None:
    schedule = "precompute(B(j,k), [k, j], [v5, j], v6); workspace(v6, hashed); assemble(A, insert)"
    left, right = np.arange(1.0, 21.0).reshape(4, 5), np.arange(1.0, 6.0).reshape(5, 1)
    kernel = st.compile("A(j,i,k) = B(j,k) + C(k,i)", {"B": "nn; 1, 0", "C": "nn", "A": form}, schedule=schedule)
    made = kernel(B=st.tensor(left, "nn; 1, 0"), C=st.tensor(right, "nn"))
    assert np.array_equal(made.to_numpy(), left[:, None, :] + right.T[None])


def test_coordinates_ahead_do_not_overflow() -> None:
    far = 2**31 - 1
    places = np.array([[0] * 8 + [1] * 2, [*range(far - 8, far), 0, REACH - 1]])
    stored = st.tensor((places, np.ones(10)), "dense, narrow", shape=(2, far))
    kernel = st.compile("C(i) = A(i,j) * b(j)", {"A": "dense, narrow", "b": "compressed", "C": "dense"}, schedule="prefetch(j, A, 8)")
    assert "int64_t base_j = A2_base[i];" in kernel.source  # what is read ahead belongs to rows that begin elsewhere
    other = st.tensor((np.array([[0, far - 2]]), np.array([3.0, 5.0])), "compressed", shape=(far,))
    assert kernel(A=stored, b=other).tolist() == [5.0, 3.0]


def test_the_tuner_tells_rows_in_other_places_apart() -> None:
    rows, distances = np.repeat(np.arange(40), 10), np.tile(np.arange(10) * 3, 40)
    starts = (np.zeros(40, int), np.random.default_rng(0).integers(0, 4900, 40))
    found = []
    for start in starts:
        entries = (np.stack([rows, distances + start[rows]]), np.ones(400))
        found.append([operand_features(st.tensor(entries, form, shape=(40, 5000))) for form in ("csr", "dense, narrow")])
    assert found[0][1] != found[1][1]
    assert all(csr == narrow for csr, narrow in found)


@pytest.mark.parametrize("flags", ["-O2", "-O3 -mavx2 -mfma", "-O3 -mavx512f -mavx512vl", "-O3 -mavx512f -mavx512vl -mavx512bw"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compilers_and_instruction_sets(compiler: str, flags: str, dtype: type) -> None:
    wanted = {flag.removeprefix("-m") for flag in flags.split() if flag.startswith("-m")}
    if compiler not in {found.name for found in available_compilers()}:
        pytest.skip(f"{compiler} is not installed")
    if not wanted <= processor_flags():
        pytest.skip(f"{flags} is not for this machine")
    matrix = banded(50, 90_000, 4000).astype(dtype)
    x = np.random.default_rng(1).standard_normal(matrix.shape[1]).astype(dtype)
    schedule = f'parallelize(j, cpu_vector, parallel_reduction); build({compiler}, "{flags}")'
    made = st.compile("y(i) = A(i,j) * x(j)", {"A": "dn"}, schedule=schedule)(A=st.tensor(matrix, "dn"), x=x)
    assert np.allclose(made, matrix @ x, rtol=1e-4 if dtype is np.float32 else 1e-12, atol=1e-4 if dtype is np.float32 else 1e-12)


def test_a_result_shares_the_pattern_of_a_narrow_operand() -> None:
    matrix = banded(30, 90_000, 2000)
    stored = st.tensor(matrix, "dense, narrow")
    made = st.evaluate("C(i,j) = A(i,j) * d(i)", {"A": stored, "d": np.arange(30.0)}, output_format="dense, narrow")
    assert made.levels[1].crd is stored.levels[1].crd
    assert abs(made.to_scipy() - scipy.sparse.diags_array(np.arange(30.0)) @ matrix).max() == 0


def test_a_fibre_that_reaches_too_far_is_refused_in_one_line() -> None:
    entries = (np.array([[0, 0], [5, 5 + REACH - 1]]), np.ones(2))
    assert st.tensor(entries, "dense, narrow", shape=(2, 100_000)).to_coordinates()[0][1].tolist() == [5, 5 + REACH - 1]
    with pytest.raises(st.FormatError, match="level 2 is narrow, and one of its fibres reaches over 65537 coordinates, more than 65536"):
        st.tensor((np.array([[0, 0], [5, 5 + REACH]]), np.ones(2)), "dense, narrow", shape=(2, 100_000))
    with pytest.raises(st.FormatError, match="singleton level cannot stand below a narrow one"):
        st.Format("narrow, singleton")


def test_wide_extents_have_bases_of_64_bits() -> None:
    far = 2**40
    entries = (np.array([[0, 0, 1], [far, far + 9, 3]]), np.array([1.0, 2.0, 4.0]))
    stored = st.tensor(entries, "dense, narrow", shape=(2, far + 10))
    assert stored.levels[1].parts["base"].dtype == np.int64
    other = st.tensor(entries, "dcsr", shape=(2, far + 10))
    made = st.evaluate("C(i,j) = A(i,j) * B(i,j)", {"A": stored, "B": other}, output_format="dcsr")
    assert made.to_coordinates()[1].tolist() == [1.0, 4.0, 16.0]
    assert st.evaluate("y(i) = A(i,j)", {"A": stored}).tolist() == [3.0, 4.0]


def test_it_takes_fewer_bytes_and_converts_back() -> None:
    matrix = banded(500, 50_000, 900)
    rows, narrow = st.tensor(matrix, "csr"), st.tensor(matrix, "dense, narrow")
    assert narrow.nbytes == rows.nbytes - 2 * matrix.nnz + 4 * 500
    back = narrow.convert("csr")
    assert all(np.array_equal(back.levels[1].parts[part], array) for part, array in rows.levels[1].parts.items())
    assert abs(narrow.to_scipy() - matrix).max() == 0
    assert narrow.T.convert("csr").to_numpy()[100].tolist() == matrix.toarray()[:, 100].tolist()
    assert str((narrow + narrow).format) == "dense, compressed"
    assert str(narrow[3:90:2].format) == "dense, narrow"


def test_a_schedule_may_convert_to_it() -> None:
    matrix = banded(40, 70_000, 700)
    x = np.random.default_rng(4).standard_normal(matrix.shape[1])
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule='convert(A, "dense, narrow")')
    assert "uint16_t" in kernel.source
    assert str(st.Schedule(str(kernel.schedule))) == str(kernel.schedule)
    assert np.allclose(kernel(A=matrix, x=x), matrix @ x)
