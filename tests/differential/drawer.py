"""Draws directives that fit the loops of a program as it stands: whether they are legal is for the rules to say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from sparsetune.compiler.concrete.nodes import Forall, Program, assignments, loops, reads, walk
from sparsetune.compiler.errors import ScheduleError
from sparsetune.compiler.format import Format
from sparsetune.compiler.notation.nodes import Access, Literal, Mul, walk_expression
from sparsetune.compiler.notation.printer import show
from sparsetune.compiler.schedule.apply import apply_schedule
from sparsetune.compiler.schedule.dependence import graph_of
from sparsetune.compiler.workspaces import WORKSPACES

RACES = ("no_races", "ignore_races", "atomics", "temporary", "parallel_reduction")
KINDS = tuple(WORKSPACES)
CONVERSIONS = {1: ("dense", "compressed"), 2: ("csr", "csc", "dcsr", "coo", "dense"), 3: ("csf", "dss", "coo", "dense")}
SHAPING = (
    "reorder", "reorder", "split", "split", "split_up", "collapse", "collapse", "pos", "pos", "coord", "bound", "precompute", "precompute",
    "factors", "loopfuse", "convert", "protocol",
)  # fmt: skip
FINISHING = (
    "thread", "thread", "thread", "vector", "unroll", "prefetch", "workspace", "workspace", "assemble", "merge", "protocol", "build",
)  # fmt: skip


class Drawer:
    """Draws directives for one expression.

    Attributes:
        result: the name of the tensor on the left.
        extents: compile-time constants, by index: what ``bound`` may say for certain.
        formats: of operands and result.
    """

    def __init__(self, rng: Random, result: str, extents: Mapping[str, int], formats: Mapping[str, Format]) -> None:
        self.rng, self.result, self.extents, self.formats = rng, result, extents, formats
        self.count = 0

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def shaping(self, program: Program) -> str:
        """Return a directive that changes loops or statements."""
        return self._one(SHAPING, program)

    def finishing(self, program: Program) -> str:
        """Return a directive that says how loops run, or how data is kept."""
        return self._one(FINISHING, program)

    def _one(self, kinds: tuple[str, ...], program: Program) -> str:
        """Return a directive of one of some kinds, of which there are always some that have something to act on."""
        while True:
            proposed: str = getattr(self, f"_{self.rng.choice(kinds)}")(program)
            if proposed:
                return proposed

    def _loop(self, program: Program) -> str:
        return self.rng.choice(loops(program.statement))

    def _reorder(self, program: Program) -> str:
        chain = self.rng.choice(chains(program))[:6]
        return f"reorder({', '.join(self.rng.sample(chain, len(chain)))})"

    def _split(self, program: Program) -> str:
        return f"split({self._loop(program)}, {self.new()}, {self.new()}, {self.rng.choice((1, 2, 3, 4, 7, 100))})"

    def _split_up(self, program: Program) -> str:
        return f"split_up({self._loop(program)}, {self.new()}, {self.new()}, {self.rng.choice((1, 2, 3, 5))})"

    def _collapse(self, program: Program) -> str:
        loop = self._loop(program)
        pairs = [pair for chain in chains(program) for pair in pairwise(chain)] or [(loop, loop)]
        return f"collapse({', '.join(self.rng.choice(pairs))}, {self.new()})"

    def _pos(self, program: Program) -> str:
        loop, graph = self._loop(program), graph_of(program.relations)
        read = {access for access in reads(program.statement) if set(graph.originals(loop)) <= set(access.indices)}
        stored = [access for access in sorted(read, key=show) if access.tensor in self.formats and not self.formats[access.tensor].is_dense]
        return f"pos({loop}, {self.new()}, {self._text(self.rng.choice(stored))})" if stored else ""

    def _coord(self, program: Program) -> str:
        graph = graph_of(program.relations)
        positions = [loop for loop in loops(program.statement) if graph.space(loop) == "position"]
        return f"coord({self.rng.choice(positions)}, {self.new()})" if positions else ""

    def _bound(self, program: Program) -> str:
        """Bounds that hold for every input: of the beginning, and of extents that are constants."""
        loop = self._loop(program)
        known = [("0", "min_exact"), ("0", "min_constraint")]
        if loop in self.extents:
            known += [(str(self.extents[loop]), "max_exact"), (str(self.extents[loop] + 2), "max_constraint")]
            known += [(str(number), "divisible") for number in (2, 3, 4) if self.extents[loop] % number == 0]
        amount, kind = self.rng.choice(known)
        return f"bound({loop}, {self.new()}, {amount}, {kind})"

    def _factors(self, program: Program) -> str:
        leaf = self.rng.choice(assignments(program.statement))
        parts = leaf.value.operands if isinstance(leaf.value, Mul) else (leaf.value,)
        return f"factors({', '.join(show(part) for part in self.rng.sample(parts, len(parts)))})"

    def _loopfuse(self, program: Program) -> str:
        rng = self.rng
        if not any(isinstance(leaf.value, Mul) for leaf in assignments(program.statement)):
            return ""
        return f"loopfuse({rng.randint(1, 2)}, {rng.choice(('true', 'false'))}, {rng.choice(('[]', '[0]', '[1]', '[1, 0]'))})"

    def _precompute(self, program: Program) -> str:
        """Some factors or addends of an assignment, over loops as they are or as they once were, several deep."""
        rng = self.rng
        leaf = rng.choice(assignments(program.statement))
        node = rng.choice([node for node in walk_expression(leaf.value) if not isinstance(node, Literal)] or [leaf.value])
        parts = list(node.operands) if isinstance(node, Mul) else [node]
        chosen = rng.sample(parts, rng.randint(1, len(parts)))
        part = show(node.rebuild(tuple(chosen)) if len(chosen) > 1 else chosen[0])
        present = list(loops(program.statement))
        if rng.random() < 0.3:
            present = list(dict.fromkeys((*present, *(name for access in reads(program.statement) for name in access.indices))))
        over = rng.sample(present, rng.randint(0, min(3, len(present))))
        made = [name if rng.random() < 0.5 else self.new() for name in over]
        return f"precompute({part}, [{', '.join(over)}], [{', '.join(made)}], {self.new()})"

    def _thread(self, program: Program) -> str:
        rng = self.rng
        if any(isinstance(node, Forall) and node.tag.unit == "cpu_thread" for node in walk(program.statement)) and rng.random() < 0.8:
            return ""
        outer = rng.choice([chain[0] for chain in chains(program)]) if rng.random() < 0.7 else self._loop(program)
        turn = rng.choice(("", ", static", ", dynamic, 1", ", guided", ", dynamic, 4"))
        return f"parallelize({outer}, cpu_thread, {self._race(program, outer)}{turn})"

    def _vector(self, program: Program) -> str:
        inner = self.rng.choice([chain[-1] for chain in chains(program)]) if self.rng.random() < 0.7 else self._loop(program)
        return f"parallelize({inner}, cpu_vector, {self._race(program, inner)})"

    def _race(self, program: Program, loop: str) -> str:
        """Return a strategy: a stronger one than the loop needs is legal too, a weaker one hardly ever."""
        apart = set(graph_of(program.relations).originals(loop)) <= set(self._target(program).indices)
        return self.rng.choice(RACES if apart else RACES[1:])

    def _unroll(self, program: Program) -> str:
        return f"unroll({self._loop(program)}, {self.rng.choice((2, 4, 3))})"

    def _prefetch(self, program: Program) -> str:
        loop, graph = self._loop(program), graph_of(program.relations)
        read = {access for access in reads(program.statement) if set(graph.originals(loop)) & set(access.indices)}
        rows = [access for access in sorted(read, key=show) if access.tensor in self.formats]
        return f"prefetch({loop}, {self._text(self.rng.choice(rows))}, {self.rng.choice((1, 8))})" if rows else ""

    def _workspace(self, program: Program) -> str:
        if not program.workspaces:
            return ""
        space = self.rng.choice(program.workspaces)
        return f"workspace({space.name}, {self.rng.choice(KINDS[1:] if space.indices else KINDS[:1])})"

    def _assemble(self, program: Program) -> str:
        if self.formats[self.result].is_dense:
            return ""
        strategy = self.rng.choice(("insert", "append", "workspace"))
        if strategy != "workspace" and self.rng.random() < 0.5:
            return f"protocol({self.result}, {', '.join([strategy] * len(self.formats[self.result]))})"
        return f"assemble({self.result}, {strategy})"

    def _merge(self, program: Program) -> str:
        return f"merge({self._loop(program)}, {self.rng.choice(('two_finger', 'locate', 'gallop', 'bitmap'))})"

    def _convert(self, program: Program) -> str:
        operands = [access for access in reads(program.statement) if access.tensor in self.formats]
        access = self.rng.choice(operands or [self._target(program)])
        return f'convert({self._text(access)}, "{self.rng.choice(CONVERSIONS.get(len(access.subscripts), ("dense",)))}")'

    def _protocol(self, program: Program) -> str:
        access = self.rng.choice(reads(program.statement) or (self._target(program),))
        given = [self.rng.choice(("step", "step", "locate")) for _ in access.subscripts] or ["step"]
        return f"protocol({self._text(access)}, {', '.join(given)})"

    def _build(self, program: Program) -> str:
        return self.rng.choice(('build(auto, "-O1")', "build(auto)", 'build(gcc, "-O2")'))

    def _text(self, access: Access) -> str:
        return show(access) if self.rng.random() < 0.7 else access.tensor

    def _target(self, program: Program) -> Access:
        return assignments(program.statement)[-1].target


@dataclass(frozen=True)
class Drawn:
    """A schedule that was drawn directive by directive.

    Attributes:
        kept: the directives that are legal one after another.
        refused: those that were dropped, because they are not.
    """

    kept: tuple[str, ...]
    refused: tuple[str, ...]

    @property
    def schedule(self) -> str:
        return "; ".join(self.kept)


def drawn(drawer: Drawer, default: Program, allowed: Callable[[str], bool] = bool, begun: Sequence[str] = ()) -> Drawn:
    """Draw a schedule of a default program: first what changes loops and statements, then how they run.

    Args:
        drawer: proposes directives.
        default: what they are applied to.
        allowed: whether a directive may be kept if it is legal.
        begun: directives that the schedule begins with.
    """
    program, kept, refused = apply_schedule(default, "; ".join(begun), drawer.formats, drawer.extents), list(begun), list[str]()
    shaping = drawer.rng.randint(0, 12)
    for number in range(shaping + drawer.rng.randint(0, 9)):
        if not loops(program.statement):
            break
        proposed = drawer.shaping(program) if number < shaping else drawer.finishing(program)
        if not allowed(proposed):
            continue
        try:
            program = apply_schedule(default, "; ".join([*kept, proposed]), drawer.formats, drawer.extents)
        except ScheduleError:
            refused.append(proposed)
        else:
            kept.append(proposed)
    return Drawn(tuple(kept), tuple(refused))


def chains(program: Program) -> list[list[str]]:
    """Return the loops that stand directly inside each other, outermost first, for every such nest."""
    found, inside = [], set()
    for node in walk(program.statement):
        chain: list[str] = []
        while isinstance(node, Forall) and id(node) not in inside:
            inside.add(id(node))
            chain.append(node.index)
            node = node.body
        if chain:
            found.append(chain)
    return found or [[]]
