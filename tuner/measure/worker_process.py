"""The parent's side of a worker process: it sends requests, and replaces the process when it dies or hangs."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO, Any, Self

from ...compiler.errors import TuningError
from ...compiler.native.machine import allowed_cores
from ..awake import TICK, Awake
from ..records import Status
from .resources import CORES

WORKER = (sys.executable, "-P", "-m", __package__ or "")


class Lost(Exception):
    """A worker did not answer; ``status`` says how it ended."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class LostProcess(TuningError):
    """A process that measures did not answer: it ended, or took too long. Another one may answer."""


class Worker:
    """One worker process, started when it is first needed and again after each loss.

    Args:
        threads: how many the kernels that it runs use.
        command: the command that starts it.
        path: folders where it looks for modules first.
    """

    def __init__(self, threads: int, command: Sequence[str] = WORKER, path: Sequence[str] = ()) -> None:
        self.threads = threads
        self.starts = 0
        self._command = list(command)
        self._path = list(path)
        self._process: subprocess.Popen[bytes] | None = None
        self._received = b""
        self._log: IO[bytes] | None = None  # what the process writes to standard error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_details: object) -> None:
        self.stop()

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables that decide how many threads run."""
        return {"SPARSETUNE_THREADS": str(self.threads)}

    def _environment(self) -> dict[str, str]:
        cores = ",".join(map(str, sorted(allowed_cores())))
        return {**os.environ, **self.settings, CORES: cores, "PYTHONPATH": os.pathsep.join(filter(None, [*self._path, *sys.path]))}

    @property
    def running(self) -> bool:
        return self._process is not None

    def ask(self, seconds: float, action: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the reply. Raises ``Lost`` if none comes in time or the process dies.

        Time in which this process was suspended does not count, since the worker was most likely suspended too.
        """
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"action": action, **arguments}).encode() + b"\n")
            process.stdin.flush()
            return json.loads(self._receive(process, seconds))
        except BrokenPipeError:
            raise self._died(process) from None
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process, and with it a compiler that it started; another request starts a new one."""
        process, self._process, self._received = self._process, None, b""
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, self._log):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # without a name, so that nothing is left behind
        # a session of its own: Ctrl-C goes to the parent alone
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=self._environment(),
            start_new_session=True,
        )
        self.starts += 1
        return self._process

    def _receive(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        assert process.stdout is not None
        awake = Awake()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if not selector.select(min(TICK, max(0.0, seconds - awake.look()))):
                    if awake.look() >= seconds:
                        raise Lost(Status.TIMEOUT, f"no answer within {seconds:.0f} s")
                    continue
                part = os.read(process.stdout.fileno(), 2**16)
                if not part:
                    raise self._died(process)
                self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _died(self, process: subprocess.Popen[bytes]) -> Lost:
        code = process.wait()
        assert self._log is not None
        last = (os.pread(self._log.fileno(), 2**20, 0).decode(errors="replace").strip().splitlines() or [""])[-1]
        self.stop()
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        return Lost(Status.CRASH, f"the process ended with {how}" + (f": {last}" if last else ""))
