"""Correlations and layers, and the problems that they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import sparsetune as st
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem

RNG = np.random.default_rng(4)

IMAGE = np.where(RNG.random((60, 70)) < 0.1, RNG.random((60, 70)), 0.0)

WEIGHTS = np.arange(1.0, 10).reshape(3, 3)

CORRELATION = "Y(i,j) = A(i+p,j+q) * F(p,q)"

LAYER = "O(h,w,f) = I(h+p,w+q,c) * F(p,q,c,f)"


def image_problem(form: str = "csr", **options: Any) -> Problem:
    return make_problem(CORRELATION, {"A": st.tensor(IMAGE, form), "F": WEIGHTS}, threads=1, **options)
