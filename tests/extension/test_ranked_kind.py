"""A level kind with neither ``pos`` nor ``crd``, whose coordinates are both located and stepped through, with C of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
import sparsetune as st
from differential import formats
from kind_checks import SCHEDULES, check_absent_parents, check_conversions, check_random_expressions
from sparsetune.compiler.errors import DataError
from sparsetune.compiler.format import Format
from sparsetune.compiler.ir.arithmetic import ONE, ZERO, add, compare, integer, maximum, minimum, multiply, quotient, remainder, subtract
from sparsetune.compiler.ir.intrinsics import Intrinsic
from sparsetune.compiler.ir.nodes import BOOL, I64, Call, Select, Type, Value
from sparsetune.compiler.levels import COMPRESSED, LevelKind, register
from sparsetune.compiler.levels.kind import Parts
from sparsetune.compiler.levels.level import Level
from sparsetune.compiler.levels.registry import unregister
from sparsetune.compiler.levels.traversal import Claimed
from sparsetune.compiler.storage.level_arrays import LevelArrays
from sparsetune.compiler.storage.sealed import sealed
from sparsetune.compiler.storage.tensor import Tensor


def ones_below(bits: np.ndarray, word: int, bit: int) -> int:
    """Return how many bits of a word are set below one of them."""
    return (int(bits[word]) & ((1 << bit) - 1)).bit_count()


def nth_one(bits: np.ndarray, word: int, number: int) -> int:
    """Return the place of the bit of a word that is set, with so many set below it; 64 if there is none."""
    left = int(bits[word])
    for _ in range(number):
        left &= left - 1
    return (left & -left).bit_length() - 1 if left else 64


def has_one(bits: np.ndarray, word: int, bit: int) -> bool:
    return bool(int(bits[word]) >> bit & 1)


C = {
    "ones_below": "static inline int64_t ones_below(const uint64_t *bits, int64_t word, int64_t bit) "
    "{ return __builtin_popcountll(bits[word] & ((UINT64_C(1) << bit) - 1)); }",
    "nth_one": "static inline int64_t nth_one(const uint64_t *bits, int64_t word, int64_t number) "
    "{ uint64_t left = bits[word]; while (number-- > 0) left &= left - 1; return left ? __builtin_ctzll(left) : 64; }",
    "has_one": "static inline bool has_one(const uint64_t *bits, int64_t word, int64_t bit) { return bits[word] >> bit & 1; }",
}


class Ranked(LevelKind):
    """A bit for every coordinate below every parent in ``bits``; ``ranks`` has how many are set before each word.

    A position is the number of bits that are set before it. Every parent has a word for the coordinate behind its last one.
    """

    letters = "k"
    relative = True
    located = True
    intrinsics = MappingProxyType({
        "ones_below": Intrinsic(ones_below, "ones_below", code=C["ones_below"], on_gpu=False),
        "nth_one": Intrinsic(nth_one, "nth_one", code=C["nth_one"], on_gpu=False),
        "has_one": Intrinsic(has_one, "has_one", code=C["has_one"], on_gpu=False, gives=BOOL),
    })

    @property
    def plain(self) -> LevelKind:
        return COMPRESSED

    def types(self, width: Type) -> dict[str, Type]:
        return {"bits": Type("u64"), "ranks": width}

    def positions(self, parts: Parts, parents: int, extent: int) -> int:
        return int(parts["ranks"][-1])

    def bytes(self, parents: int, children: int, extent: int) -> tuple[int, int]:
        return parents * _words(extent) * 12, children

    def encoded(self, arrays: LevelArrays, extent: int, refusal: str) -> LevelArrays:
        pos, crd = arrays.parts["pos"].astype(np.int64), arrays.parts["crd"].astype(np.int64)
        words = (len(pos) - 1) * _words(extent)
        places = np.repeat(np.arange(len(pos) - 1), np.diff(pos)) * _words(extent) + crd // 64
        bits = np.zeros(words, np.uint64)
        np.bitwise_or.at(bits, places, np.left_shift(np.uint64(1), (crd % 64).astype(np.uint64)))
        ranks = np.zeros(words + 1, np.int64)
        np.cumsum(np.bincount(places, minlength=words), out=ranks[1:])
        return LevelArrays(bits=sealed(bits), ranks=sealed(ranks.astype(arrays.parts["pos"].dtype)))

    def decoded(self, arrays: LevelArrays, extent: int) -> LevelArrays:
        ranks, crd = arrays.parts["ranks"], _coordinates(arrays.parts["bits"], extent)
        return LevelArrays(sealed(ranks[:: _words(extent)].copy()), sealed(crd.astype(ranks.dtype)))

    def check(self, claimed: Claimed) -> int:
        bits, ranks = claimed.parts["bits"], claimed.parts["ranks"]
        words = claimed.parents * _words(claimed.extent)
        claimed.require(bits.dtype == np.uint64 and len(bits) == words, f"has {words} words of 64 bits")
        claimed.require(ranks.dtype in (np.int32, np.int64) and len(ranks) == words + 1, f"has {words} ranks + 1 of int32 or int64")
        claimed.require(bool(np.array_equal(ranks, np.append(0, np.cumsum(np.bitwise_count(bits))))), "has ranks that count bits")
        claimed.require(bool((_coordinates(bits, claimed.extent) < claimed.extent).all()), f"has coordinates below {claimed.extent}")
        return int(ranks[-1])

    def sampled(self, parts: Parts, places: np.ndarray, extent: int) -> np.ndarray:
        return _coordinates(parts["bits"], extent)[places].astype(np.int64)

    def under(self, level: Level, parent: Value, present: Value | None) -> Level:
        first = multiply(parent, _words_of(level))
        return replace(level, origin=first if present is None else Select(present, first, ZERO, I64))

    def begin(self, level: Level, parent: Value) -> Value:
        return level.load("ranks", multiply(parent, _words_of(level)))

    def coordinate(self, level: Level, position: Value) -> Value:
        assert level.origin is not None
        past = add(level.origin, _words_of(level))
        word = subtract(Call("upper_bound", (level.reference("ranks"), level.origin, past, position), I64), ONE)
        bit = Call("nth_one", (level.reference("bits"), word, subtract(position, level.load("ranks", word))), I64)
        return add(multiply(subtract(word, level.origin), integer(64)), bit)

    def _place(self, level: Level, coordinate: Value) -> tuple[Value, Value]:
        assert level.origin is not None
        inside = minimum(maximum(coordinate, ZERO), level.extent)
        return add(level.origin, quotient(inside, integer(64))), remainder(inside, integer(64))

    def search(self, level: Level, low: Value, high: Value, coordinate: Value, function: str, *more: Value) -> Value:
        word, bit = self._place(level, coordinate)
        found = add(level.load("ranks", word), Call("ones_below", (level.reference("bits"), word, bit), I64))
        return Select(compare("<", low, high), minimum(maximum(found, low), high), low, I64)

    def hit(self, level: Level, position: Value, low: Value, high: Value, coordinate: Value) -> Value:
        word, bit = self._place(level, coordinate)
        return Call("has_one", (level.reference("bits"), word, bit), BOOL)

    def parent(self, level: Level, position: Value, parents: Value) -> Value:
        words = multiply(parents, _words_of(level))
        past = Call("upper_bound", (level.reference("ranks"), ONE, add(words, ONE), position), I64)
        return quotient(subtract(past, ONE), _words_of(level))

    def within(self, level: Level, coordinate: Value) -> Value:
        return minimum(maximum(coordinate, ZERO), subtract(level.extent, ONE))


def _words(extent: int) -> int:
    return extent // 64 + 1


def _words_of(level: Level) -> Value:
    return add(quotient(level.extent, integer(64)), ONE)


def _coordinates(bits: np.ndarray, extent: int) -> np.ndarray:
    return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")) % (64 * _words(extent))


@pytest.fixture
def ranked() -> Iterator[LevelKind]:
    kind = register(Ranked("ranked"))
    yield kind
    unregister(kind)


def matrix(rows: int = 30, columns: int = 150, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where((rng.random((rows, columns)) < 0.2) & (rng.random((rows, 1)) < 0.8), rng.standard_normal((rows, columns)), 0.0)


def test_tensors_in_the_format(ranked: LevelKind) -> None:
    dense = matrix()
    stored = st.tensor(dense, "dense, ranked")
    check_conversions(dense, "dense, ranked", ("csr", "csc", "ranked, ranked", "dense, ranked; 1, 0", "coo", "dn", "db", "dp", "hk"))
    assert np.array_equal(Tensor(stored.shape, stored.format, stored.levels, stored.values).to_numpy(), dense)
    wrong = stored.levels[1].having(ranks=stored.levels[1].parts["ranks"] + 1)
    with pytest.raises(DataError, match="has ranks that count bits"):
        Tensor(stored.shape, stored.format, (stored.levels[0], wrong), stored.values)


@pytest.mark.cc
@pytest.mark.parametrize("schedule", [*SCHEDULES, "parallelize(j, cpu_vector, parallel_reduction)"])
def test_kernels_find_the_bits(ranked: LevelKind, schedule: str) -> None:
    dense, x = matrix(), np.random.default_rng(1).standard_normal(150)
    kernel = st.compile("y(i) = A(i,j) * x(j)", {"A": "dense, ranked"}, schedule=schedule)
    assert np.allclose(kernel(A=st.tensor(dense, "dk"), x=x, threads=2), dense @ x)


@pytest.mark.cc
def test_results_are_converted_into_it(ranked: LevelKind) -> None:
    left, right = matrix(), matrix(seed=1)
    given = {"A": st.tensor(left, "dk"), "B": st.tensor(right, "kk")}
    for expression, form, expected in (
        ("C(i,j) = A(i,j) * B(i,j)", "dense, ranked", left * right),
        ("C(i,j) = A(i,j) + B(i,j)", "kk", left + right),
        ("C(i,k) = A(i,j) * B(k,j)", "csr", left @ right.T),
    ):
        found = st.evaluate(expression, given, output_format=form)
        assert found.format == Format(form)
        assert np.allclose(found.to_numpy(), expected)


def test_no_bits_are_read_below_a_parent_that_is_absent(ranked: LevelKind) -> None:
    check_absent_parents(ranked)


@pytest.mark.cc
def test_random_expressions_agree_with_the_oracle(ranked: LevelKind, monkeypatch: pytest.MonkeyPatch) -> None:
    check_random_expressions(ranked, formats.NARROW, range(5_000, 5_150), 21, monkeypatch)
