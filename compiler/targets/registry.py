"""The targets that there are, by name."""

from __future__ import annotations

from dataclasses import replace

from ..errors import ScheduleError
from .c import C
from .cuda import CUDA, CudaTarget
from .executor import EXECUTOR
from .interpreter import INTERPRETER
from .target import Target

_TARGETS: dict[str, Target] = {}


def register(target: Target) -> None:
    """Make a target known by its name, in place of another one of that name."""
    _TARGETS[target.name] = target


def find_target(name: str, arch: str | None = None) -> Target:
    """Return a target, for GPUs of an architecture where one is named. Raises ``ScheduleError`` where there is none of that name."""
    if not isinstance(name, str) or name not in _TARGETS:
        raise ScheduleError(f"target {name!r} is not supported: there is no code generation for it yet; use target {' or '.join(_TARGETS)}")
    found = _TARGETS[name]
    return replace(found, arch=arch) if arch is not None and isinstance(found, CudaTarget) else found


for _each in (C, INTERPRETER, CUDA, EXECUTOR):
    register(_each)
