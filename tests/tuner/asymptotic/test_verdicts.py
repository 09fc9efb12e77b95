"""Verdicts on random task sets, with everything that may be sunk or assumed, against canonical databases and random inputs.

The oracle shares nothing with the cost model but the data classes of queries: it tries all values, chases assumptions on a
database, and knows no normal forms, no interning, no bit sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from query_samples import answers, clause, closed, joined, parts, typed
from sparsetune.compiler.format import Format
from sparsetune.compiler.notation.parser import parse
from sparsetune.tuner.asymptotic.compare import compare
from sparsetune.tuner.asymptotic.model import CostModel
from sparsetune.tuner.asymptotic.query import Clause, Query, Variable

Database = dict[str, set[tuple]]


@dataclass(frozen=True)
class Setting:
    """An expression and what it may be judged by, each as the text for the model and as what the text means.

    ``dimensions`` are those of the indices, ``modes`` those of the operands' modes, all of which are sparse. ``sunk``: a text
    and a query; ``rules``: a text, a body and a head; ``facts``: a text and clauses.
    """

    expression: str
    dimensions: dict[str, str]
    modes: dict[str, tuple[str, ...]]
    sunk: tuple[str, Query]
    rules: tuple[tuple[str, tuple[Clause, ...], Clause], ...]
    fact: tuple[str, tuple[Clause, ...]]


APART = Setting(
    "A(i,j) = B(i,k) * C(k,j) * D(i,j)",
    {"i": "I", "j": "J", "k": "K"},
    {"B": ("I", "K"), "C": ("K", "J"), "D": ("I", "J")},
    (
        "{(i,k) | exists j: B(i,k) and C(k,j)}",
        Query((Variable("i", "I"), Variable("k", "K")), frozenset([clause("B", "i", "k"), clause("C", "k", 0)])),
    ),
    (("B(i,k) and C(k,j) implies D(i,j)", (clause("B", "i", "k"), clause("C", "k", "j")), clause("D", "i", "j")),),
    ("B(i,k) and C(k,j)", (clause("B", "i", "k"), clause("C", "k", "j"))),
)  # fmt: skip
ALIKE = Setting(
    "A(i,j) = B(i,k) * B(k,j) * d(k)",
    {"i": "I", "j": "I", "k": "I"},
    {"B": ("I", "I"), "d": ("I",)},
    (
        "{(i,j) | B(i,j) and B(j,i)}",
        Query((Variable("i", "I"), Variable("j", "I")), frozenset([clause("B", "i", "j"), clause("B", "j", "i")])),
    ),
    (
        ("B(i,j) implies B(j,i)", (clause("B", "i", "j"),), clause("B", "j", "i")),
        ("B(i,k) and B(k,j) implies B(i,j)", (clause("B", "i", "k"), clause("B", "k", "j")), clause("B", "i", "j")),
        ("d(i) implies B(i,i)", (clause("d", "i"),), clause("B", "i", "i")),
    ),
    ("B(i,i)", (clause("B", "i", "i"),)),
)  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """A model, and what it takes for granted as the oracle sees it."""

    setting: Setting
    model: CostModel
    sunk: tuple[Query, ...]
    facts: tuple[tuple[Clause, ...], ...]
    rules: tuple[tuple[tuple[Clause, ...], Clause], ...]


@st.composite
def judged(draw: st.DrawFn, setting: Setting) -> Judged:
    named, sunk = [], []
    if draw(st.booleans()):
        named.append("inputs")
        sunk += [_whole(name, modes) for name, modes in setting.modes.items()]
    if draw(st.booleans()):
        named.append("dimensions")
        sunk += [Query((Variable("x", dimension),)) for dimension in dict.fromkeys(setting.dimensions.values())]
    if draw(st.booleans()):
        named.append(setting.sunk[0])
        sunk.append(setting.sunk[1])
    assumed, facts = [], []
    if draw(st.booleans()):
        assumed.append("nonempty")
        facts += [tuple(_whole(name, modes).clauses) for name, modes in setting.modes.items()]
    if draw(st.booleans()):
        assumed.append(setting.fact[0])
        facts.append(setting.fact[1])
    rules = [rule for rule in setting.rules if draw(st.booleans())]
    assumed += [text for text, _, _ in rules]
    formats = {name: Format("c" * len(modes)) for name, modes in setting.modes.items()} | {"A": Format("dd")}
    model = CostModel(parse(setting.expression), formats, sunk_costs=tuple(named), assumptions=tuple(assumed))
    return Judged(setting, model, tuple(sunk), tuple(facts), tuple((body, head) for _, body, head in rules))


def _whole(name: str, modes: tuple[str, ...]) -> Query:
    head = tuple(Variable(f"m{mode}", dimension) for mode, dimension in enumerate(modes))
    return Query(head, frozenset([clause(name, *(variable.name for variable in head))]))


@st.composite
def conjunctive(draw: st.DrawFn, setting: Setting) -> Query:
    """Draw a query: some indices as its head, clauses over them and over hidden variables, each of one dimension, repeats too."""
    head = draw(st.lists(st.sampled_from(sorted(setting.dimensions)), unique=True, max_size=3))
    kinds = sorted(set(setting.dimensions.values()))
    hidden = {dimension: (2 * place, 2 * place + 1) for place, dimension in enumerate(kinds)}
    clauses = []
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from(sorted(setting.modes)))
        options = [[*(one for one in head if setting.dimensions[one] == mode), *hidden[mode]] for mode in setting.modes[name]]
        clauses.append(Clause(name, tuple(draw(st.sampled_from(terms)) for terms in options)))
    return Query(tuple(Variable(name, setting.dimensions[name]) for name in head), frozenset(clauses))


def unions(setting: Setting) -> st.SearchStrategy[list[Query]]:
    return st.lists(conjunctive(setting), min_size=1, max_size=3)


def tasks_of(model: CostModel, union: list[Query]) -> int:
    """Return a union as the model has it after an interpretation: guards, simplified and interned."""
    total = 0
    for query in union:
        total |= model.tasks.tasks(frozenset(query.names), model.predicates.of_clauses(query.clauses))
    return model.tasks.reduced(total)


def chased(case: Judged, database: Database) -> Database:
    """Add what the rules say until nothing is new."""
    values = sorted({value for entries in database.values() for entry in entries for value in entry}, key=repr)
    while True:
        before = sum(map(len, database.values()))
        for body, head in case.rules:
            frozen = {name: frozenset(entries) for name, entries in database.items()}
            names = tuple(dict.fromkeys(str(term) for one in body for term in one.arguments))
            asked = Query(tuple(Variable(name, "any") for name in names), frozenset(body))
            for answer in joined(asked, frozen, values):
                found = dict(zip(names, answer, strict=True))
                database[head.predicate].add(tuple(found[str(term)] for term in head.arguments))
        if sum(map(len, database.values())) == before:
            return database


def within_by_databases(case: Judged, smaller: Iterable[Query], larger: Iterable[Query]) -> bool:
    """Whether every query is within another one or a sunk one on its own canonical database."""
    return all(_is_covered(case, query, (*larger, *case.sunk)) for query in smaller)


def _is_covered(case: Judged, query: Query, containers: Iterable[Query]) -> bool:
    database: Database = {name: set() for name in case.setting.modes}
    for one in query.clauses:
        database[one.predicate].add(tuple(f"own {term}" for term in one.arguments))
    for number, fact in enumerate(case.facts):
        for one in fact:
            database[one.predicate].add(tuple(f"fact {number} {term}" for term in one.arguments))
    relations = {name: frozenset(entries) for name, entries in chased(case, database).items()}
    held = {value for entries in relations.values() for entry in entries for value in entry}
    own = tuple(f"own {name}" for name in query.names)
    values = sorted({*held, *own, "any"})
    return any(typed(query, own) in parts(container, joined(container, relations, values)) for container in containers)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from([APART, ALIKE]), st.data())
def test_joining_gives_what_trying_all_values_gives(setting: Setting, data: st.DataObject) -> None:
    query = data.draw(conjunctive(setting))
    relations = {
        name: data.draw(st.frozensets(st.tuples(*[st.integers(0, 2)] * len(modes)), max_size=5)) for name, modes in setting.modes.items()
    }
    assert joined(query, relations, range(3)) == answers(query, relations, range(3))


@pytest.mark.parametrize("setting", [APART, ALIKE], ids=["apart", "alike"])
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_verdicts_equal_those_of_canonical_databases(setting: Setting, data: st.DataObject) -> None:
    case = data.draw(judged(setting))
    first, second = data.draw(unions(setting)), data.draw(unions(setting))
    table, own, other = case.model.tasks, tasks_of(case.model, first), tasks_of(case.model, second)
    forth, back = within_by_databases(case, first, second), within_by_databases(case, second, first)
    assert (table.within(own, other), table.within(other, own)) == (forth, back)
    verdict = {(True, True): "equivalent", (True, False): "cheaper", (False, True): "costlier", (False, False): "incomparable"}
    found = compare(table.queries(own), table.queries(other), case.model.premises)
    assert found.verdict == verdict[forth, back]


@pytest.mark.parametrize("setting", [APART, ALIKE], ids=["apart", "alike"])
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_cheaper_set_is_smaller_on_every_input(setting: Setting, data: st.DataObject) -> None:
    case = data.draw(judged(setting))
    first, second = data.draw(unions(setting)), data.draw(unions(setting))
    table = case.model.tasks
    if not table.within(tasks_of(case.model, first), tasks_of(case.model, second)):
        return
    database: Database = {
        name: set(data.draw(st.frozensets(st.tuples(*[st.integers(0, 1)] * len(modes)), max_size=4)))
        for name, modes in setting.modes.items()
    }
    relations = {name: frozenset(entries) for name, entries in chased(case, database).items()}
    if not all(answers(Query((), frozenset(fact)), relations, range(2)) for fact in case.facts):
        return
    wide = set().union(*(closed(query, relations, range(2)) for query in (*second, *case.sunk)))
    for query in first:
        assert {typed(query, answer) for answer in answers(query, relations, range(2))} <= wide


@pytest.mark.parametrize("setting", [APART, ALIKE], ids=["apart", "alike"])
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_simplified_sets_cost_what_they_did(setting: Setting, data: st.DataObject) -> None:
    """The three simplifications of section 5.4: what is sunk, contained or superfluous goes, and nothing else."""
    case = data.draw(judged(setting))
    union = data.draw(unions(setting))
    kept = case.model.tasks.queries(tasks_of(case.model, union))
    assert within_by_databases(case, union, kept)
    assert within_by_databases(case, kept, union)
    for query in kept:
        assert not within_by_databases(case, [query], [other for other in kept if other is not query])
