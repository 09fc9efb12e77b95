"""One search among the schedules of a problem, and what its records have in common."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from ..compiler.native.devices import gpu_state
from .database import Database
from .environment import code_version, describe_environment, load_per_core
from .measure.policy import Policy
from .problem import Problem
from .records import CONVERSION, Measurement, Status, digest

DEFAULT = ""
"""The text of the default schedule."""

MOST_MESSAGE = 2000
"""Most letters of a failure's message that are recorded."""


class Campaign:
    """The records of a campaign: those it writes, and those that earlier runs of it have written.

    It is the same campaign as long as workload, input, seed, compilers, code, policy and limits are the same; running it again goes on
    where it was. ``since`` is the moment before which nothing counts: what was begun earlier is left alone and another one begun.
    """

    def __init__(
        self, problem: Problem, store: Database, seed: int, settings: dict[str, str], policy: Policy, since: str = ""
    ) -> None:
        self.problem = problem
        self.store = store
        self.environment = describe_environment(settings)
        compilers = self.environment["compilers"]
        limits = [problem.limits.given] if problem.limits.given else []
        parts = problem.workload.key, problem.input.key, seed, code_version(), compilers, settings, policy.as_dict(), *limits
        self.key = self._last(parts, since)

    def _last(self, parts: tuple[object, ...], since: str) -> str:
        """Return the key of the last campaign with these ``parts``; if that was begun before ``since``, the key of the next one."""
        key = previous = digest(*parts)
        begun = ""
        for run in itertools.count(1):
            first = next(self.store.measurements(campaign=key), None)
            if first is None:
                return key if run == 1 or begun < since else previous
            previous, begun = key, first.created
            key = digest(*parts, {"run": run})
        raise AssertionError("unreachable: a database holds finitely many campaigns")

    def recorded(self) -> Iterable[Measurement]:
        """Yield the trials of earlier runs, oldest first."""
        for measurement in self.store.measurements(campaign=self.key):
            if measurement.role != "final":
                yield measurement

    def user_text(self, canonical: str) -> str:
        """Return a schedule in the names of the expression as it was given."""
        return str(self.problem.from_canonical(canonical))

    def _environment(self) -> dict[str, Any]:
        """Return the environment of a measurement; on a GPU, also the present speed of its clocks and what holds them back."""
        return {**self.environment, "gpu": gpu_state()} if self.problem.is_on_gpu else self.environment

    def record(self, role: str, canonical: str, status: Status, conversion: float = 0.0, **fields: Any) -> Measurement:
        """Write one measurement of a schedule in canonical names; it lasts whatever happens next. ``conversion``: seconds of it."""
        measurement = Measurement(
            workload=self.problem.workload,
            input=self.problem.input,
            campaign=self.key,
            role=role,
            schedule=canonical,
            status=status,
            environment=self._environment() | ({CONVERSION: conversion} if conversion else {}),
            load=load_per_core(),
            code=code_version(),
            **fields,
        )
        self.store.add(measurement)
        return measurement
