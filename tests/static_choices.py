"""Products with one stored matrix, and what the static choice makes of them."""

from __future__ import annotations

import numpy as np
from sparsetune.compiler.storage.construct import tensor
from sparsetune.tuner.model import model_choice
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem


def with_rows(lengths: list[int]):
    """A CSR matrix whose rows have these lengths."""
    columns = np.concatenate([np.arange(length) for length in lengths]) if lengths else np.empty(0)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return tensor((np.stack([rows, columns]).astype(np.int64), np.ones(len(rows))), "csr", (len(lengths), max(lengths, default=1) or 1))


def spmm(matrix, columns: int = 32, threads: int = 1) -> Problem:
    return make_problem("Y(i,k) = A(i,j) * X(j,k)", {"A": matrix, "X": np.ones((matrix.shape[1], columns))}, threads=threads)


def spmv(matrix, threads: int = 1) -> str:
    return str(model_choice(make_problem("y(i) = A(i,j) * x(j)", {"A": matrix, "x": np.ones(matrix.shape[1])}, threads=threads)))
