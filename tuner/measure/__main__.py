"""``python -m sparsetune.tuner.measure``: the measuring process. Its life hangs on its parent's from the first moment on, before the
imports that take longest."""

from __future__ import annotations

from .lifeline import end_with_parent


def main() -> None:
    """Serve requests for measurements until the process that began this one ends."""
    end_with_parent()
    from ...compiler.native import team
    from ..kernels import compile_task
    from .company import Witness
    from .worker import main as serve

    serve(compile_task, Witness(team))


if __name__ == "__main__":
    main()
