"""Which candidates of the tuner another one beats asymptotically, in the formats that the operands have.

The cost is that of Ahrens et al. What their model leaves open is read off the candidate: dense levels are located and compressed ones
stepped through, converted operands have the formats that they are converted to (section 6.8), and a workspace that is an array is cleared
and read whole, whatever was written. Sunk, because every candidate does it: reading each sparse operand, one loop over a dimension,
clearing a dense result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from ...compiler.concrete.concretize import started
from ...compiler.concrete.nodes import Program, reads
from ...compiler.concrete.said import means
from ...compiler.deadline import Deadline, TimeOver
from ...compiler.format import Format
from ...compiler.notation.nodes import Assignment
from ...compiler.space.arrays import array_workspaces
from ...compiler.space.defaults import with_default_protocols
from ...compiler.space.situation import Situation
from .algebra import Algebra, quotients_everywhere
from .model import CostModel
from .original_loops import original_loops

FEWER = 2.0
"""A program beats another only if the static model expects this many times fewer operations of it: the model's constants are rough."""


class Screening:
    """Asymptotic time of programs of one expression.

    Args:
        assignment: the checked expression.
        situation: its default program, with a format for every tensor; programs that are not judged by its deadline have no cost.
    """

    def __init__(self, assignment: Assignment, situation: Situation) -> None:
        self._situation = situation
        self._operands = {name: form for name, form in situation.formats.items() if name != assignment.target.tensor}
        read, _ = started(assignment, situation.formats)
        result = situation.formats[assignment.target.tensor]
        cleared = ("{(" + ",".join(assignment.target.indices) + ")}",) if result.is_dense and len(result) > 1 else ()
        sunk = ("inputs", "dimensions", *cleared)
        program = situation.program
        algebra = Algebra(program.add, program.multiply, looks_ahead=True, everywhere=quotients_everywhere(read, situation.formats))
        watch = situation.deadline.watch
        self._model = CostModel(read, situation.formats, sunk_costs=sunk, algebra=algebra, as_stored=True, watch=watch)

    def cost(self, program: Program) -> int | None:
        """Return the cost of a program beyond what is sunk; None where it reads an operand in two formats, or the time is over."""
        formats = self._converted(program)
        if formats is None or self._situation.deadline.over:
            return None
        plain = original_loops(program)
        with suppress(TimeOver):
            return self._model.cost(with_default_protocols(plain, formats), array_workspaces(program, self._situation))
        return None

    def is_less(self, cost: int, other: int) -> bool:
        """Return whether a cost is at most another on every input, and the other is not at most this one."""
        within = self._model.tasks.within
        return within(cost, other) and not within(other, cost)

    def show(self, cost: int) -> str:
        """Return a cost in set notation."""
        return self._model.show(self._model.tasks.queries(cost))

    def _converted(self, program: Program) -> dict[str, Format] | None:
        formats = dict(self._operands)
        for operand, form in program.conversions:
            if any(access.tensor == operand.tensor and not means(operand, access) for access in reads(program.statement)):
                return None
            formats[operand.tensor] = form
        return formats


def beaten(
    costs: Sequence[int | None],
    operations: Sequence[float],
    usable: Callable[[int], bool],
    screening: Screening,
    deadline: Deadline,
) -> list[bool]:
    """Return for each of some programs whether another one beats it.

    A usable program beats another if it costs less on every large enough input, and the static model expects far fewer
    operations of it on the input at hand: what is better only asymptotically drops nothing.

    Args:
        costs: of ``Screening.cost``; a program without one neither beats nor is beaten.
        operations: what the static model expects.
        usable: whether the program at a place can be compiled.
        screening: compares costs.
        deadline: once it is over, nothing more is beaten.
    """

    def loses(place: int) -> bool:
        own = costs[place]
        return own is not None and any(
            cost is not None
            and not deadline.over
            and FEWER * operations[rival] <= operations[place]
            and screening.is_less(cost, own)
            and usable(rival)
            for rival, cost in enumerate(costs)
        )

    return [loses(place) for place in range(len(costs))]
