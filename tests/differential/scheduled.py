"""Random legal schedules of the kernels of the papers, each compiled once and run on many shapes with one and several threads."""

from __future__ import annotations

import signal
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sparsetune.compiler.build.kernel import Kernel
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import Concretized, concretize
from sparsetune.compiler.concrete.nodes import Forall, Program, assignments, loops, walk
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.notation.nodes import Literal, Mul, accesses
from sparsetune.compiler.notation.nodes import walk as walk_expression
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.notation.printer import show
from sparsetune.compiler.pipeline import CompiledExpression, compile_kernel
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.candidates import Candidate, candidates
from sparsetune.compiler.schedule.library import LIBRARY
from sparsetune.compiler.storage import Tensor

from .runner import Failure, built, last_lines

SECONDS = 20
"""A kernel that runs longer than this hangs."""

EXPRESSIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("y(i) = A(i,j) * x(j)", "ij,j->i", ("A=csr", "A=csc", "A=dcsr", "A=coo", "", "A=csr x=compressed", "A=csc x=compressed",
                                         "A=dcsr x=compressed", "A=csr y=compressed")),
    ("Y(i,k) = A(i,j) * X(j,k)", "ij,jk->ik", ("A=csr", "A=csc", "A=dcsr", "A=coo")),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "ij,ik,jk->ij", ("B=csr Z=csr", "B=csr", "B=dcsr Z=dcsr", "B=csc Z=csc", "B=coo Z=coo")),
    ("T(i,j) = B(i,j,k) * c(k)", "ijk,k->ij", ("B=csf T=dcsr", "B=csf", "B=dss T=csr", "B=coo")),
    ("T(i,j,l) = B(i,j,k) * C(k,l)", "ijk,kl->ijl", ("B=csf T=ssd", "B=csf", "B=dss", "B=coo")),
    ("M(i,l) = B(i,j,k) * C(j,l) * D(k,l)", "ijk,jl,kl->il", ("B=csf", "B=dss", "B=coo", "B=csf M=csr")),
    ("R(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", "ijk,jl,km->ilm", ("B=csf", "B=dss")),
    ("C(i,j) = A(i,k) * B(k,j)", "ik,kj->ij", ("A=csr B=csr C=csr", "A=csr B=csr", "A=dcsr B=dcsr C=dcsr", "A=csc B=csc C=csc",
                                               "A=csr B=csc C=csr", "A=coo B=csr")),
    ("Z(i,j) = B(i,j) + C(i,j)", "ij+ij", ("B=csr C=csr Z=csr", "B=csr C=csr", "B=dcsr C=dcsr Z=dcsr", "B=coo C=coo", "B=dcsr C=csr Z=csr",
                                           "B=csr Z=csr C=coo")),
    ("a = B(i,j) * C(i,j)", "ij,ij->", ("B=csr C=csr", "B=dcsr C=csr", "B=csr")),
)  # fmt: skip

SHAPES: tuple[Mapping[str, int], ...] = (
    {"i": 7, "j": 11, "k": 5, "l": 3, "m": 3, "r": 5, "n": 2},
    {"i": 13, "j": 3, "k": 9, "l": 6, "m": 2, "r": 3, "n": 3},
    {"i": 1, "j": 1, "k": 1, "l": 1, "m": 1, "r": 1, "n": 1},
    {"i": 0, "j": 4, "k": 3, "l": 2, "m": 2, "r": 2, "n": 2},
    {"i": 5, "j": 0, "k": 2, "l": 4, "m": 2, "r": 3, "n": 2},
    {"i": 4, "j": 3, "k": 0, "l": 0, "m": 3, "r": 0, "n": 2},
    {"i": 17, "j": 6, "k": 6, "l": 2, "m": 4, "r": 4, "n": 2},
)
PATTERNS = ("scattered", "rows", "one", "full", "none")
THREADS = (1, 3)
RACES = ("no_races", "ignore_races", "atomics", "temporary", "parallel_reduction")


@dataclass(frozen=True)
class Scheduled:
    """A schedule that ``apply`` accepts, of one expression.

    Attributes:
        seed: names the case among those of its kind.
        formats: of operands and result that are not dense.
        extents: handed to the compiler as constants.
    """

    seed: int
    expression: str
    formats: tuple[tuple[str, str], ...]
    schedule: str
    extents: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        kinds = " ".join(f"{name}={form}" for name, form in self.formats)
        return f"{self.seed}: {self.expression} | {kinds} | {self.schedule} | {dict(self.extents)}"

    @property
    def sparse(self) -> set[str]:
        return {name for name, _ in self.formats}

    def compiled(self) -> CompiledExpression:
        return compile_kernel(self.expression, dict(self.formats), dict(self.extents), self.schedule)


def kinds_of(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, form) for name, form in (item.split("=") for item in text.split()))


def operands(
    expression: str, sparse: set[str], shape: Mapping[str, int], pattern: str, rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Return whole numbers, so that every order of adding gives the same; sparse tensors follow the pattern."""
    found = {}
    for access in accesses(parse(expression).value):
        extents = tuple(shape[name] for name in access.indices)
        values = rng.integers(1, 5, extents).astype(float)
        found[access.tensor] = values * _mask(extents, pattern, rng) if access.tensor in sparse else values
    return found


def _mask(shape: tuple[int, ...], pattern: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    match pattern:
        case "scattered":
            return rng.random(shape) < 0.3
        case "rows":
            return (rng.random(shape) < 0.8) & (rng.random(shape[0]) < 0.4).reshape(-1, *(1 for _ in shape[1:]))
        case "one":
            mask = np.zeros(shape, bool)
            if mask.size:
                mask.flat[rng.integers(mask.size)] = True
            return mask
        case _:
            return np.full(shape, pattern == "full")


def reference(expression: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return what numpy computes for a product of tensors, or a sum of two that have the same indices."""
    assignment = parse(expression)
    if "+" in expression.split("=", 1)[1]:
        left, right = arrays.values()
        return left + right
    subscripts = ",".join("".join(access.indices) for access in accesses(assignment.value))
    return np.einsum(f"{subscripts}->{''.join(assignment.target.indices)}", *arrays.values())


def fault(case: Scheduled, made: CompiledExpression, threads: Sequence[int] = THREADS, times: int = 1) -> str | None:
    """Run a case on all shapes and patterns; return what is wrong with the first wrong result, or None."""
    for number, shape in enumerate(SHAPES):
        shape = {**shape, **dict(case.extents)}
        for pattern in PATTERNS if number < 2 else PATTERNS[:1]:
            arrays = operands(case.expression, case.sparse, shape, pattern, np.random.default_rng(number))
            expected = reference(case.expression, arrays)
            for count in threads:
                bound = made.bind_operands(arrays, count)
                for _ in range(times):
                    found = bound.once() if times == 1 else bound()
                    dense = found.to_numpy() if isinstance(found, Tensor) else np.asarray(found)
                    if dense.shape != expected.shape or not np.array_equal(dense, expected):
                        wrong = int(np.count_nonzero(dense != expected)) if dense.shape == expected.shape else "all"
                        return f"wrong: {wrong} of {expected.size} values, shape {shape}, {pattern}, {count} threads"
    return None


class Drawer:
    """Draws directives that fit the loops of a program as it stands."""

    def __init__(self, rng: Random, result: str) -> None:
        self.rng, self.result = rng, result
        self.count = 0

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def shaping(self, program: Program) -> str:
        """Return a directive that changes loops or statements."""
        rng = self.rng
        present = list(dict.fromkeys(loops(program.statement)))
        nests = chains(program)
        leaf = rng.choice(assignments(program.statement))
        loop = rng.choice(present)
        match rng.choice(("reorder", "split", "split", "split_up", "collapse", "pos", "pos", "coord", "bound", "precompute", "factors",
                          "loopfuse")):  # fmt: skip
            case "reorder":
                chain = rng.choice(nests)[:5]
                return f"reorder({', '.join(rng.sample(chain, len(chain)))})"
            case "split":
                return f"split({loop}, {self.new()}, {self.new()}, {rng.choice((1, 2, 3, 4, 7, 100))})"
            case "split_up":
                return f"split_up({loop}, {self.new()}, {self.new()}, {rng.choice((1, 2, 3, 5))})"
            case "collapse":
                pairs = [pair for chain in nests for pair in pairwise(chain)] or [(loop, loop)]
                return f"collapse({', '.join(rng.choice(pairs))}, {self.new()})"
            case "pos":
                return f"pos({loop}, {self.new()}, {show(rng.choice(accesses(leaf.value) or (leaf.target,)))})"
            case "coord":
                return f"coord({loop}, {self.new()})"
            case "bound":
                return f"bound({loop}, {self.new()}, 0, min_exact)"
            case "precompute":
                return self.precompute(program, present)
            case "factors":
                parts = leaf.value.operands if isinstance(leaf.value, Mul) else (leaf.value,)
                return f"factors({', '.join(show(part) for part in rng.sample(parts, len(parts)))})"
            case _:
                return f"loopfuse({rng.randint(1, 2)}, {rng.choice(('true', 'false'))}, {rng.choice(('[]', '[0]', '[1]'))})"

    def precompute(self, program: Program, present: list[str]) -> str:
        rng = self.rng
        leaf = rng.choice(assignments(program.statement))
        node = rng.choice([node for node in walk_expression(leaf.value) if not isinstance(node, Literal)] or [leaf.value])
        parts = list(node.operands) if isinstance(node, Mul) else [node]
        chosen = rng.sample(parts, rng.randint(1, len(parts)))
        part = show(node.rebuild(tuple(chosen)) if len(chosen) > 1 else chosen[0])
        over = rng.sample(present, rng.randint(0, min(2, len(present))))
        made = [name if rng.random() < 0.5 else self.new() for name in over]
        return f"precompute({part}, [{', '.join(over)}], [{', '.join(made)}], {self.new()})"

    def finishing(self, program: Program) -> str:
        """Return a directive that says how loops run."""
        rng = self.rng
        loop = rng.choice(loops(program.statement))
        names = [access.tensor for assign in assignments(program.statement) for access in accesses(assign.value)] or [self.result]
        match rng.choice(("thread", "thread", "thread", "vector", "unroll", "prefetch", "workspace", "assemble", "merge")):
            case "thread":
                outer = rng.choice([chain[0] for chain in chains(program)]) if rng.random() < 0.7 else loop
                turn = rng.choice(("", ", static", ", dynamic, 1", ", guided", ", dynamic, 4"))
                return f"parallelize({outer}, cpu_thread, {rng.choice(RACES)}{turn})"
            case "vector":
                return f"parallelize({loop}, cpu_vector, {rng.choice(RACES)})"
            case "unroll":
                return f"unroll({loop}, {rng.choice((2, 4, 3))})"
            case "prefetch":
                return f"prefetch({loop}, {rng.choice(names)}, {rng.choice((1, 8))})"
            case "workspace":
                spaces = [space.name for space in program.workspaces] or ["w"]
                return f"workspace({rng.choice(spaces)}, {rng.choice(('dense', 'bitmap', 'list', 'hashed'))})"
            case "assemble":
                return f"assemble({self.result}, {rng.choice(('insert', 'append'))})"
            case _:
                return f"merge({loop}, {rng.choice(('two_finger', 'locate', 'gallop'))})"


def chains(program: Program) -> list[list[str]]:
    """Return the loops that stand directly inside each other, outermost first, for every such nest."""
    found, inside = [], set()
    for node in walk(program.statement):
        chain: list[str] = []
        while isinstance(node, Forall) and id(node) not in inside:
            inside.add(id(node))
            chain.append(node.index)
            node = node.body
        if chain:
            found.append(chain)
    return found or [[]]


def default_program(expression: str, formats: tuple[tuple[str, str], ...]) -> Concretized:
    assignment = parse(expression)
    return concretize(assignment, formats_of(assignment, dict(formats)))


def random_scheduled(seed: int) -> Scheduled:
    """Return the case of a seed: directives are drawn one by one, those that are refused are dropped."""
    rng = Random(seed)
    expression, _, choices = EXPRESSIONS[seed % len(EXPRESSIONS)]
    formats = kinds_of(rng.choice(choices))
    found = default_program(expression, formats)
    drawer = Drawer(rng, parse(expression).target.tensor)
    program, kept = found.program, []
    for number in range(rng.randint(4, 16)):
        if not loops(program.statement):
            break
        proposed = drawer.shaping(program) if number < 7 else drawer.finishing(program)
        try:
            program = apply_schedule(found.program, "; ".join([*kept, proposed]), found.formats)
        except ScheduleError:
            continue
        kept.append(proposed)
    return Scheduled(seed, expression, formats, "; ".join(kept))


KNOWN: tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...] = (
    ("y(i) = A(i,j) * x(j)", "A=csr", ()), ("y(i) = A(i,j) * x(j)", "A=csc", ()),
    ("y(i) = A(i,j) * x(j)", "A=csc x=compressed", ()),
    ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", (("k", 32),)), ("Y(i,k) = A(i,j) * X(j,k)", "A=csr", ()),
    ("Z(i,j) = B(i,j) * C(i,k) * D(j,k)", "B=csr Z=csr", (("k", 16),)),
    ("T(i,j) = B(i,j,k) * c(k)", "B=csf T=dcsr", ()), ("T(i,j,l) = B(i,j,k) * C(k,l)", "B=csf", (("l", 8),)),
    ("M(i,r) = B(i,j,k) * C(j,r) * D(k,r)", "B=csf", (("r", 8),)), ("M(j,r) = B(i,j,k) * C(i,r) * D(k,r)", "B=csf", (("r", 8),)),
    ("R(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)", "B=csf", (("l", 4), ("m", 4))),
    ("C(i,j) = A(i,k) * B(k,j)", "A=csr B=csr C=csr", ()), ("C(i,j) = A(i,k) * B(k,j)", "", ()),
    ("Z(i,j) = B(i,j) + C(i,j)", "B=csr C=csr Z=csr", ()),
)  # fmt: skip


@cache
def _templates(kernel: int) -> tuple[Candidate, ...]:
    expression, text, extents = KNOWN[kernel]
    assignment = parse(expression)
    return candidates(assignment, formats_of(assignment, dict(kinds_of(text))), dict(extents), threads=2)


def candidate_schedules(drawn: int = 1, parallel: bool = False) -> Iterator[Scheduled]:
    """Yield every candidate of the known kernels with its usual parameters and with drawn ones, then the library.

    Args:
        drawn: how many draws of parameters for a candidate, beside the usual ones.
        parallel: only schedules that run threads.
    """
    seed = 0
    for kernel, (expression, text, extents) in enumerate(KNOWN):
        found = default_program(expression, kinds_of(text))
        for item in _templates(kernel):
            rng = Random(seed)
            picks = [{}, *({name: rng.choice(choices) for name, choices in item.parameters.items()} for _ in range(drawn))]
            for pick in picks:
                schedule = str(item.schedule(**pick))
                if (not parallel or "cpu_thread" in schedule) and _applies(found, schedule, extents):
                    yield Scheduled(seed, expression, kinds_of(text), schedule, extents)
                    seed += 1
    for named in LIBRARY:
        if named.target == "cpu" and (not parallel or "cpu_thread" in named.text):
            yield Scheduled(seed, named.expression, named.formats, named.text, named.extents)
            seed += 1


def _applies(found: Concretized, schedule: str, extents: tuple[tuple[str, int], ...]) -> bool:
    try:
        apply_schedule(found.program, schedule, found.formats, dict(extents))
    except ScheduleError:
        return False
    return True


@cache
def chosen_candidates(drawn: int, parallel: bool) -> tuple[Scheduled, ...]:
    return tuple(candidate_schedules(drawn, parallel))


def some_candidate(seed: int) -> Scheduled:
    return chosen_candidates(1, False)[seed]


def parallel_candidate(seed: int) -> Scheduled:
    return chosen_candidates(0, True)[seed]


def run_random(seeds: Sequence[int], flags: Sequence[str]) -> list[Failure]:
    return run([random_scheduled(seed) for seed in seeds], flags)


def run_candidates(seeds: Sequence[int], flags: Sequence[str]) -> list[Failure]:
    return run([some_candidate(seed) for seed in seeds], flags)


def run_stress(seeds: Sequence[int], flags: Sequence[str]) -> list[Failure]:
    """Run parallel candidates many times with more threads than cores; whole numbers show a single lost update."""
    return run([parallel_candidate(seed) for seed in seeds], flags, threads=(8,), times=25)


def run(cases: Sequence[Scheduled], flags: Sequence[str], threads: Sequence[int] = THREADS, times: int = 1) -> list[Failure]:
    """Compile, build together and run cases; return those that fail. A kernel that hangs ends the process."""
    failures: list[Failure] = []
    ready: list[tuple[Scheduled, CompiledExpression, Kernel]] = []
    for case in cases:
        try:
            made = case.compiled()
            _ = made.default_kernel.source
        except Exception:
            failures.append(Failure(case.seed, str(case), f"does not compile: {last_lines(traceback.format_exc())}"))
        else:
            ready.append((case, made, made.default_kernel))
    with tempfile.TemporaryDirectory() as folder:
        for case, made, _ in built(ready, Path(folder), "scheduled", flags, failures):
            signal.alarm(SECONDS * times)
            try:
                message = fault(case, made, threads, times)
            except Exception:
                message = f"does not run: {last_lines(traceback.format_exc())}"
            signal.alarm(0)
            if message is not None:
                failures.append(Failure(case.seed, str(case), message))
    return failures
