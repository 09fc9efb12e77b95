"""Functions of expressions (DESIGN 4.5): against NumPy on dense results, on stored entries alone in sparse ones, and in all schedules."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sparsetune as st
from sparsetune.compiler.errors import SparsetuneError
from sparsetune.compiler.native.toolchain import available_compilers
from sparsetune.compiler.notation.nodes import Apply, Sum
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.notation.printer import show_assignment
from sparsetune.tuner.measure.oracle import evaluate_dense
from sparsetune.tuner.measure.patterns import stored_places

pytestmark = pytest.mark.skipif(not available_compilers(), reason="needs a C compiler")


def matrix(seed: int, rows: int = 6, columns: int = 5) -> Any:
    values = np.random.default_rng(seed)
    return sp.random_array((rows, columns), density=0.4, format="csr", rng=values, data_sampler=lambda size: values.standard_normal(size))


RNG = np.random.default_rng(0)
A, B = matrix(1), matrix(2)
D, E = A.toarray(), B.toarray()
X, V, W = RNG.standard_normal(5), RNG.standard_normal(6), RNG.standard_normal((5, 3))


def relu(value: Any) -> Any:
    return np.maximum(value, 0)


CASES: list[tuple[str, dict[str, Any], str | None, Any]] = [
    ("y(i) = exp(v(i))", {"v": V}, None, np.exp(V)),
    ("y(i) = tanh(v(i)) + log(abs(v(i))) * sqrt(abs(v(i)))", {"v": V}, None, np.tanh(V) + np.log(abs(V)) * np.sqrt(abs(V))),
    ("y(i) = sigmoid(v(i)) - pow(v(i), 3) + pow(abs(v(i)), 0.3)", {"v": V}, None, 1 / (1 + np.exp(-V)) - V**3 + abs(V) ** 0.3),
    ("Y(i,j) = exp(A(i,j))", {"A": A}, None, np.exp(D)),
    ("Y(i,j) = exp(A(i,j))", {"A": A}, "csr", np.where(D != 0, np.exp(D), 0)),
    ("Y(i,j) = exp(A(i,j))", {"A": A}, "csc", np.where(D != 0, np.exp(D), 0)),
    ("Y(i,j) = max(A(i,j), B(i,j))", {"A": A, "B": B}, None, np.maximum(D, E)),
    ("Y(i,j) = max(A(i,j), B(i,j))", {"A": A, "B": B}, "csr", np.maximum(D, E)),
    ("Y(i,j) = min(A(i,j), 1)", {"A": A}, "csr", np.where(D != 0, np.minimum(D, 1), 0)),
    ("Y(i,j) = A(i,j) * exp(B(i,j))", {"A": A, "B": B}, None, D * np.exp(E)),
    ("Y(i,j) = where(A(i,j) > 0, A(i,j), 0.2 * A(i,j))", {"A": A}, "csr", np.where(D > 0, D, 0.2 * D)),
    ("Y(i,j) = (A(i,j) > B(i,j)) - (A(i,j) == 0)", {"A": A, "B": B}, None, (D > E) * 1.0 - (D == 0)),
    ("y(i) = max(s(), v(i))", {"s": 0.5, "v": V}, None, np.maximum(0.5, V)),
    ("y(i) = relu(A(i,j) * x(j) + v(i))", {"A": A, "x": X, "v": V}, None, relu(D @ X + V)),
    ("y(i) = exp(A(i,j) * x(j))", {"A": A.tocsc(), "x": X}, None, np.exp(D @ X)),
    ("Y(i,k) = relu(A(i,j) * W(j,k))", {"A": A, "W": W}, None, relu(D @ W)),
    ("S(i) = exp(A(i,j))", {"A": A}, None, np.exp(D.sum(1))),
    ("S(i) = sum(j, exp(A(i,j)))", {"A": A}, None, np.exp(D).sum(1)),
    ("s = sum(i, j, exp(A(i,j)))", {"A": A}, None, np.exp(D).sum()),
    ("y(i) = A(i,j) * exp(B(i,j))", {"A": A, "B": B}, None, (D * np.exp(E)).sum(1)),
    ("y(i) = exp(A(i,j)) * exp(B(i,j))", {"A": A, "B": B}, None, (np.exp(D) * np.exp(E)).sum(1)),
    ("y(i) = max(A(i,j), B(i,j))", {"A": A, "B": B}, None, np.maximum(D.sum(1), E.sum(1))),
    ("y(i) = relu(exp(A(i,j)) - 3)", {"A": A}, None, relu(np.exp(D.sum(1)) - 3)),
    ("y(i) = relu(sum(j, exp(A(i,j))) - 3)", {"A": A}, None, relu(np.exp(D).sum(1) - 3)),
    ("y(i) = sum(j, A(i,j)) * v(i) / (1 + sum(j, exp(A(i,j))))", {"A": A, "v": V}, None, D.sum(1) * V / (1 + np.exp(D).sum(1))),
    ("y(i) += exp(v(i))", {"v": V, "y": np.ones(6)}, None, 1 + np.exp(V)),
    ("y(i) = sum(j, A(i,j) - v(i))", {"A": A, "v": V}, None, (D - V[:, None]).sum(1)),
    ("y(i) = 2 * sum(j, 1 - exp(A(i,j)))", {"A": A}, None, 2 * (1 - np.exp(D)).sum(1)),
    ("y(i) = sum(j, x(j) * (A(i,j) - v(i)) + 3)", {"A": A, "x": X, "v": V}, None, (X * (D - V[:, None]) + 3).sum(1)),
    ("s = relu(sum(i, j, v(i) - x(j)))", {"v": V, "x": X}, None, relu((V[:, None] - X).sum())),
    ("y(i) = sum(j, A(i,j) + s(i))", {"A": A, "s": st.tensor(np.where(V > 0, V, 0), "s")}, "s", D.sum(1) + 5 * np.where(V > 0, V, 0)),
]


@pytest.mark.parametrize("schedule", ["default", "auto"])
@pytest.mark.parametrize(("expression", "operands", "format", "expected"), CASES)
def test_functions_mean_what_numpy_means(expression: str, operands: Any, format: str | None, expected: Any, schedule: str) -> None:
    found = st.evaluate(expression, operands, output_format=format, schedule=schedule)
    assert isinstance(found, st.Tensor) == (format is not None)
    assert np.allclose(found.to_numpy() if isinstance(found, st.Tensor) else found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("y(i) = max(i,j)", type(None)),
        ("y(i) = exp(i)", type(None)),
        ("y = exp", type(None)),
        ("y = max(s(), 0)", Apply),
        ("y = exp((1))", Apply),
        ("y(i) = exp(1.5 * x(i))", Apply),
        ("y(i) = relu(x(i)) + 1 < 2 * x(i)", Apply),
        ("y(i) = (x(i) <= 2) * 3", Apply),
        ("y = sum(i, j, exp(A(i,j)))", Sum),
        ("y(i) = where(a(i) != b(i) + 1, a(i), -b(i))", Apply),
    ],
)
def test_texts_are_tensors_where_all_arguments_are_subscripts(text: str, kind: type) -> None:
    parsed = parse(text)
    assert parse(show_assignment(parsed)) == parsed
    found = [node for node in (parsed.value, *parsed.value.children) if isinstance(node, Apply | Sum)]
    assert bool(found) == (kind is not type(None))
    assert not found or isinstance(found[0], kind)


def test_odd_values_come_out_as_numpy_gives_them() -> None:
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 710.0, -750.0, 5e-324])
    with np.errstate(all="ignore"):
        expected = {
            "exp": np.exp(odd), "tanh": np.tanh(odd), "abs": np.abs(odd), "sqrt": np.sqrt(odd), "log": np.log(odd), "relu": relu(odd),
            "sigmoid": 1 / (1 + np.exp(-odd)),
        }  # fmt: skip
    for name, values in expected.items():
        for count in (1, 3, 10, 40):  # vectors and what is left of them
            given = np.resize(odd, count)
            assert np.allclose(st.evaluate(f"y(i) = {name}(x(i))", {"x": given}), np.resize(values, count), equal_nan=True), name
    first, second = np.meshgrid(odd, odd)
    for name, meaning in (("max", np.maximum), ("min", np.minimum)):
        found = st.evaluate(f"Y(i,j) = {name}(A(i,j), (B(i,j)))", {"A": first, "B": second})
        assert np.array_equal(found, meaning(first, second), equal_nan=True)


COMPARED = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_comparisons_in_vectors_and_in_what_is_left_of_them(dtype: Any) -> None:
    meanings: dict[str, Any] = {f"r(i) = x(i) {sign} y(i)": lambda x, y, z, of=of: of(x, y) for sign, of in COMPARED.items()}
    meanings["r(i) = where(x(i) < y(i), z(i), 0)"] = lambda x, y, z: np.where(x < y, z, 0)
    meanings["r = sum(i, where(x(i) < y(i), z(i), 0))"] = lambda x, y, z: z[x < y].sum()
    for text, meaning in meanings.items():
        kernel = st.compile(text)
        for count in (1, 7, 16, 70):
            rng = np.random.default_rng(count)
            x, y = (3 * rng.standard_normal(count)).astype(dtype), (rng.random(count) - 0.25).astype(dtype)
            x[::5], y[::7] = (np.nan, x[::7]) if dtype is not np.int64 else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            given = {"x": x, "y": y, "z": rng.random(count)}
            found = kernel(**{name: values for name, values in given.items() if name != "z" or "z(" in text})
            assert np.allclose(found, meaning(**given), rtol=1e-12), (text, count)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.uint8, np.bool_])
def test_types_of_values(dtype: Any) -> None:
    values = np.array([0, 1, 2, 3, 0, 5]).astype(dtype)
    exponential = st.evaluate("y(i) = exp(b(i))", {"b": values})
    assert exponential.dtype == (np.float32 if dtype is np.float32 else np.float64)
    assert np.allclose(exponential, np.exp(values.astype(np.float64)), rtol=1e-5)
    for text, meaning in (("abs(b(i))", np.abs(values)), ("relu(b(i))", values), ("max(b(i), (b(i)))", values)):
        found = st.evaluate(f"y(i) = {text}", {"b": values})
        assert found.dtype == values.dtype
        assert np.array_equal(found, meaning)
    if dtype is not np.bool_:
        assert np.array_equal(st.evaluate("y(i) = pow(b(i), 3)", {"b": values}), values * values * values)
        below = st.evaluate("y(i) = b(i) < 2", {"b": values})
        assert below.dtype == values.dtype
        assert np.array_equal(below, values < 2)


def test_softmax_of_rows_some_of_which_are_empty() -> None:
    scores = sp.csr_array(np.where(np.arange(6)[:, None] % 3 == 1, 0, D))
    exponentials = st.evaluate("E(i,j) = exp(A(i,j))", {"A": scores}, output_format="csr")
    sums = st.evaluate("S(i) = E(i,j)", {"E": exponentials})
    found = st.evaluate("P(i,j) = E(i,j) / S(i)", {"E": exponentials, "S": sums}, output_format="csr")
    dense = np.where(scores.toarray() != 0, np.exp(scores.toarray()), 0)
    assert found.nnz == scores.nnz
    assert np.allclose(found.to_numpy(), dense / np.maximum(dense.sum(1, keepdims=True), 1e-300))


@pytest.mark.parametrize(
    "schedule",
    [
        "parallelize(i, cpu_thread, no_races)",
        "parallelize(i, cpu_thread, no_races, dynamic, 2); unroll([0], j, 2)",
        "precompute([1], A(i,j) * x(j), j, j, w)",
        "split(i, i0, i1, 4)",
    ],
)
def test_schedules_of_expressions_with_functions(schedule: str) -> None:
    expression, operands = "y(i) = relu(A(i,j) * x(j)) * v(i)", {"A": A, "x": X, "v": V}
    try:
        found = st.evaluate(expression, operands, schedule=schedule, threads=2)
    except st.ScheduleError:
        assert "precompute" in schedule or "unroll" in schedule
        return
    assert np.allclose(found, relu(D @ X) * V)


def test_functions_of_many_sparse_operands() -> None:
    given = {f"A{number}": matrix(number) for number in range(9)}
    dense = [each.toarray() for each in given.values()]
    nested = "A0(i,j)"
    for name in list(given)[1:]:
        nested = f"max({nested}, ({name}(i,j)))"
    assert np.array_equal(st.evaluate(f"Y(i,j) = {nested}", given), np.maximum.reduce(dense))
    assert np.array_equal(st.evaluate(f"Y(i,j) = {nested}", dict(zip(given, dense, strict=True))), np.maximum.reduce(dense))
    found = st.evaluate(f"y(i) = sum(j, exp({nested})) + 1", given)
    assert np.allclose(found, np.exp(np.maximum.reduce(dense)).sum(1) + 1)
    with pytest.raises(st.ExpressionError, match="more sparse operands in functions than one loop can tell apart; compute it in parts"):
        st.compile(f"Y(i,j) = {nested}", dict.fromkeys((*given, "Y"), "csr"))


def test_sums_do_not_move_into_functions() -> None:
    with pytest.raises(st.ScheduleError, match="does not distribute over it"):
        st.evaluate("S(i) = sum(j, exp(A(i,j)))", {"A": A}, schedule="precompute(A(i,j), [], [], w)")
    found = st.evaluate("S(i) = sum(j, exp(A(i,j)))", {"A": A}, schedule="precompute(exp(A(i,j)), j, j, w)")
    assert np.allclose(found, np.exp(D).sum(1))


def test_tuning_and_exploring(tmp_path) -> None:
    operands = {"A": A, "x": X, "v": V}
    found = st.tune("y(i) = relu(A(i,j) * x(j) + v(i))", operands, trials=4, threads=1, database=tmp_path / "s.sqlite")
    assert found.failed_trials == 0
    assert st.lookup("y(i) = relu(A(i,j) * x(j) + v(i))", operands, threads=1, database=tmp_path / "s.sqlite").origin == "exact"
    sparse = st.tune("E(i,j) = exp(A(i,j))", {"A": A}, "csr", trials=2, threads=1, database=tmp_path / "s.sqlite")
    assert sparse.failed_trials == 0
    with pytest.raises(st.ExpressionError, match="schedule spaces of expressions with functions are not explored"):
        st.explore("y(i) = exp(x(i))")


EXTENTS = {"i": 5, "j": 4, "k": 3}
SIMPLE = ("exp", "abs", "tanh", "relu", "sigmoid")


class Drawer:
    """Draws expressions with functions over the indices i, j, k, and operands for them in all formats."""

    def __init__(self, seed: int) -> None:
        self.random, self.operands = random.Random(seed), dict[str, tuple[str, ...]]()

    def value(self, depth: int) -> str:
        if not depth:
            return self.leaf()
        kind, below = self.random.random(), [self.value(depth - 1) for _ in range(4)]
        if kind < 0.3:
            return f"({below[0]} {self.random.choice('+-')} {below[1]})"
        if kind < 0.55:
            return f"{below[0]} * {below[1]}"
        if kind < 0.75:
            return f"{self.random.choice(SIMPLE)}({below[0]} * 1)"
        if kind < 0.82:
            return f"{self.random.choice(('max', 'min'))}({below[0]}, ({below[1]}))"
        if kind < 0.88:
            return f"where({below[0]} > {below[1]}, {below[2]}, ({below[3]}))"
        if kind < 0.93:
            return f"({below[0]} {self.random.choice(('<', '<=', '>=', '==', '!='))} {below[1]})"
        if kind < 0.96:
            return f"pow(({below[0]}), 2)"
        self.operands["K"] = ("k",)
        return f"sum(k, {below[0]} * K(k))"

    def leaf(self) -> str:
        if self.random.random() < 0.12:
            return str(self.random.choice((2, 0.5, 3)))
        name = f"{self.random.choice('ABCD')}{len(self.operands) % 3}"
        if name not in self.operands:
            self.operands[name] = tuple(self.random.sample("ijk", self.random.choice((0, 1, 1, 2, 2))))
        return f"{name}({','.join(self.operands[name])})"

    def tensors(self, seed: int, text: str) -> dict[str, Any]:
        values, made = np.random.default_rng(seed), {}
        for name, indices in self.operands.items():
            if f"{name}(" not in text:
                continue
            shape = tuple(EXTENTS[index] for index in indices)
            array = np.round(values.standard_normal(shape), 2)
            form = self.random.choice(("dense", *{0: ("dense",), 1: ("s",), 2: ("csr", "csc", "dcsr", "coo", "dh")}[len(indices)]))
            made[name] = array if form == "dense" else st.tensor(array * (values.random(shape) < 0.4), form)
        return made


def check_drawn(seed: int) -> bool:
    """Compare an expression with the definition; whether it had a meaning."""
    drawer = Drawer(seed)
    left = drawer.random.choice((("i",), ("i", "j"), ("i", "j"), ()))
    expression = f"Y({','.join(left)}) = {drawer.value(drawer.random.choice((1, 2, 2)))}"
    operands = drawer.tensors(seed, expression)
    wanted = drawer.random.choice((None, *{0: (None,), 1: ("s",), 2: ("csr", "dcsr", "csc", "coo")}[len(left)]))
    shape = {index: EXTENTS[index] for index in left}
    try:
        found = st.evaluate(expression, operands, wanted, drawer.random.choice(("default", "auto")), shape)
    except SparsetuneError:
        return False
    dense = {name: data.to_numpy() if isinstance(data, st.Tensor) else data for name, data in operands.items()}
    stored = {name: stored_places(data) if isinstance(data, st.Tensor) else np.ones(data.shape, bool) for name, data in operands.items()}
    with np.errstate(all="ignore"):
        expected = evaluate_dense(parse(expression), dense, EXTENTS, stored if isinstance(found, st.Tensor) else None)
    whole = found.to_numpy() if isinstance(found, st.Tensor) else np.asarray(found)
    assert np.allclose(whole, expected, rtol=1e-9, atol=1e-9, equal_nan=True), (seed, expression)
    return True


def test_drawn_expressions() -> None:
    assert sum(map(check_drawn, range(1000, 1040))) > 30


@pytest.mark.nightly
def test_many_drawn_expressions() -> None:
    assert sum(map(check_drawn, range(2000, 2400))) > 300
