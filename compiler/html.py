"""What notebooks show of tensors, kernels and results: small pieces of HTML without styles of their own beyond what they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def escape(text: str) -> str:
    """Return a text in which nothing is markup."""
    from html import escape as escaped  # with a table of all entities, which kernels do not need

    return escaped(text)


def facts(title: str, rows: Mapping[str, object]) -> str:
    """Return a heading and a table of names and values."""
    lines = (f"<th style='text-align:left'>{escape(name)}</th><td>{escape(str(value))}</td>" for name, value in rows.items())
    return f"<div><code>{escape(title)}</code></div><table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a head."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    return f"<table><tr>{names}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def listing(text: str) -> str:
    """Return a text with its line breaks."""
    return f"<pre>{escape(text)}</pre>"
