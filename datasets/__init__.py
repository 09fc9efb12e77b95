"""Matrices and tensors to work on: files, the SuiteSparse and FROSTT catalogues, synthetic inputs."""

from .checksums import check_file
from .inputs import announced_shape, describe, fetch, list_catalogue, load
from .query import Query, search
from .spy import pattern_facts, spy_text, write_spy
from .write import write

__all__ = [
    "Query", "announced_shape", "check_file", "describe", "fetch", "list_catalogue", "load", "pattern_facts", "search", "spy_text", "write",
    "write_spy",
]  # fmt: skip
