"""Kernels written by hand in loop IR, as lowering makes them with the schedules that the yardstick uses."""

from __future__ import annotations

from short_nodes import plus
from sparsetune.compiler.ir.nodes import (
    F64,
    I32,
    I64,
    Allocate,
    ArrayParameter,
    Binary,
    Cast,
    Const,
    Declare,
    For,
    Function,
    Grow,
    Load,
    Parallel,
    Prefetch,
    Publish,
    SetVar,
    SizeParameter,
    Step,
    Steps,
    Store,
    Value,
    Var,
    Vector,
)


def integer(value: int) -> Const:
    return Const(value, I64)


def variable(name: str) -> Var:
    return Var(name, I64)


def times(left: Value, right: Value) -> Value:
    return Binary("*", left, right, I64)


def product(left: Value, right: Value) -> Value:
    return Binary("*", left, right, F64)


def load(array: str, index: Value) -> Value:
    return Load(array, index, F64)


def coordinate(array: str, index: Value) -> Value:
    return Cast(Load(array, index, I32), I64)


def row(place: Value, extent: int, column: Value) -> Value:
    return plus(times(place, integer(extent)), column)


def segment(pos: str, parent: Value, place: Var, body: Step) -> For:
    return For(place, coordinate(pos, parent), coordinate(pos, plus(parent, integer(1))), body)


def ahead(crd: str, place: Var, distance: int, length: Var) -> Value:
    """Return the coordinate some places ahead, the last one near the end."""
    last = Binary("-", length, integer(1), I64)
    return coordinate(crd, Binary("min", plus(place, integer(distance)), last, I64))


def values(tensor: str, writable: bool = False) -> ArrayParameter:
    return ArrayParameter(f"{tensor}_vals", F64, (tensor, "values"), writable)


def level(tensor: str, number: int) -> tuple[ArrayParameter, ArrayParameter]:
    return tuple(ArrayParameter(f"{tensor}{number + 1}_{part}", I32, (tensor, part, number)) for part in ("pos", "crd"))  # type: ignore[return-value]


N, NNZ = variable("i_size"), variable("A_length")
SIZES = (SizeParameter("i_size", ("index", "i")), SizeParameter("A_length", ("A", "length", 1)))
ROW, P, Q, K, S = variable("i"), variable("p"), variable("q"), variable("k"), Var("s", F64)


def spmv(chunk: int = 512) -> Function:
    inner = SetVar(S, product(load("A_vals", P), load("x_vals", coordinate("A2_crd", P))), "+")
    body = Steps((Declare(S, Const(0.0, F64)), segment("A2_pos", ROW, P, inner), Store("y_vals", ROW, S)))
    arrays = (values("y", True), *level("A", 1), values("A"), values("x"))
    return Function("st_kernel", arrays, SIZES[:1], Steps((For(ROW, integer(0), N, body, Parallel("dynamic", chunk)),)))


def vector(extent: int, body: Step, tag: Vector | None) -> For:
    return For(K, integer(0), integer(extent), body, tag)


def spmm(extent: int = 32, distance: int = 12, chunk: int = 64, tag: Vector | None = None) -> Function:
    """Y(i,k) = A(i,j) X(j,k), a row of Y in registers over the sparse loop."""
    update = Store("w", K, product(load("A_vals", P), load("X_vals", row(coordinate("A2_crd", P), extent, K))), "+")
    prefetch = Prefetch("X_vals", times(ahead("A2_crd", P, distance, NNZ), integer(extent)), extent)
    inner = Steps((prefetch, vector(extent, update, tag))) if distance else vector(extent, update, tag)
    body = Steps((
        Allocate("w", F64, integer(extent), "registers", zero=True),
        segment("A2_pos", ROW, P, inner),
        vector(extent, Store("Y_vals", row(ROW, extent, K), load("w", K)), tag),
    ))  # fmt: skip
    arrays = (values("Y", True), *level("A", 1), values("A"), values("X"))
    return Function("st_kernel", arrays, SIZES, Steps((For(ROW, integer(0), N, body, Parallel("dynamic", chunk)),)))


def sddmm(extent: int = 128, distance: int = 4, chunk: int = 64) -> Function:
    """O(i,j) = A(i,j) U(i,k) V(j,k)."""
    term = product(load("U_vals", row(ROW, extent, K)), load("V_vals", row(coordinate("A2_crd", P), extent, K)))
    prefetch = Prefetch("V_vals", times(ahead("A2_crd", P, distance, NNZ), integer(extent)), extent)
    inner = Steps((
        prefetch,
        Declare(S, Const(0.0, F64)),
        vector(extent, SetVar(S, term, "+"), Vector()),
        Store("O_vals", P, product(load("A_vals", P), S)),
    ))  # fmt: skip
    arrays = (values("O", True), *level("A", 1), values("A"), values("U"), values("V"))
    body = segment("A2_pos", ROW, P, inner)
    return Function("st_kernel", arrays, SIZES, Steps((For(ROW, integer(0), N, body, Parallel("dynamic", chunk)),)))


def mttkrp(extent: int = 32, distance: int = 8, chunk: int = 16) -> Function:
    """M(i,r) = A(i,j,k) B(j,r) C(k,r), A's levels dense, compressed, compressed."""
    fibre = Store("fibre", K, product(load("A_vals", P), load("C_vals", row(coordinate("A3_crd", P), extent, K))), "+")
    prefetch = Prefetch("C_vals", times(ahead("A3_crd", P, distance, NNZ), integer(extent)), extent)
    whole = Store("total", K, product(load("fibre", K), load("B_vals", row(coordinate("A2_crd", Q), extent, K))), "+")
    middle = Steps((
        Allocate("fibre", F64, integer(extent), "registers", zero=True),
        segment("A3_pos", Q, P, Steps((prefetch, vector(extent, fibre, None)))),
        vector(extent, whole, None),
    ))  # fmt: skip
    body = Steps((
        Allocate("total", F64, integer(extent), "registers", zero=True),
        segment("A2_pos", ROW, Q, middle),
        vector(extent, Store("M_vals", row(ROW, extent, K), load("total", K)), None),
    ))  # fmt: skip
    arrays = (values("M", True), *level("A", 1), *level("A", 2), values("A"), values("B"), values("C"))
    return Function("st_kernel", arrays, SIZES, Steps((For(ROW, integer(0), N, body, Parallel("dynamic", chunk)),)))


def squares() -> Function:
    """Publish the squares 0, 1, 4 ... in an array that grows."""
    capacity = variable("capacity")
    statements = (
        Declare(capacity, integer(2)),
        Allocate("squares", I64, integer(2)),
        For(ROW, integer(0), N, Steps((Grow("squares", I64, capacity, plus(ROW, integer(1))), Store("squares", ROW, times(ROW, ROW))))),
        Publish("out", "squares", N),
    )
    parameter = ArrayParameter("out", I64, ("out", "values"), writable=True, assembled=True)
    return Function("st_kernel", (parameter,), SIZES[:1], Steps(statements))
