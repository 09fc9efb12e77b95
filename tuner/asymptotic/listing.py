"""Loop nests with what every line costs, as in Figures 1 and 2 of Ahrens et al., and costs as symbolic sizes."""

from __future__ import annotations

from collections.abc import Iterator

from ...compiler.concrete.nodes import Block, Forall, Stmt, Where
from ...compiler.space.protocolized import show_protocolized
from .interpret import Path
from .model import CostModel
from .query import Clause, Query, TaskSet, show_query


def annotated(model: CostModel, statement: Stmt) -> str:
    """Return a loop nest, one line a loop or assignment, each with the tasks that it costs by itself.

    Producers come first, as they run. A loop costs one task for each entry of the operands that it steps through.
    """
    costs = model.node_costs(statement)
    lines = [(text, _union(model, costs.get(path, ()))) for text, path in _lines(statement, (), 0)]
    width = max(len(text) for text, _ in lines)
    return "\n".join(f"{text:<{width}}  {cost}".rstrip() for text, cost in lines)


def _union(model: CostModel, tasks: TaskSet) -> str:
    names = model.vocabulary.display_names()
    return " + ".join(show_query(query, names) for query in tasks)


def _lines(statement: Stmt, path: Path, depth: int) -> Iterator[tuple[str, Path]]:
    pad = "  " * depth
    match statement:
        case Forall(index, body):
            yield f"{pad}for {index}", path
            yield from _lines(body, (*path, 0), depth + 1)
        case Where(consumer, producer):
            yield f"{pad}produce", (-1,)
            yield from _lines(producer, (*path, 1), depth + 1)
            yield f"{pad}consume", (-1,)
            yield from _lines(consumer, (*path, 0), depth + 1)
        case Block(statements):
            for place, inner in enumerate(statements):
                yield from _lines(inner, (*path, place), depth)
        case _:
            yield f"{pad}{show_protocolized(statement)}", path


def size_text(tasks: TaskSet, model: CostModel) -> str:
    """Return the number of tasks as a sum of sizes, such as ``nnz(B) + |{(i,k,j) | B(i,k) and C(k,j)}| + I*J``."""
    names = model.vocabulary.display_names()
    return " + ".join(_size(query, model, names) for query in tasks) or "1"


def _size(query: Query, model: CostModel, names: dict[tuple[str, int], str]) -> str:
    bound = {term for one in query.clauses for term in one.arguments}
    free = [variable.dimension for variable in query.head if variable.name not in bound]
    held = tuple(variable for variable in query.head if variable.name in bound)
    if not query.clauses:
        return "*".join(free) or "1"
    clauses = list(query.clauses)
    if len(clauses) == 1 and _is_whole(clauses[0], held, model):
        entries = f"nnz({clauses[0].predicate})"
    elif not held:
        entries = ""
    else:
        entries = f"|{show_query(Query(held, query.clauses), names)}|"
    return "*".join([entries, *free] if entries else free) or "1"


def _is_whole(one: Clause, held: tuple, model: CostModel) -> bool:
    """Whether a query has exactly one task for every entry of a stored operand."""
    names = {variable.name for variable in held}
    return one.predicate in model.vocabulary.sparse and set(one.arguments) == names and len(one.arguments) == len(names)
