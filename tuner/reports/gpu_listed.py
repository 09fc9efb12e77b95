"""Schedules that the tuner lists for the kernels of the report on GPUs, with operands on which results are compared bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, islice
from random import Random

import numpy as np
from numpy.typing import NDArray

from ...compiler.concrete.check import formats_of
from ...compiler.errors import ScheduleError
from ...compiler.evaluate import compile_kernel
from ...compiler.frozen import frozen
from ...compiler.notation.nodes import accesses
from ...compiler.notation.parser import parse
from ...compiler.space.candidates import candidates
from .gpu_cases import KERNELS

LISTED = 200
"""How many of the schedules that the tuner lists are compared bit for bit."""

_EXTENTS = {"i": 19, "j": 14, "k": 37, "l": 6, "m": 5, "r": 6}


@frozen
class Listed:
    """A schedule that the tuner lists for an expression, with small operands of whole numbers, whose sums are exact in every order."""

    expression: str
    formats: tuple[tuple[str, str], ...]
    schedule: str

    @property
    def name(self) -> str:
        return f"whole numbers, {', '.join(f'{tensor} {form}' for tensor, form in self.formats)}"

    def operands(self) -> Iterator[tuple[str, dict[str, NDArray[np.float64]]]]:
        """Yield patterns by name: scattered entries, all in one slice, none."""
        for pattern, share in (("scattered entries", 0.3), ("one full slice", 0.0), ("no entries", 0.0)):
            rng, sparse = np.random.default_rng(0), dict(self.formats)
            found: dict[str, NDArray[np.float64]] = {}
            for access in accesses(parse(self.expression).value):
                shape = tuple(_EXTENTS[index] for index in access.indices)
                kept = rng.random(shape) < share
                kept[2] |= pattern == "one full slice"
                values = rng.integers(1, 5, shape).astype(np.float64)
                found[access.tensor] = values * kept if access.tensor in sparse else values
            yield pattern, found

    def expected(self, operands: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the result for operands by name, computed by NumPy from dense arrays. The expression is one product."""
        assignment = parse(self.expression)
        read = list(accesses(assignment.value))
        terms = ",".join("".join(access.indices) for access in read)
        return np.einsum(f"{terms}->{''.join(assignment.target.indices)}", *(operands[access.tensor] for access in read))


@cache
def listed(count: int) -> tuple[Listed, ...]:
    """Return ``count`` of the schedules that the tuner lists, taking kernels in turn, with usual numbers and with drawn ones."""
    rng, each = Random(0), list[list[Listed]]()
    for expression, formats in dict.fromkeys((kernel.expression, kernel.formats) for kernel in KERNELS):
        assignment, found = parse(expression), dict[Listed, None]()
        for candidate in candidates(assignment, formats_of(assignment, dict(formats)), target="cuda"):
            drawn = {hole.name: rng.choice(hole.choices) for hole in candidate.template.holes}
            for values in ({}, drawn) if drawn else ({},):
                found.setdefault(Listed(expression, formats, str(candidate.template.fill(values))))
        each.append([*found])
    turns = ([cases[turn] for cases in each if turn < len(cases)] for turn in range(max(map(len, each))))
    return tuple(islice(filter(_has_form, chain.from_iterable(turns)), count))


def _has_form(case: Listed) -> bool:
    """Return whether a schedule can be compiled for a GPU; the tuner too asks the compiler before it tries one."""
    try:
        return bool(compile_kernel(case.expression, dict(case.formats), None, case.schedule, target="cuda", arch="sm_90").source)
    except ScheduleError:
        return False
