"""Long runs of random cases: ``python -m tests.differential.campaign --cases 50000 --seed 1`` from the repository root.

``--sanitize`` compiles the kernels with the address and undefined-behaviour sanitizers, in a process that has them loaded;
``--optimise`` as they are compiled for users, so that the C compiler makes its vectors.
``--schedules expressions`` computes each case as directives say that are drawn at random, ``--schedules tuner`` as the tuner might,
``--schedules kernels`` draws directives for the kernels of the papers, on many shapes each, ``--schedules gpu`` such for a GPU, until
there are as many cases as are wanted that have a form there. ``--write`` puts command, outcome and what
was covered into results/differential.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
OUTCOME = TESTS.parent / "results" / "differential.md"
LOADED = "SPARSETUNE_SANITIZERS_LOADED"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=50_000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the campaign; every case has a seed of its own")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--interpret-every", type=int, default=8, help="interpret one case in so many too")
    parser.add_argument("--schedules", choices=("expressions", "kernels", "tuner", "gpu"), help="draw a schedule for every case too")
    parser.add_argument("--sanitize", action="store_true", help="compile with -fsanitize=address,undefined")
    parser.add_argument("--optimise", action="store_true", help="compile as kernels are outside of tests, for vectors")
    parser.add_argument("--write", action="store_true", help="note the outcome in results/differential.md")
    given = parser.parse_args()
    if given.sanitize and LOADED not in os.environ:
        return _again_with_sanitizers()
    sys.path.insert(0, str(TESTS))
    from sparsetune.compiler.native.toolchain import default_flags

    from differential import gpu, scheduled, scheduled_cases, tuned_cases
    from differential.batch import PLAIN_FLAGS, SANITIZERS
    from differential.cases import random_case
    from differential.facts import facts, schedule_facts
    from differential.runner import Work, run_cases, run_isolated

    os.environ["MALLOC_PERTURB_"] = "165"  # workers begin with it: memory that nobody wrote holds garbage
    first = given.seed * 1_000_000
    start = time.monotonic()
    flags = SANITIZERS if given.sanitize else (*default_flags(), "-w") if given.optimise else PLAIN_FLAGS
    kinds: dict[str | None, tuple[Work, Callable[[int], object], Callable[[Iterable[int]], list[str]]]] = {
        None: (partial(run_cases, interpreted_every=given.interpret_every), random_case, facts),
        "expressions": (
            scheduled_cases.run_scheduled,
            scheduled_cases.scheduled_case,
            partial(schedule_facts, scheduled_cases.drawn_schedule),
        ),
        "kernels": (scheduled.run_random, scheduled.random_scheduled, partial(schedule_facts, scheduled.drawn_schedule)),
        "tuner": (tuned_cases.run_tuned, tuned_cases.tuned_case, tuned_cases.facts),
        "gpu": (gpu.run_gpu, gpu.random_gpu, partial(schedule_facts, gpu.drawn_schedule)),
    }
    work, describe, told = kinds[given.schedules]
    seeds: Sequence[int] = range(first, first + given.cases)
    drawn = gpu.draws(first, given.cases) if given.schedules == "gpu" else None
    if drawn is not None:
        print(drawn)
        seeds = drawn.seeds
    chunk = 20 if given.schedules else 100
    failures = run_isolated(seeds, given.workers, chunk, flags, shown=True, work=work, describe=describe)
    seconds = time.monotonic() - start
    for failure in failures:
        print(failure)
    outcome = f"{given.cases - len(failures)} of {given.cases} cases passed in {seconds / 60:.0f} min"
    print(outcome)
    if given.write:
        covered = [f"- {line}" for line in (*([] if drawn is None else str(drawn).splitlines()), *told(seeds))]
        _write(" ".join(sys.orig_argv[1:]), outcome, ["\n".join(covered), *map(str, failures)])
    return 1 if failures else 0


def _again_with_sanitizers() -> int:
    """Run this command in a process that has the sanitizers' libraries loaded, as instrumented kernels need."""
    libraries = []
    for name in ("libasan.so", "libubsan.so"):
        found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        libraries.append(found.stdout.strip())
    environment = {**os.environ, "LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0", LOADED: "1"}
    return subprocess.run([sys.executable, *sys.orig_argv[1:]], env=environment, check=False).returncode


def _write(command: str, outcome: str, paragraphs: list[str]) -> None:
    """Replace what the file says of the same command, keep the rest."""
    heading = f"## `python {command}`"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"
    part = "\n\n".join([heading, f"{outcome} ({machine}).", *paragraphs])
    before = OUTCOME.read_text() if OUTCOME.exists() else "# Random expressions against the dense oracle\n"
    parts = [kept for kept in before.strip().split("\n\n## ") if not f"## {kept}".startswith(heading)]
    OUTCOME.write_text("\n\n## ".join(parts) + "\n\n" + part + "\n")


if __name__ == "__main__":
    sys.exit(main())
