"""The targets that there are, by name."""

from __future__ import annotations

from ..errors import ScheduleError
from .c import C
from .interpreter import INTERPRETER
from .target import Target

_TARGETS: dict[str, Target] = {}


def register(target: Target) -> None:
    """Make a target known by its name, in place of another one of that name."""
    _TARGETS[target.name] = target


def find_target(name: str) -> Target:
    """Return a target. Raises ``ScheduleError`` where there is none of that name."""
    if not isinstance(name, str) or name not in _TARGETS:
        raise ScheduleError(f"target {name!r} is not supported: there is no code generation for it yet; use target {' or '.join(_TARGETS)}")
    return _TARGETS[name]


for _each in (C, INTERPRETER):
    register(_each)
