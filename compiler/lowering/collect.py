"""Sparse results whose components are not computed in the order of their levels: they are collected in a workspace, then appended.

This allows any order of loops (tiles that cut rows, reductions outside, strides). The workspace has the modes of the
result through which the outermost loops do not run in order; its entries are appended inside these loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..concrete.assembled import loops_to, ordered_loops
from ..concrete.nodes import Assign, Forall, Program, Stmt, Where, Workspace, nest, transform
from ..concrete.provenance import Provenance
from ..format import Format
from ..fresh import fresh
from ..notation.nodes import Access, index_subscript


def collected(program: Program, result: Access, form: Format, stored: Callable[[Access], Format | None]) -> Program:
    """Return a program that appends to a sparse result in order; the program itself if it does so already.

    Args:
        program: scheduled concrete notation.
        result: the left side.
        form: the requested format.
        stored: returns the format of an operand; None if it is not known.
    """
    graph = Provenance(program.relations)  # type: ignore[arg-type]
    asked = dict(program.assembly).get(result.tensor) == "workspace"
    outermost = ordered_loops(program, graph, result, form, stored)
    if outermost is None and not asked:
        return program
    workspace = _workspace(program, graph, result, form, outermost or 0)
    statement = _around(program.statement, outermost or 0, result, workspace)
    return replace(program, statement=statement, workspaces=(*program.workspaces, workspace))


def _workspace(program: Program, graph: Provenance, result: Access, form: Format, outermost: int) -> Workspace:
    """Return the workspace over the modes of the result that the ``outermost`` loops do not cover, in the order of its levels."""
    known = graph.known_after(loops_to(program.statement, result.tensor)[:outermost])
    rest = tuple(result.subscripts[mode].index for mode in form.order)
    taken = {space.name for space in program.workspaces}
    return Workspace(fresh(f"{result.tensor}_entries", taken), tuple(name for name in rest if name not in known))


def _around(statement: Stmt, loops: int, result: Access, workspace: Workspace) -> Stmt:
    """Put the workspace between the computation of components and their appending, inside the first ``loops`` loops."""
    if loops and isinstance(statement, Forall):
        return replace(statement, body=_around(statement.body, loops - 1, result, workspace))
    if loops and isinstance(statement, Where):
        return replace(statement, consumer=_around(statement.consumer, loops, result, workspace))
    held = Access(workspace.name, tuple(map(index_subscript, workspace.indices)))

    def written(node: Stmt) -> Stmt | None:
        mine = isinstance(node, Assign) and node.target.tensor == result.tensor
        return replace(node, target=held) if mine else None

    return Where(nest(workspace.indices, Assign(result, "=", held)), transform(statement, written))
