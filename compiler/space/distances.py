"""How far away elements of arrays are, in operations of the static model: what costs of schedules and the work of forests count alike."""

from __future__ import annotations

LANES = 4.0  # what vectors gain in kernels that also wait for memory
START = 4.0  # operations that starting an innermost loop costs
LINE = (3.0, 10.0)  # operations that a line of a cache costs which comes again from the caches beyond the second level, or from memory
REGISTERS = 256  # elements up to which a workspace of known size stays in registers
NEAR, FAR = 2.0**12, 2.0**17  # elements that the first and second level of cache hold
MEMORY = 2.0**22  # elements beyond which an array comes from memory
PER_LINE = 8.0  # elements of eight bytes in a line of a cache


def distance(elements: float) -> float:
    """Return how much longer than from the first level of cache it takes to get a value of an array of so many elements."""
    return 1.0 if elements <= NEAR else 2.0 if elements <= FAR else 1.0 + LINE[0]


def workspace_distance(elements: float) -> float:
    """Return the same of a workspace, whose lines go to memory and come from there where no cache holds it."""
    return 1.0 + LINE[1] if elements > MEMORY else distance(elements)


def passed_through(elements: float, per_line: float = PER_LINE) -> float:
    """Return the operations of a load of a workspace, or of a store to it, in a loop of vectors along it: a line comes once for all of
    its elements, which take a few vectors."""
    return 1.0 + (workspace_distance(elements) - 1.0) * min(1.0, LANES / per_line)


def cleared(elements: float, per_line: float = PER_LINE) -> float:
    """Return the operations of clearing a workspace by vectors; one in registers takes none."""
    return 0.0 if elements <= REGISTERS else START + passed_through(elements, per_line) * elements / LANES
