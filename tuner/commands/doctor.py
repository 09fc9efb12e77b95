"""``tune-kernel doctor``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from ..diagnosis import calibrated, run_checks
from . import options
from .help import ExampleCommand
from .output import print_json


@click.command(
    "doctor",
    cls=ExampleCommand,
    examples=(
        ("tune-kernel doctor", "what was found"),
        ("tune-kernel doctor --json", "as JSON"),
        ("tune-kernel doctor --calibrate", "measure this machine, for reports and for the static model"),
    ),
)
@options.together(
    options.database,
    click.option(
        "--calibrate", is_flag=True,
        help="Measure again the bandwidth and arithmetic that one thread and all threads reach, and the constants of the static model. It "
        "takes some seconds on an idle machine.",
    ),
    options.as_json,
)  # fmt: skip
def command(**given: Any) -> int:
    """Check compilers, caches, threads, GPU, database and folders. Status 3 if something that is needed is missing."""
    checks = run_checks(given["database"])
    if given["calibrate"]:
        checks += calibrated()
    ok = all(check.ok for check in checks if check.required)
    if given["as_json"]:
        print_json({"ok": ok, "checks": [asdict(check) for check in checks]})
    else:
        width = max(len(check.name) for check in checks) + 1
        for check in checks:
            state = "ok" if check.ok else "MISSING" if check.required else "no"
            print(f"{check.name + ':':<{width}} {state:<8} {check.found}" + (f" ({check.advice})" if check.advice else ""))
    return 0 if ok else 3
