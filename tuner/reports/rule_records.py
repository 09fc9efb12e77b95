"""Losses of template rules as a CSV file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..measure.finals import Comparison
from .records import read_records, write_records
from .rule_loss import RuleLoss

_HEADER = (
    "kernel",
    "input",
    "rule",
    "kind",
    "switched",
    "templates",
    "tried",
    "refused",
    "gain",
    "low",
    "high",
    "least",
    "default",
    "other",
)


def read_losses(path: Path) -> list[RuleLoss]:
    """Return the losses in a CSV file."""
    return [_loss(record) for record in read_records(path)]


def write_losses(path: Path, losses: Iterable[RuleLoss]) -> None:
    """Write losses as CSV."""
    write_records(path, _HEADER, map(_cells, losses))


def _cells(loss: RuleLoss) -> tuple[object, ...]:
    gain = (f"{number:.4f}" for number in (loss.gain.ratio, loss.gain.low, loss.gain.high, loss.least))
    sizes = (loss.templates, loss.tried, loss.refused)
    return (loss.kernel, loss.input, loss.rule, loss.kind, loss.switched, *sizes, *gain, loss.default, loss.other)


def _loss(record: dict[str, str]) -> RuleLoss:
    kernel, name, rule, kind, switched = (record[part] for part in _HEADER[:5])
    templates, tried, refused = (int(record[part]) for part in _HEADER[5:8])
    gain = Comparison(*(float(record[part]) for part in _HEADER[8:11]))
    return RuleLoss(
        kernel, name, rule, kind, switched, templates, tried, refused, gain, float(record["least"]), record["default"], record["other"]
    )
