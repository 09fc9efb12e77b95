"""Candidates for the tuner: templates of an expression, in the order in which they are worth trying.

A candidate is a structure (``space.structures``) with a parallel style and the choices of its inner loops
(``space.decorations``). Every template is legal with its usual values, the first of each hole. The default schedule, a
template without directives, comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from math import prod

from ..concrete.concretize import concretize
from ..concrete.nodes import Forall, Program
from ..concrete.printer import show_statement
from ..deadline import Deadline, TimeOver
from ..format import Format
from ..notation.nodes import Assignment
from ..notation.printer import show
from ..schedule.addresses import enclosing_loops, leaves
from ..schedule.dependence import graph_of
from ..schedule.schedule import Schedule
from .decorations import SERIAL, Decoration, build_choices, inner_choices, parallel_styles
from .forests.structures import forest_structures
from .library import schedules_for
from .situation import Situation, Structure, further
from .structures import UNDOMINATED, structures
from .template import Hole, Template

MAX_CANDIDATES = 400
_ALSO_SERIAL = ("default", "chain", "blocks", "forest", UNDOMINATED)  # structures that are tried without threads too
REGISTERS = 256  # elements up to which a workspace of known size is no memory


@dataclass(frozen=True)
class Candidate:
    """A template and what is known of it.

    Attributes:
        template: directives with holes.
        depth: the most original indices that loops around one assignment run through.
        memory: elements of all workspaces of one thread that are too large for registers, a sum of products of extents
            and numbers such as "r + 8 * m"; "0" where there are none.
        origin: default, order, chain, blocks, products, conversion, forest, undominated; with a parallel style: rows, entries; or
            library and a name.
        program: what the schedule makes with its usual values.
        structure: the same with loops and workspaces settled and nothing else; None where that is not told apart.
    """

    template: Template
    depth: int
    memory: str
    origin: str
    program: Program = field(compare=False, repr=False)
    structure: Program | None = field(default=None, compare=False, repr=False)

    @property
    def is_by_rule(self) -> bool:
        """Whether a rule over the structure found it; there may be too many of these."""
        return not self.is_given and not self.origin.startswith(UNDOMINATED)

    @property
    def is_given(self) -> bool:
        """Whether it is the default schedule or one of the library, which are always in."""
        return not self.template or self.origin.startswith("library")

    def elements(self, extents: Mapping[str, int], unknown: int = 1_000_000) -> int:
        """Return the number that ``memory`` stands for; indices of unknown extent count as large."""
        total = 0
        for product in self.memory.split(" + "):
            size = 1
            for factor in product.split(" * "):
                size *= int(factor) if factor.isdigit() else extents.get(factor, unknown)
            total += size
        return total


def candidates(
    assignment: Assignment,
    formats: Mapping[str, Format],
    extents: Mapping[str, int] | None = None,
    threads: int = 1,
    deadline: Deadline | None = None,
    lengths: Mapping[str, int] | None = None,
    fibres: Mapping[str, tuple[float, ...]] | None = None,
    programs: Sequence[Schedule] = (),
    semiring: tuple[str, str] = ("+", "*"),
) -> tuple[Candidate, ...]:
    """Return the candidates of an expression, without duplicates, the default first and the same every time.

    Args:
        assignment: a checked assignment.
        formats: a format for every tensor, the result included.
        extents: known extents by index; those of dense indices choose between registers and blocks.
        threads: with one thread no loop is parallel.
        deadline: once it is over, what was found by then is returned, the default at least.
        lengths, fibres: extents of all indices, and positions of every level of the sparse operands, where operands are at hand.
        programs: schedules of loops and workspaces that are to be among the structures.
        semiring: (add, multiply).
    """
    found = concretize(assignment, formats, *semiring)
    situation = Situation(
        found.program, found.formats, dict(extents or {}), deadline or Deadline(), dict(lengths or {}), dict(fibres or {})
    )
    seen: set[tuple[object, ...]] = set()
    kept: list[Candidate] = []
    with suppress(TimeOver):
        for candidate in chain(_all(assignment, situation, threads, programs), _known(assignment, situation, threads)):
            key = _key(candidate.program)
            if key not in seen and (len(kept) < MAX_CANDIDATES or not candidate.is_by_rule):
                seen.add(key)
                kept.append(candidate)
    return tuple(kept)


def _known(assignment: Assignment, situation: Situation, threads: int) -> Iterator[Candidate]:
    """Yield the schedules of the library that were written for the same expression, as they stand."""
    if threads < 2:
        return
    for named, schedule in schedules_for(assignment):
        program = further(situation.program, schedule, situation)
        if program is not None:
            origin = f"library: {named.name}"
            yield Candidate(Template(schedule.directives), _depth(program), _memory(program, situation), origin, program)


def _all(assignment: Assignment, situation: Situation, threads: int, programs: Sequence[Schedule]) -> Iterator[Candidate]:
    """Yield candidates; what cannot be applied is left out."""
    program = situation.program
    yield Candidate(Template(), _depth(program), _memory(program, situation), "default", program, program)
    seen = set()
    for structure in structures(situation, forest_structures(assignment, situation), programs):
        text = _shape(structure.program)
        if text in seen:
            continue
        seen.add(text)
        whole = isinstance(structure.program.statement, Forall)  # else two nests, one after another
        serial = [SERIAL] if threads < 2 or not whole or structure.origin in _ALSO_SERIAL else []
        for style in chain(parallel_styles(structure, situation, threads), serial):
            made = _candidate(structure, style, situation)
            if made is not None:
                yield made


def _candidate(structure: Structure, style: Decoration, situation: Situation) -> Candidate | None:
    """Return a structure in a parallel style, with the choices of inner loops that it admits."""
    program = further(structure.program, style.parts, situation)
    if program is None:
        return None
    admitted: list[Hole] = []
    for hole in (*inner_choices(program, situation), build_choices()):
        first = next(choice for choice in hole.choices if choice is not None)
        trial = further(program, (hole,), situation, {hole.name: first})
        if trial is not None:
            admitted.append(hole)
            program = trial if hole.usual is not None else program
    origin = f"{structure.origin}, {style.origin}" if style.origin else structure.origin
    template = structure.template.then(*style.parts, *admitted)
    return Candidate(template, _depth(program), _memory(program, situation), origin, program, structure.program)


def _shape(program: Program) -> str:
    """Return a text that is equal for programs that differ in the names of workspaces only."""
    text = show_statement(program.statement)
    for number, space in enumerate(program.workspaces):
        text = text.replace(f"{space.name}(", f"#{number}(").replace(f"{space.name} ", f"#{number} ")
    return f"{text} {[(show(operand), str(form)) for operand, form in program.conversions]}"


def _key(program: Program) -> tuple[object, ...]:
    return program.statement, program.workspaces, program.relations, program.conversions, program.assembly, program.build


def _depth(program: Program) -> int:
    graph = graph_of(program.relations)
    depths = [
        len({index for loop in enclosing_loops(program.statement, address) for index in graph.originals(loop)})
        for address, _ in leaves(program.statement)
    ]
    return max(depths, default=0)


def _memory(program: Program, situation: Situation) -> str:
    graph = graph_of(program.relations)
    products = []
    for space in program.workspaces:
        lengths = [graph.constant_extent(index, situation.extents) for index in space.indices]
        if None not in lengths and prod(length or 0 for length in lengths) <= REGISTERS:
            continue
        sizes = [str(graph.constant_extent(index) or " * ".join(graph.originals(index))) for index in space.indices]
        products.append(" * ".join(sizes) or "1")
    return " + ".join(products) or "0"
