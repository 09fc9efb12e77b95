"""PageRank: the probability of being at a page after following random links, or, at times, jumping anywhere.

    python examples/pagerank.py [GRAPH]

GRAPH is a square matrix, a file or a name of ``tune-kernel data list``; entry (i, j) is a link from page i to page j.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse as sp
import sparsetune as st
from beside import beside
from numpy.typing import NDArray
from sparsetune.datasets import load

DAMPING, ROUNDS = 0.85, 50


def links(graph: Any) -> sp.csr_array:
    """Return the matrix whose entry (i, j) is the probability of going from page j to page i."""
    adjacency = sp.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
    degree = np.maximum(adjacency.sum(axis=1), 1)
    return sp.csr_array(sp.diags_array(1 / degree) @ adjacency).T.tocsr()


def with_sparsetune(matrix: sp.csr_array) -> NDArray[Any]:
    """Follow the links; two bound kernels pass the ranks back and forth, and also add the jumps."""
    n = matrix.shape[0]
    step = st.compile("q(i) = d * P(i,j) * r(j) + jump", {"P": "csr"}, schedule="auto")
    ranks, others, jump = np.full(n, 1 / n), np.empty(n), np.zeros(())
    there = step.bind(d=DAMPING, P=matrix, r=ranks, jump=jump, out=others)
    back = step.bind(d=DAMPING, P=matrix, r=others, jump=jump, out=ranks)
    dangling = np.flatnonzero(np.diff(matrix.tocsc().indptr) == 0)
    for turn in range(ROUNDS):
        jump[()] = (1 - DAMPING + DAMPING * (ranks, others)[turn % 2][dangling].sum()) / n
        (there, back)[turn % 2]()
    return ranks.copy() if ROUNDS % 2 == 0 else others


def with_scipy(matrix: sp.csr_array) -> NDArray[Any]:
    """Follow the links with SciPy's product."""
    n = matrix.shape[0]
    ranks = np.full(n, 1 / n)
    dangling = np.flatnonzero(np.diff(matrix.tocsc().indptr) == 0)
    for _ in range(ROUNDS):
        jump = (1 - DAMPING + DAMPING * ranks[dangling].sum()) / n
        ranks = DAMPING * (matrix @ ranks) + jump
    return ranks


def main(graph: str = "random:rmat:scale=18:nnz=4e6") -> None:
    matrix = links(load(graph).to_scipy().tocsr())
    beside({"sparsetune": with_sparsetune, "SciPy": with_scipy}, matrix)


if __name__ == "__main__":
    main(*sys.argv[1:])
