"""Sunk costs and assumptions: what a comparison takes for granted (Ahrens et al., section 5.3).

Sunk costs are task sets that every schedule pays anyway. Assumptions are facts about the inputs: something exists
("sparse inputs are nonempty"), or one thing implies another ("every row of B that is stored has an entry in C"). Both can
be switched off, and users can add their own as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...compiler.errors import ExpressionError
from ...compiler.frozen import frozen
from .homomorphism import find_clause_homomorphism, find_homomorphism
from .normal_form import next_number, renamed, shifted
from .query import Clause, Clauses, Query, Variable, variables
from .vocabulary import Vocabulary


@frozen
class Rule:
    """Whenever ``body`` holds, so does ``head``; every variable of the head occurs in the body."""

    body: Clauses
    head: Clause


@frozen
class Premises:
    """Sunk costs and assumptions of a comparison.

    Attributes:
        sunk: queries that cost nothing extra.
        facts: conjunctions over quantified variables that hold for every input.
        rules: implications that hold for every input.
    """

    sunk: tuple[Query, ...] = ()
    facts: tuple[Clauses, ...] = ()
    rules: tuple[Rule, ...] = ()

    def saturated(self, clauses: Clauses) -> Clauses:
        """Return a conjunction with everything that the assumptions add to it."""
        found = set(clauses)
        for fact in self.facts:
            found |= shifted(fact, next_number(found))
        grown = bool(self.rules)
        while grown:
            added = {renamed([rule.head], mapped) for rule in self.rules for mapped in _matches(rule.body, found)}
            new = frozenset().union(*added) - found
            found |= new
            grown = bool(new)
        return frozenset(found)

    def assuming(self, query: Query) -> Query:
        """Return a query with everything that the assumptions add to it."""
        return Query(query.head, self.saturated(query.clauses), query.resource)

    def unassumed(self, clauses: Clauses) -> Clauses:
        """Leave out the parts that share no named variable with the rest and that an assumed fact implies."""
        if not self.facts:
            return clauses
        assumed = self.saturated(frozenset())
        kept: set[Clause] = set()
        for part in _components(clauses):
            closed = not any(isinstance(term, str) for term in variables(part))
            if not (closed and find_clause_homomorphism(part, assumed, {}) is not None):
                kept |= part
        return frozenset(kept)

    def is_sunk(self, query: Query) -> bool:
        """Return whether a query costs nothing extra: a sunk one contains it on every input that the assumptions allow."""
        assumed = self.assuming(query)
        return any(find_homomorphism(cost, assumed) is not None for cost in self.sunk)


def _matches(body: Clauses, clauses: set[Clause]) -> list[dict]:
    """Return every homomorphism from a rule's body."""
    matches: list[dict] = [{}]
    for predicate, arguments in sorted(body, key=repr):
        extended = []
        for mapped in matches:
            for images in (images for other, images in clauses if other == predicate):
                trial = dict(mapped)
                if all(trial.setdefault(term, image) == image for term, image in zip(arguments, images, strict=True)):
                    extended.append(trial)
        matches = extended
    return matches


def _components(clauses: Clauses) -> list[set[Clause]]:
    """Return the parts of a conjunction that share no variable with one another."""
    parts: list[tuple[set[Clause], set]] = []
    for one in clauses:
        joined, terms = {one}, set(one.arguments)
        apart = []
        for members, names in parts:
            if names & terms:
                joined |= members
                terms |= names
            else:
                apart.append((members, names))
        parts = [*apart, (joined, terms)]
    return [members for members, _ in parts]


SUNK_COSTS = ("inputs", "dimensions")
ASSUMPTIONS = ("nonempty",)

_CLAUSE = re.compile(r"\s*([A-Za-z_]\w*)\s*\(([^()]*)\)\s*")
_QUERY = re.compile(r"\s*\{\s*[(\[]([^)\]]*)[)\]]\s*(?:\|(.*))?\}\s*", re.DOTALL)


def standard_premises(
    vocabulary: Vocabulary, sunk_costs: bool | Sequence[str] = True, assumptions: bool | Sequence[str] = True
) -> Premises:
    """Return the premises of the paper, or those chosen by name, and the user's own.

    Args:
        vocabulary: the expression's operands and dimensions.
        sunk_costs: True: "inputs" (reading every sparse operand) and "dimensions" (any single loop over a dimension, and a
            workspace over one).
            False: reading operands counts, "dimensions" stay sunk. A sequence says exactly what is sunk: these names and
            sets such as ``"{(i,k) | B(i,k) and C(k,j)}"``; the empty one is nothing.
        assumptions: True: "nonempty" (every sparse operand has an entry). A sequence names it and others, such as
            ``"B(i,k) and C(k,j)"`` (such coordinates exist) or ``"B(i,k) implies C(i,k)"``.

    Raises:
        ExpressionError: a text cannot be read, or names something that the expression does not have.
    """
    sunk: list[Query] = []
    for text in _chosen(sunk_costs, SUNK_COSTS, ("dimensions",), "sunk_costs"):
        if text == "inputs":
            sunk += [Query(_head(one, vocabulary), frozenset([one])) for one in map(vocabulary.whole, vocabulary.sparse)]
        elif text == "dimensions":
            sunk += [Query((Variable("x", name),), resource=what) for name in vocabulary.dimensions for what in ("time", "memory")]
        else:
            sunk.append(_parse_query(text, vocabulary))
    facts: list[Clauses] = []
    rules: list[Rule] = []
    for text in _chosen(assumptions, ASSUMPTIONS, (), "assumptions"):
        if text == "nonempty":
            facts += [_quantified([vocabulary.whole(tensor)]) for tensor in vocabulary.sparse]
        elif re.search(r"\bimplies\b", text):
            rules.append(_parse_rule(text, vocabulary))
        else:
            facts.append(_quantified(_parse_clauses(text, vocabulary)))
    return Premises(tuple(dict.fromkeys(sunk)), tuple(dict.fromkeys(facts)), tuple(rules))


def _chosen(value: bool | Sequence[str], on: tuple[str, ...], off: tuple[str, ...], option: str) -> Sequence[str]:
    if isinstance(value, bool):
        return on if value else off
    if isinstance(value, str) or not isinstance(value, Iterable) or not all(isinstance(text, str) for text in value):
        raise ExpressionError(f"{option} is True, False or a sequence of texts, not {value!r}")
    return value


def _quantified(clauses: Iterable[Clause]) -> Clauses:
    listed = sorted(clauses, key=repr)
    names = sorted({str(term) for one in listed for term in one.arguments})
    return renamed(listed, {name: number for number, name in enumerate(names)})


def _head(one: Clause, vocabulary: Vocabulary) -> tuple[Variable, ...]:
    return tuple(Variable(str(term), vocabulary.mode_dimension(one.predicate, mode)) for mode, term in enumerate(one.arguments))


def _parse_query(text: str, vocabulary: Vocabulary) -> Query:
    match = _QUERY.fullmatch(text)
    if match is None:
        raise ExpressionError(f"a sunk cost is 'inputs', 'dimensions' or a set such as '{{(i,k) | B(i,k) and C(k,j)}}', not {text!r}")
    clauses = _parse_clauses(match.group(2), vocabulary) if match.group(2) else []
    dimensions = {variable.name: variable.dimension for one in clauses for variable in _head(one, vocabulary)}
    names = [name.strip() for name in match.group(1).split(",") if name.strip()]
    if len(set(names)) < len(names):
        raise ExpressionError(f"the head of {text!r} names an index twice")
    head = tuple(Variable(name, dimensions.get(name) or vocabulary.index_dimension(name)) for name in names)
    inner = sorted(name for name in dimensions if name not in names)
    return Query(head, renamed(clauses, {name: number for number, name in enumerate(inner)}))


def _parse_rule(text: str, vocabulary: Vocabulary) -> Rule:
    body_text, _, head_text = re.split(r"\b(implies)\b", text, maxsplit=1)
    body, head = _parse_clauses(body_text, vocabulary), _parse_clauses(head_text, vocabulary)
    if len(head) != 1 or not set(head[0].arguments) <= variables(body):
        raise ExpressionError(f"assumption {text!r}: after 'implies' stands one clause whose indices all occur before it")
    return Rule(frozenset(body), head[0])


def _parse_clauses(text: str, vocabulary: Vocabulary) -> list[Clause]:
    found = []
    for part in re.split(r"\band\b", re.sub(r"^\s*exists[^:]*:", "", text)):
        match = _CLAUSE.fullmatch(part)
        if match is None:
            raise ExpressionError(f"expected clauses such as 'B(i,k) and C(k,j)' in {text.strip()!r}, found {part.strip()!r}")
        arguments = tuple(name.strip() for name in match.group(2).split(",") if name.strip())
        vocabulary.check_clause(match.group(1), len(arguments), text)
        found.append(Clause(match.group(1), arguments))
    return found
