"""The process that races: ``python -P racer.py``, with the folder of one version of sparsetune first on the path.

Two such processes run a race, one with the older version and one with the newer. They use only the public interface of their version,
which is stable; everything else is loaded from the files beside this one. One JSON request a line on standard input, one JSON reply a line
on what was standard output.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
_PAGE, _LINES = 4096, 128  # bytes: two cache lines are fetched together


def beside(path: str) -> Any:
    """Load a module of this version from its file, whatever version of the package is on the path."""
    place = HERE / path
    spec = importlib.util.spec_from_file_location(f"racer_{place.stem}", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def placed(given: Any) -> Any:
    """Return a copy of an array at a random multiple of 128 bytes in a page, another one in each process.

    The place of arrays makes kernels slower by up to a quarter, which is no fault of a version. With a new random place in each process it
    does not favour the same version in two races.
    """
    import numpy as np

    room = np.empty(given.nbytes + _PAGE, np.uint8)
    begin = (random.randrange(0, _PAGE, _LINES) - room.ctypes.data) % _PAGE
    made = room[begin : begin + given.nbytes].view(given.dtype).reshape(given.shape)
    made[...] = given
    return made


def _team(package: Any) -> Any:
    """Return the module that reports on the threads of a version's kernels; None for a version without it."""
    with contextlib.suppress(ImportError):
        module = importlib.import_module(f"{package.__name__}.compiler.native.team")
        return module if hasattr(module, "alone_calls") else None
    return None


def _device_clock(package: Any, bound: Any) -> Callable[[int], float] | None:
    """Return the clock of the device on which a version runs a bound kernel; None for a version without it."""
    with contextlib.suppress(ImportError, AttributeError):
        return importlib.import_module(f"{package.__name__}.tuner.kernels").device_clock(bound)
    return None


def _seconds(run: Callable[[], Any], batch: int) -> float:
    """Return the seconds of some runs, one after another."""
    start = time.perf_counter()
    for _ in range(batch):
        run()
    return time.perf_counter() - start


class Racer:
    """Runs one task at a time: a kernel that is bound once, one that is called with its operands, or the packing of one operand."""

    def __init__(self, package: Any) -> None:
        self._package = package
        self._witness = beside("../measure/company.py").Witness(_team(package))
        self._references = beside("reference.py")
        self._run: Callable[[], Any] = lambda: None
        self._device: Callable[[int], float] | None = None
        self._reference: Callable[[], Any] | None = None

    def load(self, folder: str) -> dict[str, Any]:
        """Take the task that lies in a folder (``race.save``) and run it once."""
        import numpy as np

        task = json.loads((Path(folder) / "task.json").read_text())
        self._device = None

        def array(name: str) -> Any:
            return placed(np.load(Path(folder) / name))

        if task["call"] == "pack":
            (operand,) = task["operands"].values()
            given = array(operand["coordinates"]), array(operand["values"])
            form, shape = task["formats"][task["result"]], tuple(operand["shape"])
            self._run = lambda: self._package.tensor(given, format=form, shape=shape)
        else:
            kernel = self._package.compile(
                task["expression"], formats=task["formats"], extents=task["extents"], schedule=task["schedule"], target=task["target"]
            )
            operands = {name: self._operand(operand, array) for name, operand in task["operands"].items()}
            bound = kernel.bind(**operands, threads=task["threads"])
            self._run = bound if task["call"] == "bound" else lambda: kernel(**operands, threads=task["threads"])
            self._device = _device_clock(self._package, bound) if task["on_device"] else None
        self._run()
        return {"package": str(Path(self._package.__file__).resolve().parent)}

    def burst(self, batch: int, samples: int) -> dict[str, Any]:
        """Run the task once to warm up, then take samples of ``batch`` runs; the reply has the fastest, of the undisturbed ones if any."""
        return self._fastest(self._run, batch, samples, self._device)

    def reference(self, kind: str, threads: int, units: int, library: str) -> dict[str, Any]:
        """Make the reference kernel to run from now on."""
        reference = self._references.Reference(kind, threads, units, library)
        self._reference = None if reference == self._references.CLOCK else self._references.Work(reference)
        if self._reference is not None:
            self._reference()
        return {}

    def fitting(self, kind: str, threads: int, length: float) -> dict[str, Any]:
        """Reply with a reference of a kind that takes about so many seconds here."""
        found = self._references.fitting(kind, threads, length)
        return {"kind": found.kind, "threads": found.threads, "units": found.units, "library": found.library}

    def reference_burst(self, samples: int) -> dict[str, Any]:
        """Run the reference as ``burst`` runs the task; that of the clock is a second."""
        return {"sample": [1.0], "disturbed": False} if self._reference is None else self._fastest(self._reference, 1, samples)

    def _operand(self, operand: dict[str, Any], array: Callable[[str], Any]) -> Any:
        if "array" in operand:
            return array(operand["array"])
        given = array(operand["coordinates"]), array(operand["values"])
        return self._package.tensor(given, format=operand["format"], shape=tuple(operand["shape"]))

    def _fastest(
        self, run: Callable[[], Any], batch: int, samples: int, device: Callable[[int], float] | None = None
    ) -> dict[str, Any]:
        run()
        taken = []
        for _ in range(samples):
            before = self._witness.look()
            seconds = (_seconds(run, batch) if device is None else device(batch)) / batch
            taken.append((seconds, self._witness.since(before)))
        quiet = [sample for sample in taken if not sample[1].disturbed]
        seconds, company = min(quiet or taken, key=lambda sample: sample[0])
        return {"sample": [seconds, *company.as_row()], "disturbed": not quiet}


def main() -> None:
    """Answer the requests on standard input, one a line, with replies on standard output."""
    beside("../measure/lifeline.py").end_with_parent()
    resources = beside("../measure/resources.py")
    resources.take_all_cores()
    resources.take_precedence()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    racer = Racer(importlib.import_module("sparsetune"))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = getattr(racer, request.pop("action"))(**request) | {"status": "ok"}
        except Exception as error:  # any failure of a version is a reply
            reply = {"status": "failed", "message": (str(error).splitlines() or [""])[0] or type(error).__name__}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
