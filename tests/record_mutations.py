"""Random values and mutations of good records, from a seed: invalid, nearly valid, or still good."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterator
from typing import Any

from build_requests import COMPILERS, FLAGS
from sparsetune.tuner.records import Status, to_json
from tuner_samples import decision, measurement

DEEP: list[Any] = []
for _ in range(50):
    DEEP = [DEEP]

NUMBERS = (0, 1, -1, 2, 7, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.0, -0.0, 1e-320, 1e-12, 1e-9, 0.5, 1e9, 1e308, -1e-3, math.inf,
           -math.inf, math.nan, True, False)  # fmt: skip
TEXTS = (
    "", "abc", "0", "1.5", "nan", "\0", "a\0b", "\ud800", "\n", "\x1b[2J", "é漢", "x" * 100_000, "{}", "[1]", "ok", "good", "final", "cuda",
    "tpu", "frob(", "reorder(i1, i0)", "reorder(i0, i9)", "unroll(i1, 4)", "unroll(i1, 0)", "split(i0, a, b, 9223372036854775808)",
    "parallelize(i0, cpu_thread, no_races)", "parallelize(i1, cpu_thread, no_races)", 'convert(T1, "csc")', "unroll(i1, 2);" * 2000,
    "precompute(" + "(" * 5000, "T0(i0) = T1(i0,i1) * T2(i1)", "T0(i0) = T1(i1,i0) * T2(i1)", "T0 = T1", "T0 = " + "(" * 5000,
    "T0(i0) = T1(i0,i1) * T2(i1) + T3(i0)", "dense | csr | dense", "dense | csc | dense", "dense | dense", "float32", "float16", "object",
    "float64 | float32 | float64", "2026-01-01", "2026-01-01T00:00:00+00:00", "9999-12-31T23:59:59.999+00:00", "yesterday",
    *(f'build("{name[:50]}", "-O2")' for name in COMPILERS), *(f'build(gcc, "{flags[:50]}")' for flags in FLAGS),
)  # fmt: skip
OTHERS = (None, [], {}, [[]], [1, 2], [["i0", 100]], [["i0", 100], ["i0", 100]], [["i0"]], {"a": {}}, {"a": DEEP}, DEEP, {"a": math.nan},
          {"\0": 1}, {"a": [1, "b", None, 2.5]})  # fmt: skip
VALUES = (*NUMBERS, *TEXTS, *OTHERS)

GOOD = (
    measurement(),
    measurement(status=Status.CRASH, seconds=None, samples=(), message="signal 11", load=None, build_seconds=None),
    measurement(role="final", schedule="unroll(i1, 4); prefetch(i1, T1, 128)"),
    decision(),
    decision(schedule="", seconds=0.004, speedup_low=1.0, speedup_high=1.0),
    decision(schedule='parallelize(i0, cpu_thread, no_races); build(auto, "-O2 -march=native")'),
)


def lines(seed: int, count: int) -> Iterator[Any]:
    """Yield candidates for records, as JSON gives them: nine of ten are good records changed in one to three places."""
    rng = random.Random(seed)
    good = [json.loads(json.dumps(to_json(record))) for record in GOOD]
    for _ in range(count):
        if rng.random() < 0.1:
            yield anything(rng, 3)
            continue
        line = copy.deepcopy(rng.choice(good))
        for _ in range(rng.randint(1, 3)):
            change(rng, line)
        yield line


def anything(rng: random.Random, depth: int) -> Any:
    """Return a random value of JSON, often with the keys of records."""
    if depth == 0 or rng.random() < 0.4:
        return rng.choice(VALUES)
    if rng.random() < 0.3:
        return [anything(rng, depth - 1) for _ in range(rng.randint(0, 4))]
    names = ["schema", "record", *rng.sample(sorted(to_json(GOOD[0]) | to_json(GOOD[3])), rng.randint(0, 12))]
    found = {name: anything(rng, depth - 1) for name in names}
    return found | {"schema": 1, "record": rng.choice(("measurement", "decision"))} if rng.random() < 0.7 else found


def change(rng: random.Random, line: dict[str, Any]) -> None:
    """Change a record in one place: another value, the value of another place, a field less, a field more."""
    places = list(_places(line))
    holder, key = rng.choice(places)
    match rng.randrange(10):
        case 0:
            del holder[key]
        case 1:
            line[rng.choice(("extra", "seconds", "times", "", "\0"))] = rng.choice(VALUES)
        case 2 | 3:
            other, name = rng.choice(places)
            holder[key] = copy.deepcopy(other[name])
        case 4 if isinstance(holder[key], (int, float)):
            holder[key] = rng.choice((-1, 0, 0.999, 1.001, 1e6, 1e-6)) * holder[key]
        case 5 if isinstance(holder[key], str) and holder[key]:
            place = rng.randrange(len(holder[key]))
            holder[key] = holder[key][:place] + rng.choice(("", "x", "\0", "(", '"', " ")) + holder[key][place + 1 :]
        case _:
            holder[key] = rng.choice(VALUES)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a value of JSON, as its container and key."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)) and value[key] is not DEEP:
            yield from _places(value[key])
