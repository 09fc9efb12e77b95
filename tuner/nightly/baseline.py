"""Measurements of a night, and the baseline: the file of an earlier night with which later ones are compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...compiler.errors import DatabaseError, DataError
from ...compiler.native.machine import this_machine
from ..database import fields
from ..database.gate import SECONDS, read_json
from ..environment import code_version
from ..records import now
from ..written import write_whole
from .reference import KINDS, Reference

BASELINE_SCHEMA = 2
"""Version of baseline files. Version 1 is read too, but only for its schedules, since its times are relative to another reference."""


@dataclass(frozen=True)
class Entry:
    """One kernel on one input, on one night.

    Attributes:
        kernel, input: names in the suite.
        schedule: what was measured.
        seconds: the median over rounds of the fastest run of each; None where it failed.
        ratios: for each round, its time over that of the reference that ran in turn with it, times the reference's units.
        failure: why there is no time.
        reference: the reference that ran in turn with it; None in baselines of versions that had only one.
    """

    kernel: str
    input: str
    schedule: str
    seconds: float | None
    ratios: tuple[float, ...]
    failure: str = ""
    reference: Reference | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What entries of two baselines are compared by: kernel and input."""
        return self.kernel, self.input


_REFERENCE: dict[str, fields.Check] = {
    "kind": fields.one_of(KINDS),
    "threads": fields.whole(1, 2**20),
    "units": fields.whole(1, 2**40),
    "library": fields.text(),
}
_ENTRY: dict[str, fields.Check] = {
    "kernel": fields.text(),
    "input": fields.text(plain=False),
    "schedule": fields.text(fields.TEXT_LETTERS),
    "seconds": fields.optional(fields.number(*SECONDS)),
    "ratios": fields.list_of(fields.number(1e-18, 1e18)),
    "failure": fields.text(fields.TEXT_LETTERS, plain=False),
    "reference": fields.optional(lambda value: Reference(**fields.read_fields(value, Reference, _REFERENCE, "reference."))),
}


@dataclass(frozen=True)
class Baseline:
    """Entries by kernel and input, when they were taken (ISO 8601), and by which version; empty texts where the file does not say."""

    entries: dict[tuple[str, str], Entry]
    created: str = ""
    code: str = ""


def load_baseline(path: Path, device: str | None = None) -> Baseline:
    """Read a baseline file.

    Args:
        path: the file.
        device: the architecture of the device on which kernels are measured; None: they are on the processor.

    Raises:
        DataError: it cannot be read, is no baseline, or is one of another machine or device.
    """
    try:
        content = read_json(path.read_text(encoding="utf-8"))
        schema, machine, processor = content["schema"], content["machine"], fields.shown(content["processor"])
        if not fields.is_whole(schema) or not 1 <= schema <= BASELINE_SCHEMA:
            raise DataError(f"{path} is a baseline of schema {fields.shown(schema)}; this program knows {BASELINE_SCHEMA}")
        if machine != this_machine().fingerprint:
            raise DataError(f"{path} was measured on another machine ({processor}); make a new baseline here")
        if (there := content.get("device")) != device:
            names = [fields.shown(name) if name else "the processor" for name in (there, device)]
            raise DataError(f"{path} is of kernels on {names[0]}, not on {names[1]}; name another file, or make a new baseline")
        created = fields.moment(content["created"]) if "created" in content else ""
        code = fields.text()(content.get("code", ""))
        found = [Entry(**fields.read_fields(entry, Entry, _ENTRY, "entry.")) for entry in content["entries"]]
    except OSError as error:
        raise DataError(f"cannot read the baseline {path}: {error.strerror or error}") from None
    except DatabaseError as error:
        raise DataError(f"{path} is no baseline file of 'tune-kernel nightly': {error}") from None
    except (UnicodeDecodeError, KeyError, TypeError, fields.Unfit):
        raise DataError(f"{path} is no baseline file of 'tune-kernel nightly'") from None
    for entry in found:
        if entry.seconds is not None and not entry.ratios:
            raise DataError(f"{path} is no baseline file of 'tune-kernel nightly': {fields.shown(entry.kernel)} has a time, but no ratios")
    return Baseline({entry.key: entry for entry in found}, created, code)


def write_baseline(path: Path, entries: Sequence[Entry], device: str | None = None) -> None:
    """Write entries as the baseline for later nights.

    Args:
        path: the file.
        entries: what was measured.
        device: as for ``load_baseline``.

    Raises:
        DataError: the file cannot be written.
    """
    machine = this_machine()
    content: dict[str, Any] = {
        "schema": BASELINE_SCHEMA,
        "machine": machine.fingerprint,
        "processor": machine.model,
        "device": device,
        "created": now(),
        "code": code_version(),
        "entries": [asdict(entry) for entry in entries],
    }
    try:
        write_whole(path, json.dumps(content, indent=1))
    except OSError as error:
        raise DataError(f"cannot write the baseline {path}: {error.strerror or error}") from None
