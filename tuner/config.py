"""``configs/*.toml`` as checked values: suites and search settings. An unknown key names the nearest known one."""

from __future__ import annotations

from collections.abc import Mapping
from glob import glob
from pathlib import Path

from ..compiler.concrete.given import checked_semiring
from ..compiler.errors import DataError, ExpressionError
from ..compiler.frozen import frozen
from ..compiler.units import HARDWARE, PROCESSOR, is_processor
from ..datasets.files import ENDINGS, has_known_ending, stem
from ..datasets.query import FIELDS, SHAPES, SOURCES, Query, search
from .measure.policy import Policy
from .search.samplers import USUAL_SAMPLER, check_sampler
from .settings import Settings
from .suite_check import check_suite
from .toml_table import FOLDER, Table, nearest, read_toml

CHOICES = {"source": SOURCES, "field": FIELDS, "shape": SHAPES}
"""The words that conditions of a ``[[select]]`` table may use, by key."""


@frozen
class SuiteKernel:
    """One kernel of a suite.

    Attributes:
        name: for people.
        expression: index notation.
        operand: the operand that takes the suite's inputs; the others are random and dense.
        order: number of its modes.
        format: it is converted to this one; None: as it is loaded.
        output_format: of the result; None: dense.
        dims: extents of indices that the inputs do not give; every combination is one item.
        inputs: names of the inputs to run on; empty: all of the right order.
        semiring: (add, multiply); None: those of numbers.
    """

    name: str
    expression: str
    operand: str
    order: int
    format: str | None
    output_format: str | None
    dims: Mapping[str, tuple[int, ...]]
    inputs: tuple[str, ...]
    semiring: tuple[str, str] | None = None


@frozen
class SuiteInput:
    """One input of a suite: a path, a catalogue name or ``random:...``."""

    name: str
    source: str
    order: int


@frozen
class Suite:
    """Kernels, inputs and how much work is spent on each pair.

    Attributes:
        name, description: for people.
        trials, time_budget: of each item's search.
        item_seconds: after which an item is given up, loading its input included; None: never.
        threads: each item is tuned with every one of these; empty: with the cores that this process may use. A target that is a device
            has none.
        settings: of the search.
        probes: what nights measure beside (``nightly.probes``).
        target: what kernels are generated for, and measured on.
    """

    name: str
    description: str
    trials: int
    time_budget: float | None
    threads: tuple[int, ...]
    settings: Settings
    kernels: tuple[SuiteKernel, ...]
    inputs: tuple[SuiteInput, ...]
    probes: tuple[str, ...] = ()
    item_seconds: float | None = None
    target: str = PROCESSOR.target

    @property
    def is_on_device(self) -> bool:
        """Whether its kernels run on a device with memory of its own."""
        return HARDWARE[self.target].on_device

    @property
    def key(self) -> str:
        """The name of its runs and nights, which are apart for each target."""
        return self.name if is_processor(self.target) else f"{self.name} on {self.target}"


def suite_names() -> list[str]:
    """Return the names of the suites that ship."""
    return sorted(path.stem for path in FOLDER.glob("*.toml") if "suite" in read_toml(path))


def load_suite(name: str) -> Suite:
    """Read a suite by its name in ``configs/``, or from a file.

    Raises:
        DataError: there is none, or it is not well-formed; the message names file and key.
    """
    path = Path(name)
    if not (path.suffix == ".toml" or path.exists()):
        path = FOLDER / f"{name}.toml"
        if not path.exists() or "suite" not in read_toml(path):
            near = nearest(name, suite_names())
            raise DataError(f"unknown suite '{name}'{near}; suites are {', '.join(suite_names())}, or give a .toml file")
    top = Table(read_toml(path), str(path))
    head = top.table("suite")
    inputs = [_input(table) for table in top.tables("input")]
    inputs += [entry for table in top.tables("files") for entry in _files(table)]
    inputs += [entry for table in top.tables("select") for entry in _selected(table)]
    suite = Suite(
        name=path.stem,
        description=head.text("description", ""),
        trials=head.count("trials", 50),
        time_budget=head.number("time_budget", None),
        threads=head.counts("threads", ()),
        settings=load_settings(head.text("search", "default"), f"{head.where}: "),
        kernels=tuple(_kernel(table) for table in top.tables("kernel")),
        inputs=tuple({entry.name: entry for entry in inputs}.values()),
        probes=head.texts("probes", ()),
        item_seconds=head.number("item_seconds", None),
        target=head.text("target", PROCESSOR.target),
    )
    head.done()
    top.done()
    check_suite(suite, str(path))
    return suite


def load_settings(name: str, where: str = "") -> Settings:
    """Return the search settings of a profile of ``configs/search.toml``.

    Args:
        name: of the profile.
        where: begins the message if there is none.

    Raises:
        DataError: there is no such profile, or it is not well-formed.
    """
    path = FOLDER / "search.toml"
    profiles = read_toml(path)
    if name not in profiles:
        raise DataError(f"{where}unknown search settings '{name}'{nearest(name, profiles)}; {path.name} has {', '.join(profiles)}")
    table = Table(profiles[name], f"{path}, [{name}]")
    policy = Policy(**table.numbers(Policy), cache=table.text("cache", Policy.cache))
    sampler = check_sampler(table.text("sampler", USUAL_SAMPLER))
    table.done()
    return Settings(policy=policy, sampler=sampler)


def _kernel(table: Table) -> SuiteKernel:
    dims = table.table("dims", {})
    found = SuiteKernel(
        name=table.text("name"),
        expression=table.text("expression"),
        operand=table.text("operand"),
        order=table.count("order"),
        format=table.text("format", None),
        output_format=table.text("output_format", None),
        dims={index: dims.counts(index) for index in list(dims.left)},
        inputs=table.texts("inputs", ()),
        semiring=_semiring(table),
    )
    dims.done()
    table.done()
    return found


def _semiring(table: Table) -> tuple[str, str] | None:
    found = table.texts("semiring", ())
    try:
        return checked_semiring(found) if found else None
    except ExpressionError as error:
        raise DataError(f"{table.where}: semiring: {error}") from None


def _input(table: Table) -> SuiteInput:
    found = SuiteInput(name=table.text("name"), source=table.text("source"), order=table.count("order"))
    table.done()
    return found


def _files(table: Table) -> list[SuiteInput]:
    """Return the inputs of a ``[[files]]`` table: the files of a pattern by path; files of equal names are named by their paths."""
    pattern, order = table.text("pattern"), table.count("order")
    table.done()
    found = sorted(name for name in glob(pattern, recursive=True) if has_known_ending(name))
    if not found:
        raise DataError(f"{table.where}: no file that can be read is like '{pattern}' (in {Path.cwd()}); endings are {', '.join(ENDINGS)}")
    stems = [stem(Path(name)) for name in found]
    return [SuiteInput(short if stems.count(short) == 1 else name, name, order) for short, name in zip(stems, found, strict=True)]


def _selected(table: Table) -> list[SuiteInput]:
    """Return the inputs of a ``[[select]]`` table: what meets its conditions in the bundled collections, the smallest first."""
    words = {name: table.one_of(name, choices, "") for name, choices in CHOICES.items()}
    texts = {name: table.text(name, "") for name in ("name", "group", "kind")}
    ranges = {name: table.range(name, None) for name in ("rows", "columns", "nnz")}
    truths = {name: table.truth(name, None) for name in ("symmetric", "definite")}
    query = Query(**texts, **words, **ranges, **truths, order=table.count("order", None))
    limit = table.count("limit", None)
    table.done()
    found = search(query)
    if not found:
        raise DataError(f"{table.where}: nothing of the collections is like that; 'tune-kernel data search' tries conditions")
    if any(item.shape is None for item in found[:limit]):
        found = [item for item in found if item.shape is not None]
    return [SuiteInput(item.name, item.name, len(item.shape or ())) for item in found[:limit]]
