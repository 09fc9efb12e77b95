"""What a schedule becomes on a device: its loop nest with units, and the kernels that run one after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..compiler.format import Format
from ..compiler.ir.nodes import Allocate, Dealt, For, Kernel
from ..compiler.ir.printer import show_expression
from ..compiler.ir.rewrite import nodes_of
from ..compiler.output_pattern import restriction
from ..compiler.pipeline import compile_kernel


def on_device(
    expression: str, formats: Mapping[str, Format | str | None], schedule: str, target: str, arch: str | None,
    semiring: tuple[str, str] | None = None, output_pattern: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return what ``tune-kernel explain --target`` says of a device.

    Args:
        expression: index notation.
        formats: by tensor; what is not named is dense.
        schedule: directives; empty text is the default mapping.
        target: that of the device.
        arch: its architecture, such as "sm_90"; None: that of this machine's.
        semiring, output_pattern: as for ``compile``.

    Returns:
        ``target``, ``arch``, ``schedule``, ``loop_nest``, and ``kernels``, each with ``loops`` (what its units take), ``blocks`` (the most
        of them), ``threads`` of a block, ``lanes`` of a warp, most ``registers`` of a thread (None: the compiler decides),
        ``shared_bytes`` of a block.

    Raises:
        SparsetuneError: the schedule is not legal, has no form on the device, or there is no such device.
    """
    if output_pattern is not None:
        asked = restriction(expression, output_pattern, semiring)
        expression, formats = asked.expression, asked.formats(formats)
    made = compile_kernel(expression, formats, schedule=schedule, target=target, arch=arch, semiring=semiring)
    typed = made.default_kernel
    function = typed.target.passes.run(typed.spec.function, typed.target.vectors(typed.spec))
    return {
        "target": target,
        "arch": arch,
        "schedule": str(made.schedule),
        "loop_nest": made.loop_nest,
        "kernels": [_described(kernel) for kernel in nodes_of(function.body, Kernel)],
    }


def _described(kernel: Kernel) -> dict[str, Any]:
    dealt = [(loop.tag, loop.origin or loop.variable.name) for loop in nodes_of(kernel.body, For) if isinstance(loop.tag, Dealt)]
    return {
        "loops": list(dict.fromkeys(f"{tag.unit}s: {origin}" for tag, origin in dealt)),
        "blocks": show_expression(kernel.blocks),
        "threads": kernel.threads,
        "lanes": kernel.lanes,
        "registers": kernel.registers or None,
        "shared_bytes": sum(map(kernel.shared_bytes_of, nodes_of(kernel.body, Allocate))),
    }
