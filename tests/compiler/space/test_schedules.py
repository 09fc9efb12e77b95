"""The space as texts of the scheduling language: counted, listed, sampled, recognised; every text makes a kernel that is right."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from differential.batch import build_together
from space_samples import KERNELS, SUMS, random_operands, reference
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.concrete.concretize import started
from sparsetune.compiler.notation.nodes import accesses
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.pipeline import compile_kernel
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.schedules import Schedules
from sparsetune.compiler.space.space import PIGEON, Rules, ScheduleSpace
from sparsetune.compiler.storage.construct import tensor

EXPRESSIONS = (
    "y(i) = A(i,j) * x(j)",
    "A(i,j) = B(i,k) * C(k,j)",
    "A(i,j) = B(i,j) + C(i,j)",
    "A(i,j) = B(i,k) * C(k,j) + D(i,j)",
    "A(i) = (B(i,j) + C(i,j)) * d(j)",
    "A(i,j) = B(i,j) * B(j,i)",
    "a(i) = B(i,j) * C(j,k) * d(k)",
    "A(i,j) = B(i,j) + B(i,j) * D(i,j)",
)
ADDED = (
    "y(i) += A(i,j) * x(j)",
    "A(i,j) += B(i,k) * C(k,j)",
    "a(i) += B(i,j) * C(j,k) * d(k)",
    "A(i,j) += B(i,j) * D(i,j)",
)
"""What is added to an operand that is given."""

FORMATS = ("csr", "csc", "dcsr", "coo")
EXTENT = 5
OURS = Rules()


@cache
def schedules(expression: str, form: str, rules: Rules = OURS) -> Schedules:
    """Return the space of an expression, all matrices in one format and tensors of higher order in CSF."""
    assignment = parse(expression)
    orders = {access.tensor: len(access.subscripts) for access in (assignment.target, *accesses(assignment.value))}
    named = {name: form if order == 2 else "csf" for name, order in orders.items() if order > 1}
    return Schedules(ScheduleSpace(*started(assignment, formats_of(assignment, named)), rules))


def some(space: Schedules, count: int) -> list[Schedule]:
    return list(space) if space.count() <= 200 else space.sample(count, seed=3)


@pytest.mark.parametrize("rules", [OURS, PIGEON], ids=["ours", "pigeon"])
@pytest.mark.parametrize("expression", [*EXPRESSIONS, *ADDED, *SUMS, *(text.replace("+=", "=") for text in KERNELS.values())])
def test_text_to_program_and_back(expression: str, rules: Rules) -> None:
    space = schedules(expression, "csr", rules)
    found = some(space, 25)
    for schedule in found:
        member = space.find(str(schedule))
        assert member is not None, str(schedule)
        assert str(space.spelled(member)) == str(schedule)
        assert schedule in space
    if space.count() <= 200:
        assert len(set(map(str, found))) == len(found) == space.count()
        assert [space.members.rank(member) for member in map(space.find, found) if member is not None] == list(range(space.count()))


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("expression", EXPRESSIONS + ADDED)
def test_every_text_is_different(expression: str, form: str) -> None:
    space = schedules(expression, form)
    assert len(set(map(str, islice(space, 6000)))) == min(space.count(), 6000)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("expression", EXPRESSIONS + ADDED)
def test_membership_of_schedules(expression: str, form: str) -> None:
    space = schedules(expression, form)
    for schedule in space.sample(4, seed=7):
        assert schedule in space
    assert "" in space or form == "coo"
    assert "unroll(i, 2)" not in space
    assert "reorder(nothing, i)" not in space
    assert 3 not in space


def renamed(names: Mapping[str, str], expression: str) -> str:
    for old, new in names.items():
        expression = expression.replace(f"{old}(", f"{new}(")
    return expression.translate(str.maketrans({"i": "r", "j": "s", "k": "t"}))


@pytest.mark.parametrize("expression", EXPRESSIONS + ADDED)
def test_names_do_not_matter(expression: str) -> None:
    names = {"A": "w", "B": "w2", "C": "X", "D": "Y", "a": "t2", "d": "v", "x": "w1", "y": "z"}
    used = {old: new for old, new in names.items() if f"{old}(" in expression}
    other = renamed(used, expression)
    ours, theirs = schedules(expression, "csr"), schedules(other, "csr")
    assert ours.count() == theirs.count()
    added = {f"{old}_initial": f"{new}_initial" for old, new in used.items()}
    mapping = {**used, **added, "i": "r", "j": "s", "k": "t"}
    for mine, yours in zip(ours.sample(15, seed=4), theirs.sample(15, seed=4), strict=True):
        carried = mine.rename(mapping)
        assert carried in theirs
        member = theirs.find(carried)
        assert member is not None
        assert theirs.spelled(member) == yours


def wrong(expression: str, form: str, found: list[Schedule], folder: Path) -> list[str]:
    """Return the schedules whose kernels give other values than plain loops, or entries that the patterns do not have."""
    space = schedules(expression, form)
    formats, assignment = space.members.formats, space.members.assignment
    given = {name: form for name, form in formats.items() if not name.endswith("_initial")}
    kernels = [compile_kernel(expression, given, schedule=schedule) for schedule in found]
    build_together([one.default_kernel for one in kernels], folder, form)
    bad = []
    for seed, density in ((1, 0.4), (2, 0.1), (3, 1.0), (4, 0.0)):
        source = np.random.default_rng(seed)
        dense = random_operands(assignment, EXTENT, seed)
        operands = {name: array * (source.random(array.shape) < density) if array.ndim > 1 else array for name, array in dense.items()}
        expected = reference(assignment, operands, EXTENT)
        stored = {
            name.removesuffix("_initial"): tensor(array, formats[name]) if array.ndim > 1 else array for name, array in operands.items()
        }
        for schedule, kernel in zip(found, kernels, strict=True):
            result = kernel(**stored)
            values = result if isinstance(result, np.ndarray) else result.to_numpy()
            fits = np.allclose(values, expected) and (isinstance(result, np.ndarray) or result.nnz == np.count_nonzero(expected))
            if not fits and str(schedule) not in bad:
                bad.append(str(schedule))
    return bad


@pytest.mark.parametrize(("expression", "form"), [(text, FORMATS[place % 4]) for place, text in enumerate(EXPRESSIONS + ADDED)])
def test_sampled_texts_make_kernels_that_are_right(expression: str, form: str, tmp_path: Path) -> None:
    """Operands are positive, so entries of the result are never zero and its pattern is known too."""
    found = list(dict.fromkeys(schedules(expression, form).sample(6, seed=1)))
    assert not wrong(expression, form, found, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("expression", EXPRESSIONS + ADDED)
def test_forty_texts_make_kernels_that_are_right(expression: str, form: str, tmp_path: Path) -> None:
    found = list(dict.fromkeys(schedules(expression, form).sample(40, seed=2)))
    assert not wrong(expression, form, found, tmp_path)
