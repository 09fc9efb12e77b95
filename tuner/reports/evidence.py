"""``results/evidence.md``: how well gains on one input predict those on another, and the distance and doubt of lookup fitted to that.

    python -m sparsetune.tuner.reports.evidence

Where one schedule ran on two inputs of a kernel, the logarithms of its gains over the default differ by some error. Its square is modelled
as that of the measurement plus a part for each kind of feature, proportional to the squared difference of the inputs
(``features.differences``). Least squares with parts that are not negative give the weights. The errors of each input are then predicted by
weights that were fitted without it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import numpy as np

from ...compiler.frozen import frozen
from ..database import open_database
from ..features import WEIGHTS, differences
from ..prospects import DOUBT, Evidence
from ..records import Input, Status
from .decisions import usual_database
from .markdown import table
from .publishing import publish, results_option

COMMAND = "python -m sparsetune.tuner.reports.evidence"

FEWEST = 20
"""Least pairs of inputs for a fit."""

_MOST = 1.0  # larger errors of the logarithm of a gain count as this: beyond it no guess is useful


@frozen
class Pair:
    """Two inputs of one kernel on which some schedules ran.

    Attributes:
        inputs: their names.
        squares: squared differences, by kind of feature.
        errors: difference of the logarithms of gains, one for each schedule.
    """

    inputs: tuple[str, str]
    squares: Mapping[str, float]
    errors: tuple[float, ...]


@frozen
class Doubt:
    """The expected square of the error: that of the measurement, and for each kind of feature the part for a factor of two."""

    measured: float
    parts: Mapping[str, float]

    def of(self, pair: Pair) -> float:
        """Return the expected error of the logarithm of a gain."""
        return math.sqrt(self.measured + sum(self.parts.get(kind, 0.0) * square for kind, square in pair.squares.items()))


IN_USE = Doubt(0.0, {kind: DOUBT**2 * weight for kind, weight in WEIGHTS.items()})


def gathered(store: Evidence) -> list[Pair]:
    """Return the pairs of inputs on which a database knows the same schedules."""
    times: dict[str, dict[Input, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for one in store.measurements(status=Status.OK.value):
        if one.seconds and one.role != "night":
            known = times[one.workload.key][one.input]
            known[one.schedule] = min(one.seconds, known.get(one.schedule, math.inf))
    found = []
    for inputs in times.values():
        gains = {
            entry: {text: math.log(known[""] / known[text]) for text in known if text} for entry, known in inputs.items() if "" in known
        }
        for left, right in combinations(sorted(gains, key=lambda entry: entry.key), 2):
            errors = tuple(gains[left][text] - gains[right][text] for text in gains[left].keys() & gains[right].keys())
            if errors and left.name != right.name:
                found.append(Pair((left.name, right.name), differences(left, right), errors))
    return found


def fitted(pairs: Sequence[Pair]) -> Doubt:
    """Return the doubt whose squares fit those of the errors best."""
    from scipy.optimize import nnls

    kinds = list(WEIGHTS)
    rows = np.array([[1.0, *(pair.squares.get(kind, 0.0) for kind in kinds)] for pair in pairs])
    squares = np.array([np.mean(np.minimum(np.abs(pair.errors), _MOST) ** 2) for pair in pairs])
    counted = np.sqrt([len(pair.errors) for pair in pairs])
    measured, *parts = map(float, nnls(rows * counted[:, None], squares * counted)[0])
    return Doubt(measured, dict(zip(kinds, parts, strict=True)))


def left_out(pairs: Sequence[Pair]) -> dict[str, Doubt]:
    """Return, by the name of each input, the doubt that is fitted without its pairs."""
    names = sorted({name for pair in pairs for name in pair.inputs})
    return {name: fitted([pair for pair in pairs if name not in pair.inputs]) for name in names}


def page(pairs: Sequence[Pair], where: Sequence[str]) -> str:
    """Return the page of some pairs; ``where`` names the machines."""
    whole, without = fitted(pairs), left_out(pairs)
    count = sum(len(pair.errors) for pair in pairs)
    foretold = [(max(without[name].of(pair) for name in pair.inputs), pair) for pair in pairs]
    weights = [(kind, f"{weight:.2f}", *_weights(kind, whole, without.values())) for kind, weight in WEIGHTS.items()]
    return f"""# What one input tells of another

{len(pairs)} pairs of inputs, {count} gains of one schedule on both, on {", ".join(where)}.

Lookup takes schedules from similar inputs. How similar two are is a weighted distance of features; the farther away, the larger is the
doubt that is taken off a gain: {DOUBT} of its logarithm at distance 1. Here both are fitted to the errors of gains that were measured
on two inputs: least squares of the squares of errors, parts that are not negative.

    {COMMAND}

## Weights

Weights of squares of logarithms (base 2), at the doubt in use; the measurement alone is fitted to be off by {
        math.sqrt(whole.measured):.3f}.

{table(("features", "in use", "fitted", "least and most without one input"), weights)}

## Doubts

Fitted doubts of a pair are of weights that know nothing of its inputs (the larger one of the two). A doubt that is one standard deviation
holds for 68% of errors, twice of it for 95%.

{
        table(
            ("doubt", "mean", "holds", "twice of it holds", "correlation with the error"),
            [_held("in use", [(IN_USE.of(pair), pair) for pair in pairs]), _held("fitted, left out", foretold)],
        )
    }
"""


def _weights(kind: str, whole: Doubt, others: Iterable[Doubt]) -> tuple[str, str]:
    found = [one.parts[kind] / DOUBT**2 for one in others]
    return f"{whole.parts[kind] / DOUBT**2:.2f}", f"{min(found):.2f} to {max(found):.2f}"


def _held(name: str, doubts: Sequence[tuple[float, Pair]]) -> tuple[str, ...]:
    """Return a line of the table: how often the errors of pairs were within the doubts."""
    each = np.array([(doubt, abs(error)) for doubt, pair in doubts for error in pair.errors])
    expected, errors = each[:, 0], each[:, 1]
    once, twice = (f"{np.mean(errors <= times * expected):.0%}" for times in (1, 2))
    related = np.corrcoef(expected, errors)[0, 1] if np.ptp(expected) and np.ptp(errors) else math.nan
    return name, f"{expected.mean():.3f}", once, twice, f"{related:.2f}"


def _machines(store: Any) -> list[str]:
    return sorted({str(one.environment.get("processor", "a machine")) for one in store.decisions()})


@click.command()
@click.option("--db", "database", default=None, help="of schedules (default: that of the report on decisions)")
@results_option
def main(database: str | None, results: Path) -> None:
    """Fit the distance and the doubt of lookup to what a database knows, and write results/evidence.md."""
    with open_database(database or usual_database(), read_only=True) as store:
        pairs, where = gathered(store), _machines(store)
    if len(pairs) < FEWEST:
        raise click.ClickException(f"{len(pairs)} pairs of inputs have schedules in common, fewer than {FEWEST}: tune more of them")
    shown = page(pairs, where)
    publish(results / "evidence.md", shown)
    click.echo(shown)


if __name__ == "__main__":
    main()
