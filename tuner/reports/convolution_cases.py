"""The contests of the report on sparse convolutions; the data of each are made when it runs, and are always the same.

After Liu et al., "Compiler support for sparse tensor convolutions", Figures 15, 16, 17 and 20, with SciPy and torch as further contestants.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.build.bound import BoundKernel
from ...compiler.frozen import frozen
from ...compiler.pipeline import compile_kernel
from ...compiler.schedule.schedule import Schedule
from ...compiler.storage.construct import tensor
from ...compiler.storage.tensor import Tensor
from ..kernels import compile_problem
from ..lookup import lookup_in
from ..problem import Problem
from ..resolve import make_problem
from ..session import tune
from .convolution_layers import FIRST, RESNET50, Layer
from .sparsifier import programs, sparsified
from .workloads import load_input

SPARSITIES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.999)
LAYER_SPARSITIES = (0.904, 0.984, 0.999)
SHAPES = {1: (999_999,), 2: (999, 999), 3: (99, 99, 99)}
NOTATION = {
    1: "y(i) = B(i+p) * F(p)",
    2: "y(i,j) = B(i+p,j+q) * F(p,q)",
    3: "y(i,j,k) = B(i+p,j+q,k+r) * F(p,q,r)",
}
IMAGES = "y(n,i,j) = B(n,i+p,j+q) * F(p,q)"
CUBES = ("i,j,k,p,q,r", "i,p,j,q,k,r", "p,q,r,i,j,k", "p,i,q,j,r,k", "i,j,p,q,r,k", "p,q,i,j,k,r")
"""Orders of six loops, three of which end in a loop over the result."""

SCALAR = 'build(auto, "-O3 -march=native -fno-tree-vectorize")'
PATTERNS = (
    "bcsstk26", "orani678", "omniglot_small1", "random:banded:4000:bandwidth=5", "random:stencil5:60x60",
    "random:uniform:2000x2000:nnz=2e5",
)  # fmt: skip
PICTURES = ("omniglot_small1", "mnist_t10k_1000", "bcsstk26", "orani678")
BEST = "tuned"


@frozen
class Contest:
    """Functions that are timed together, by name, and the positions that some of them visit."""

    case: str
    sparsity: float
    runs: Mapping[str, Callable[[], Any]]
    visited: Mapping[str, int]


@frozen
class Entry:
    """A contest and the function that makes it; ``made`` returns None where its data are missing."""

    part: str
    case: str
    sparsity: float | None
    made: Callable[[float], Contest | None]


def sparse_array(shape: tuple[int, ...], sparsity: float, seed: int = 0) -> NDArray[np.float64]:
    """Return an array that is 0 at a random share ``sparsity`` of its positions, with random values in [0.5, 1.5) elsewhere."""
    generator = np.random.default_rng(seed)
    return np.where(generator.random(shape) >= sparsity, generator.random(shape) + 0.5, 0.0)


def orders_of(modes: int) -> tuple[str, ...]:
    """Return the orders of loops of Figure 17: the loops of the output, and those of the filter, keep their order among themselves."""
    if modes == 3:
        return CUBES
    left, right = "ijk"[:modes], "pqr"[:modes]
    found = (order for order in permutations(left + right) if [i for i in order if i in left] == list(left))
    return tuple(",".join(order) for order in found if [i for i in order if i in right] == list(right))


def entries(inputs: tuple[str, ...] = ()) -> Iterator[Entry]:
    """Yield all contests; ``inputs``, if any, replace the usual inputs of the contests on pictures and on patterned data."""
    for modes in SHAPES:
        for sparsity in SPARSITIES:
            yield Entry("orders", f"{modes}-D", sparsity, lambda budget, modes=modes, sparsity=sparsity: _orders(modes, sparsity))
    for modes in SHAPES:
        for sparsity in SPARSITIES:
            yield Entry("rivals", f"{modes}-D", sparsity, lambda budget, modes=modes, sparsity=sparsity: _rivals(modes, sparsity))
    for name in inputs or PICTURES:
        yield Entry("rivals", name, None, lambda budget, name=name: _pictures(name))
    for layer in FIRST:
        for sparsity in LAYER_SPARSITIES:
            for threads in (1, 2):
                case = f"{layer}, {_threads(threads)}"
                yield Entry("layers", case, sparsity, lambda budget, layer=layer, sparsity=sparsity, threads=threads:
                            _layer(layer, sparsity, "dsss", threads))  # fmt: skip
    for layer in RESNET50:
        for threads in (1, 2):
            yield Entry("resnet50", f"{layer}, {_threads(threads)}", 0.8, lambda budget, layer=layer, threads=threads:
                        _layer(layer, 0.8, "ddds", threads))  # fmt: skip
    for name in inputs or PATTERNS:
        yield Entry("patterns", name, None, lambda budget, name=name: _patterns(name, budget))
    for one in SHAPES:
        for sparsity in SPARSITIES:
            yield Entry("sparsifier", f"{one}-D", sparsity, lambda budget, one=one, sparsity=sparsity: _sparsifier(one, sparsity))
    for layer in FIRST:
        for sparsity in LAYER_SPARSITIES:
            yield Entry("sparsifier", str(layer), sparsity, lambda budget, layer=layer, sparsity=sparsity: _sparsifier(layer, sparsity))


PARTS = ("orders", "rivals", "layers", "resnet50", "patterns", "sparsifier")


def _threads(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def _filter(modes: int) -> NDArray[np.float64]:
    return np.arange(1.0, 3**modes + 1).reshape((3,) * modes)


def _orders(modes: int, sparsity: float) -> Contest:
    """Return the contest of Figure 17: every order of loops on compressed levels, and on a dense array, with and without vectors."""
    data, weights = sparse_array(SHAPES[modes], sparsity), _filter(modes)
    stored = tensor(data, "s" * modes)
    runs, visited = dict[str, Callable[[], Any]](), dict[str, int]()
    for order in orders_of(modes):
        for kind, form, operand in (("sparse", "s" * modes, stored), ("dense", None, data)):
            plain = "; ".join((f"reorder({order})", *(f"unroll({index}, 1)" for index in order.split(",")), SCALAR))
            bound = compile_kernel(NOTATION[modes], {"B": form}, {}, plain).bind(B=operand, F=weights, threads=1)
            runs[f"{kind} {order}"] = bound
            if kind == "sparse":
                visited[f"{kind} {order}"] = bound.count()["iterations"]
    runs["dense, vectors"] = compile_kernel(NOTATION[modes]).bind(B=data, F=weights, threads=1)
    return Contest(f"{modes}-D", sparsity, runs, visited)


def _rivals(modes: int, sparsity: float) -> Contest:
    """Return the contest of the untuned choice with SciPy and torch on dense data."""
    data, weights = sparse_array(SHAPES[modes], sparsity), _filter(modes)
    runs = {"ours": _untuned(NOTATION[modes], {"B": tensor(data, "s" * modes), "F": weights})}
    return Contest(f"{modes}-D", sparsity, {**runs, **_libraries(data, weights)}, {})


def _pictures(name: str) -> Contest | None:
    """Return the contest of the untuned choice on a matrix, or on a series of images, with SciPy and torch on dense data."""
    stored = load_input(name)
    if stored is None:
        return None
    weights = _filter(2)
    runs = {"ours": _untuned(_notation(stored), {"B": stored, "F": weights})}
    return Contest(name, _sparsity(stored), {**runs, **_libraries(stored.to_numpy(), weights)}, {})


def _notation(stored: Tensor) -> str:
    return NOTATION[2] if stored.order == 2 else IMAGES


def _sparsity(stored: Tensor) -> float:
    return 1 - stored.nnz / float(np.prod(stored.shape, dtype=float))


def _libraries(data: NDArray[Any], weights: NDArray[Any]) -> dict[str, Callable[[], Any]]:
    """Return correlations by other libraries; a further mode of the data numbers images."""
    found: dict[str, Callable[[], Any]] = {}
    images = data.ndim > weights.ndim
    if find_spec("scipy"):
        ndimage, signal = import_module("scipy.ndimage"), import_module("scipy.signal")
        wide = weights[None] if images else weights
        method = "direct" if data.ndim == 1 else "auto"
        found["scipy.ndimage"] = lambda: ndimage.correlate(data, wide, mode="constant")
        found["scipy.signal"] = lambda: signal.correlate(data, wide, "valid", method=method)
    if find_spec("torch"):
        torch = import_module("torch")
        torch.set_num_threads(1)
        convolve = getattr(torch.nn.functional, f"conv{weights.ndim}d")
        image = torch.from_numpy(data)[:, None] if images else torch.from_numpy(data)[None, None]
        kernel = torch.from_numpy(weights)[None, None]
        found["torch"] = lambda: convolve(image, kernel)
    return found


def _untuned(expression: str, operands: Mapping[str, Any], threads: int = 1) -> Callable[[], Any]:
    """Return the kernel that ``evaluate`` would run if nothing was tuned."""
    problem = make_problem(expression, operands, threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        match = lookup_in(str(Path(folder) / "empty.sqlite"), problem)
    return _bound(problem, match.schedule)


def _bound(problem: Problem, schedule: Schedule) -> BoundKernel:
    """Return a schedule's kernel bound to the operands of a problem, with small extents as constants."""
    candidate = compile_problem(problem, schedule)
    candidate.load(120.0)
    return candidate.bind(problem.operands, problem.threads)


def _layer(layer: Layer, sparsity: float, form: str, threads: int) -> Contest:
    """Return a contest of Figures 15 and 16: a layer on sparse and on dense input, with torch."""
    image, weights = _layer_data(layer, sparsity)
    runs = {
        "sparse input": _untuned(layer.notation, {"I": tensor(image, form), "F": weights}, threads),
        "dense input": _untuned(layer.notation, {"I": image, "F": weights}, threads),
    }
    visited = {"sparse input": runs["sparse input"].count()["iterations"]} if threads == 1 else {}  # type: ignore[attr-defined]
    if find_spec("torch"):
        runs["torch"] = _torch_layer(image, weights, layer.stride, threads)
    return Contest(f"{layer}, {_threads(threads)}", sparsity, runs, visited)


def _layer_data(layer: Layer, sparsity: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    weights = sparse_array((layer.width, layer.width, layer.channels, layer.filters), 0.0, 1)
    return sparse_array((1, layer.side, layer.side, layer.channels), sparsity), weights


def _sparsifier(what: Layer | int, sparsity: float) -> Contest | None:
    """Return the contest of the untuned choice, for a layer or so many modes, with MLIR's sparsifier on the same operands; None where that
    is not installed."""
    if programs() is None:
        return None
    if isinstance(what, Layer):
        case, expression, (data, weights) = str(what), what.notation, _layer_data(what, sparsity)
        operands = {"I": tensor(data, "dsss"), "F": weights}
    else:
        case, expression, data = f"{what}-D", NOTATION[what], sparse_array(SHAPES[what], sparsity)
        operands = {"B": tensor(data, "s" * what), "F": _filter(what)}
    ours = _untuned(expression, operands)
    with tempfile.TemporaryDirectory() as folder:
        return Contest(case, sparsity, {"ours": ours, "MLIR": sparsified(expression, operands, np.shape(ours()), Path(folder))}, {})


def _torch_layer(image: NDArray[Any], weights: NDArray[Any], stride: int, threads: int) -> Callable[[], Any]:
    torch = import_module("torch")
    batch = torch.from_numpy(np.ascontiguousarray(image.transpose(0, 3, 1, 2)))
    kernel = torch.from_numpy(np.ascontiguousarray(weights.transpose(3, 2, 0, 1)))

    def run() -> Any:
        torch.set_num_threads(threads)
        return torch.nn.functional.conv2d(batch, kernel, stride=stride).permute(0, 2, 3, 1)

    return run


def _patterns(name: str, budget: float) -> Contest | None:
    """Return the contest of Figure 20: every order of loops on patterned data, the untuned choice, and what tuning finds in ``budget``
    seconds; None where the data are missing."""
    stored = load_input(name)
    if stored is None:
        return None
    expression, operands = _notation(stored), {"B": stored, "F": _filter(2)}
    first = "n," if stored.order == 3 else ""
    problem = make_problem(expression, operands, threads=1)
    runs, visited = dict[str, Callable[[], Any]](), dict[str, int]()
    for order in orders_of(2):
        bound = _bound(problem, Schedule(f"reorder({first}{order})"))
        runs[order], visited[order] = bound, bound.count()["iterations"]
    runs["untuned"] = _untuned(expression, operands)
    with tempfile.TemporaryDirectory() as folder:
        best = tune(expression, operands, time_budget=budget, threads=1, database=Path(folder) / "tuned.sqlite").best
    runs[BEST] = _bound(problem, best)
    return Contest(name, _sparsity(stored), runs, visited)
