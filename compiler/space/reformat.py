"""Concordant programs: formats of reads and kinds of workspaces that serve protocols (Ahrens et al., section 6.8).

The cost model assumes that every tensor is stored in the order of its loops, in levels that can do what the protocols ask. Other operands
are converted before the kernel runs; a sparse result that is written out of order is gathered in a workspace over just the modes that
need it, by lowering (``lowering.collect``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..concrete.nodes import Stmt, Workspace, is_looked_up
from ..format import Format
from ..levels import COMPRESSED, DENSE, HASHED, LevelKind
from ..notation.nodes import Access


def concordant_format(access: Access, form: Format, loops: Sequence[str]) -> Format:
    """Return the given format if it suits, else one whose levels follow the loops and can do what the protocols ask.

    Stepping needs a compressed level; a dense one suffices in the outermost loop, where it costs no more than its dimension. Locating
    needs a dense level, or a hashed one below the first level, where a dense one would store every coordinate. What is read at
    compound subscripts is stored as it is, or in another order of its levels.
    """
    if form.in_memory is not form:
        return form.following([_position(access, mode, loops) for mode in range(len(form))])
    order = tuple(sorted(range(len(form)), key=lambda mode: (_position(access, mode, loops), mode)))
    protocols = [access.protocols[mode] if access.protocols else "step" for mode in order]
    outermost = [_position(access, mode, loops) == 0 for mode in order]
    wanted = list(zip(protocols, outermost, strict=True))
    if order == form.order and all(_able(kind, *need) for kind, need in zip(form.levels, wanted, strict=True)):
        return form
    return Format(tuple(_level(level, protocol) for level, protocol in enumerate(protocols)), order)


def ordered_format(access: Access, form: Format, loops: Sequence[str]) -> Format:
    """Return the given format if the loops find its levels from the outside inwards, else its levels over the modes in their order."""
    if form.in_memory is not form:
        return form.following([_position(access, mode, loops) for mode in range(len(form))])
    places = [_position(access, mode, loops) for mode in form.order]
    if all(kind.full or max(places[:level], default=-1) < places[level] for level, kind in enumerate(form.levels)):
        return form
    return Format(form.levels, tuple(sorted(range(len(form)), key=lambda mode: (_position(access, mode, loops), mode))))


def _able(kind: LevelKind, protocol: str, outermost: bool) -> bool:
    if protocol == "locate":
        return kind.located
    return kind.steps_in_order or (kind.full and outermost)


def _level(level: int, protocol: str) -> LevelKind:
    if protocol == "step":
        return COMPRESSED
    return HASHED if level else DENSE


def _position(access: Access, mode: int, loops: Sequence[str]) -> int:
    return max((loops.index(name) for name in access.subscripts[mode].indices), default=-1)


def kind_for_protocols(workspace: Workspace, statement: Stmt, sparse: bool = False) -> str:
    """Return the storage that serves the protocols of a workspace.

    One mode is an array, with a list of coordinates if it is stepped through, or if the result is ``sparse`` and stores
    nothing where the workspace has none; more modes are hashed, since an array of all coordinates could be far larger than
    what is stored.
    """
    if not workspace.indices:
        return "scalar"
    if len(workspace.indices) > 1:
        return "hashed"
    return "dense" if is_looked_up(workspace, statement) and not sparse else "list"
