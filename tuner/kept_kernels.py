"""Kernels that a process keeps at hand, so that the code of each is generated once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ..compiler.concrete.affine import Boundary
from ..compiler.format import Format
from ..compiler.kernel import Kernel
from ..compiler.pipeline import compile_kernel
from ..compiler.schedule.schedule import Schedule

KEPT = 64
"""Most kernels that are kept."""


def kept_kernel(
    expression: str,
    formats: Mapping[str, Format],
    extents: Mapping[str, int],
    schedule: Schedule,
    dtype: np.dtype[Any] | None,
    target: str,
    semiring: tuple[str, str],
    convert: str = "auto",
    boundary: Boundary = None,
    determined: Collection[str] = (),
    arch: str | None = None,
) -> Kernel:
    """Return what ``compile_kernel`` gives, the same one for the same arguments: its code is generated once in a process.

    A lookup that asks whether a schedule is legal generates the code that is run next, and so does every ``compile`` with schedule "auto".
    """
    edges = tuple(sorted(boundary.items())) if isinstance(boundary, Mapping) else boundary
    given = tuple(formats.items()), tuple(extents.items()), schedule, dtype, target, semiring, convert, edges, tuple(determined), arch
    return _kept(expression, *given)


@lru_cache(KEPT)
def _kept(
    expression: str,
    formats: tuple[tuple[str, Format], ...],
    extents: tuple[tuple[str, int], ...],
    schedule: Schedule,
    dtype: np.dtype[Any] | None,
    target: str,
    semiring: tuple[str, str],
    convert: str,
    edges: Any,
    determined: tuple[str, ...],
    arch: str | None,
) -> Kernel:
    boundary = dict(edges) if isinstance(edges, tuple) else edges
    return compile_kernel(
        expression, dict(formats), dict(extents), schedule, dtype, target, semiring=semiring, convert=convert, boundary=boundary,
        determined=determined, arch=arch,
    )  # fmt: skip
