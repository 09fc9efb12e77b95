"""The preconditions of the directives, numbered. ``compiler/schedule/README.md`` explains each with an example.

They are those of Senanayake et al., section 4, and of Kjolstad et al. for precompute and reorder, with more for workspaces,
position spaces and the assembly of sparse results.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NoReturn


class Rule(IntEnum):
    """What must hold for a directive to be carried out."""

    NAMES_EXIST = 1
    NAMES_UNIQUE = 2
    NAMES_NEW = 3
    NUMBERS_POSITIVE = 4
    NOTHING_AFTER_PARALLELIZE = 5
    TAGGED_LOOPS_STAY = 6
    REORDER_DIRECTLY_NESTED = 7
    REORDER_DISTRIBUTES = 8
    STORAGE_ORDER = 9
    COLLAPSE_DIRECTLY_NESTED = 10
    COLLAPSE_OUTER_COORDINATE = 11
    POS_OF_COORDINATE = 12
    POS_ACCESS_INDEXED = 13
    POS_LEVELS_CONSECUTIVE = 14
    POS_RANGE_KNOWN = 15
    POS_VISITS_ALL = 16
    COORD_OF_POSITION = 17
    BOUND_HOLDS = 18
    FACTORS_COMPLETE = 19
    PRECOMPUTE_FOUND = 20
    PRECOMPUTE_INDICES = 21
    PRECOMPUTE_DISTRIBUTES = 22
    LOOPS_WHOLE = 23
    LOOPFUSE_PRODUCT = 24
    PROTOCOL_FITS = 25
    WORKSPACE_FITS = 26
    CONVERT_FITS = 27
    ASSEMBLE_FITS = 28
    PREFETCH_READS = 29
    CALL_DENSE = 30
    UNIT_NESTING = 31
    VECTOR_INNERMOST = 32
    NO_PARALLEL_COITERATION = 33
    PARALLEL_INSERT = 34
    NO_RACES = 35
    RACE_OVER_VARIABLE = 36
    PREFETCH_CHOOSES = 37
    ADDENDS_FIRST = 38
    ADDENDS_SAME = 39
    JOIN_SIBLINGS = 40
    JOIN_OUTERMOST = 41
    JOIN_ORDER = 42
    MERGE_PATH_OF_FIBRES = 43


class Refusal(Exception):
    """A precondition does not hold."""

    def __init__(self, rule: Rule, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason


def refuse(rule: Rule, reason: str) -> NoReturn:
    """Stop applying a directive because a rule is broken."""
    raise Refusal(rule, reason)
