"""Runs ranges of cases, many kernels to a C file, and reports the failures."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from sparsetune.compiler.build.kernel import TypedKernel
from sparsetune.compiler.kernel import Kernel

from .batch import PLAIN_FLAGS, build_together
from .cases import Case, random_case
from .compare import INTERPRETED_EVERY, compiled, fault

Work: TypeAlias = "Callable[[Sequence[int], Sequence[str]], list[Failure]]"


class Seeded(Protocol):
    """A case as far as building it goes."""

    @property
    def seed(self) -> int: ...


SomeCase = TypeVar("SomeCase", bound=Seeded)


@dataclass(frozen=True)
class Failure:
    seed: int
    case: str
    message: str

    def __str__(self) -> str:
        return f"{self.case}\n    {self.message}"


def run_cases(seeds: Sequence[int], flags: Sequence[str] = PLAIN_FLAGS, interpreted_every: int = INTERPRETED_EVERY) -> list[Failure]:
    """Compile, build and run the cases of some seeds; return those that fail."""
    return run_given([random_case(seed) for seed in seeds], flags, interpreted_every)


def run_given(cases: Sequence[Case], flags: Sequence[str] = PLAIN_FLAGS, interpreted_every: int = INTERPRETED_EVERY) -> list[Failure]:
    """Compile, build and run some cases; return those that fail."""
    failures: list[Failure] = []
    ready: list[tuple[Case, Kernel, TypedKernel]] = []
    for case in cases:
        try:
            with case.limited():
                made, kernel = compiled(case)
            _ = kernel.source
        except Exception:
            failures.append(Failure(case.seed, str(case), f"does not compile: {last_lines(traceback.format_exc())}"))
        else:
            ready.append((case, made, kernel))
    with tempfile.TemporaryDirectory() as folder:
        usable = built(ready, Path(folder), "kernels", flags, failures)
        for case, made, _ in usable:
            try:
                with case.limited():
                    message = fault(case, made, interpreted_every)
            except Exception:
                message = f"does not run: {last_lines(traceback.format_exc())}"
            if message is not None:
                failures.append(Failure(case.seed, str(case), message))
    return failures


def built(
    ready: list[tuple[SomeCase, Kernel, TypedKernel]], folder: Path, name: str, flags: Sequence[str], failures: list[Failure]
) -> list[tuple[SomeCase, Kernel, TypedKernel]]:
    """Build kernels together; halve the set where the C compiler refuses it, until the kernel at fault is found."""
    try:
        build_together([kernel for _, _, kernel in ready], folder, name, flags)
    except RuntimeError as error:
        if len(ready) == 1:
            failures.append(Failure(ready[0][0].seed, str(ready[0][0]), f"C does not compile: {error}"))
            return []
        middle = len(ready) // 2
        halves = ((ready[:middle], f"{name}a"), (ready[middle:], f"{name}b"))
        return [case for half, new in halves for case in built(half, folder, new, flags, failures)]
    return ready


def last_lines(text: str) -> str:
    lines = text.strip().splitlines()
    places = [line.strip() for line in lines if line.strip().startswith("File") and "sparsetune/compiler" in line]
    where = " < ".join(place.split("sparsetune/", 1)[1].replace('"', "") for place in reversed(places[-3:]))
    return f"{lines[-1]} [{where}]"


def run_isolated(
    seeds: Sequence[int], workers: int = 2, chunk: int = 100, flags: Sequence[str] = PLAIN_FLAGS, shown: bool = False,
    work: Work = run_cases, describe: Callable[[int], object] = random_case,
) -> list[Failure]:  # fmt: skip
    """Run cases in worker processes; a chunk whose worker dies is run again in halves, until the case is found.

    Args:
        seeds: of the cases.
        workers: how many processes.
        chunk: how many cases share a C file.
        flags: of the C compiler.
        shown: print progress and failures as they come.
        work: runs the cases of a chunk; a function of a module, as it is sent to other processes.
        describe: returns what a case is called that kills its process.
    """
    failures: list[Failure] = []
    done = 0
    pending = [list(seeds[place : place + chunk]) for place in range(0, len(seeds), chunk)]
    while pending:
        left: list[list[int]] = []
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            running = {pool.submit(work, part, flags): part for part in pending}
            for future in as_completed(running):
                part = running[future]
                try:
                    found = future.result()
                except BrokenProcessPool:
                    left.append(part)
                    continue
                failures += found
                done += len(part)
                if shown and (found or done % 1000 == 0):
                    print(f"{done} of {len(seeds)} done, {len(failures)} failed", *found, sep="\n", flush=True)
        left.sort()
        suspects, rest = left[: workers + 1], left[workers + 1 :]  # parts are handed out in order, one ahead of the workers
        again, found = _isolate(suspects, flags, work, describe)
        failures += found
        done += sum(map(len, suspects)) - sum(map(len, again))
        if shown and found:
            print(*found, sep="\n", flush=True)
        pending = again + rest
    return failures


def _isolate(
    parts: list[list[int]], flags: Sequence[str], work: Work, describe: Callable[[int], object]
) -> tuple[list[list[int]], list[Failure]]:
    """Run chunks of which one broke the pool on their own; return the halves of those that break it again, and the failures."""
    halves: list[list[int]] = []
    failures: list[Failure] = []
    for part in parts:
        try:
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                failures += pool.submit(work, part, flags).result()
        except BrokenProcessPool:
            if len(part) == 1:
                failures.append(Failure(part[0], str(describe(part[0])), "the process died"))
            else:
                halves += [part[: len(part) // 2], part[len(part) // 2 :]]
    return halves, failures
