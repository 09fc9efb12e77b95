"""What a suite's file may say: every table and key, for ``tune-kernel suite --describe`` and the documentation."""

from __future__ import annotations

from ..compiler.frozen import frozen
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
        Key("trials", "whole number", "schedules to measure of each item at most; 50 unless said"),
        Key("time_budget", "seconds", "after which each item's search ends; no limit unless said"),
        Key("item_seconds", "seconds", "after which an item is given up, loading its input included; never unless said"),
        Key("threads", "whole number or list", "each item is tuned with every one of these; all cores unless said"),
        Key("search", "text", "how to measure, a table of configs/search.toml: default, quick, thorough"),
        Key("probes", "list of texts", "what nights measure beside: bound call, call, pack csr, pack csf"),
    ),
    "[[kernel]]": (
        Key("name", "text", "for tables", needed=True),
        Key("expression", "text", "index notation, such as y(i) = A(i,j) * x(j)", needed=True),
        Key("operand", "text", "the operand that takes the inputs; all others are random and dense", needed=True),
        Key("order", "whole number", "of that operand; inputs of another order are left out", needed=True),
        Key("format", "text", "the operand is converted to it, such as csr or csf; as it is loaded unless said"),
        Key("output_format", "text", "of the result; dense unless said"),
        Key("semiring", "[add, multiply]", "what sums and products are, such as max and +; those of numbers unless said"),
        Key("dims", "table", "extents of indices that inputs do not give; of lists every combination is an item"),
        Key("inputs", "list of texts", "names of the inputs to run on; all of the right order unless said"),
    ),
    "[[input]]": (
        Key("name", "text", "for tables", needed=True),
        Key("source", "text", "a path, a name of the catalogue (HB/494_bus, frostt:nell-2), or random:...", needed=True),
        Key("order", "whole number", "of the tensor", needed=True),
    ),
    "[[files]]": (
        Key("pattern", "text", "files such as data/*.mtx.gz, seen from where the command is started; ** goes into folders", needed=True),
        Key("order", "whole number", "of the tensors in them", needed=True),
    ),
    "[[select]]": (
        Key("source", "text", f"of one collection: {', '.join(SOURCES)}"),
        Key("name", "text", "a part of the name"),
        Key("group", "text", "of SuiteSparse, such as SNAP"),
        Key("kind", "text", "a part of what it comes from, such as structural"),
        Key("rows", "[from, to]", "extent of the first mode"),
        Key("columns", "[from, to]", "extent of the second mode"),
        Key("nnz", "[from, to]", "stored entries"),
        Key("field", "text", f"of the values: {', '.join(FIELDS)}"),
        Key("shape", "text", f"of matrices: {', '.join(SHAPES)}"),
        Key("symmetric", "true or false", "whether the pattern is"),
        Key("definite", "true or false", "whether it is known to be symmetric and positive definite"),
        Key("order", "whole number", "number of modes"),
        Key("limit", "whole number", "take the smallest so many; all unless said"),
    ),
}
"""By table. ``[[select]]`` adds all inputs of the bundled tables that are like it says."""
