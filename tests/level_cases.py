"""What tests of several kinds of levels share: a matrix, and schedules of ``y(i) = A(i,j) * x(j)`` for rows of compressed coordinates."""

from __future__ import annotations

import numpy as np

SCHEDULES = (
    "",
    "parallelize(j, cpu_vector, parallel_reduction)",
    "parallelize(i, cpu_thread, no_races, static); parallelize(j, cpu_vector, parallel_reduction); prefetch(j, A, 64)",
    "collapse(i, j, f); pos(f, p, A); split_up(p, p0, p1, 8); parallelize(p0, cpu_thread, atomics, static)",
    "collapse(i, j, f); pos(f, p, A); split(p, p0, p1, 5); reorder(p1, p0)",
    "pos(j, p, A); split(p, p0, p1, 3); unroll(p1, 3)",
    "split(j, j0, j1, 1000); reorder(j0, i, j1)",
    "protocol(A, step, locate)",
    "reorder(j, i); protocol(A, step, locate)",
    "prefetch(j, x, 4)",
)


def scattered(rows: int = 23, columns: int = 37, seed: int = 0) -> np.ndarray:
    """Return a matrix, some of whose rows are empty, and one of which is full."""
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((rows, columns)) < 0.2, rng.standard_normal((rows, columns)), 0.0)
    dense[[0, rows // 3, rows - 1]] = 0.0
    dense[rows // 2] = 1.5
    return dense
