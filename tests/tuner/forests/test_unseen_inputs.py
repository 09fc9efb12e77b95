"""What is chosen without tuning on generated inputs that no rule was made on, counted beside samples of the spaces and nests by hand."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from sparsetune.compiler.deadline import Deadline
from sparsetune.compiler.errors import ResourceError
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.datasets.generate import generate
from sparsetune.tuner.explore import explore
from sparsetune.tuner.model import model_choice
from sparsetune.tuner.resolve import make_problem

TWO = "A(i,n) = T(i,j,k) * C(j,l) * D(k,l) * E(l,n)"
TUCKER = "A(p,q,r,s) = T(i,j,k,l) * C(i,p) * D(j,q) * E(k,r) * F(l,s)"
BY_HAND = {
    TWO: "precompute(T(i,j,k) * D(k,l), l, l, w1); precompute(w1(l) * C(j,l), l, l, w2)",
    TUCKER: "precompute(T(i,j,k,l) * F(l,s), s, s, w1); precompute(w1(s) * E(k,r), [r, s], [r, s], w2);"
    " precompute(w2(r,s) * D(j,q), [q, r, s], [q, r, s], w3)",
}
SAMPLE = 10


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("expression", "source", "columns"),
    [
        (TWO, "random:uniform:400x300x200:nnz=2e4", (4, 64)),
        (TWO, "random:zipf:300x200x400:nnz=2e4", (16, 16)),
        (TWO, "random:uniform:1000x20x20:nnz=1e4", (4, 64)),
        (TUCKER, "random:uniform:50x40x30x20:nnz=1e4", (4, 4, 4, 4)),
        (TUCKER, "random:zipf:100x40x60x50:nnz=1e4", (4, 4, 8, 8)),
    ],
)
def test_the_choice_does_little_more_than_the_best_of_a_sample(expression: str, source: str, columns: tuple[int, ...]) -> None:
    """It may do more operations than another schedule where these are vectors in registers, but not twice as many."""
    stored = generate(source, "csf")
    of_two = [(stored.shape[1], columns[0]), (stored.shape[-1], columns[0]), columns]
    shapes = of_two if expression == TWO else list(zip(stored.shape, columns, strict=True))
    operands = {"T": stored, **{name: np.ones(shape) for name, shape in zip("CDEF", shapes, strict=False)}}
    problem = make_problem(expression, operands, threads=1)
    chosen = model_choice(problem, Deadline(60.0)) or Schedule()
    samples = (explore(expression, {"T": "csf"}, preset=preset).space.sample(SAMPLE, seed=1) for preset in ("spttn", "sparseauto"))
    others = [Schedule(BY_HAND[expression]), *(one for drawn in samples for one in drawn)]
    counts = [_flops(expression, chosen, operands)]
    for one in others:
        with suppress(ResourceError):  # of a sample, whose workspaces may be of any size
            counts.append(_flops(expression, one, operands))
    assert len(counts) > SAMPLE
    assert counts[0] <= 1.5 * min(counts[1:])


def _flops(expression: str, schedule: Schedule, operands: dict[str, Any]) -> int:
    return compile_kernel(expression, {"T": "csf"}, None, schedule).bind(**operands, threads=1).count()["flops"]
