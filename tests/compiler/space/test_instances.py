"""Templates and the schedules that they stand for: filled, ranked, recognised; counted without repeats, listed, sampled."""

from __future__ import annotations

from collections import Counter

import pytest
from sparsetune.compiler.concrete.check import formats_of
from sparsetune.compiler.notation.parser import parse
from sparsetune.compiler.schedule import directives as d
from sparsetune.compiler.schedule.schedule import Schedule
from sparsetune.compiler.space.candidates import candidates
from sparsetune.compiler.space.instances import Instances
from sparsetune.compiler.space.template import Hole, Template, opened

CHUNKING = Hole("chunking", (("dynamic", 64), ("static", None)))
THREADS = opened(d.Parallelize("i", "cpu_thread", "no_races"), chunking__chunk=CHUNKING)
UNROLL = Hole("unroll", (None, d.Unroll("j", 2), d.Unroll("j", 4)))
TILES = opened(d.Split("i", "i0", "i1", 4), factor=Hole("i_size", (32, 16)))

KERNELS = {
    "SpMV": ("y(i) = A(i,j) * x(j)", {"A": "csr"}),
    "SpGEMM": ("A(i,j) = B(i,k) * C(k,j)", {"A": "csr", "B": "csr", "C": "csr"}),
    "dense": ("A(i,j) = B(i,k) * C(k,j)", {}),
    "sum": ("Z(i,j) = B(i,j) + C(i,j)", {"B": "csr", "C": "csr", "Z": "csr"}),
}


def of(kernel: str) -> Instances:
    expression, formats = KERNELS[kernel]
    assignment = parse(expression)
    return Instances(item.template for item in candidates(assignment, formats_of(assignment, formats), threads=2))


def test_holes_take_arguments_directives_or_nothing() -> None:
    template = Template((TILES, THREADS, UNROLL))
    assert [hole.name for hole in template.holes] == ["i_size", "chunking", "unroll"]
    assert template.count == 12
    assert template.text == "split(i, i0, i1, {i_size}); parallelize(i, cpu_thread, no_races, {chunking}); {unroll}"
    assert str(template.fill()) == "split(i, i0, i1, 32); parallelize(i, cpu_thread, no_races, dynamic, 64)"
    filled = template.fill({"i_size": 16, "chunking": ("static", None), "unroll": d.Unroll("j", 4)})
    assert str(filled) == "split(i, i0, i1, 16); parallelize(i, cpu_thread, no_races, static); unroll(j, 4)"
    assert CHUNKING.labels == ("dynamic, 64", "static")
    assert UNROLL.labels == ("", "unroll(j, 2)", "unroll(j, 4)")


def test_values_are_read_off_a_schedule() -> None:
    template = Template((TILES, THREADS, UNROLL))
    for rank, values in enumerate(template.choices()):
        assert template.ranked(rank) == values
        assert template.rank(values) == rank
        assert template.values(template.fill(values)) == values
        assert template.values(template.fill(values).rename({"i0": "a", "i1": "i0"})) == values
    assert template.values(Schedule("split(i, i0, i1, 7); parallelize(i, cpu_thread, no_races, static)")) is None
    assert template.values(Schedule("split(i, i0, i1, 16)")) is None
    assert template.values(template.fill() + Schedule("unroll(k, 2)")) is None


def test_holes_of_one_name_are_filled_alike() -> None:
    both = Template((THREADS, opened(d.Parallelize("k", "cpu_thread", "no_races", path=(1,)), chunking__chunk=CHUNKING)))
    assert both.count == 2
    mixed = "parallelize(i, cpu_thread, no_races, static); parallelize([1], k, cpu_thread, no_races, dynamic, 64)"
    assert both.values(Schedule(mixed)) is None
    assert both.values(Schedule(mixed.replace("dynamic, 64", "static"))) == {"chunking": ("static", None)}


def test_schedules_of_several_templates_count_once() -> None:
    space = Instances((Template(), Template((THREADS,)), Template((UNROLL,)), Template((THREADS, UNROLL)), Template((d.Unroll("j", 4),))))
    texts = [str(schedule) for schedule in space]
    assert space.count() == len(texts) == len(set(texts)) == 1 + 2 + 2 + 4
    assert all(text in space for text in texts)
    assert {str(space._at(place)) for place in range(space.count())} == set(texts)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_schedule_of_the_tuner_is_listed_once(kernel: str) -> None:
    space = of(kernel)
    texts = list(map(str, space))
    assert len(set(texts)) == len(texts) == space.count() > 50
    assert all(text in space for text in texts[:: max(1, len(texts) // 50)])
    assert [str(space._at(place)) for place in range(0, len(texts), 7)] == texts[::7]


def test_samples_are_uniform_and_the_same_for_one_seed() -> None:
    space = of("dense")
    drawn = space.sample(20 * space.count(), seed=1)
    assert drawn[:30] == space.sample(30, seed=1) != space.sample(30, seed=2)
    counts = Counter(map(str, drawn))
    assert set(counts) == set(map(str, space))
    assert max(counts.values()) < 60
    assert all(schedule in space for schedule in drawn[:20])


def test_what_is_no_schedule_of_the_space() -> None:
    space = of("SpMV")
    assert "" in space
    assert "reorder(j, i)" not in space
    assert "nonsense" not in space
    assert 3 not in space
    assert Instances(()).sample(3) == [] == list(Instances(()))
    assert Instances(()).count() == 0
