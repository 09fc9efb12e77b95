"""Tuning layers of neural networks: places of filters in a row, gathers, filters gone through once, threads."""

from __future__ import annotations

import numpy as np
import pytest
import sparsetune as st
from convolved_images import LAYER, RNG, image_problem
from sparsetune.compiler.space.finding import found_in
from sparsetune.compiler.space.full import FullSpace
from sparsetune.compiler.space.options import Options
from sparsetune.compiler.space.writing import written
from sparsetune.tuner.costs import operations
from sparsetune.tuner.model import model_choice, problem_candidates
from sparsetune.tuner.problem import Problem
from sparsetune.tuner.resolve import make_problem
from sparsetune.tuner.searched import Searched
from sparsetune.tuner.whole_space import whole_space


def test_the_static_choice_of_a_layer_looks_for_subsections_near_the_last_ones() -> None:
    """A row of the input that no loop outside has gone along is bisected for every window; the channels of a result are kept in registers
    in either order."""
    rng = np.random.default_rng(0)
    pixels = np.where(rng.random((128, 128, 32)) < 0.1, 1.0, 0.0)
    operands = {"I": st.tensor(pixels, "csf"), "F": rng.random((3, 3, 32, 32))}
    problem = make_problem(LAYER, operands, threads=1)
    plain = problem.concretized()
    cost = {
        order: operations(problem, st.compile(LAYER, {"I": "csf"}, schedule=f"reorder({order})").concretized.program, plain.sources)
        for order in ("h, p, w, q, c, f", "h, w, p, q, c, f")
    }
    assert cost["h, p, w, q, c, f"] == operations(problem, plain.program, plain.sources)
    assert 1.2 * cost["h, p, w, q, c, f"] < cost["h, w, p, q, c, f"]
    assert not str(model_choice(problem) or "").startswith("reorder(h, w")


BATCH = "O(n,h,w,f) = I(n,h+p,w+q,c) * F(p,q,c,f)"

STRIDED = "O(n,h,w,f) = I(n,2*h+p,2*w+q,c) * F(p,q,c,f)"


def layer_problem(expression: str, side: int, channels: int, form: str, threads: int = 1) -> Problem:
    rng = np.random.default_rng(0)
    image = np.where(rng.random((1, side, side, channels)) < 0.2, rng.random((1, side, side, channels)), 0.0)
    return make_problem(expression, {"I": st.tensor(image, form), "F": rng.random((3, 3, channels, channels))}, threads=threads)


@pytest.mark.cc
@pytest.mark.parametrize(
    ("expression", "side", "form"), [(BATCH, 9, "dsss"), (STRIDED, 10, "ddds"), (BATCH, 9, "ddsd"), (STRIDED, 9, "coo")]
)
def test_places_of_a_filter_may_come_one_after_the_other(expression: str, side: int, form: str) -> None:
    """In place, gathered in a list of what is stored, and in rows that BLAS multiplies: nests of the space like others, and right."""
    problem = layer_problem(expression, side, 32, form)
    image, weights = problem.operands["I"].to_numpy(), problem.operands["F"].to_numpy()
    step = 2 if expression == STRIDED else 1
    reach = (side - 3) // step * step + 1
    wanted = sum(
        np.einsum("nhwc,cf->nhwf", image[:, p : p + reach : step, q : q + reach : step], weights[p, q]) for p in range(3) for q in range(3)
    )
    found = [one for one in problem_candidates(problem) if one.origin.startswith("gather")]
    texts = [str(one.template.fill()) for one in found]
    assert all(text.startswith("reorder(n, p, q, h, w, c, f)") for text in texts)
    assert sum("workspace(w1, list)" in text for text in texts) == sum("call([1], gemm)" in text for text in texts) == 1
    assert any("precompute(I(n,h,p,w,q,c)," not in text for text in texts)
    for one, text in zip(found, texts, strict=True):
        assert np.allclose(st.evaluate(expression, problem.operands, schedule=one.template.fill(), threads=1), wanted), text


def test_gathers_are_in_the_one_space() -> None:
    """What places of a filter read may be put together in any nest: with loops, in lists, and in rows that BLAS multiplies."""
    image = RNG.random((9, 9, 32)) * (RNG.random((9, 9, 32)) < 0.2)
    problem = make_problem(LAYER, {"I": st.tensor(image, "dss"), "F": RNG.random((3, 3, 32, 32))}, threads=1)
    found = problem_candidates(problem)
    whole, searched = whole_space(problem), Searched(problem, (), (), [])
    gathered = [one.template.fill() for one in found if one.origin.startswith("gather")]
    assert sum("precompute(I(h,p,w,q,c)," in str(one) for one in gathered) == 2
    assert sum("call(" in str(one) for one in gathered) == 1
    for schedule in gathered:
        assert whole.dropped_by(schedule) == (["calls that rules list"] if "call(" in str(schedule) else [])
        assert (schedule in searched) == ("call(" not in str(schedule))
        plan = found_in(schedule, whole.whole, problem.constants)
        assert plan is not None
        text = str(written(plan[0], whole.whole))
        again = found_in(text, whole.whole, problem.constants)
        assert again is not None
        assert str(written(again[0], whole.whole)) == text
    assert all(schedule in Searched(problem, (), gathered, []) for schedule in gathered)


@pytest.mark.parametrize("form", ["dss", "csf", "coo"])
def test_gathers_that_are_drawn_are_right(form: str) -> None:
    image, weights = RNG.integers(1, 9, (5, 6, 3)) * (RNG.random((5, 6, 3)) < 0.4) * 1.0, RNG.integers(1, 9, (2, 2, 3, 4)) * 1.0
    operands = {"I": st.tensor(image, form), "F": weights}
    searched = whole_space(make_problem(LAYER, operands, threads=1)).filtered()
    nests = FullSpace(searched.whole.with_options(Options(kinds=("list", "dense"), in_order=True)))
    assert nests.count() > 1000
    wanted = sum(np.einsum("hwc,cf->hwf", image[p : p + 4, q : q + 5], weights[p, q]) for p in range(2) for q in range(2))
    drawn = [schedule for schedule in nests.sample(60, seed=5) if "precompute(I(h,p,w,q,c)," in str(schedule)]
    assert len(drawn) > 3
    for schedule in drawn[:6]:
        assert schedule in nests
        found = st.evaluate(LAYER, operands, schedule=schedule, target="interpreter")
        np.testing.assert_allclose(found, wanted, err_msg=str(schedule))


def test_gathers_need_channels_and_a_filter_of_several() -> None:
    """A correlation of single values has nothing to multiply together, nor has a layer whose input is dense."""
    assert not [one for one in problem_candidates(image_problem()) if one.origin.startswith("gather")]
    dense = make_problem(LAYER, {"I": RNG.random((9, 9, 4)), "F": RNG.random((3, 3, 4, 4))}, threads=1)
    assert not [one for one in problem_candidates(dense) if one.origin.startswith("gather")]


def test_large_filters_are_gone_through_once() -> None:
    """A filter that no cache holds is passed by every row of the result, unless its places are outermost."""
    rng = np.random.default_rng(0)
    image = np.where(rng.random((1, 9, 9, 512)) < 0.2, 1.0, 0.0)
    problem = make_problem(BATCH, {"I": st.tensor(image, "ddds"), "F": np.zeros((3, 3, 512, 512))}, threads=1)
    plain = problem.concretized()
    outermost, inside = (
        operations(problem, st.compile(BATCH, {"I": "ddds"}, schedule=f"reorder({order})").concretized.program, plain.sources)
        for order in ("n, p, q, h, w, c, f", "n, h, w, p, q, c, f")
    )
    assert 1.5 * outermost < inside
    assert str(model_choice(problem)).startswith("reorder(n, p, q, h, w, c, f)")


def test_threads_share_a_loop_that_is_long_enough_for_them() -> None:
    """A batch of one image has one iteration, and the rows of a small image make no two usual chunks."""
    problem = layer_problem(BATCH, 30, 32, "ddds", threads=2)
    chosen = str(model_choice(problem))
    assert "parallelize(h, cpu_thread, no_races, static)" in chosen
    assert not any("parallelize(n," in str(one.template.fill()) for one in problem_candidates(problem) if "gather" not in one.origin)
    plain = problem.concretized()
    alone, shared = (
        operations(problem, st.compile(BATCH, {"I": "ddds"}, schedule=f"parallelize({loop}, cpu_thread, no_races)").concretized.program,
                   plain.sources) for loop in ("n", "h")
    )  # fmt: skip
    assert 1.8 * shared < alone
