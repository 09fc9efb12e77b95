"""Candidates for the tuner: templates of an expression, in the order in which they are worth trying.

This is the schedule space stage by stage: a loop nest with its workspaces (``structures``; ``draws``), a transformation of its
loops (``decorations``; ``template_space``), and open places for the rest (``decorations``; ``openings``). A ``Selection`` says which
part of the space it is. Every template is legal with its usual values, the first of each hole. The default schedule, a template
without directives, comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from itertools import chain, islice
from math import prod

from ..concrete.concretize import concretize
from ..concrete.nodes import Forall, Program
from ..concrete.printer import show_statement
from ..deadline import Deadline, TimeOver
from ..format import Format
from ..frozen import frozen
from ..notation.nodes import Assignment
from ..notation.printer import show
from ..schedule.addresses import enclosing_loops, leaves
from ..schedule.dependence import graph_of
from ..schedule.directives import Call
from ..schedule.factors import flatten, product_factors
from ..units import HARDWARE
from .decorations import BUILD, SERIAL, Decoration, build_choices, inner_choices, parallel_styles, shares
from .gathers import GATHER
from .joins import Joins
from .library import schedules_for
from .marked import MARKED
from .memory import memory_of
from .openings import opened_stages
from .selection import DRAWN, ENCODINGS, RULES_ALONE, TILES, UNDOMINATED, Selection
from .situation import FEW_FACTORS, Situation, Structure, further
from .structures import structures
from .template import Hole, Template

MAX_CANDIDATES = 400
_ALSO_SERIAL = ("default", "chain", "blocks", "forest", GATHER, UNDOMINATED, ENCODINGS)  # structures that are tried without threads too


@frozen
class Candidate:
    """A template and what is known of it.

    Attributes:
        template: directives with holes.
        depth: the most original indices that loops around one assignment run through.
        memory: elements of the workspaces and buffers of one thread that are too large for registers and in memory at one time: a sum
            of products of extents and numbers such as "r + 8 * m", or ``max(..., ...)`` of sums; "0" where there are none.
        origin: default, or the filter that keeps the loop nest (``selection.RULES``); with a parallel style (rows, entries) or
            tiles; or library and a name.
        program: what the schedule makes with its usual values.
        structure: the same with nothing but loops and workspaces decided; None where it is not known separately.
    """

    template: Template
    depth: int
    memory: str
    origin: str
    program: Program = field(compare=False, repr=False)
    structure: Program | None = field(default=None, compare=False, repr=False)

    @property
    def is_by_rule(self) -> bool:
        """Whether a rule found it by the structure of the expression; at most ``MAX_CANDIDATES`` of these are listed."""
        return not self.is_given and not self.is_drawn and not self.origin.startswith((UNDOMINATED, ENCODINGS))

    @property
    def is_drawn(self) -> bool:
        """Whether its loop nest or the transformation of its loops was drawn, not found by a rule."""
        return self.origin.startswith(DRAWN) or self.origin.endswith(TILES)

    @property
    def is_given(self) -> bool:
        """Whether it is the default schedule or one of the library, which are always listed."""
        return not self.template or self.origin.startswith("library")

    def elements(self, extents: Mapping[str, int], unknown: int = 1_000_000) -> int:
        """Return the number that ``memory`` stands for; indices of unknown extent count as large."""

        def size(product: str) -> int:
            return prod(int(factor) if factor.isdigit() else extents.get(factor, unknown) for factor in product.split(" * "))

        times = self.memory.removeprefix("max(").removesuffix(")").split(", ")
        return max(sum(map(size, held.split(" + "))) for held in times)


def candidates(
    assignment: Assignment,
    formats: Mapping[str, Format],
    extents: Mapping[str, int] | None = None,
    threads: int = 1,
    deadline: Deadline | None = None,
    lengths: Mapping[str, int] | None = None,
    fibres: Mapping[str, tuple[float, ...]] | None = None,
    selection: Selection = RULES_ALONE,
    semiring: tuple[str, str] = ("+", "*"),
    blas: bool = False,
    joins: Joins | None = None,
    target: str = "cpu",
) -> tuple[Candidate, ...]:
    """Return the candidates of an expression, without duplicates, the default first and the same every time.

    Args:
        assignment: a checked assignment.
        formats: a format for every tensor, the result included.
        extents: known extents by index; those of dense indices choose between registers and blocks.
        threads: with one thread no loop is parallel.
        deadline: once it is over, what was found by then is returned: the default at least, and of long products, whose default is
            hopeless, one forest.
        lengths, fibres: extents of all indices, and positions of every level of the sparse operands, where operands are at hand.
        selection: which part of the space is listed.
        semiring: (add, multiply).
        blas: whether all values are of one type that BLAS has, on a processor.
        joins: sizes of what several operands store together, where operands are at hand.
        target: "cpu" or "cuda".
    """
    found = concretize(assignment, formats, *semiring)
    blas = blas and semiring == ("+", "*")
    situation = Situation(
        found.program, found.formats, dict(extents or {}), deadline or Deadline(), dict(lengths or {}), dict(fibres or {}), joins, blas
    )
    seen: set[tuple[object, ...]] = set()
    kept: list[Candidate] = []
    with suppress(TimeOver):
        space = _Listing(assignment, situation, threads, selection, target)
        for candidate in chain(space.by_rule(), space.library(), space.tiles()):
            key = _key(candidate.program)
            if key not in seen and (len(kept) < MAX_CANDIDATES or not candidate.is_by_rule):
                seen.add(key)
                kept.append(candidate)
    if not any(one.origin.startswith("forest") for one in kept) and selection.keeps("forest"):
        unhurried = _Listing(assignment, replace(situation, deadline=Deadline()), threads, selection, target)
        kept.extend(unhurried.long_forest())
    return tuple(kept)


class _Listing:
    """Lists the candidates of an expression, without those that cannot be applied."""

    def __init__(self, assignment: Assignment, situation: Situation, threads: int, selection: Selection, target: str) -> None:
        self._assignment, self._situation, self._threads, self._selection = assignment, situation, threads, selection
        self._target, self._on_device = target, HARDWARE[target].on_device
        self._nests: dict[str, Structure] = {}

    def by_rule(self) -> Iterator[Candidate]:
        """Yield the default and what filters find, each loop nest in its parallel styles."""
        situation, selection = self._situation, self._selection
        program = situation.program
        yield Candidate(Template(), _depth(program), memory_of(program, situation), "default", program, program)
        for structure in structures(situation, self._forests(), selection.nests):
            text = _shape(structure.program)
            if text in self._nests or not selection.keeps(structure.origin):
                continue
            if self._on_device and structure.origin == MARKED:
                continue  # lists of entries are made by one thread
            self._nests[text] = structure
            for style in self._styles(structure):
                yield from self._candidate(structure, style)

    def _forests(self) -> Iterator[Structure]:
        """Yield loop nest forests; products of two tensors, and sums, have none."""
        if len(product_factors(flatten(self._assignment.value))) > 2:
            from .forests.structures import forest_structures

            yield from forest_structures(self._assignment, self._situation)

    def long_forest(self) -> Iterator[Candidate]:
        """Yield one candidate of the forest of least work of a product of more than ``FEW_FACTORS`` factors, of which few are examined."""
        if len(product_factors(flatten(self._assignment.value))) > FEW_FACTORS:
            for structure in islice(self._forests(), 1):
                every = (self._candidate(structure, style) for style in self._styles(structure))
                yield from islice(chain.from_iterable(every), 1)

    def _styles(self, structure: Structure) -> Iterator[Decoration]:
        """Yield the directives that give loops to threads, or to the units of a GPU."""
        situation, threads = self._situation, self._threads
        if self._on_device:
            from .device_styles import device_styles  # imported here, since CPUs do not need it

            yield from device_styles(structure, situation)
            return
        yield from parallel_styles(structure, situation, threads)
        whole = isinstance(structure.program.statement, Forall)  # else two nests, one after another
        if threads < 2 or not whole or structure.origin in _ALSO_SERIAL:
            yield SERIAL
        if "threads" in self._selection.opened:
            yield from shares(structure.program, threads)

    def library(self) -> Iterator[Candidate]:
        """Yield the schedules of the library for the same expression, unchanged."""
        situation = self._situation
        if self._threads < 2 and not self._on_device:
            return
        for named, schedule in schedules_for(self._assignment, self._target, {**situation.lengths, **situation.extents}):
            program = further(situation.program, schedule, situation)
            if program is not None:
                origin = f"library: {named.name}"
                yield Candidate(Template(schedule.directives), _depth(program), memory_of(program, situation), origin, program)

    def tiles(self) -> Iterator[Candidate]:
        """Yield transformations of loops that are drawn, of loop nests that were listed."""
        selection = self._selection
        if selection.tiles and selection.keeps(TILES):
            from .draws import drawn_transformations  # imported here with the space that it draws from: a static choice needs neither

            nests = [nest for nest in self._nests.values() if nest.origin != DRAWN]
            for nest, drawn in drawn_transformations(
                nests, self._situation, self._threads, selection.tiles, selection.seed, self._target
            ):
                yield from self._candidate(nest, Decoration(drawn.template.parts, TILES))

    def _candidate(self, structure: Structure, style: Decoration) -> Iterator[Candidate]:
        """Yield a loop nest in a style with the open places that it admits; nothing where the style is refused."""
        situation, selection = self._situation, self._selection
        program = further(structure.program, style.parts, situation)
        if program is None:
            return
        bare, admitted = program, list[Hole]()
        inner = (*inner_choices(program, situation), build_choices(selection.compilers)) if not self._on_device else ()
        for hole in inner:
            first = next(choice for choice in hole.choices if choice is not None)
            trial = further(program, (hole,), situation, {hole.name: first})
            if trial is not None and all(_agree(hole, other, bare, situation) for other in admitted):
                admitted.append(hole)
                program = trial if hole.usual is not None else program
        template = structure.template.then(*style.parts, *admitted)
        for hole in opened_stages(bare, situation, selection):
            single = (Hole(hole.name, (choice,)) for choice in hole.choices if choice is not None)
            legal = tuple(one.usual for one in single if _goes_with(one, template, situation))
            if legal:
                template = template.then(Hole(hole.name, (None, *legal)))
        origin = f"{structure.origin}, {style.origin}" if style.origin else structure.origin
        yield Candidate(template, _depth(program), memory_of(program, situation), origin, program, structure.program)


def _agree(hole: Hole, other: Hole, program: Program, situation: Situation) -> bool:
    """Return whether all choices of two holes are legal together: loops that a library takes over take no other directives."""
    if not any(isinstance(choice, Call) for choice in (*hole.choices, *other.choices)):
        return True
    pairs = ({hole.name: mine, other.name: its} for mine in hole.choices for its in other.choices if mine is not None and its is not None)
    return all(further(program, (other, hole), situation, values) is not None for values in pairs)


def _goes_with(choice: Hole, template: Template, situation: Situation) -> bool:
    """Return whether the one choice of a hole is legal beside every choice of each hole of a template."""
    beside = ({other.name: one} for other in template.holes if other.name != BUILD for one in other.choices)
    parts = (*template.parts, choice)
    return all(further(situation.program, parts, situation, values) is not None for values in ({}, *beside))


def _shape(program: Program) -> str:
    """Return a text that is equal for programs that differ in the names of workspaces only."""
    text = show_statement(program.statement)
    for number, space in enumerate(program.workspaces):
        text = text.replace(f"{space.name}(", f"#{number}(").replace(f"{space.name} ", f"#{number} ")
    kinds = [space.kind for space in program.workspaces]
    return f"{text} {[(show(operand), str(form)) for operand, form in program.conversions]} {kinds}"


def _key(program: Program) -> tuple[object, ...]:
    return program.statement, program.workspaces, program.relations, program.conversions, program.assembly, program.build


def _depth(program: Program) -> int:
    graph = graph_of(program.relations)
    depths = [
        len({index for loop in enclosing_loops(program.statement, address) for index in graph.originals(loop)})
        for address, _ in leaves(program.statement)
    ]
    return max(depths, default=0)
