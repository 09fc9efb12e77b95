"""Lookup: what is asked again costs little, keeps no operands alive, and sees new records."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from effort import calls
from lookup_records import EXPRESSION, PARALLEL, add, decided, look, operands, problem
from sparsetune.tuner import lookup as module
from sparsetune.tuner.asking import lookup

pytestmark = pytest.mark.usefixtures("no_model")


def test_new_records_are_seen(database: Path) -> None:
    fixed = operands()
    for _ in range(3):
        assert lookup(EXPRESSION, fixed, threads=2, database=database).origin == "default"
    add(database, decided(problem(), PARALLEL))
    for _ in range(3):
        assert lookup(EXPRESSION, fixed, threads=2, database=database).origin == "exact"


def test_warm_lookup_does_little(database: Path) -> None:
    add(database, decided(problem(), PARALLEL))
    fixed = operands()
    lookup(EXPRESSION, fixed, threads=2, database=database)
    assert min(calls(lambda: lookup(EXPRESSION, fixed, threads=2, database=database)) for _ in range(3)) < 200  # some forty


def test_lookup_does_not_keep_operands_alive(database: Path) -> None:
    import gc
    import weakref

    fixed = operands()
    lookup(EXPRESSION, fixed, threads=2, database=database)
    alive = weakref.ref(fixed["A"])
    del fixed
    gc.collect()
    assert alive() is None


def test_model_is_asked_once_for_inputs_of_about_the_same_size(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(module, "static_choice", lambda problem, deadline: asked.append(1))
    for seed in range(3):
        assert look(database, seed=seed).origin == "default"
    assert len(asked) == 1
    look(database, rows=1000)
    assert len(asked) == 2


def test_arrays_of_other_libraries_are_remembered_while_they_keep_their_shape(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = operands()["A"].to_scipy()
    given = {"A": matrix, "x": np.ones(80)}
    lookup(EXPRESSION, given, threads=2, database=database)
    monkeypatch.setattr(module, "make_problem", None)
    assert lookup(EXPRESSION, given, threads=2, database=database).origin == "default"
    matrix.resize((50, 80))
    with pytest.raises(TypeError):
        lookup(EXPRESSION, given, threads=2, database=database)


def test_other_values_on_a_pattern_are_no_other_operand(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as results of functions, which are made anew by every call of ``evaluate_all``."""
    given = operands()
    lookup(EXPRESSION, given, threads=2, database=database)
    monkeypatch.setattr(module, "make_problem", None)
    again = {**given, "A": given["A"].with_values(2 * given["A"].values)}
    assert lookup(EXPRESSION, again, threads=2, database=database).origin == "default"
    for other in (operands(seed=5)["A"], given["A"].astype("float32")):
        with pytest.raises(TypeError):
            lookup(EXPRESSION, {**given, "A": other}, threads=2, database=database)


def test_run_time_path_is_light() -> None:
    heavy = ("optuna", "pandas", "sqlalchemy", "rich", "click", "psutil", "scipy")
    program = (
        "import sys, numpy as np, sparsetune as st\n"
        "A = st.tensor((np.array([[0, 1], [1, 0]]), np.ones(2)), 'csr', (2, 2))\n"
        "st.lookup('y(i) = A(i,j) * x(j)', {'A': A, 'x': np.ones(2)}, database='/nowhere/s.sqlite', threads=1)\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
