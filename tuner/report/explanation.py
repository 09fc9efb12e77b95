"""The page of ``tune-kernel explain --html``: the frontier, its loop nests with costs, and where derived indices come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from ...compiler.concrete.check import formats_of
from ...compiler.concrete.concretize import concretize
from ...compiler.concrete.relations import Relation
from ...compiler.notation.parser import parse
from ...compiler.schedule.apply import apply_schedule
from .figures import as_json
from .page import write_page

_ROW, _HEIGHT = 90, 40


def write_explanation(
    path: Path, answer: Mapping[str, Any], trees: Sequence[str], formats: Mapping[str, str], given_tree: str = ""
) -> None:
    """Write a page.

    Args:
        path: of the page.
        answer: what ``explain`` prints as JSON.
        trees: the loop nests of its frontier with costs, drawn.
        formats: of the operands.
        given_tree: the loop nest of the schedule of ``--schedule``, drawn.

    Raises:
        DataError: the page cannot be written.
    """
    texts = dict.fromkeys(str(found["schedule"]) for found in answer["frontier"])
    if "schedule" in answer:
        texts = dict.fromkeys([str(answer["schedule"]["text"]), *texts])
    pictures = {text: picture for text in texts if (picture := provenance(answer["expression"], text, formats)) is not None}
    write_page(
        path, "explanation.html.j2", title=f"sparsetune: {answer['expression']}", answer=answer, trees=trees, pictures=pictures,
        given_tree=given_tree,
    )  # fmt: skip


def provenance(expression: str, schedule: str, formats: Mapping[str, str]) -> str | None:
    """Return the graph from the indices of the expression to those that a schedule derives, as JSON; None: it derives none."""
    assignment = parse(expression)
    default = concretize(assignment, formats_of(assignment, formats))
    program = apply_schedule(default.program, schedule, default.formats)
    relations = [one for one in program.relations if isinstance(one, Relation)]
    if not relations:
        return None
    depths: dict[str, int] = {}
    for one in relations:
        for parent in one.parents:
            depths.setdefault(parent, 0)
        for child in one.children:
            depths[child] = 1 + max((depths[parent] for parent in one.parents), default=0)
    rows: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for name, depth in depths.items():
        places[name] = rows.get(depth, 0), -depth
        rows[depth] = rows.get(depth, 0) + 1
    figure = go.Figure()
    for one in relations:
        for parent in one.parents:
            for child in one.children:
                (x0, y0), (x1, y1) = places[parent], places[child]
                figure.add_annotation(x=x1, y=y1, ax=x0, ay=y0, xref="x", yref="y", axref="x", ayref="y", arrowhead=3, standoff=16,
                                      startstandoff=16, arrowcolor="#5f6b76")  # fmt: skip
        middle = [places[name] for name in (*one.parents, *one.children)]
        figure.add_annotation(
            x=sum(x for x, _ in middle) / len(middle), y=sum(y for _, y in middle) / len(middle),
            text=type(one).__name__.removesuffix("Relation").lower(), showarrow=False, bgcolor="#fff", font={"color": "#5f6b76"},
        )  # fmt: skip
    figure.add_trace(go.Scatter(
        x=[x for x, _ in places.values()], y=[y for _, y in places.values()], text=list(places), mode="markers+text", hoverinfo="skip",
        marker={"size": 34, "color": "#dbe9f5", "line": {"color": "#1f6fb2", "width": 1}},
    ))  # fmt: skip
    figure.update_xaxes(visible=False, range=[-0.6, max(rows.values()) - 0.4])
    figure.update_yaxes(visible=False, range=[-max(depths.values()) - 0.5, 0.5])
    return as_json(figure, _ROW * (1 + max(depths.values())) + _HEIGHT)
