"""The innermost loops of x86-64 assembly, found through its control flow graph."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LABEL = re.compile(r"^(\.?\w+):")
_JUMP = re.compile(r"^\s+(j\w+)\s+(\.?\w+)")
_END = re.compile(r"^\s+(ret|jmp|ud2)\b")
_DIRECTIVE = re.compile(r"^\s+\.")

Graph = dict[int, set[int]]


def innermost_loops(lines: list[str]) -> list[list[str]]:
    """Return the instructions of every loop that holds no other loop.

    A loop is a strongly connected part of the flow of control; the loops inside it are those that remain without its
    entries.
    """
    blocks = _blocks(lines)
    pending = list(_cycles(_flow(blocks), set(range(len(blocks)))))
    graph, found = _flow(blocks), []
    while pending:
        loop = pending.pop()
        entries = {block for block in loop if any(block in graph[before] for before in graph if before not in loop)}
        inner = list(_cycles(graph, loop - (entries or {min(loop)})))
        pending += inner
        if not inner:
            found.append([line for block in sorted(loop) for line in blocks[block]])
    return found


def _blocks(lines: list[str]) -> list[list[str]]:
    """Cut assembly where control may enter or leave. After a jump a directive, as of alignment, is no place that control comes from."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if _DIRECTIVE.match(line):
            continue
        if _LABEL.match(line) and blocks[-1]:
            blocks.append([])
        blocks[-1].append(line)
        if _JUMP.match(line) or _END.match(line):
            blocks.append([])
    return [block for block in blocks if block]


def _flow(blocks: list[list[str]]) -> Graph:
    labels = {match.group(1): number for number, block in enumerate(blocks) if (match := _LABEL.match(block[0]))}
    graph: Graph = {number: set() for number in range(len(blocks))}
    for number, block in enumerate(blocks):
        jump = _JUMP.match(block[-1])
        if jump and jump.group(2) in labels:
            graph[number].add(labels[jump.group(2)])
        if not _END.match(block[-1]) and number + 1 < len(blocks):
            graph[number].add(number + 1)
    return graph


def _cycles(graph: Graph, allowed: set[int]) -> Iterator[set[int]]:
    """Yield the strongly connected parts that hold a cycle (by two sweeps: Kosaraju)."""
    order: list[int] = []
    seen: set[int] = set()
    for start in sorted(allowed):
        _sweep(graph, allowed, start, seen, order)
    backward: Graph = {node: set() for node in allowed}
    for node in allowed:
        for after in graph[node] & allowed:
            backward[after].add(node)
    seen = set()
    for start in reversed(order):
        part: list[int] = []
        _sweep(backward, allowed, start, seen, part)
        if len(part) > 1 or (part and part[0] in graph[part[0]]):
            yield set(part)


def _sweep(graph: Graph, allowed: set[int], start: int, seen: set[int], finished: list[int]) -> None:
    """Append the nodes that can be reached from a node, each after all nodes behind it."""
    stack = [(start, iter(sorted(graph[start] & allowed)))] if start not in seen else []
    seen.add(start)
    while stack:
        node, following = stack[-1]
        after = next((candidate for candidate in following if candidate not in seen), None)
        if after is None:
            finished.append(node)
            stack.pop()
        else:
            seen.add(after)
            stack.append((after, iter(sorted(graph[after] & allowed))))
