"""Help that begins with examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

Examples = Sequence[tuple[str, str]]


class _WithExamples:
    """Examples, (command line, what it does), that stand between usage and description."""

    examples: Examples

    def _write_examples(self, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write("Examples:\n")
        for line, meaning in self.examples:
            formatter.write(f"  {line}\n      {meaning}\n")


class ExampleCommand(_WithExamples, click.Command):
    """A command whose help begins with examples."""

    def __init__(self, *arguments: Any, examples: Examples = (), **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_usage(ctx, formatter)
        self._write_examples(formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)


class ExampleGroup(_WithExamples, click.Group):
    """A group of commands whose help begins with examples."""

    def __init__(self, *arguments: Any, examples: Examples = (), **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_usage(ctx, formatter)
        self._write_examples(formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)
