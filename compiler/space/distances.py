"""How long it takes to reach elements of arrays, in operations of the static model; the costs of schedules and the work of forests share
it."""

from __future__ import annotations

LANES = 4.0  # speedup by vectors in kernels that also wait for memory
START = 4.0  # operations to start an innermost loop
LINE = (3.0, 10.0)  # operations to load a cache line again, from caches beyond the second level or from memory
REGISTERS = 256  # elements up to which a workspace of known size stays in registers
NEAR, FAR = 2.0**12, 2.0**17  # elements that the first and second level of cache hold
MEMORY = 2.0**22  # elements beyond which an array comes from memory
PER_LINE = 8.0  # elements of eight bytes in a line of a cache


def distance(elements: float) -> float:
    """Return how much longer it takes to get a value of an array of so many elements than one from the first level of cache."""
    return 1.0 if elements <= NEAR else 2.0 if elements <= FAR else 1.0 + LINE[0]


def workspace_distance(elements: float) -> float:
    """Return the same of a workspace, whose lines go to memory and come back where no cache holds it."""
    return 1.0 + LINE[1] if elements > MEMORY else distance(elements)


def passed_through(elements: float, per_line: float = PER_LINE) -> float:
    """Return the operations of a load from a workspace, or of a store to it, in a vectorized loop along it: a cache line is loaded
    once for all of its elements."""
    return 1.0 + (workspace_distance(elements) - 1.0) * min(1.0, LANES / per_line)


def cleared(elements: float, per_line: float = PER_LINE) -> float:
    """Return the operations of clearing a workspace by vectors; one in registers takes none."""
    return 0.0 if elements <= REGISTERS else START + passed_through(elements, per_line) * elements / LANES
