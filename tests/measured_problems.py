"""A matrix to be measured with."""

from __future__ import annotations

import numpy as np
import scipy.sparse

RNG = np.random.default_rng(0)

MATRIX = scipy.sparse.random_array((30, 20), density=0.2, rng=RNG, format="csr")
