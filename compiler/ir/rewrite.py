"""Functions that walk over and rewrite loop IR, for passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from itertools import chain
from operator import is_not
from typing import Concatenate, ParamSpec, TypeVar

from .intrinsics import INTRINSICS
from .nodes import Allocate, ArrayRef, Binary, Call, Declare, Fill, For, Function, Grow, Node, Run, SetVar, Step, Steps, Store, Value, Var
from .nodes.node import marks_of

N = TypeVar("N", bound=Node)
K = TypeVar("K", bound=Node)
T = TypeVar("T")
P = ParamSpec("P")
_BINDING = (Declare, SetVar, For)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it, parents first, in written order."""
    return chain((node,), node.below)


def has(node: Node, *kinds: type[Node]) -> bool:
    """Return whether nodes of one of the given classes are among a node and everything below it."""
    return node.marks & marks_of(kinds) != 0


def has_only(node: Node, *kinds: type[Step]) -> bool:
    """Return whether all statements among a node and everything below it are of the given classes."""
    return node.marks & Step.all_marks & ~marks_of(kinds) == 0


def nodes_of(node: Node, *kinds: type[K]) -> list[K]:
    """Return the nodes of the given classes among a node and everything below it, parents first, in written order.

    A node knows which classes occur below it, so that only those that have some are visited.
    """
    found: list[Node] = []
    wanted = marks_of(kinds)
    if node.marks & wanted:
        _gather(node, wanted, found)
    return found  # type: ignore[return-value]  # which are those of these classes


def _gather(node: Node, wanted: int, found: list[Node]) -> None:
    if node.mark & wanted:
        found.append(node)
    for child in node.children:
        if child.marks & wanted:
            _gather(child, wanted, found)


def transform(node: N, change: Callable[[Node], Node]) -> N:
    """Return a node with ``change`` applied to it and everything below it, children first.

    The variables that statements declare, assign or use as loop counters are not visited by themselves.
    """
    children = node.children
    if children:
        bound = isinstance(node, _BINDING)
        changed = [child if bound and place == 0 else transform(child, change) for place, child in enumerate(children)]
        if any(map(is_not, changed, children)):
            return change(node.rebuild(tuple(changed)))  # type: ignore[return-value]  # passes keep expressions and statements apart
    return change(node)  # type: ignore[return-value]


def transform_steps(statement: Step, change: Callable[[Step], Step]) -> Step:
    """As ``transform``, for a change of statements only; expressions are not visited."""
    children = statement.children
    changed = [transform_steps(child, change) if isinstance(child, Step) else child for child in children]
    if any(map(is_not, changed, children)):
        statement = statement.rebuild(tuple(changed))  # type: ignore[assignment]  # statements rebuild to statements
    return change(statement)


def transform_loops(statement: Step, change: Callable[[For], Step]) -> Step:
    """As ``transform_steps``, for a change of loops only; statements without loops are not visited."""
    if not statement.marks & For.mark:
        return statement
    changed = [transform_loops(child, change) if isinstance(child, Step) else child for child in statement.children]
    if any(map(is_not, changed, statement.children)):
        statement = statement.rebuild(tuple(changed))  # type: ignore[assignment]  # statements rebuild to statements
    return change(statement) if isinstance(statement, For) else statement


def settle(node: N, change: Callable[[Node], Node]) -> N:
    """As ``transform``, for a change that depends on the node alone. If it changes nothing in a node and below, the node remembers that
    and is not visited again."""
    if node.settled is change:
        return node
    children, whole = node.children, node
    if children:
        changed = [child if child.settled is change else settle(child, change) for child in children]
        if isinstance(node, _BINDING):
            changed[0] = children[0]
        if any(map(is_not, changed, children)):
            whole = node.rebuild(tuple(changed))
    made = change(whole)
    if made is node:
        node.__dict__["settled"] = change
        return node
    return made  # type: ignore[return-value]  # passes keep expressions and statements apart


def remembered(function: Callable[Concatenate[N, P], T]) -> Callable[Concatenate[N, P], T]:
    """Cache the value of a function of a node and of constants at the node, which never changes."""

    @wraps(function)
    def asked(node: N, *given: P.args, **named: P.kwargs) -> T:
        known = node.__dict__.setdefault("remembered", {})
        key = (function, given)
        if key not in known:
            known[key] = function(node, *given, **named)
        return known[key]

    return asked


def substitute(node: N, values: Mapping[str, Value]) -> N:
    """Return a node with variables replaced by expressions. A declaration of the same name inside hides the variable."""
    if node.variables.isdisjoint(values):
        return node
    match node:
        case Var(name):
            return values.get(name, node)  # type: ignore[return-value]
        case For(variable):
            inner = {name: value for name, value in values.items() if name != variable.name}
            return replace(  # type: ignore[return-value]
                node,
                low=substitute(node.low, values),
                high=substitute(node.high, values),
                body=substitute(node.body, inner),
                private=tuple(substitute(part, values) for part in node.private),
                finish=tuple(substitute(part, values) for part in node.finish),
            )
        case Steps(statements):
            return Steps(_substitute_in_order(statements, dict(values)))  # type: ignore[return-value]
        case Declare(variable, value):
            return Declare(variable, substitute(value, values))  # type: ignore[return-value]
        case SetVar(variable, value, op):
            return SetVar(variable, substitute(value, values), op)  # type: ignore[return-value]
    children = node.children
    return node.rebuild(tuple(substitute(child, values) for child in children)) if children else node  # type: ignore[return-value]


def _substitute_in_order(statements: tuple[Step, ...], values: dict[str, Value]) -> tuple[Step, ...]:
    changed = []
    for statement in statements:
        changed.append(substitute(statement, values))
        for declaration in _flat(statement):
            values.pop(declaration.variable.name, None)
    return tuple(changed)


def _flat(statement: Step) -> Iterator[Declare]:
    """Yield the declarations that a statement of a block makes visible after it."""
    if isinstance(statement, Declare):
        yield statement
    elif isinstance(statement, Steps):
        for inner in statement.statements:
            yield from _flat(inner)


def mentions(node: Node, names: frozenset[str] | set[str]) -> bool:
    """Return whether one of the variables occurs in a node."""
    return not node.variables.isdisjoint(names)


def is_pure(expr: Value) -> bool:
    """Return whether an expression changes nothing, so that it may be dropped or moved."""
    return not changes_by_call(expr)


def changes_by_call(node: Node) -> bool:
    """Return whether a call in a node changes something."""
    if not node.marks & Call.mark:
        return False
    return any(call.function in INTRINSICS and INTRINSICS[call.function].updates for call in nodes_of(node, Call))


def written_arrays(node: Node) -> set[str]:
    """Return the arrays that a node writes, by statements or by calls that change their first argument."""
    found = {inner.array for inner in nodes_of(node, Store, Fill)}
    calls = [call for call in nodes_of(node, Run, Call) if INTRINSICS[call.function].updates]
    return found | {argument.array for call in calls for argument in call.arguments[:1] if isinstance(argument, ArrayRef)}


def block(statements: tuple[Step, ...] | list[Step]) -> Steps:
    """Return a block without empty blocks in it."""
    return Steps(tuple(statement for statement in statements if not is_empty(statement)))


def block_again(before: Steps, statements: list[Step]) -> Steps:
    """Return a block without empty blocks in it: the one before if it has the same statements, about which it remembers a lot."""
    made, known = block(statements), before.statements
    return before if len(made.statements) == len(known) and not any(map(is_not, made.statements, known)) else made


def as_steps(statement: Step) -> Steps:
    """Return a statement as a block; a block is returned as it is."""
    return statement if isinstance(statement, Steps) else Steps((statement,))


def flat(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield statements in order, with blocks replaced by their statements."""
    for step in steps:
        yield from flat(step.statements) if isinstance(step, Steps) else (step,)


@remembered
def may_fail(statement: Step) -> bool:
    """Return whether a statement may fail because there is no memory."""
    return any(map(_fails, nodes_of(statement, Allocate, Call, Grow)))


def _fails(node: Node) -> bool:
    match node:
        case Allocate(storage=storage):
            return storage == "heap"
        case Call(function=function):
            return function == "map_insert"
    return isinstance(node, Grow)


def own_declarations(block: Steps) -> set[str]:
    """Return the scalars and register arrays that a block declares, blocks inside it included."""
    names: set[str] = set()
    for statement in block.statements:
        if isinstance(statement, Declare):
            names.add(statement.variable.name)
        elif isinstance(statement, Allocate) and statement.storage == "registers":
            names.add(statement.array)
        elif isinstance(statement, Steps):
            names |= own_declarations(statement)
    return names


def leaves(statement: Step) -> list[Step]:
    """Return the statements of a block and of the blocks in it; for any other statement, the statement itself."""
    return [leaf for inner in statement.statements for leaf in leaves(inner)] if isinstance(statement, Steps) else [statement]


def is_empty(statement: Step) -> bool:
    """Return whether a statement does nothing."""
    return isinstance(statement, Steps) and all(is_empty(inner) for inner in statement.statements)


def pairwise(values: list[Value], op: str) -> Value:
    """Return all values combined in a balanced tree, neighbours first, so that operations wait little for one another."""
    while len(values) > 1:
        pairs = [values[place : place + 2] for place in range(0, len(values), 2)]
        values = [Binary(op, pair[0], pair[1], pair[0].type) if len(pair) == 2 else pair[0] for pair in pairs]
    return values[0]


def array_types(function: Function) -> dict[str, str]:
    """Return the name of the element type of every array of a function, by the array's name."""
    types = {parameter.name: parameter.type.name for parameter in function.arrays}
    return types | {node.array: node.type.name for node in nodes_of(function.body, Allocate)}
