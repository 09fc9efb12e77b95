"""The rules that prune schedule templates, each independent of the others (Senanayake et al., sections 6.1 and 6.2).

Invalid templates are those that the language refuses, redundant ones iterate as others do, inefficient ones were slower in the paper's
experience. ``PAPER`` has the paper's rules, ``DEFAULT`` ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..concrete.provenance import Provenance
from ..concrete.relations import CollapseRelation, SplitRelation
from ..frozen import frozen
from ..schedule import directives as d
from ..units import HARDWARE, UNITS
from .level_orders import dense_in_order, storage_order
from .orders import Allowed
from .situation import result_leaf
from .template_space import Partition, Transformation


@frozen
class PartitionFilter:
    """A rule of stage one; ``kind`` is invalid, redundant or inefficient."""

    name: str
    kind: str
    keep: Callable[[Partition], bool]


@frozen
class OrderFilter:
    """A rule on the order of loops: for a partition, which loop may come next."""

    name: str
    kind: str
    allowed: Callable[[Partition], Allowed]


Allows = Callable[[Partition, tuple[str, ...], str, str], bool]
"""Takes a partition, an order of its loops, one of these and a unit, and returns whether the loop may be given to the unit."""


@frozen
class UnitFilter:
    """A rule on whole templates. Those in which one loop of an order has a unit that is not ``allowed`` are not kept, whatever the other
    loops have: they are not even listed."""

    name: str
    kind: str
    keep: Callable[[Transformation], bool]
    allowed: Allows | None = None


Filter = PartitionFilter | OrderFilter | UnitFilter


# Partitions


def _legal_partition(partition: Partition) -> bool:
    return partition.program is not None


def _no_collapse_of_dense_inner(partition: Partition) -> bool:
    inner = [relation.inner for relation in partition.graph.relations if isinstance(relation, CollapseRelation)]
    return all(partition.graph.originals(loop)[-1] in partition.compressed for loop in inner)


def _collapsed_is_split(partition: Partition) -> bool:
    graph = partition.graph
    fused = [relation.fused for relation in graph.relations if isinstance(relation, CollapseRelation)]
    whole = [loop for loop in fused if not any(isinstance(relation, CollapseRelation) for relation in graph.relations_from(loop))]
    return all(any(isinstance(graph.maker(below), SplitRelation) for below in graph.descendants(loop)) for loop in whole)


def _positions_are_split(partition: Partition) -> bool:
    graph = partition.graph
    return not any(loop in partition.loops and graph.space(loop) == "position" and not _split_of(graph, loop) for loop in partition.loops)


def _positions_of_stored_levels(partition: Partition) -> bool:
    graph = partition.graph
    positions = [loop for loop in partition.loops if graph.space(loop) == "position"]
    return all(graph.originals(loop)[-1] in partition.compressed for loop in positions)


def _coordinate_splits(partition: Partition) -> list[SplitRelation]:
    """Return the splits of loops over the coordinates of compressed levels."""
    graph = partition.graph
    return [
        relation
        for relation in graph.relations
        if isinstance(relation, SplitRelation)
        and graph.space(relation.parent) == "coordinate"
        and partition.compressed.intersection(graph.originals(relation.parent))
    ]


def _no_coordinate_split_of_compressed(partition: Partition) -> bool:
    return not _coordinate_splits(partition)


def _coordinate_split_of_result(partition: Partition) -> bool:
    """One such split, of a loop over the result's components, is kept: its tiles divide these among threads without races."""
    splits, target = _coordinate_splits(partition), result_leaf(partition.situation.program)[1].target
    return len(splits) <= 1 and all(set(partition.graph.originals(split.parent)) <= set(target.indices) for split in splits)


def _no_coord(partition: Partition) -> bool:
    return not any(isinstance(step, d.Coord) for step in partition.steps)


def _split_of(graph: Provenance, loop: str) -> SplitRelation | None:
    found = graph.maker(loop)
    return found if isinstance(found, SplitRelation) else None


# Parallel units


def _each(allowed: Allows, template: Transformation) -> bool:
    return all(allowed(template.partition, template.order, loop, unit) for loop, unit in template.units)


def _legal_unit(partition: Partition, order: tuple[str, ...], loop: str, unit: str) -> bool:
    """Drops what ``parallelize`` refuses: vector loops around loops of unknown length, loops in which operands meet."""
    place = order.index(loop)
    if UNITS[unit].is_vector and not all(partition.is_constant(other) for other in order[place + 1 :]):
        return False
    return not partition.coiterates(order[: place + 1])


def _legal_units(template: Transformation) -> bool:
    """A GPU's blocks and warps need threads."""
    members = {UNITS[unit].member for _, unit in template.units} - {None}
    return (not members or "thread" in members) and _each(_legal_unit, template)


def _outermost_parallel(template: Transformation) -> bool:
    graph = template.partition.graph
    return all(loop == template.order[0] and not _is_collapsed(graph, loop) for loop, _ in template.units)


def _readmitting(*, position_splits: bool, vector_loops: bool) -> Callable[[Transformation], bool]:
    def keep(template: Transformation) -> bool:
        graph = template.partition.graph
        for loop, unit in template.units:
            innermost = loop == template.order[-1]
            vector = vector_loops and UNITS[unit].is_vector and (innermost or not template.partition.is_stored(loop))
            outermost = loop == template.order[0] and UNITS[unit].is_thread
            positions = position_splits and graph.space(loop) == "position"
            if not (vector or (outermost and (positions or not _is_collapsed(graph, loop)))):
                return False
        return True

    return keep


def _coordinate_splits_are_threads(template: Transformation) -> bool:
    """Tiles of the coordinates of a compressed level cost a search each: only loops over tiles that are divided among threads are
    worth that."""
    threaded = {loop for loop, unit in template.units if UNITS[unit].is_thread}
    return all(split.outer == template.order[0] and split.outer in threaded for split in _coordinate_splits(template.partition))


def _is_collapsed(graph: Provenance, loop: str) -> bool:
    return any(isinstance(graph.maker(name), CollapseRelation) for name in graph.ancestors(loop))


def _split_is_used(template: Transformation) -> bool:
    """Drops splits whose pieces stay adjacent and serial: they iterate as the unsplit loop does."""
    graph, parallel = template.partition.graph, dict(template.units)
    for relation in graph.relations:
        if isinstance(relation, SplitRelation) and relation.inner in template.order and relation.outer in template.order:
            adjacent = template.order.index(relation.inner) == template.order.index(relation.outer) + 1
            if adjacent and relation.inner not in parallel and relation.outer not in parallel:
                return False
    return True


def _is_balanced(partition: Partition, order: tuple[str, ...], loop: str, unit: str) -> bool:
    """No loop inside a parallel one has a length that depends on what is stored."""
    return not any(partition.is_stored(other) for other in order[order.index(loop) + 1 :])


def _load_balanced(template: Transformation) -> bool:
    """Every parallel unit does the same work."""
    return bool(template.units) and _each(_is_balanced, template)


def _is_constant(partition: Partition, order: tuple[str, ...], loop: str, unit: str) -> bool:
    return UNITS[unit].member not in ("warp", "thread") or partition.is_constant(loop)


def _coalesced(template: Transformation) -> bool:
    """Neighbouring threads read neighbouring data, or each reads a piece of constant size."""
    graph = template.partition.graph
    for loop, unit in template.units:
        made = _split_of(graph, loop)
        if UNITS[unit].member == "thread" and made is not None and loop == made.outer and not template.partition.is_constant(made.inner):
            return False
    return True


LEGAL_PARTITION = PartitionFilter("legal_partition", "invalid", _legal_partition)
STORAGE_ORDER = OrderFilter("storage_order", "invalid", storage_order)
LEGAL_UNITS = UnitFilter("legal_units", "invalid", _legal_units, _legal_unit)
COLLAPSED_IS_SPLIT = PartitionFilter("collapsed_is_split", "redundant", _collapsed_is_split)
POSITIONS_ARE_SPLIT = PartitionFilter("positions_are_split", "redundant", _positions_are_split)
POSITIONS_OF_STORED_LEVELS = PartitionFilter("positions_of_stored_levels", "redundant", _positions_of_stored_levels)
SPLIT_IS_USED = UnitFilter("split_is_used", "redundant", _split_is_used)
NO_COLLAPSE_OF_DENSE_INNER = PartitionFilter("no_collapse_of_dense_inner", "inefficient", _no_collapse_of_dense_inner)
NO_COORDINATE_SPLIT = PartitionFilter("no_coordinate_split_of_compressed", "inefficient", _no_coordinate_split_of_compressed)
COORDINATE_SPLIT_OF_RESULT = PartitionFilter("no_coordinate_split_but_of_result", "inefficient", _coordinate_split_of_result)
COORDINATE_SPLITS_ARE_THREADS = UnitFilter("coordinate_splits_are_threads", "inefficient", _coordinate_splits_are_threads)
NO_COORD = PartitionFilter("no_coord", "inefficient", _no_coord)
DENSE_IN_ORDER = OrderFilter("dense_in_order", "inefficient", dense_in_order(within_tiles=True))
DENSE_IN_ORDER_BUT_TILES = OrderFilter("dense_in_order_but_tiles", "inefficient", dense_in_order(within_tiles=False))
OUTERMOST_PARALLEL = UnitFilter("outermost_parallel", "inefficient", _outermost_parallel)
OUTERMOST_PARALLEL_OR_READMITTED = UnitFilter(
    "outermost_parallel_or_readmitted", "inefficient", _readmitting(position_splits=True, vector_loops=True)
)
LOAD_BALANCED = UnitFilter("load_balanced", "inefficient", _load_balanced, _is_balanced)
CONSTANT_THREADS = UnitFilter("constant_threads", "inefficient", partial(_each, _is_constant), _is_constant)
COALESCED = UnitFilter("coalesced", "inefficient", _coalesced)

_DIVISIONS = (LEGAL_PARTITION, COLLAPSED_IS_SPLIT, POSITIONS_ARE_SPLIT, POSITIONS_OF_STORED_LEVELS, NO_COLLAPSE_OF_DENSE_INNER)
_PARTITIONS = (*_DIVISIONS, NO_COORDINATE_SPLIT, NO_COORD, STORAGE_ORDER)
_GPU = (LOAD_BALANCED, CONSTANT_THREADS, COALESCED, SPLIT_IS_USED)


def _by_target(processor: tuple[Filter, ...], gpu: tuple[Filter, ...]) -> dict[str, tuple[Filter, ...]]:
    return {name: gpu if found.on_device else processor for name, found in HARDWARE.items()}


PAPER = _by_target(
    processor=(*_PARTITIONS, DENSE_IN_ORDER, LEGAL_UNITS, OUTERMOST_PARALLEL, SPLIT_IS_USED),
    gpu=(*_PARTITIONS, DENSE_IN_ORDER, LEGAL_UNITS, *_GPU),
)
"""The rules of the paper, in the order in which they are applied."""

DEFAULT = _by_target(
    processor=(
        *_DIVISIONS, COORDINATE_SPLIT_OF_RESULT, NO_COORD, STORAGE_ORDER, DENSE_IN_ORDER_BUT_TILES, LEGAL_UNITS,
        OUTERMOST_PARALLEL_OR_READMITTED, SPLIT_IS_USED, COORDINATE_SPLITS_ARE_THREADS,
    ),
    gpu=(*_PARTITIONS, DENSE_IN_ORDER_BUT_TILES, LEGAL_UNITS, *_GPU),
)  # fmt: skip
"""Ours, the paper's first. Readmitted: position splits of collapsed loops, vectorized dense loops and vectorized innermost ones (sums of
gathered elements), which the paper's first CPU rule forbids; loops over tiles of constant size inside others, as in the paper's own SpMM
and TTM; and tiles of a compressed level's coordinates that threads share out, the only way without races where columns are scattered."""
