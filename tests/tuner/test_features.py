"""Features tell inputs apart by what matters and by nothing else; distances behave."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from effort import calls
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner import features
from sparsetune.tuner.features import describe_input, distance, operand_features
from sparsetune.tuner.records import Input
from sparsetune.tuner.resolve import make_problem

RNG = np.random.default_rng(0)


def matrix(rows: int = 1000, columns: int = 1000, nnz: int = 10_000, seed: int = 0):
    generator = np.random.default_rng(seed)
    coordinates = (generator.integers(0, rows, nnz), generator.integers(0, columns, nnz))
    return tensor(scipy.sparse.coo_array((np.ones(nnz), coordinates), shape=(rows, columns)).tocsr())


def described(operand) -> Input:
    return make_problem("y(i) = A(i,j) * x(j)", {"A": operand, "x": np.ones(operand.shape[1])}, threads=1).input


def banded(rows: int):
    return tensor(scipy.sparse.diags_array([np.ones(rows)] * 10, offsets=range(10), shape=(rows, rows)).tocsr())


def test_same_input_is_at_distance_zero() -> None:
    assert distance(described(matrix()), described(matrix())) == 0.0


def test_values_do_not_matter() -> None:
    one = matrix()
    assert distance(described(one), described(tensor(one.to_scipy() * 2.5))) == 0.0


def test_another_pattern_of_the_same_kind_is_near_but_not_the_same() -> None:
    assert 0 < distance(described(matrix(seed=0)), described(matrix(seed=1))) < 0.2


def test_distance_grows_with_size() -> None:
    base = described(matrix())
    twice, many = described(matrix(2000, 2000, 20_000)), described(matrix(8000, 8000, 80_000))
    assert 0.5 < distance(base, twice) < distance(base, many)


def test_distance_is_symmetric() -> None:
    left, right = described(matrix()), described(matrix(500, 3000, 7000))
    assert distance(left, right) == pytest.approx(distance(right, left))


def test_structure_matters() -> None:
    uniform, band = described(matrix(nnz=10_000)), described(banded(1000))
    assert distance(uniform, band) > distance(uniform, described(matrix(seed=1)))


def test_dense_extents_matter() -> None:
    one = matrix()
    inputs = [make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": one, "X": np.ones((1000, k))}, threads=1).input for k in (32, 64, 256)]
    assert 0 < distance(inputs[0], inputs[1]) < distance(inputs[0], inputs[2])


def test_names() -> None:
    values = dict(operand_features(matrix()).values)
    assert set(values) == {"nnz", "fibre1", "skew1", "gap1", "band"}
    assert values["nnz"] == pytest.approx(np.log2(matrix().nnz))
    csf = tensor((np.array([[0, 0, 1], [0, 0, 3], [1, 2, 0]]), np.ones(3)), "csf", (2, 4, 3))
    assert {"fibre0", "fibre1", "fibre2"} <= {name for name, _ in operand_features(csf).values}


def test_skew() -> None:
    rows = np.repeat(np.arange(100), np.where(np.arange(100) == 0, 901, 1))
    skewed = tensor(scipy.sparse.coo_array((np.ones(1000), (rows, np.arange(1000))), shape=(100, 1000)).tocsr())
    assert dict(operand_features(skewed).values)["skew1"] == pytest.approx(np.log2(901 / 10), abs=0.01)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (3, 3)])
def test_empty_operands(shape: tuple[int, int]) -> None:
    empty = tensor((np.zeros((2, 0), np.int64), np.zeros(0)), "csr", shape)
    assert all(np.isfinite(value) for _, value in operand_features(empty).values)


@pytest.mark.parametrize("form", ["csr", "csc", "dcsr", "coo", "dense, hashed", "compressed, dense"])
def test_every_format_has_features(form: str) -> None:
    found = operand_features(matrix().convert(form))
    assert all(np.isfinite(value) for _, value in found.values)


def test_features_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one = matrix()
    first = operand_features(one)
    monkeypatch.setattr(features, "_sparse", None)
    assert operand_features(one) is first


def test_features_of_a_large_operand_look_at_its_rows_and_a_sample_of_its_entries() -> None:
    large = tensor(scipy.sparse.random_array((100_000, 1000), density=0.02, rng=RNG, format="csr"))
    small = calls(lambda: operand_features(matrix()))
    tracemalloc.start()
    try:
        assert calls(lambda: operand_features(large)) < 2 * small
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert held < 8 * 8 * large.shape[0] < large.values.nbytes


def test_missing_features_count() -> None:
    one = described(matrix())
    other = Input(one.extents, one.features[:-3], "else")
    assert distance(one, other) > 0


def test_description_uses_canonical_names() -> None:
    found = describe_input({"T1": matrix()}, {"i0": 1000, "i1": 1000})
    assert found.extents == (("i0", 1000), ("i1", 1000))
    assert all(":" in name for name, _ in found.features)


DISTANCES = """
from sparsetune.tuner.features import distance
from sparsetune.tuner.records import Input
def made(place):
    return Input((), tuple((f"extent:i{number}", round((number + place) * 0.731 % 3.1, 6)) for number in range(12)), str(place))
print([distance(made(0), made(place)) for place in range(1, 20)])
"""


def test_distances_are_the_same_in_every_process() -> None:
    found = {
        subprocess.run([sys.executable, "-c", DISTANCES], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
