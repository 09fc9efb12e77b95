"""Verdicts on two task sets with their proofs: a homomorphism for every containment, and a counterexample input where there is none.

The paper calls the contained set the dominated one (section 5.1); here it is called the cheaper one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...compiler.frozen import frozen
from .homomorphism import find_homomorphism
from .premises import Premises
from .query import Query, TaskSet, Term, quantified_names, show_query

VERDICTS = {
    "cheaper": "is cheaper than",
    "costlier": "is costlier than",
    "equivalent": "costs the same as",
    "incomparable": "cannot be compared with",
}
IN_MEMORY_ALONE = {
    "cheaper": "takes the same time and needs less memory than",
    "costlier": "takes the same time and needs more memory than",
}


@frozen
class Containment:
    """Why a task costs nothing extra: ``mapped`` maps the variables of ``container`` to its own."""

    task: Query
    container: Query
    mapped: Mapping[Term, Term]
    sunk: bool


@frozen
class CostComparison:
    """The verdict on a first task set against a second one.

    Attributes:
        verdict: "cheaper": the first never costs more, and less on some inputs; "costlier": the reverse; "equivalent":
            equal on all inputs; "incomparable": it depends on the input. All up to constant factors.
        within: for each task of the first that the second (or a sunk cost) contains, the proof.
        beyond: the tasks of the first that nothing in the second contains. The input whose only entries are the clauses of such a
            task proves it.
        reverse_within, reverse_beyond: the same for the tasks of the second in the first.
    """

    verdict: str
    within: tuple[Containment, ...]
    beyond: TaskSet
    reverse_within: tuple[Containment, ...]
    reverse_beyond: TaskSet

    @property
    def words(self) -> str:
        """The verdict as a predicate. Of two schedules that take the same time it compares the memory instead of calling one cheaper."""
        alone = all(task.resource == "memory" for task in (*self.beyond, *self.reverse_beyond))
        return (IN_MEMORY_ALONE if alone else VERDICTS).get(self.verdict, VERDICTS[self.verdict])


def compare(first: Sequence[Query], second: Sequence[Query], premises: Premises) -> CostComparison:
    """Compare two task sets by containment in both directions."""
    within, beyond = _containments(first, second, premises)
    reverse_within, reverse_beyond = _containments(second, first, premises)
    verdict = {
        (True, True): "equivalent",
        (True, False): "cheaper",
        (False, True): "costlier",
        (False, False): "incomparable",
    }[not beyond, not reverse_beyond]
    return CostComparison(verdict, within, beyond, reverse_within, reverse_beyond)


def _containments(tasks: Sequence[Query], others: Sequence[Query], premises: Premises) -> tuple[tuple[Containment, ...], TaskSet]:
    proofs: list[Containment] = []
    unmatched: list[Query] = []
    for task in tasks:
        proof = _proof(task, others, premises)
        if proof is None:
            unmatched.append(task)
        else:
            proofs.append(proof)
    return tuple(proofs), tuple(unmatched)


def _proof(task: Query, others: Sequence[Query], premises: Premises) -> Containment | None:
    assumed = premises.assuming(task)
    for sunk, containers in ((False, others), (True, premises.sunk)):
        for container in containers:
            mapped = find_homomorphism(container, assumed)
            if mapped is not None:
                return Containment(task, container, mapped, sunk)
    return None


def explain(comparison: CostComparison, first: str, second: str, names: Mapping[tuple[str, int], str]) -> str:
    """Return the reasons of a verdict in words, one line a task.

    Args:
        comparison: the verdict.
        first, second: what to call the two schedules.
        names: names for quantified variables, as for ``show_query``.
    """
    lines = [f"{first} {comparison.words} {second}"]
    lines += [_proof_line(proof, first, second, names) for proof in comparison.within]
    lines += [_counterexample_line(task, first, second, names) for task in comparison.beyond]
    lines += [_proof_line(proof, second, first, names) for proof in comparison.reverse_within]
    lines += [_counterexample_line(task, second, first, names) for task in comparison.reverse_beyond]
    return "\n".join(lines)


def _proof_line(proof: Containment, owner: str, other: str, names: Mapping[tuple[str, int], str]) -> str:
    place = "the sunk costs" if proof.sunk else other
    mapping = _show_mapping(proof, names)
    because = f" by the homomorphism {mapping}" if mapping else ""
    return f"  {show_query(proof.task, names)} of {owner} is within {show_query(proof.container, names)} of {place}{because}"


def _show_mapping(proof: Containment, names: Mapping[tuple[str, int], str]) -> str:
    """Return ``i -> i, k1 -> k``; a variable that maps into an assumption has no name on the right."""
    sources = {name: name for name in proof.container.names} | quantified_names(proof.container, names)
    images = {name: name for name in proof.task.names} | quantified_names(proof.task, names)
    shown = (f"{text} -> {images.get(proof.mapped[term], '(assumed)')}" for term, text in sources.items() if term in proof.mapped)
    return ", ".join(shown)


def _counterexample_line(task: Query, owner: str, other: str, names: Mapping[tuple[str, int], str]) -> str:
    return f"  {show_query(task, names)} of {owner} is in no task of {other}: on inputs with just these entries only {owner} does it"
