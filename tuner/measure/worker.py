"""The process in which candidates are compiled, checked and timed: ``python -m sparsetune.tuner.measure``.

One JSON request a line on standard input, one JSON reply a line on what was standard output (which then goes to standard error, so
that nothing else gets between the replies). A candidate that crashes or hangs takes this process with it and nothing else. The
process ends when its parent does.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from typing import IO, Any

from .candidate import Compile
from .lifeline import end_with_parent
from .resources import limit_memory, take_all_cores, take_precedence
from .sampling import Counters
from .service import Service, failure


def serve(requests: IO[str], replies: IO[str], compile_kernel: Compile, counters: Counters) -> None:
    """Answer requests until there are no more."""
    service = Service(compile_kernel, counters)
    actions: dict[str, Callable[..., dict[str, Any]]] = {
        "load": service.load,
        "forget": service.forget,
        "build": service.build,
        "reference": service.make_reference,
        "measure": service.measure,
        "burst": service.burst,
        "move": service.move,
        "yardstick": service.yardstick,
    }
    for line in requests:
        request = json.loads(line)
        reply = _answer(actions[request.pop("action")], request)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def main(compile_kernel: Compile, counters: Counters) -> None:
    """Serve on this process's standard input and output; ``counters`` tell which samples were disturbed."""
    end_with_parent()
    take_all_cores()
    limit_memory()
    take_precedence()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        serve(sys.stdin, replies, compile_kernel, counters)


def _answer(action: Callable[..., dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    try:
        return action(**request)
    except Exception as error:
        return failure(error)
