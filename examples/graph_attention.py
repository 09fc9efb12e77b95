"""A graph attention layer and the steps that train it: every node's result is a mean over its neighbours, weighted by a softmax of scores.

    python examples/graph_attention.py [GRAPH]

GRAPH is a square matrix, a file or a name of ``tune-kernel data list``. If torch is installed, two more ways are run that leave
derivatives to it. Velickovic et al., "Graph Attention Networks", 2018; one head, squared error.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
import sparsetune as st
from beside import beside
from numpy.typing import NDArray
from sparsetune.datasets import load

FEATURES, HIDDEN, STEPS, RATE, SLOPE = 32, 16, 3, 0.1, 0.2
SCORE = f"where(s(i) + t(j) > 0, s(i) + t(j), {SLOPE} * (s(i) + t(j)))"

Layer = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def problem(graph: Any) -> tuple[sp.csr_array, NDArray[Any], NDArray[Any]]:
    """Return a graph with a loop at every node, features of the nodes, and the results that the layer is trained to give."""
    n, random = graph.shape[0], np.random.default_rng(0)
    links = sp.csr_array(abs(graph) + sp.eye_array(n))
    links.sort_indices()
    links.data[:] = 1
    return links, random.standard_normal((n, FEATURES)), random.standard_normal((n, HIDDEN))


def start() -> Layer:
    """Return the weights of features, and those of a node and of its neighbour in a score."""
    random = np.random.default_rng(1)
    return random.standard_normal((FEATURES, HIDDEN)) / 4, random.standard_normal(HIDDEN), random.standard_normal(HIDDEN)


def with_sparsetune(links: sp.csr_array, features: NDArray[Any], goal: NDArray[Any]) -> NDArray[Any]:
    """Write the layer and its derivatives as expressions; numbers for each link are a sparse matrix. These matrices are new in every
    step and used once or twice, so an automatic choice for each would not pay.
    """
    (weights, own, other), matrix, n = start(), st.tensor(links), len(goal)
    layer = [f"E(i,j) = A(i,j) * exp({SCORE})", "n(i) = E(i,j)", "P(i,j) = E(i,j) / n(i)", "Y(i,k) = P(i,j) * H(j,k)"]
    back = [f"G(i,k) = (Y(i,k) - T(i,k)) / {n}", "D(i,j) = P(i,j) * G(i,k) * H(j,k)", "c(i) = D(i,j)"]
    back += [f"Z(i,j) = (D(i,j) - P(i,j) * c(i)) * where(s(i) + t(j) > 0, 1, {SLOPE})", "u(i) = Z(i,j)", "v(j) = Z(i,j)"]
    back += ["B(j,k) = P(i,j) * G(i,k) + u(j) * a(k) + v(j) * b(k)"]
    options = {"output_format": dict.fromkeys("EPDZ", "csr"), "schedule": "default"}
    for _ in range(STEPS):
        hidden = features @ weights
        known = {"A": matrix, "H": hidden, "s": hidden @ own, "t": hidden @ other, "a": own, "b": other, "T": goal}
        *_, u, v, slope = st.evaluate_all([*layer, *back], known, **options)
        weights, own, other = weights - RATE * features.T @ slope, own - RATE * u @ hidden, other - RATE * v @ hidden
    return np.vstack((weights, own, other))


def with_scipy(links: sp.csr_array, features: NDArray[Any], goal: NDArray[Any]) -> NDArray[Any]:
    """Keep numbers for each link in arrays beside the arrays of its ends."""
    (weights, own, other), n = start(), len(goal)
    i, j = links.tocoo().coords
    for _ in range(STEPS):
        hidden = features @ weights
        score = (hidden @ own)[i] + (hidden @ other)[j]
        e = np.exp(np.where(score > 0, score, SLOPE * score))
        p = e / np.bincount(i, e, n)[i]
        shares = sp.csr_array((p, links.indices, links.indptr), links.shape)
        error = (shares @ hidden - goal) / n
        d = p * np.einsum("ek,ek->e", error[i], hidden[j])
        z = (d - p * np.bincount(i, d, n)[i]) * np.where(score > 0, 1, SLOPE)
        u, v = np.bincount(i, z, n), np.bincount(j, z, n)
        slope = shares.T @ error + np.outer(u, own) + np.outer(v, other)
        weights, own, other = weights - RATE * features.T @ slope, own - RATE * u @ hidden, other - RATE * v @ hidden
    return np.vstack((weights, own, other))


def with_torch(links: sp.csr_array, features: NDArray[Any], goal: NDArray[Any]) -> NDArray[Any]:
    """Gather and add up rows for each link; torch computes the derivatives."""
    import torch

    parameters = [torch.from_numpy(part).requires_grad_() for part in start()]
    i, j = (torch.from_numpy(part).long() for part in links.tocoo().coords)
    given, wanted = torch.from_numpy(features), torch.from_numpy(goal)
    for _ in range(STEPS):
        hidden = given @ parameters[0]
        e = torch.exp(torch.nn.functional.leaky_relu((hidden @ parameters[1])[i] + (hidden @ parameters[2])[j], SLOPE))
        p = e / torch.zeros(len(given), dtype=e.dtype).index_add(0, i, e)[i]
        result = torch.zeros_like(hidden).index_add(0, i, p[:, None] * hidden[j])
        found = torch.autograd.grad(((result - wanted) ** 2).sum() / (2 * len(given)), parameters)
        parameters = [(part - RATE * change).detach().requires_grad_() for part, change in zip(parameters, found, strict=True)]
    return np.vstack([part.detach().numpy() for part in parameters])


def with_sparsetune_in_torch(links: sp.csr_array, features: NDArray[Any], goal: NDArray[Any]) -> NDArray[Any]:
    """Write only the layer as expressions; torch gets their derivatives, which are expressions too."""
    import torch

    parameters = [torch.from_numpy(part).requires_grad_() for part in start()]
    given, wanted, matrix = torch.from_numpy(features), torch.from_numpy(goal), st.tensor(links)
    for _ in range(STEPS):
        hidden = given @ parameters[0]
        known = {"A": matrix, "s": hidden @ parameters[1], "t": hidden @ parameters[2]}
        total = st.torch.evaluate(f"n(i) = A(i,j) * exp({SCORE})", known)
        result = st.torch.evaluate(f"Y(i,k) = A(i,j) * exp({SCORE}) * H(j,k) / n(i)", {**known, "H": hidden, "n": total})
        found = torch.autograd.grad(((result - wanted) ** 2).sum() / (2 * len(given)), parameters)
        parameters = [(part - RATE * change).detach().requires_grad_() for part, change in zip(parameters, found, strict=True)]
    return np.vstack([part.detach().numpy() for part in parameters])


def main(graph: str = "random:rmat:scale=14:nnz=2e5") -> None:
    ways = {"sparsetune": with_sparsetune, "SciPy": with_scipy}
    if find_spec("torch"):
        ways |= {"st.torch": with_sparsetune_in_torch, "torch": with_torch}
    beside(ways, *problem(load(graph).to_scipy().tocsr()))
    if not find_spec("torch"):
        print("two more ways need torch, which is not installed: pip install torch")


if __name__ == "__main__":
    main(*sys.argv[1:])
