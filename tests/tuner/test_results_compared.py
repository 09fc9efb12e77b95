"""Results of candidates compared with those of the default."""

from __future__ import annotations

import numpy as np
from measured_problems import MATRIX, RNG
from sparsetune.compiler.format import Format
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.measure.verify import Reference, difference, sampled_problem, tolerance_factor
from sparsetune.tuner.resolve import make_problem


class TestVerify:
    def reference(self, length: float = 100) -> Reference:
        values = RNG.standard_normal(10)
        return Reference(values, np.abs(values), tolerance_factor(np.dtype(np.float64), length))

    def test_rounding_is_right(self) -> None:
        reference = self.reference()
        assert difference(np.asarray(reference.result) * (1 + 4e-16), reference) is None

    def test_more_than_rounding_is_wrong(self) -> None:
        reference = self.reference()
        assert difference(np.asarray(reference.result) * (1 + 1e-12), reference) is not None

    def test_tolerance_grows_with_the_reduction(self) -> None:
        kind = np.dtype(np.float64)
        assert tolerance_factor(kind, 1e6) > 10 * tolerance_factor(kind, 1e3)
        assert tolerance_factor(np.dtype(np.int64), 1e6) == 0

    def test_nan_and_infinity(self) -> None:
        values = np.array([np.nan, np.inf, -np.inf, 1.0])
        reference = Reference(values, np.abs(values), 1e-15)
        assert difference(values.copy(), reference) is None
        assert difference(np.array([0.0, np.inf, -np.inf, 1.0]), reference) is not None
        assert difference(np.array([np.nan, -np.inf, -np.inf, 1.0]), reference) is not None
        assert difference(np.array([np.nan, np.inf, -np.inf, np.nan]), reference) is not None

    def test_shape(self) -> None:
        assert "shape" in str(difference(np.zeros(3), self.reference()))

    def test_sparse_results(self) -> None:
        right = tensor(MATRIX)
        reference = Reference(right, tensor(abs(MATRIX)), 1e-15)
        assert difference(tensor(MATRIX.copy()), reference) is None
        assert difference(right.convert("coo"), reference) is None
        moved = right.to_coordinates()[0].copy()
        moved[1, 0] = (moved[1, 0] + 1) % 20
        if (moved[:, 0] == moved[:, 1]).all():
            moved[1, 0] = (moved[1, 0] + 1) % 20
        other = tensor((moved, right.to_coordinates()[1]), "csr", right.shape)
        assert difference(other, reference) == "the pattern of the result differs"

    def test_sample_keeps_entries_and_formats(self) -> None:
        problem = make_problem("y(i,r) = A(i,j) * C(j,r)", {"A": MATRIX, "C": RNG.standard_normal((20, 200))}, threads=1)
        operands, extents = sampled_problem(parse(problem.expression), problem.operands, problem.extents)
        assert operands["A"].format == Format("dense, compressed")
        assert operands["A"].nnz > 0
        assert operands["A"].shape == (extents["i"], extents["j"])
        assert max(extents.values()) <= 12
