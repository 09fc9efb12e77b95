"""The tables and keys of a suite's file, for ``tune-kernel suite --describe`` and the documentation."""

from __future__ import annotations

from ..compiler.frozen import frozen
from ..compiler.units import HARDWARE, PROCESSOR
from ..datasets.query import FIELDS, SHAPES, SOURCES


@frozen
class Key:
    """One key of a table: what its value is, what it means; needed ones have no default."""

    name: str
    value: str
    about: str
    needed: bool = False


KEYS: dict[str, tuple[Key, ...]] = {
    "[suite]": (
        Key("description", "text", "what it is for; shown by --describe"),
        Key("trials", "whole number", "most schedules to measure for each item; default: 50"),
        Key("time_budget", "seconds", "seconds after which each item's search ends; default: no limit"),
        Key("item_seconds", "seconds", "seconds after which an item is given up, with the time to load its input; default: never"),
        Key("threads", "whole number or list", "each item is tuned with each of these; default: all cores"),
        Key("target", "text", f"what kernels are generated for, and measured on: {', '.join(HARDWARE)}; default: {PROCESSOR.target}"),
        Key("search", "text", "how to measure, a table of configs/search.toml: default, quick, thorough"),
        Key("probes", "list of texts", "what nights also measure: bound call, call, pack csr, pack csf"),
    ),
    "[[kernel]]": (
        Key("name", "text", "for tables", needed=True),
        Key("expression", "text", "index notation, such as y(i) = A(i,j) * x(j)", needed=True),
        Key("operand", "text", "the operand that takes the inputs; all others are random and dense", needed=True),
        Key("order", "whole number", "number of modes of that operand; inputs of another order are left out", needed=True),
        Key("format", "text", "format to convert the operand to, such as csr or csf; default: as it is loaded"),
        Key("output_format", "text", "format of the result; default: dense"),
        Key("semiring", "[add, multiply]", "operators that sums and products mean, such as max and +; default: + and *"),
        Key("dims", "table", "extents of indices that inputs do not give; of lists, every combination is an item"),
        Key("inputs", "list of texts", "names of the inputs to run on; default: all of the right order"),
    ),
    "[[input]]": (
        Key("name", "text", "for tables", needed=True),
        Key("source", "text", "a path, a name of the catalogue (HB/494_bus, frostt:nell-2), or random:...", needed=True),
        Key("order", "whole number", "of the tensor", needed=True),
    ),
    "[[files]]": (
        Key("pattern", "text", "files such as data/*.mtx.gz, relative to the current folder; ** stands for any folders", needed=True),
        Key("order", "whole number", "number of modes of the tensors in them", needed=True),
    ),
    "[[select]]": (
        Key("source", "text", f"the collection: {', '.join(SOURCES)}"),
        Key("name", "text", "a part of the name"),
        Key("group", "text", "a group of SuiteSparse, such as SNAP"),
        Key("kind", "text", "a part of the problem's kind, such as structural"),
        Key("rows", "[from, to]", "extent of the first mode"),
        Key("columns", "[from, to]", "extent of the second mode"),
        Key("nnz", "[from, to]", "stored entries"),
        Key("field", "text", f"kind of the values: {', '.join(FIELDS)}"),
        Key("shape", "text", f"of matrices: {', '.join(SHAPES)}"),
        Key("symmetric", "true or false", "whether the pattern is"),
        Key("definite", "true or false", "whether it is known to be symmetric and positive definite"),
        Key("order", "whole number", "number of modes"),
        Key("limit", "whole number", "how many to take, the smallest first; default: all"),
    ),
}
"""The keys by table. ``[[select]]`` adds all inputs of the bundled tables that meet its conditions."""
