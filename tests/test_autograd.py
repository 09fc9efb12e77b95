"""``st.torch``: expressions among torch's operations, differentiated by torch, where torch is installed."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import sparsetune as st
from sparsetune.compiler.errors import DataError, ExpressionError


def test_without_torch_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    st.torch._torch.cache_clear()
    with pytest.raises(DataError, match="needs torch"):
        st.torch.evaluate("y(i) = a(i)", {"a": np.ones(3)})
    st.torch._torch.cache_clear()


SHAPES = {"a": (3,), "b": (3,), "c": (4,), "A": (3, 4), "B": (4, 2)}
DENSE = [
    ("y(i) = A(i,j) * c(j)", "Ac"),
    ("C(i,k) = relu(A(i,j) * B(j,k)) * a(i)", "ABa"),
    ("y = a(i) * a(i)", "a"),
    ("y(i) = exp(a(i)) / (1 + b(i) * b(i))", "ab"),
    ("P(i,j) = exp(A(i,j)) / sum(k, exp(A(i,k)))", "A"),
    ("y(i) = tanh(a(i)) * sigmoid(c(j) * a(i)) * c(j) + log(a(i))", "ac"),
]
SPARSE = [
    "C(i,k) = A(i,j) * B(j,k)",
    "C(i,k) = A(i,j) * exp(A(i,j)) * B(j,k)",
    "y(i) = A(i,j) * A(i,j) * B(j,k) / (1 + A(i,l))",
    "C(i,k) = sum(j, A(i,j) * exp(A(i,j)) * B(j,k)) / (1 + sum(j, A(i,j) * exp(A(i,j))))",
]


def given(names: str, torch: Any) -> list[Any]:
    random = np.random.default_rng(0)
    return [torch.from_numpy(random.random(SHAPES[name]) + 0.2).requires_grad_() for name in names]


@pytest.mark.nightly
@pytest.mark.cc
@pytest.mark.parametrize(("text", "names"), DENSE, ids=[pair[0] for pair in DENSE])
def test_first_and_second_derivatives(text: str, names: str) -> None:
    torch: Any = pytest.importorskip("torch")
    tensors = given(names, torch)

    def function(*tensors: Any) -> Any:
        return st.torch.evaluate(text, dict(zip(names, tensors, strict=True)))

    assert torch.autograd.gradcheck(function, tensors)
    assert torch.autograd.gradgradcheck(function, tensors)


@pytest.mark.nightly
@pytest.mark.cc
@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("text", SPARSE)
def test_sparse_operands_have_derivatives_on_their_pattern(text: str, layout: str) -> None:
    torch: Any = pytest.importorskip("torch")
    rows, columns = np.nonzero(np.random.default_rng(1).random((3, 4)) < 0.6)
    positions = np.searchsorted(rows, np.arange(4))

    def function(values: Any, dense: Any) -> Any:
        if layout == "coo":
            matrix = torch.sparse_coo_tensor(torch.from_numpy(np.stack((rows, columns))), values, (3, 4))
        else:
            matrix = torch.sparse_csr_tensor(torch.from_numpy(positions), torch.from_numpy(columns), values, (3, 4))
        return st.torch.evaluate(text, {"A": matrix, "B": dense})

    values = torch.from_numpy(np.random.default_rng(2).random(len(rows))).requires_grad_()
    assert torch.autograd.gradcheck(function, (values, *given("B", torch)))


@pytest.mark.nightly
def test_what_has_no_derivative_is_refused() -> None:
    torch: Any = pytest.importorskip("torch")
    square = torch.ones(3, 3, requires_grad=True)
    with pytest.raises(ExpressionError, match="takes no '\\+='"):
        st.torch.evaluate("y(i) += A(i,j)", {"A": square, "y": torch.ones(3)})
    with pytest.raises(ExpressionError, match="operand 'z' is not used"):
        st.torch.evaluate("y(i) = A(i,j)", {"A": square, "z": square})
    with pytest.raises(ExpressionError, match="the derivative by A\\(i,i\\)"):
        st.torch.evaluate("y(i) = A(i,i)", {"A": square}).sum().backward()
    with pytest.raises(DataError, match="is on meta"):
        st.torch.evaluate("y(i) = a(i)", {"a": torch.ones(3, device="meta")})


def graph(torch: Any) -> tuple[Any, Any, Any]:
    """Return a random graph of two communities as a sparse matrix, features of its nodes, and which community each belongs to."""
    random = np.random.default_rng(3)
    labels = np.arange(60) % 2
    linked = (random.random((60, 60)) < np.where(labels[:, None] == labels, 0.2, 0.02)) | np.eye(60, dtype=bool)
    features = labels[:, None] + 2 * random.standard_normal((60, 5))
    return torch.from_numpy(linked.astype(float)).to_sparse_csr(), torch.from_numpy(features), torch.from_numpy(labels)


@pytest.mark.nightly
@pytest.mark.cc
def test_a_graph_convolution_trains() -> None:
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(0)
    links, features, labels = graph(torch)
    first, second = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((5, 8), (8, 2)))
    degree = 1 / links.to_dense().sum(1)

    def network() -> Any:
        hidden = st.torch.evaluate("H(i,k) = relu(d(i) * A(i,j) * X(j,l) * W(l,k))", {"d": degree, "A": links, "X": features, "W": first})
        return st.torch.evaluate("Y(i,k) = d(i) * A(i,j) * H(j,l) * W(l,k)", {"d": degree, "A": links, "H": hidden, "W": second})

    assert trained(torch, network, (first, second), labels) < 0.8


@pytest.mark.nightly
@pytest.mark.cc
def test_a_graph_attention_layer_trains_and_is_what_torch_computes() -> None:
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(0)
    links, features, labels = graph(torch)
    weights, left, right = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((5, 2), (2,), (2,)))

    def network() -> Any:
        hidden = features @ weights
        scores = "exp(where(l(i) + r(j) > 0, l(i) + r(j), 0.2 * (l(i) + r(j))))"
        own = {"A": links, "l": hidden @ left, "r": hidden @ right}
        total = st.torch.evaluate(f"t(i) = A(i,j) * {scores}", own)
        return st.torch.evaluate(f"Y(i,k) = A(i,j) * {scores} * H(j,k) / t(i)", {**own, "H": hidden, "t": total})

    def by_torch() -> Any:
        hidden = features @ weights
        scores = torch.nn.functional.leaky_relu((hidden @ left)[:, None] + (hidden @ right), 0.2)
        return torch.softmax(scores.masked_fill(links.to_dense() == 0, -torch.inf), 1) @ hidden

    gradients = [torch.autograd.grad((way() ** 2).sum(), (weights, left, right)) for way in (network, by_torch)]
    for mine, other in zip(*gradients, strict=True):
        assert torch.allclose(mine, other)
    assert torch.allclose(network(), by_torch())
    assert trained(torch, network, (weights, left, right), labels) < 0.8


def trained(torch: Any, network: Any, parameters: tuple[Any, ...], labels: Any) -> float:
    """Return the loss after some steps over that before."""
    optimizer, losses = torch.optim.Adam(parameters, lr=0.05), []
    for _ in range(40):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(), labels)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses[-1] / losses[0]
