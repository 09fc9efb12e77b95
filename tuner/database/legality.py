"""Whether the kernel and schedule of a record have a meaning, judged once for all records with the same."""

from __future__ import annotations

from functools import lru_cache

from ...compiler.concrete.affine import view_subscripts, writings_of
from ...compiler.concrete.check import check_semiring, formats_of, parsed
from ...compiler.concrete.concretize import Concretized, concretize
from ...compiler.concrete.given import constant_extents
from ...compiler.errors import SparsetuneError
from ...compiler.format import Format
from ...compiler.frozen import frozen
from ...compiler.notation.canonical import canonical_form
from ...compiler.notation.nodes import Assignment
from ...compiler.notation.value_types import TYPES
from ...compiler.schedule.apply import apply_schedule
from ...compiler.schedule.schedule import Schedule
from ..records import SEPARATOR, Workload, formats_and_edges

MOST_DIRECTIVES = 128
"""Most directives of a schedule in a record; the time to judge it grows with the third power of their number."""

_SCHEDULES, _KERNELS = 4096, 256  # how many verdicts are remembered


@frozen
class _Kernel:
    """A kernel that was understood: its default program, on tensors of certain formats."""

    assignment: Assignment
    formats: dict[str, Format]
    tensors: tuple[str, ...]
    indices: frozenset[str]
    default: Concretized


def kernel_fault(workload: Workload, indices: tuple[str, ...]) -> str | None:
    """Return why an expression, formats and dtypes of its tensors, and indices with extents do not fit together; None if they do."""
    found = _understood(workload.kernel, workload.formats, workload.semiring)
    if isinstance(found, str):
        return found
    dtypes = workload.dtype.split(SEPARATOR)
    if len(dtypes) not in (1, len(found.tensors)) or not TYPES.keys() >= set(dtypes):
        known = f"{', '.join(TYPES)}, or one for each of the {len(found.tensors)} tensors"
        return f"workload.dtype {workload.dtype[:100]!r} is not one of {known}"
    if found.indices != set(indices):
        return f"input.extents has the indices {', '.join(indices[:20])}, the kernel {', '.join(sorted(found.indices))}"
    return None


def schedule_fault(workload: Workload, extents: tuple[tuple[str, int], ...], schedule: str, legal: bool) -> str | None:
    """Return why a schedule has no meaning or, if ``legal`` is asked for, is not legal for the kernel; None if nothing is wrong.

    The kernel has a meaning (``kernel_fault``).
    """
    kernel = workload.kernel, workload.formats, workload.semiring
    found = _understood(*kernel)
    assert isinstance(found, _Kernel)
    constants = constant_extents(found.assignment, found.formats, dict(extents))
    return _schedule_fault(kernel, tuple(sorted(constants.items())), schedule, legal)


@lru_cache(_SCHEDULES)
def _schedule_fault(kernel: tuple[str, str, str], constants: tuple[tuple[str, int], ...], schedule: str, legal: bool) -> str | None:
    found = _understood(*kernel)
    assert isinstance(found, _Kernel)
    try:
        directives = Schedule(schedule)
        if len(directives) > MOST_DIRECTIVES:
            return f"schedule has {len(directives)} directives, more than {MOST_DIRECTIVES}"
        if legal:
            apply_schedule(found.default.program, directives, found.default.formats, dict(constants))
    except SparsetuneError as error:
        return f"schedule: {_first_line(error)}"
    except Exception as error:  # a defect of the compiler in one record must not hide the others
        return f"schedule {schedule[:40]!r} cannot be judged ({type(error).__name__})"
    return None


@lru_cache(_KERNELS)
def _understood(kernel: str, formats: str, semiring: str) -> _Kernel | str:
    """Return a kernel of a record, or why it has no meaning."""
    try:
        assignment = parsed(kernel)
        add, multiply = semiring.split(",")
        check_semiring(assignment.value, add, assignment, multiply)
        names = canonical_form(assignment)
        tensors = tuple(name for name, _ in names.tensors)
        given, determined, boundary = formats_and_edges(formats, len(tensors))
        if len(given) != len(tensors):
            return f"workload.formats has {len(given)} formats for {len(tensors)} tensors"
        known = formats_of(assignment, dict(zip(tensors, given, strict=True)))
        plain = view_subscripts(assignment, known, determined, boundary or None)
        default = concretize(plain.assignment, plain.formats, add, multiply)
        indices = frozenset((*(name for name, _ in names.indices), *(writing.index for writing in writings_of(assignment))))
        return _Kernel(assignment, known, tensors, indices, default)
    except SparsetuneError as error:
        return f"workload: {_first_line(error)}"
    except Exception as error:  # as above
        return f"workload.kernel {kernel[:40]!r} cannot be judged ({type(error).__name__})"


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]
