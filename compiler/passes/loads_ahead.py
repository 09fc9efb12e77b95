"""Groups the loads of several iterations in unrolled loops of a GPU whose number of iterations is not a constant.

A thread waits for a load only when its value is used. ``for p: j = crd[p]; sum += vals[p] * X[j * 32 + k]`` waits for one row of ``X``
after the other. With ``unroll(j, 4)`` it loads four coordinates, then the elements of four rows, then adds four times, in the same
order. Compilers do not rearrange loops without constant length like that. In the remainder of fewer than four iterations, the missing
iterations load the same as the last one, and are not added. Sums that the lanes of a warp make together are made for all four iterations
at once. Values that are the same in all iterations are loaded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import compress

from ..frozen import frozen
from ..ir.arithmetic import ONE, add, compare, integer, minimum, multiply, quotient, subtract
from ..ir.nodes import (
    I64,
    Allocate,
    ArrayRef,
    Binary,
    Const,
    Dealt,
    Declare,
    For,
    Function,
    If,
    Load,
    Node,
    Run,
    SetVar,
    Step,
    Steps,
    Store,
    Unroll,
    Value,
    Var,
    While,
)
from ..ir.rewrite import as_steps, mentions, nodes_of, transform
from .manager import Setting


def load_ahead(function: Function, setting: Setting) -> Function:
    """Return a function whose threads load the data of several iterations of an unrolled loop before they compute with any of it."""
    constant = frozenset(parameter.name for parameter in function.arrays if not parameter.writable)
    fresh = setting.fresh

    def visit(step: Step, in_kernel: bool) -> Step:
        if isinstance(step, For):
            in_kernel = in_kernel or isinstance(step.tag, Dealt)
            if in_kernel and (found := _phases(step, constant, fresh)) is not None:
                assert isinstance(step.tag, Unroll)
                return _together(step, found, step.tag.factor, fresh)
        children = tuple(visit(child, in_kernel) if isinstance(child, Step) else child for child in step.children)
        return step.rebuild(children) if children else step  # type: ignore[return-value]  # statements stay statements

    return replace(function, body=as_steps(visit(function.body, False)))


@frozen
class Phases:
    """An iteration in two parts: steps that load, in order, and steps that compute with the loaded values."""

    loads: tuple[Step, ...]
    rest: Step
    dealt: tuple[For, Phases] | None = None
    """A loop between the two parts that is dealt out to lanes, with its phases; one such loop computes for all iterations."""

    @property
    def is_apart(self) -> bool:
        """Whether lanes write only what the loads of an iteration declare, of which every iteration has its own."""
        assert self.dealt is not None
        made = {name for step in (*self.loads, *self.dealt[1].loads) for name in _made(step)}
        return made.issuperset(_written(self.dealt[1].rest))


def _phases(loop: For, constant: frozenset[str], fresh: Callable[[str], str]) -> Phases | None:
    """Return the phases of an unrolled loop without constant length; None for other loops, or if iterations may change what is loaded."""
    if not (isinstance(loop.tag, Unroll) and loop.tag.factor > 1 and loop.step == 1) or isinstance(loop.high, Const):
        return None
    return _around_lanes(loop, constant, fresh) or phases_of(loop, constant, fresh)


def _around_lanes(loop: For, constant: frozenset[str], fresh: Callable[[str], str]) -> Phases | None:
    """Return the phases of an iteration with one loop that is dealt out to lanes; None if there is none, or more than one."""
    steps = _flat(loop.body)
    places = [place for place, step in enumerate(steps) if isinstance(step, For) and isinstance(step.tag, Dealt)]
    if len(places) != 1 or not all(_is_load(step, constant) for step in steps[: places[0]]):
        return None
    dealt, rest = steps[places[0]], Steps(tuple(steps[places[0] + 1 :]))
    assert isinstance(dealt, For)
    if dealt.private or dealt.finish or _length(dealt) is None or nodes_of(rest, For, If, While, Declare):
        return None
    inner = phases_of(dealt, constant, fresh)
    if inner is None:
        return None
    found = Phases(tuple(steps[: places[0]]), rest, (dealt, inner))
    return found if found.is_apart or not rest.statements else None


def phases_of(loop: For, constant: frozenset[str], fresh: Callable[[str], str]) -> Phases | None:
    """Return the phases of an iteration; None if it loads nothing, or something that earlier iterations may change."""
    if any(not _is_plain(inner) for inner in nodes_of(loop.body, For)):
        return None
    if nodes_of(loop.body, If, While):
        return None
    steps = _flat(loop.body)
    first = next((place for place, step in enumerate(steps) if not _is_load(step, constant)), len(steps))
    before, rest = steps[:first], Steps(tuple(steps[first:]))
    own = {node.variable.name for node in nodes_of(rest, Declare, For, SetVar)}
    loads: dict[Load, Var] = {}
    for load in nodes_of(rest, Load):
        if load.array in constant and load not in loads and not mentions(load.index, own):
            loads[load] = Var(fresh(f"{load.array}_ahead"), load.type)
    if not before and not loads:
        return None

    def change(node: Node) -> Node:
        return loads.get(node, node) if isinstance(node, Load) else node

    return Phases((*before, *(Declare(variable, load) for load, variable in loads.items())), transform(rest, change))


def _is_plain(loop: For) -> bool:
    """Return whether an inner loop runs through a constant range in one thread."""
    return not isinstance(loop.tag, Dealt) and _length(loop) is not None


def _length(loop: For) -> int | None:
    """Return how many iterations a loop has if that is a constant, else None."""
    match loop.low, loop.high:
        case Const(low), Const(high):
            return int(high) - int(low)
        case low, Binary("+", begin, Const(length)) if begin == low:
            return int(length)
    return None


def _flat(step: Step) -> list[Step]:
    if not isinstance(step, Steps):
        return [step]
    return [inner for child in step.statements for inner in _flat(child)]


def _is_load(step: Step, constant: frozenset[str]) -> bool:
    """Return whether a step only loads into registers from arrays that are never written."""
    match step:
        case Allocate(storage="registers", zero=False):
            return True
        case Run("load_wide", (_, ArrayRef(array), *_)):
            return array in constant
        case Declare():
            return all(load.array in constant for load in nodes_of(step.value, Load))
    return False


def _together(loop: For, phases: Phases, factor: int, fresh: Callable[[str], str]) -> Step:
    """Return a loop over groups of ``factor`` iterations, and the remainder."""
    name = loop.variable.name
    begin, end, whole = (Var(fresh(f"{name}_{part}"), I64) for part in ("begin", "end", "whole"))
    groups = multiply(quotient(subtract(end, begin), integer(factor)), integer(factor))
    many = iterations_at(phases, loop.variable, [add(loop.variable, integer(place)) for place in range(factor)], None, fresh)
    last = [minimum(add(whole, integer(place)), subtract(end, ONE)) for place in range(factor - 1)]
    some = iterations_at(phases, loop.variable, last, lambda place: compare("<", add(whole, integer(place)), end), fresh)
    declared = (Declare(begin, loop.low), Declare(end, loop.high), Declare(whole, add(begin, groups)))
    inside = replace(loop, low=begin, high=whole, body=many, tag=Unroll(1), step=factor)
    return Steps((*declared, inside, If(compare("<", whole, end), some)))


def iterations_at(
    phases: Phases, variable: Var, places: list[Value], there: Callable[[int], Value] | None, fresh: Callable[[str], str]
) -> Steps:
    """Return several iterations: the loads of all, then the computations of each, under the condition ``there`` that it exists."""
    found: list[Step] = []
    loads: list[list[Step]] = []
    of_lanes: list[list[Step]] = []
    sums: list[Step] = []
    rest: list[Step] = []
    dealt, inner = phases.dealt or (None, None)
    varying = _varying(phases, variable)
    (once, each), (once_of_lanes, each_of_lanes) = (_parted(part.loads, varying) if part else ([], []) for part in (phases, inner))
    # The remainder is made of the same phases as the groups, and a function has each array once.
    rows = {name: fresh(name) for step in (*once, *once_of_lanes) if isinstance(step, Allocate) for name in _made(step)}
    once, once_of_lanes = ([_renamed(step, variable, variable, rows) for step in steps] for steps in (once, once_of_lanes))
    for number, place in enumerate(places):
        at = variable if place == variable else Var(fresh(f"{variable.name}_{number}"), I64)
        found += [] if at == place else [Declare(at, place)]
        made = rows | {name: fresh(f"{name}_{number}") for step in (*each, *each_of_lanes) for name in _made(step)}
        loads.append([_renamed(step, variable, at, made) for step in each])
        of_lanes.append([_renamed(step, variable, at, made) for step in each_of_lanes])
        present = None if there is None or number == 0 else there(number)
        if inner:
            summed = _renamed(inner.rest, variable, at, made)
            sums.append(summed if present is None or phases.is_apart else If(present, summed))
        computed = _renamed(phases.rest, variable, at, made)
        rest.append(computed if present is None else If(present, computed))
    if dealt is not None:
        rest.insert(0, replace(dealt, body=Steps((*once_of_lanes, *_in_turn(of_lanes), *sums))))
    return Steps((*found, *once, *_in_turn(loads), *rest))


def _varying(phases: Phases, variable: Var) -> set[str]:
    """Return the names of variables and arrays that differ between iterations."""
    inner = phases.dealt[1] if phases.dealt else None
    computed = (phases.rest, *((inner.rest,) if inner else ()))
    found = {variable.name, *(name for step in computed for name in _written(step))}
    for step in (*phases.loads, *(inner.loads if inner else ())):
        match step:
            case Declare(made) if not found.isdisjoint(_names(step.value)):
                found.add(made.name)
            case Run(_, (ArrayRef(row), *_)) if not found.isdisjoint(_names(step)):
                found.add(row)
    return found


def _written(step: Step) -> set[str]:
    """Return the names of variables and arrays that a step changes, or that a function it runs may change."""
    found = {node.variable.name for node in nodes_of(step, SetVar)} | {node.array for node in nodes_of(step, Store)}
    return found | {array.array for run in nodes_of(step, Run) for array in nodes_of(run, ArrayRef)}


def _names(node: Node) -> set[str]:
    return {*node.variables, *(inner.array for inner in nodes_of(node, Load, ArrayRef))}


def _parted(steps: tuple[Step, ...], varying: set[str]) -> tuple[list[Step], list[Step]]:
    """Return the steps that are the same in every iteration, and the others."""
    changes = [not varying.isdisjoint({*_names(step), *_made(step)}) for step in steps]
    return [step for step, other in zip(steps, changes, strict=True) if not other], [*compress(steps, changes)]


def _in_turn(iterations: list[list[Step]]) -> list[Step]:
    """Return the first steps of all iterations, then the second steps, and so on."""
    return [step for phase in zip(*iterations, strict=True) for step in phase]


def _made(step: Step) -> tuple[str, ...]:
    """Return the name of the variable or array that a step declares."""
    match step:
        case Declare(Var(name)) | Allocate(name):
            return (name,)
    return ()


def _renamed(step: Step, variable: Var, at: Var, made: Mapping[str, str]) -> Step:
    """Return a step of the iteration at a place, with its own names for loaded variables and arrays."""

    def change(node: Node) -> Node:
        match node:
            case Load(array) | Store(array) | ArrayRef(array) | Allocate(array) if array in made:
                return replace(node, array=made[array])
            case Declare(declared) | SetVar(declared) if declared.name in made:
                return replace(node, variable=replace(declared, name=made[declared.name]))
            case Var(name) if name in made:
                return replace(node, name=made[name])
            case Var() if node == variable:
                return at
        return node

    return transform(step, change)
