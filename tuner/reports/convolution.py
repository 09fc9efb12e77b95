"""Sparse convolutions beside dense ones and other libraries: ``python -m sparsetune.tuner.reports.convolution``.

Writes ``convolutions.md`` after Liu et al., "Compiler support for sparse tensor convolutions", Figures 16, 17 and 20. Every part can be
measured by itself, and what is there is kept: a run goes on where the last one was stopped. Runs are timed in turn (``race``), on one
thread unless said otherwise; visited positions are iterations that a counting build counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
from numpy.typing import NDArray

from ...compiler.pipeline import compile_kernel
from ...compiler.storage.construct import tensor
from ...datasets import load
from ..kernels import compile_problem
from ..lookup import lookup_in
from ..problem import make_problem
from .markdown import table
from .partial import Partial
from .race import Pace, race

SPARSITIES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)
SHAPES = {1: (999_999,), 2: (999, 999), 3: (99, 99, 99)}
NOTATION = {
    1: "y(i) = B(i+p) * F(p)",
    2: "y(i,j) = B(i+p,j+q) * F(p,q)",
    3: "y(i,j,k) = B(i+p,j+q,k+r) * F(p,q,r)",
}
CUBES = ("i,j,k,p,q,r", "i,p,j,q,k,r", "p,q,r,i,j,k", "p,i,q,j,r,k", "i,j,p,q,r,k", "p,q,i,j,k,r")
"""Orders of six loops, three of which end in a loop over the result."""

SCALAR = 'build(auto, "-O3 -march=native -fno-tree-vectorize")'
LAYER = "O(x,y,m) = I(x+p,y+q,c) * F(p,q,c,m)"
INPUTS = ("random:banded:4000:bandwidth=5", "random:stencil5:60x60", "random:uniform:2000x2000:nnz=2e5")
PARTS = ("orders", "rivals", "layers", "patterns")

Known: TypeAlias = frozenset[tuple[str, float]]
"""Case and sparsity of the contests of a part that are over."""


@dataclass(frozen=True)
class Point:
    """One contestant on one input.

    Attributes:
        part, case, who: of ``PARTS``; the input and expression; the order of loops, or whoever else ran.
        sparsity: share of the positions that are not stored.
        seconds: median a run.
        visited: positions that loops visit; 0 where nobody counts.
    """

    part: str
    case: str
    who: str
    sparsity: float
    seconds: float
    visited: int


@dataclass(frozen=True)
class Contest:
    """What is measured together: functions by name, and what some of them visit."""

    case: str
    sparsity: float
    runs: Mapping[str, Callable[[], Any]]
    visited: Mapping[str, int]


def sparse_array(shape: tuple[int, ...], sparsity: float, seed: int = 0) -> NDArray[np.float64]:
    """Return random values in [0.5, 1.5) at random positions, 0 at a share of them."""
    generator = np.random.default_rng(seed)
    return np.where(generator.random(shape) >= sparsity, generator.random(shape) + 0.5, 0.0)


def orders_of(modes: int) -> tuple[str, ...]:
    """Return the orders of loops of Figure 17: output loops, and those of the filter, among themselves as written."""
    if modes == 3:
        return CUBES
    left, right = "ijk"[:modes], "pqr"[:modes]
    found = (order for order in permutations(left + right) if [i for i in order if i in left] == list(left))
    return tuple(",".join(order) for order in found if [i for i in order if i in right] == list(right))


def orders(known: Known) -> Iterator[Contest]:
    """Yield Figure 17: every order of loops on compressed levels, and on a dense array, with and without vectors."""
    for modes, shape in SHAPES.items():
        for sparsity in SPARSITIES:
            if (f"{modes}-D", sparsity) in known:
                continue
            data, weights = sparse_array(shape, sparsity), np.arange(1.0, 3**modes + 1).reshape((3,) * modes)
            stored = tensor(data, "s" * modes)
            runs, visited = dict[str, Callable[[], Any]](), dict[str, int]()
            for order in orders_of(modes):
                for kind, form, operand in (("sparse", "s" * modes, stored), ("dense", None, data)):
                    plain = f"reorder({order}); unroll({order[-1]}, 1); {SCALAR}"
                    kernel = compile_kernel(NOTATION[modes], {"B": form}, {}, plain)
                    bound = kernel.bind(B=operand, F=weights, threads=1)
                    runs[f"{kind} {order}"] = bound
                    if kind == "sparse":
                        visited[f"{kind} {order}"] = bound.count()["iterations"]
            runs["dense, vectors"] = compile_kernel(NOTATION[modes]).bind(B=data, F=weights, threads=1)
            yield Contest(f"{modes}-D", sparsity, runs, visited)


def rivals(known: Known) -> Iterator[Contest]:
    """Yield the untuned choice beside SciPy and torch on dense data."""
    for modes, shape in SHAPES.items():
        for sparsity in SPARSITIES:
            if (f"{modes}-D", sparsity) in known:
                continue
            data, weights = sparse_array(shape, sparsity), np.arange(1.0, 3**modes + 1).reshape((3,) * modes)
            runs = {"ours": _untuned(NOTATION[modes], {"B": tensor(data, "s" * modes), "F": weights})}
            yield Contest(f"{modes}-D", sparsity, {**runs, **_libraries(data, weights)}, {})


def _libraries(data: NDArray[Any], weights: NDArray[Any]) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {}
    if find_spec("scipy"):
        ndimage, signal = import_module("scipy.ndimage"), import_module("scipy.signal")
        found["scipy.ndimage"] = lambda: ndimage.correlate(data, weights, mode="constant")
        found["scipy.signal"] = lambda: signal.correlate(data, weights, "valid", method="direct" if data.ndim == 1 else "auto")
    if find_spec("torch"):
        torch = import_module("torch")
        torch.set_num_threads(1)
        convolve = getattr(torch.nn.functional, f"conv{data.ndim}d")
        image, kernel = torch.from_numpy(data)[None, None], torch.from_numpy(weights)[None, None]
        found["torch"] = lambda: convolve(image, kernel)
    return found


def _untuned(expression: str, operands: Mapping[str, Any], threads: int = 1) -> Callable[[], Any]:
    """Return what ``evaluate`` would run where nothing was tuned."""
    problem = make_problem(expression, operands, threads=threads)
    match = lookup_in("/nonexistent/schedules.sqlite", problem)
    candidate = compile_problem(problem, match.schedule)
    candidate.load(120.0)
    return candidate.bind(problem.operands, threads)


def layers(known: Known) -> Iterator[Contest]:
    """Yield Figure 16: the first layer of a ResNet on "dss" and on dense input, beside torch; 1 and 2 threads."""
    for side in (1, 3):
        weights = sparse_array((side, side, 64, 64), 0.0, 1)
        for sparsity in (0.904, 0.999):
            image = sparse_array((256, 256, 64), sparsity)
            stored = tensor(image, "dss")
            for threads in (1, 2):
                if (f"{side}x{side}, {threads} threads", sparsity) in known:
                    continue
                runs = {
                    "sparse input": _untuned(LAYER, {"I": stored, "F": weights}, threads),
                    "dense input": _untuned(LAYER, {"I": image, "F": weights}, threads),
                }
                visited = {name: run.count()["iterations"] for name, run in runs.items()} if threads == 1 else {}  # type: ignore[attr-defined]
                if find_spec("torch"):
                    runs["torch"] = _torch_layer(image, weights, threads)
                yield Contest(f"{side}x{side}, {threads} threads", sparsity, runs, visited)


def _torch_layer(image: NDArray[Any], weights: NDArray[Any], threads: int) -> Callable[[], Any]:
    torch = import_module("torch")
    batch = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))[None]
    kernel = torch.from_numpy(np.ascontiguousarray(weights.transpose(3, 2, 0, 1)))

    def run() -> Any:
        torch.set_num_threads(threads)
        return torch.nn.functional.conv2d(batch, kernel)

    return run


def patterns(known: Known, inputs: tuple[str, ...]) -> Iterator[Contest]:
    """Yield Figure 20: every order of loops on patterned matrices, and what is chosen where nothing was tuned."""
    for name in inputs or INPUTS:
        if any(case == name for case, _ in known):
            continue
        matrix, weights = load(name, "csr"), np.arange(1.0, 10).reshape(3, 3)
        runs, visited = dict[str, Callable[[], Any]](), dict[str, int]()
        for order in orders_of(2):
            bound = compile_kernel(NOTATION[2], {"B": "csr"}, {}, f"reorder({order})").bind(B=matrix, F=weights, threads=1)
            runs[order], visited[order] = bound, bound.count()["iterations"]
        runs["untuned"] = _untuned(NOTATION[2], {"B": matrix, "F": weights})
        yield Contest(name, 1 - matrix.nnz / np.prod(matrix.shape, dtype=float), runs, visited)


def contests(part: str, known: Known, inputs: tuple[str, ...] = ()) -> Iterator[Contest]:
    """Yield the contests of a part that are not known, made as they are asked for."""
    if part == "patterns":
        return patterns(known, inputs)
    return {"orders": orders, "rivals": rivals, "layers": layers}[part](known)


def points(part: str, contest: Contest, pace: Pace) -> list[Point]:
    """Time a contest, or count alone where the pace has no rounds."""
    if not pace.most:
        return [Point(part, contest.case, who, contest.sparsity, 0.0, count) for who, count in contest.visited.items()]
    found = race(contest.runs, pace)
    return [
        Point(part, contest.case, who, contest.sparsity, series.median, contest.visited.get(who, 0)) for who, series in found.items()
    ]


def page(found: list[Point]) -> str:
    """Return the page: a table a case, a row a contestant, a column a sparsity."""
    parts = [
        "# Sparse convolutions",
        "`python -m sparsetune.tuner.reports.convolution` wrote this page, after Liu et al., \"Compiler support for sparse tensor"
        " convolutions\". Milliseconds a run, the median of runs in turn, and in brackets the positions that loops visit, by the share of"
        " positions that are not stored. Filters have 3 values a mode. *orders*: their Figure 17, loops over the result without vectors"
        " but in the last row; *rivals*: what is chosen untuned, beside libraries on dense data; *layers*: their Figure 16,"
        " 256 x 256 x 64 with 64 filters; *patterns*: their Figure 20, every order of loops.",
    ]
    for part in PARTS:
        for case in dict.fromkeys(one.case for one in found if one.part == part):
            own = [one for one in found if (one.part, one.case) == (part, case)]
            shares = sorted({one.sparsity for one in own})
            cells = {(one.who, one.sparsity): _cell(one) for one in own}
            rows = [[who, "", *(cells.get((who, share), "") for share in shares)] for who in dict.fromkeys(one.who for one in own)]
            parts += [f"## {part}: {case}", table(("", "", *(f"{share:.4g}" for share in shares)), rows)]
    return "\n\n".join(parts) + "\n"


def _cell(one: Point) -> str:
    return (f"{1e3 * one.seconds:.3g}" if one.seconds else "") + (f" ({one.visited})" if one.visited else "")


@click.command()
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), default=Path("results"), help="Folder of the page.")
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS), help="Only these, kept for a page to come.")
@click.option("--input", "inputs", multiple=True, help="Matrices of the part 'patterns': files or names of the catalogue.")
@click.option("--seconds", default=4.0, show_default=True, help="Time of one contest.")
@click.option("--counts", is_flag=True, help="Count visited positions; time nothing.")
def main(results: Path, parts: tuple[str, ...], inputs: tuple[str, ...], seconds: float, counts: bool) -> None:
    """Measure sparse convolutions; what is there already is not measured again."""
    kept = Partial(results / ".convolutions.csv", Point)
    pace = Pace(seconds, 3, 0 if counts else 101)
    for part in parts or PARTS:
        known = frozenset((one.case, one.sparsity) for one in kept.rows if one.part == part)
        for contest in contests(part, known, inputs):
            kept.add(points(part, contest, pace))
            click.echo(f"{part}: {contest.case} at {contest.sparsity:.4g}", err=True)
    written = results / "convolutions.md.part"
    written.write_text(page(kept.rows), encoding="utf-8")
    written.replace(results / "convolutions.md")
    if not parts:
        kept.done()


if __name__ == "__main__":
    main()
