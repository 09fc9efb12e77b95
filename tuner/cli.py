"""``tune-kernel``: the command line. Subcommands are loaded when they are called; every failure ends in one line and a status.

Status 0: done; 1: it ran and the answer is bad; 2: the request is wrong; 3: something on this machine is missing; 130: interrupted.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import NoReturn

import click

from ..compiler.errors import BuildError, NetworkError, ResourceError, SparsetuneError, TuningError
from .commands.help import ExampleGroup
from .streams import make_ready, silence

PROGRAM = "tune-kernel"

COMMANDS = {
    "tune": "find the fastest schedule of an expression on real inputs, and remember it",
    "run": "evaluate an expression with the best schedule known",
    "lookup": "show which schedule would be used, and why",
    "explain": "show the schedule space, how it is pruned, and its frontier",
    "code": "print the generated source",
    "suite": "tune every kernel on every input of a suite",
    "bench": "time tuned kernels beside the peers that are installed",
    "nightly": "measure a suite again and fail on a regression",
    "report": "write plots and tables of what the database holds",
    "data": "list, describe and download matrices and tensors",
    "db": "inspect, export and import the schedule database",
    "cache": "show which compiled kernels are kept, and remove old ones",
    "doctor": "check compilers, caches, threads and the database",
}


class _LazyGroup(ExampleGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".commands.{cmd_name}", __package__)
        command = module.command
        command.short_help = COMMANDS[cmd_name]
        return command


@click.group(
    cls=_LazyGroup,
    examples=(
        ('tune-kernel tune "y(i) = A(i,j) * x(j)" -i A=HB/494_bus', "tune a kernel on a matrix of the catalogue"),
        ('tune-kernel run "y(i) = A(i,j) * x(j)" -i A=matrix.mtx -i x=vector.npy -o y.npy', "use what was learned"),
        ("tune-kernel suite quick", "tune a suite of kernels; under two minutes"),
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="sparsetune", prog_name=PROGRAM)
def group() -> None:
    """Tune sparse tensor kernels on real data, and use what was learned."""


def main() -> None:
    """Run the command line of this process and end it."""
    make_ready()
    signal.signal(signal.SIGTERM, _terminate)
    try:
        status = _invoke(sys.argv[1:])
    except BaseException as error:
        _leave(_reported(error))
    sys.exit(status)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status; messages go to standard error."""
    try:
        return _invoke(arguments)
    except BaseException as error:
        return _reported(error)


def _invoke(arguments: Sequence[str]) -> int:
    with warnings.catch_warnings():
        warnings.showwarning = _tell
        found = group.main(args=list(arguments), prog_name=PROGRAM, standalone_mode=False)
    sys.stdout.flush()
    return found if isinstance(found, int) else 0


def _tell(message: Warning | str, *_where: object) -> None:
    """Show a warning as one line, without the place in our source, which means nothing to users."""
    print(f"{PROGRAM}: warning: {message}", file=sys.stderr, flush=True)


def _reported(error: BaseException) -> int:
    """Print the message of an exception and return its exit status; exceptions that are bugs of ours are raised again."""
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case click.UsageError():
            return _fail(_usage_message(error), 2)
        case click.ClickException():
            return _fail(error.format_message(), 2)
        case KeyboardInterrupt() | click.Abort():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return _fail(f"interrupted{_how_to_go_on(error)}", 130)
        case SparsetuneError():
            return _fail(str(error), _status(error))
        case MemoryError():
            return _fail(f"there is not enough memory{f': {error}' if str(error) else ''}; use smaller inputs, or sparse formats", 3)
        case BrokenPipeError():
            silence(sys.stdout.fileno())
            return 0
        case _:
            raise error


def _leave(status: int) -> NoReturn:
    """End the process without freeing objects: for those of a large search that takes seconds."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _status(error: SparsetuneError) -> int:
    if isinstance(error, (BuildError, NetworkError, ResourceError)):
        return 3
    return 1 if isinstance(error, TuningError) else 2


def _fail(message: str, status: int) -> int:
    print(f"{PROGRAM}: error: {message}", file=sys.stderr, flush=True)
    return status


def _usage_message(error: click.UsageError) -> str:
    message = error.format_message().rstrip(".")
    command = PROGRAM if error.ctx is None else error.ctx.command_path
    return f"{message[:1].lower()}{message[1:]}; see '{command} --help'"


def _how_to_go_on(interruption: BaseException) -> str:
    """Return the notes that a command added to the interruption, which click has wrapped."""
    notes = getattr(interruption.__cause__ or interruption, "__notes__", ())
    return "".join(f"; {note}" for note in notes)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(143)
