"""Whatever is given as an option of a call, it is taken or refused in one clear line, also what cannot be compared, hashed or shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import odd_containers
import odd_objects
import pytest
import scipy.sparse as sp
import sparsetune as st

pytestmark = [pytest.mark.cc, pytest.mark.filterwarnings("ignore")]

TEXT = "y(i) = A(i,j) * x(j)"
A = sp.csr_array(odd_objects.MATRIX)
GIVEN = {"A": A, "x": np.ones(4)}
QUICK = 'build(auto, "-O0")'

SPARED = ("library 2", "float that lies", "__class__ raises", "every attribute raises", "class whose name is long")
"""References to what is gone and others that fail whatever they are asked, their type included; a number that is none; a long name."""

OBJECTS = {name: make for name, make in {**odd_objects.objects(), **odd_containers.containers()}.items() if name not in SPARED}


def evaluate(**options: Any) -> Any:
    return st.evaluate(TEXT, dict(GIVEN), **{"schedule": QUICK, **options})


def explore(**options: Any) -> Any:
    return st.explore(TEXT, **{"formats": {"A": "csr"}, "preset": "nobody's", **options})


def tune(folder: Path, **options: Any) -> Any:
    return st.tune(TEXT, dict(GIVEN), database=folder / "none.db", **{"trials": 0, **options})


def ways(folder: Path) -> dict[str, Callable[[Any], Any]]:
    """By name: an odd object in the place of an option. Where another option is wrong too, nothing long is begun."""
    tensor = st.tensor(A)
    whole = ("schedule", "output_format", "semiring", "dtype", "shape", "target", "convert", "boundary", "output_pattern", "memory_bound")
    return {
        **{f"evaluate {name}": lambda odd, name=name: evaluate(**{name: odd}) for name in whole},
        "evaluate, an extent": lambda odd: st.evaluate("y(i,k) = A(i,j) * x(j)", dict(GIVEN), shape={"k": odd}, schedule=QUICK),
        "evaluate, operands": lambda odd: st.evaluate(TEXT, odd),
        "evaluate, the expression": lambda odd: st.evaluate(odd, dict(GIVEN)),
        "evaluate_all, expressions": lambda odd: st.evaluate_all(odd, dict(GIVEN)),
        "evaluate_all, a format": lambda odd: st.evaluate_all([TEXT], dict(GIVEN), {"y": odd}, QUICK),
        "evaluate_all, a schedule": lambda odd: st.evaluate_all([TEXT], dict(GIVEN), schedule={"y": odd}),
        "einsum": lambda odd: st.einsum(odd, A, np.ones(4), schedule=QUICK),
        "compile formats": lambda odd: st.compile(TEXT, odd),
        "compile, a format": lambda odd: st.compile(TEXT, {"A": odd}),
        "compile extents": lambda odd: st.compile(TEXT, {"A": "csr"}, odd),
        "compile target": lambda odd: st.compile(TEXT, {"A": "csr"}, target=odd),
        "compile arch": lambda odd: st.compile(TEXT, {"A": "csr"}, target="cuda", arch=odd),
        "Format": lambda odd: st.Format(odd),
        "Format order": lambda odd: st.Format("dense, compressed", odd),
        "Schedule": lambda odd: st.Schedule(odd),
        "autotune": lambda odd: st.autotune(odd),
        "explore preset": lambda odd: explore(preset=odd, formats=None, semiring=("no", "semiring")),
        "explore formats": lambda odd: explore(formats=odd, preset=None, semiring=("no", "semiring")),
        "explore ranges": lambda odd: explore(ranges=odd, preset="sparseauto", time_limit=-1),
        "explore, a range": lambda odd: explore(ranges={"i": odd}, preset=None, semiring=("no", "semiring")),
        "explore memory_depth": lambda odd: explore(memory_depth=odd, preset=None, semiring=("no", "semiring")),
        "tune trials": lambda odd: tune(folder, trials=odd, seed=-1),
        "tune also": lambda odd: tune(folder, also=odd, seed=-1),
        "tune sampler": lambda odd: tune(folder, sampler=odd, seed=-1),
        "tune schedules": lambda odd: tune(folder, trials=1, time_budget=1e-9, schedules=odd),
        "tensor format": lambda odd: st.tensor(odd_objects.MATRIX, odd),
        "tensor shape": lambda odd: st.tensor(odd_objects.MATRIX, shape=odd),
        "tensor dtype": lambda odd: st.tensor(odd_objects.MATRIX, dtype=odd),
        "tensor fill_value": lambda odd: st.tensor(odd_objects.MATRIX, fill_value=odd),
        "with_values": tensor.with_values,
        "transpose": tensor.transpose,
        "astype": tensor.astype,
        "convert": tensor.convert,
        "T @": lambda odd: tensor @ odd,
    }


NAMES = sorted(ways(Path()))


@pytest.mark.parametrize("way", NAMES)
def test_an_odd_option_is_taken_or_refused_in_one_line(way: str, tmp_path: Path) -> None:
    use, refused = ways(tmp_path)[way], 0
    for name in sorted(OBJECTS)[NAMES.index(way) % 4 :: 4]:
        try:
            use(OBJECTS[name]())
        except st.SparsetuneError as error:
            refused += 1
            first = str(error).partition("\n")[0]
            assert 10 < len(first) < 600, (name, first)
        except Exception as error:
            raise AssertionError(f"{way} of {name!r}: {type(error).__name__}: {error}") from error
    assert refused


def test_a_tensor_stands_for_no_array_and_says_so_as_both_kinds_of_error() -> None:
    tensor = st.tensor(A)
    for ask in (np.asarray, iter, bool, lambda t: np.ma.masked_equal(odd_objects.MATRIX, 2) + t):
        with pytest.raises(st.DataError):
            ask(tensor)
        with pytest.raises(TypeError):
            ask(tensor)
    with pytest.raises(st.DataError, match="type object"):
        tensor @ np.array([[None] * 4] * 4)
    with pytest.raises(st.DataError, match="are not supported"):
        np.array(["a"] * 4) + tensor
