"""The registry of targets, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from ..errors import ScheduleError
from ..passes.manager import Pass
from ..shown import shown
from .c import C
from .target import ArchitectureTarget, Target

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
"""Targets of this package that are imported at first use: most programs compile only for the processor."""


def register(target: Target) -> None:
    """Register a target under its name; it replaces another one of that name."""
    _TARGETS[target.name] = target


def register_pass(added: Pass, target: str = "cpu", before: str | None = None) -> None:
    """Add a pass to a target: before another one, or after all others.

    Raises:
        ScheduleError: there is no such target.
        ValueError: there is a pass of that name already, or none of the name ``before``, or the pass or one after it cannot stand there.
    """
    found: Any = find_target(target)
    register(replace(found, passes=found.passes.with_pass(added, before)))


def unregister_pass(name: str, target: str = "cpu") -> None:
    """Remove a pass that ``register_pass`` has added."""
    found: Any = find_target(target)
    register(replace(found, passes=found.passes.without_pass(name)))


def find_target(name: str, arch: str | None = None) -> Target:
    """Return a target, for one of its architectures if one is given.

    Raises:
        ScheduleError: there is no target of that name, or it has no such architecture.
    """
    known = {**_SHIPPED, **_TARGETS}
    if not isinstance(name, str) or name not in known:
        raise ScheduleError(
            f"target {shown(name)} is not supported: there is no code generation for it; use target {' or '.join(known)}"
        )
    if name not in _TARGETS:
        register(_SHIPPED[name]())
    found = _TARGETS[name]
    if arch is None:
        return found
    if not found.has_architectures:
        raise ScheduleError(f"arch {shown(arch)}: target {name} has no architectures; leave arch out, or ask for target cuda")
    return cast("ArchitectureTarget", found).for_architecture(arch)


def require_target(target: Target) -> None:
    """Raise ``BuildError`` if code for a target depends on a device that this machine lacks."""
    if target.has_architectures:
        cast("ArchitectureTarget", target).require()
