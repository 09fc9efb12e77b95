"""The cost of each rule on schedule templates: the fastest template that all default rules keep, against the fastest without one rule.

Of the templates that a rule keeps or removes a seeded sample is measured, with split sizes from a short list: first the simplest templates
that are kept, then others round by round, then more of the partitions that were fastest, and those kept templates that are most like the
fastest removed ones. The fastest of every group run in turn in a final on each input. Schedules with the same code count as one.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from ...compiler.concrete.concretize import concretize
from ...compiler.errors import SparsetuneError
from ...compiler.frozen import frozen
from ...compiler.schedule.schedule import Schedule
from ...compiler.space.situation import Situation
from ...compiler.space.template_space import Transformation
from ..kernels import compile_problem
from ..measure.finals import Comparison
from ..measure.outcomes import Rival
from ..measure.policy import Policy
from ..measure.runner import Runner
from ..measure.worker_process import Worker
from ..problem import Problem
from ..records import Status
from .race import Pace, Series, race
from .rule_cases import RULE_CASES, THREADS, RuleCase, problem_of_case
from .template_draws import Group, groups_of

SIZES = (16, 256, 4096)
BATCH = 12
_SIMPLE = 48
"""How many of the shortest templates are tried in any case."""

_HOPELESS = 4.0
"""A template that takes more than so many times the least time is not measured again."""

_GRACE = 1.0
"""Seconds after which a template on a small input is given up."""

_POLICY = Policy(min_repeats=3, max_repeats=20, max_seconds=0.1)
_BROAD = 0.6
"""Share of the time for templates drawn at random; the rest is for templates near the best."""


@frozen
class RuleLoss:
    """The cost of one rule on one input.

    Attributes:
        switched: "off" if the rule is left out, "as in the paper" if the paper's replaces ours.
        templates: estimate of the number of templates that the rule removes.
        tried: how many of them, and of those that the default rules keep, were measured.
        refused: how many of the tried ones the compiler refused.
        gain: time of the fastest kept template over that of the fastest removed one, by paired ratios.
        least: the same by the least times of both.
        default, other: the schedules of the two.
    """

    kernel: str
    input: str
    rule: str
    kind: str
    switched: str
    templates: int
    tried: int
    refused: int
    gain: Comparison
    least: float
    default: str
    other: str

    @property
    def loss(self) -> float:
        """By how much the fastest kept template is slower than the fastest removed one, as a share, by least times. If it is negative, the
        kept one is faster and the rule costs nothing."""
        return self.least - 1.0


def rule_losses(kernel: str, seconds: float, pace: Pace, seed: int = 0) -> list[RuleLoss]:
    """Measure a kernel for about so many seconds, plus finals, and return a loss for every rule and input."""
    with ExitStack() as stack:
        field = _Field(RULE_CASES[kernel], stack)
        rng = random.Random(seed)
        groups = groups_of(field.situation)
        field.try_all(_simplest(groups[0]))
        started = time.perf_counter()
        while time.perf_counter() - started < seconds * _BROAD:
            field.try_all([_filled(group, rng) for group in _turns(groups, rng)])
        for group in groups * 2:
            if time.perf_counter() - started < seconds:
                field.try_all(_near(field, group, rng))
        field.try_all(_plainer(field, groups))
    return [loss for name in field.problems for loss in _finals(kernel, name, field, groups, pace)]


def _simplest(group: Group) -> list[tuple[Group, Transformation | None, int]]:
    """Return the shortest templates of a group: templates that are removed as redundant are similar to one of these."""
    return [(group, template, size) for template in group.shortest(_SIMPLE) for size in (SIZES[1:] if template.sizes else SIZES[:1])]


def _turns(groups: Sequence[Group], rng: random.Random) -> Iterator[Group]:
    """Yield the groups of a round. Half of it is the group that the default rules keep, since all others are compared with that."""
    yield from (groups[0],) * (BATCH // 2)
    yield from rng.sample(groups[1:], BATCH // 2)


def _near(field: _Field, group: Group, rng: random.Random) -> list[tuple[Group, Transformation | None, int]]:
    """Return templates near the best of a group on each input: with other split sizes, orders and units."""
    best = {template.text: template for name in field.problems if (template := field.best(name, group)) is not None}
    sizes = [(group, like, size) for like in best.values() for size in SIZES if like.sizes]
    return sizes + [_filled(group, rng, like) for like in best.values() for _ in range(2)]


def _plainer(field: _Field, groups: Sequence[Group]) -> list[tuple[Group, Transformation | None, int]]:
    """Return kept templates that are similar to the best of other groups, so that a rule is charged for what it removes and not for what
    the draws missed."""
    best = {template.text: template for group in groups[1:] for name in field.problems if (template := field.best(name, group)) is not None}
    like = {template.text: template for one in best.values() for template in groups[0].plainer(one)}
    return [(groups[0], template, size) for template in like.values() for size in (SIZES if template.sizes else SIZES[:1])]


def _filled(group: Group, rng: random.Random, like: Transformation | None = None) -> tuple[Group, Transformation | None, int]:
    return group, group.draw(rng, like), rng.choice(SIZES)


class _Field:
    """Compiles, checks and times templates of one kernel on all inputs, in worker processes that end with ``stack``."""

    def __init__(self, case: RuleCase, stack: ExitStack) -> None:
        self.problems = {name: problem_of_case(case, specs, name) for name, specs in case.inputs.items()}
        problem = next(iter(self.problems.values()))
        found = concretize(problem.assignment, problem.formats)
        self.situation = Situation(found.program, found.formats, {})
        self.runners = {
            name: stack.enter_context(Runner(problem, stack.enter_context(Worker(THREADS)), _POLICY, _GRACE))
            for name, problem in self.problems.items()
        }
        for runner in self.runners.values():
            runner.prepare()
        self.times: dict[str, dict[str, tuple[float, Group, Transformation]]] = {name: {} for name in self.problems}

    def try_all(self, entries: Sequence[tuple[Group, Transformation | None, int]]) -> None:
        """Compile templates, several at once, then time them one after another."""
        wanted = {}
        for group, template, size in entries:
            if template is not None:
                text = str(template.template.fill(dict.fromkeys(template.sizes, size)))
                if not any(text in times for times in self.times.values()):
                    wanted[text] = (group, template)
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(self._built, wanted))
        for text, (group, template) in wanted.items():
            for name in self.problems:
                seconds = self._time(name, text)
                if seconds is None:
                    group.refused += 1
                    break
                best = min((other for other, *_ in self.times[name].values()), default=seconds)
                self.times[name][text] = (seconds, group, template)
                if seconds > _HOPELESS * best:
                    break  # it will not be the fastest on the other inputs either

    def best(self, name: str, group: Group) -> Transformation | None:
        found = self.fastest(name, [group], 1)
        return self.times[name][found[0]][2] if found else None

    def fastest(self, name: str, groups: Sequence[Group], most: int) -> list[str]:
        """Return the schedules of some groups that took the least time on an input so far."""
        timed = ((seconds, text) for text, (seconds, group, _) in self.times[name].items() if group in groups)
        own = sorted(entry for entry in timed if entry[0] < math.inf)
        return [text for _, text in own[:most]]

    def _built(self, text: str) -> bool:
        problem = next(iter(self.problems.values()))
        try:
            compile_problem(problem, Schedule(text)).load(60.0)
        except SparsetuneError:
            return False
        return True

    def _time(self, name: str, text: str) -> float | None:
        """Return the seconds of a schedule on one input: infinity if it takes too long, None if the compiler refuses it."""
        runner = self.runners[name]
        if runner.build(text).status is not Status.OK:
            return None
        seconds, best = min(((seconds, text) for text, (seconds, *_) in self.times[name].items()), default=(math.inf, ""))
        found = runner.measure(text, Rival(best, seconds) if math.isfinite(seconds) else None)
        if found.status in (Status.WRONG, Status.CRASH):
            raise AssertionError(f"'{text}' on {name}: {found.status}, {found.message}")
        return found.seconds if found.seconds is not None else math.inf


def _finals(kernel: str, name: str, field: _Field, groups: Sequence[Group], pace: Pace) -> Iterator[RuleLoss]:
    """Run the fastest few of every group in turn, and compare the fastest of each.

    Hopeless ones may take minutes, so they do not run again: the time of their trial stands for all rounds.
    """
    own = [group for group in groups if group.switched != "off"]
    runners = {group.name: field.fastest(name, [group] if group.name else own, 2 if group.name else 4) for group in groups}
    tried = {text: field.times[name][text][0] for texts in runners.values() for text in texts}
    hopeless = {text for text, seconds in tried.items() if seconds > _HOPELESS * min(tried.values())}
    found = _raced(field.problems[name], [text for text in tried if text not in hopeless], pace)
    rounds = len(next(iter(found.values())).times)
    found |= {text: Series((tried[text],) * rounds) for text in hopeless}
    winners = {group: min(texts, key=lambda text: found[text].least) for group, texts in runners.items() if texts}
    for group in groups[1:]:
        if group.name in winners and "" in winners:
            default, other = winners[""], winners[group.name]
            smaller, larger = (found[default], found[other]) if group.switched == "off" else (found[other], found[default])
            measured = sum(one in (group, groups[0]) for _, one, _ in field.times[name].values())
            yield RuleLoss(
                kernel, name, group.name, group.kind, group.switched, group.estimate(), measured, group.refused,
                smaller.over(larger), smaller.least / larger.least, default, other,
            )  # fmt: skip


def _raced(problem: Problem, texts: Sequence[str], pace: Pace) -> dict[str, Series]:
    """Run schedules in turn; those with the same C are one kernel, which runs once a round."""
    candidates = {text: compile_problem(problem, Schedule(text)) for text in texts}
    kernels = {candidate.source: candidate for candidate in candidates.values()}
    found = race({source: kernel.bind(problem.operands, THREADS) for source, kernel in kernels.items()}, pace)
    return {text: found[candidate.source] for text, candidate in candidates.items()}
