"""The real matrices and tensors beside the repository: all load, or end in the line that is expected of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from sparsetune.compiler.errors import DataError
from sparsetune.datasets import load

pytestmark = pytest.mark.data

REFUSED = {
    "cholmod_fullcrud.mtx": "the header promises 4 entries, but the file holds 3",
    "cholmod_fullcrud2.mtx": ":3: value 'garbled' is not a number",
    "cholmod_mangle1.mtx": ":1: the banner says 'junk'",
    "cholmod_mangle3.mtx": ":1: the banner says 'junk'",
    "ibm03.mtxp": "files of tensors end in",
    "lagraph_mangled1.mtx": ":1: the banner says 'mangled'",
    "lagraph_mangled11.mtx": ":5: coordinate 'zero' of mode 2 is not a whole number",
    "lagraph_mangled13.mtx": ":7: coordinate 9999 of mode 2 is out of range",
    "lagraph_mangled15.mtx": ":5: 2 fields, but an entry has 1",
    "lagraph_mangled3.mtx": ":1: the banner says 'mangled'",
    "lagraph_mangled5.mtx": ":1: a pattern is general or symmetric",
    "lagraph_mangled7.mtx": ":5: 2 fields, but an entry has 3",
    "lagraph_mangled9.mtx": ":4: a symmetric matrix is square, not 3 x 4",
    "lagraph_mangled_format.mtx": ":1: an array has values",
    "paru_a1.mtx": ":11: coordinate 0 of mode 1 is below 1",
    "taco_rua_32.rb": "files of tensors end in",
    "tfdp_netscience_zero_based.mtx": ":3: coordinate 0 of mode 2 is below 1",
    "splatt_small4_zeroidx.tns": ":2: coordinate 0 of mode 4 is below 1",
    "taco_d432.ttx": "the header promises 24 entries, but the file holds 32",
}
"""What the deliberately broken files of the two edge folders are told; every other file loads."""

UNREAD_BY_SCIPY = {
    "amesos_In_MissingADiagonal.mtx": ((5, 5), 9),
    "amesos_In_NumericallySingular.mtx": ((4, 4), 10),
    "cholmod_fullcha.mtx": ((2, 2), 4),
    "cholmod_fullrsa.mtx": ((2, 2), 4),
    "lagraph_matrix_fp32.mtx": ((7, 7), 12),
    "lagraph_matrix_uint64.mtx": ((7, 7), 12),
    "lagraph_west0067_jumbled.mtx": ((67, 67), 294),
    "lagraph_west0067_noheader.mtx": ((67, 67), 294),
    "parti_3D_12031.tns": ((100, 80, 60), 12031),
    "parti_3d_dense.tns": ((4, 4, 3), 48),
    "parti_4d_3_16.tns": ((3, 3, 3, 3), 16),
    "splatt_small.tns": ((2, 3, 2), 6),
    "taco_3tensor.tns": ((1073, 1, 7), 3),
    "taco_qcd_theta.ttx": ((25, 25), 625),
}
"""Shape and stored entries of the edge files that SciPy does not read and we do."""


def test_edge_files(each_reader: str, shared_data: Path) -> None:
    paths = sorted(shared_data.glob("*/edge/*"))
    assert {path.name for path in paths} >= {*REFUSED, *UNREAD_BY_SCIPY}
    for path in paths:
        if path.name in REFUSED:
            with pytest.raises(DataError) as caught:
                load(path)
            assert f"{path}{REFUSED[path.name]}" in str(caught.value) or REFUSED[path.name] in str(caught.value)
            assert "\n" not in str(caught.value)
            continue
        read = load(path)
        if path.name in UNREAD_BY_SCIPY:
            assert (read.shape, read.nnz) == UNREAD_BY_SCIPY[path.name]
            continue
        reference = scipy.io.mmread(path)
        expected = reference.toarray() if hasattr(reference, "toarray") else reference
        assert np.array_equal(read.to_numpy(), expected, equal_nan=True), path
        assert read.dtype == expected.dtype


def test_jumbled_and_headless_are_the_same_matrix(shared_data: Path) -> None:
    edge = shared_data / "matrices" / "edge"
    plain = load(shared_data / "matrices" / "west0067.mtx.gz").to_numpy()
    for name in ("lagraph_west0067_jumbled.mtx", "lagraph_west0067_noheader.mtx"):
        assert np.array_equal(load(edge / name).to_numpy(), plain)


def matrices() -> list[str]:
    folder = Path(__file__).resolve().parents[3] / "shared" / "data" / "matrices"
    return sorted(path.name for path in folder.glob("*.mtx.gz"))


@pytest.mark.parametrize("name", matrices() or ["none"])
def test_matrices_as_scipy_reads_them(shared_data: Path, name: str) -> None:
    path = shared_data / "matrices" / name
    read = load(path).to_scipy()
    reference = scipy.io.mmread(path)
    expected = reference.tocsr() if hasattr(reference, "tocsr") else scipy.sparse.csr_array(reference)
    expected.sort_indices()
    if read.format == "csr":
        assert np.array_equal(read.indptr, expected.indptr)
        assert np.array_equal(read.indices, expected.indices)
        assert np.array_equal(read.data, expected.data, equal_nan=True)
    else:
        assert (read.tocsr() != expected).nnz == 0


def test_tensors(shared_data: Path) -> None:
    paths = sorted((shared_data / "tensors").glob("*.tns.gz"))
    assert paths
    for path in paths:
        read = load(path)
        text = gzip.decompress(path.read_bytes())
        rows = np.array(text.split(), np.float64).reshape(-1, read.order + 1) if len(text) < 3_000_000 else None
        if rows is None:
            assert read.nnz == text.count(b"\n")
            continue
        assert read.shape == tuple(rows[:, :-1].max(axis=0).astype(int))
        coordinates, values = read.to_coordinates()
        order = np.lexsort(rows[:, -2::-1].T)
        assert np.array_equal(coordinates.T + 1, rows[order, :-1])
        assert np.array_equal(values, rows[order, -1])
