"""Options that several commands share, checked as they are read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ...compiler.format import MOST_EXTENT
from ...compiler.units import HARDWARE
from ..settings import MOST_SEED

Function = TypeVar("Function", bound=Callable[..., Any])


class Pair(click.ParamType):
    """``NAME=VALUE``; gives (name, value)."""

    def __init__(self, name: str, value: str, example: str) -> None:
        self.name = f"{name}={value}"
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the two texts, without blanks around them.

        Raises:
            click.BadParameter: one of them or the "=" is missing.
        """
        if isinstance(value, tuple):
            return value
        name, separator, rest = str(value).partition("=")
        if not separator or not name.strip() or not rest.strip():
            self.fail(f"{value!r} is not of the form {self.name.upper()}, such as {self._example}", param, ctx)
        return name.strip(), rest.strip()

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return self.name.upper()


class Extent(Pair):
    """``INDEX=EXTENT``; gives (index, extent)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the index and its extent.

        Raises:
            click.BadParameter: the extent is no whole number from 1 to ``MOST_EXTENT``.
        """
        index, text = super().convert(value, param, ctx)
        if not str(text).isdecimal() or len(text) > len(str(MOST_EXTENT)) or not 1 <= int(text) <= MOST_EXTENT:
            self.fail(f"'{index}': an extent is a whole number from 1 to {MOST_EXTENT}", param, ctx)
        return index, int(text)


class Seconds(click.ParamType):
    """A positive, finite number of seconds, or of another unit of time."""

    def __init__(self, unit: str = "seconds") -> None:
        self.name = unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the time as a float.

        Raises:
            click.BadParameter: it is no positive, finite number.
        """
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if not 0 < found < math.inf:
            self.fail(f"{value!r} is not a positive number of {self.name}", param, ctx)
        return found


class Operators(click.ParamType):
    """``ADD,MULTIPLY``; gives (add, multiply)."""

    name = "add,multiply"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the two names, which are checked when the expression is compiled.

        Raises:
            click.BadParameter: there is no comma.
        """
        if isinstance(value, tuple):
            return value
        add, separator, multiply = str(value).partition(",")
        if not separator:
            self.fail(f"{value!r}: a semiring is two operators with a comma between them, such as min,+", param, ctx)
        return add.strip(), multiply.strip()


def unique(ctx: click.Context, param: click.Parameter, value: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """Return pairs as a mapping. Raises ``click.BadParameter``: a name is given twice."""
    found: dict[str, Any] = {}
    for name, given in value:
        if name in found:
            raise click.BadParameter(f"'{name}' is given twice", ctx, param)
        found[name] = given
    return found


expression = click.argument("expression", metavar="EXPR")

inputs = click.option(
    "-i", "--input", "inputs", type=Pair("name", "file", "A=matrix.mtx"), multiple=True, callback=unique,
    help="An operand: .mtx, .tns (.gz), .npz, .npy, a name of the catalogue, or random:... (see 'tune-kernel data list'). "
    "Operands without a file are random and dense.",
)  # fmt: skip
dims = click.option(
    "--dim", "dims", type=Extent("index", "extent", "r=32"), multiple=True, callback=unique, help="Extent of an index that no file gives."
)
constants = click.option(
    "--dim", "dims", type=Extent("index", "extent", "r=32"), multiple=True, callback=unique,
    help="Extent of an index, which becomes a constant of the code.",
)  # fmt: skip
formats = click.option(
    "--format", "formats", type=Pair("name", "format", "B=csf"), multiple=True, callback=unique,
    help="Format of a tensor: csr, csc, dcsr, dcsc, coo, csf, dense, or level kinds such as 'dense, compressed'.",
)  # fmt: skip
output_format = click.option(
    "--output-format", metavar="FORMAT", help="Format of the result; auto: sparse if all operands are.  [default: dense]"
)


def target_option(about: str, default: str | None = None) -> Callable[[Function], Function]:
    """Return the option that names a target; without a default, ``about`` says what holds where none is named."""
    return click.option("--target", type=click.Choice(tuple(HARDWARE)), default=default, show_default=default is not None, help=about)


target = target_option("What to generate code for.", "cpu")
arch = click.option("--arch", metavar="sm_NN", help="The GPU that --target cuda generates code for, such as sm_90.  [default: this one]")
semiring = click.option(
    "--semiring", type=Operators(), metavar="ADD,MULTIPLY", help="Operators for sums and products, such as min,+.  [default: +,*]"
)
boundary = click.option(
    "--boundary", "boundary", type=Pair("index", "fill|wrap", "i=wrap"), multiple=True, callback=unique,
    help="What a subscript such as i + j reads beyond the end of an operand: its fill value, or (wrap) its other end.  [default: fill]",
)  # fmt: skip
output_pattern = click.option(
    "--output-pattern", metavar="ACCESS",
    help="Compute the result only where an operand stores entries, such as 'I(x,y,:)'; ':' for modes that are projected out.",
)  # fmt: skip
threads = click.option(
    "--threads", type=click.IntRange(1, 1024), help="Exact number of threads.  [default: SPARSETUNE_THREADS, or the cores at hand]"
)
database = click.option(
    "--db", "database", metavar="URL",
    help="Schedule database: a path, sqlite:///path or postgresql://...  [default: SPARSETUNE_DATABASE, or the user's own]",
)  # fmt: skip
memory_bound = click.option(
    "--memory-bound", type=float, metavar="ELEMENTS", help="Drop schedules whose workspaces have more elements.  [default: no bound]"
)
cache_share = click.option(
    "--cache-share", type=float, metavar="SHARE",
    help="Share of the last-level cache that workspaces may take, above 0 and up to 1.  [default: 0.5, or what the operands take if more]",
)  # fmt: skip
trials = click.option("--trials", type=click.IntRange(1), default=100, show_default=True, help="Most schedules to measure.")
time_budget = click.option(
    "--time-budget", type=Seconds(), metavar="SECONDS", help="End the search after so many seconds.  [default: no limit]"
)
seed = click.option(
    "--seed", type=click.IntRange(0, MOST_SEED), default=0, show_default=True, help="Seed of the search and of random inputs."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")

suite = click.argument("name", metavar="NAME_OR_FILE")
suite_target = target_option("What kernels are generated for, and measured on.  [default: the suite's]")
only_target = target_option("Show only what was tuned for this target.  [default: all]")
suite_threads = click.option(
    "--threads", type=click.IntRange(1, 1024), multiple=True, help="A number of threads; may be repeated.  [default: the suite's]"
)
suite_trials = click.option("--trials", type=click.IntRange(1), help="Most schedules to measure for each item.  [default: the suite's]")
suite_budget = click.option(
    "--time-budget", type=Seconds(), metavar="SECONDS", help="End each item's search after so many seconds.  [default: the suite's]"
)
resume = click.option("--resume", is_flag=True, help="Go on where the last run stopped; without it everything is measured anew.")


def together(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Return one decorator that adds several options, in the order in which the help shows them."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
