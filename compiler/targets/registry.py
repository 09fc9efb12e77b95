"""The targets that there are, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..errors import ScheduleError
from ..passes.manager import Pass
from ..shown import shown
from .c import C
from .target import Target

_TARGETS: dict[str, Target] = {}


def _interpreter() -> Target:
    from .interpreter import INTERPRETER

    return INTERPRETER


def _cuda() -> Target:
    from .cuda import CUDA

    return CUDA


def _executor() -> Target:
    from .executor import EXECUTOR

    return EXECUTOR


_SHIPPED: dict[str, Callable[[], Target]] = {"cpu": lambda: C, "interpreter": _interpreter, "cuda": _cuda, "cuda-executor": _executor}
"""Our own, each imported when it is first asked for: most programs compile for the processor alone."""


def register(target: Target) -> None:
    """Make a target known by its name, in place of another one of that name."""
    _TARGETS[target.name] = target


def register_pass(added: Pass, target: str = "cpu", before: str | None = None) -> None:
    """Let kernels for a target go through one more pass: before another one, or after all others.

    Raises:
        ScheduleError: there is no such target.
        ValueError: there is a pass of that name, none of the name ``before``, or it stands where it, or one after it, cannot.
    """
    found: Any = find_target(target)
    register(replace(found, passes=found.passes.with_pass(added, before)))


def unregister_pass(name: str, target: str = "cpu") -> None:
    """Take back what ``register_pass`` did."""
    found: Any = find_target(target)
    register(replace(found, passes=found.passes.without_pass(name)))


def find_target(name: str, arch: str | None = None) -> Target:
    """Return a target, for GPUs of an architecture where one is named. Raises ``ScheduleError`` where there is none of that name."""
    known = {**_SHIPPED, **_TARGETS}
    if not isinstance(name, str) or name not in known:
        raise ScheduleError(
            f"target {shown(name)} is not supported: there is no code generation for it; use target {' or '.join(known)}"
        )
    if name not in _TARGETS:
        register(_SHIPPED[name]())
    found: Any = _TARGETS[name]
    return replace(found, arch=arch) if arch is not None and hasattr(found, "arch") else found
