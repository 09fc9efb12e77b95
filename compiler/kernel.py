"""What ``sparsetune.compile`` returns: a scheduled program, lowered for the dtypes and index widths of the operands that it gets."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Never, TypeAlias

from . import html
from .build.bound import BoundKernel
from .build.kernel import TypedKernel
from .build.operands import check_order
from .build.repeat import MISS, Repeats
from .concrete.affine import Viewed
from .concrete.check import meet_again, tensor_names
from .concrete.concretize import Concretized
from .concrete.depth import check_depth, depth_is_bounded
from .concrete.given import supported_dtype
from .errors import DataError, ExpressionError, FormatError, ScheduleError
from .format import Format
from .frozen import frozen
from .lowering.kernel_spec import KernelSpec
from .lowering.lower import lower
from .lowering.rows_apart import reads_rows_apart
from .lowering.tensor_types import TensorType
from .notation.nodes import Access, Assignment
from .notation.printer import show
from .notation.value_types import check_values, number_dtype, result_dtype
from .numpy_later import np
from .schedule.parallel import check_units
from .schedule.schedule import Schedule
from .shown import attribute
from .storage import aligned
from .storage.construct import borrowed, tensor
from .storage.on_device import DeviceTensor, on_device
from .storage.tensor import Tensor
from .targets.registry import find_target

if TYPE_CHECKING:
    from numpy.typing import NDArray

Derived: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Makes the operands that a kernel reads of those that are given."""


@frozen
class Signature:
    """What a kernel is compiled for in addition to expression, formats and schedule.

    Attributes:
        dtypes, widths: for every operand, the name of its dtype, and the bits of the index arrays of each level.
        wide: whether an extent needs coordinates of 64 bits.
        apart: the operands of the program whose rows may lie apart in memory.
    """

    dtypes: tuple[tuple[str, str], ...]
    widths: tuple[tuple[str, tuple[int, ...]], ...]
    wide: bool = False
    apart: frozenset[str] = frozenset()


class Kernel:
    """A kernel for one expression, formats and schedule. It is specialised for the dtypes and index widths of the operands that it gets.

    Calling it with operands by name returns the result. ``bind`` checks and converts operands once, for many calls; see ``TypedKernel``
    and ``BoundKernel``. ``threads`` is how many threads run; a dense result is written to ``out``.

    Attributes:
        assignment: the parsed expression.
        formats: the format of every tensor, the result's included.
        viewed: the expression with plain subscripts: operands with compound ones are views.
        concretized: the scheduled program that is lowered, with the formats of its operands and their names in ``viewed``.
        schedule: the directives that were applied.
        threads: how many threads run at most if a call does not say; None: $SPARSETUNE_THREADS, or the available cores.
        derived: how the operands that it reads follow from the given ones; None: they are the same.
    """

    def __init__(self, assignment: Assignment, formats: dict[str, Format], extents: Mapping[str, int], concretized: Concretized,
                 schedule: Schedule, dtype: np.dtype[Any] | None, convert: str, target: str = "cpu",
                 threads: int | None = None, arch: str | None = None, viewed: Viewed | None = None,
                 derived: Derived | None = None) -> None:  # fmt: skip
        self.threads, self.viewed, self.derived = threads, viewed or Viewed(assignment, formats), derived
        self.assignment, self.formats, self.extents, self.schedule = assignment, formats, dict(extents), schedule
        self.dtype, self.concretized, self.target, self.arch = dtype, concretized, target, arch
        self.semiring = (concretized.program.add, concretized.program.multiply)
        conversions = [(operand, form) for operand, form in concretized.program.conversions if not self._is_seen(operand, form)]
        if convert == "never" and conversions:
            operand, form = conversions[0]
            raise ScheduleError(
                f"{show(operand)} would have to be converted to '{form}', which convert=\"never\" forbids; hand it over in that format"
            )
        found = find_target(target, arch)
        check_units(concretized.program, found.name, found.units)
        self._kernels: dict[Signature, TypedKernel] = {}
        self._kernels_apart: dict[Signature, TypedKernel | None] = {}
        self._repeats = Repeats()

    def _is_seen(self, operand: Access, form: Format) -> bool:
        """Whether a format only views the same memory in another way, so that nothing is converted."""
        return form.in_memory is not form and form.in_memory == self.concretized.formats[operand.tensor].in_memory

    @cached_property
    def _operand_names(self) -> tuple[str, ...]:
        return tensor_names(self.assignment)

    @cached_property
    def _meets_again(self) -> bool:
        return meet_again(self.assignment, [name for name, form in self.formats.items() if not form.is_dense])

    @property
    def source(self) -> str:
        """The generated code, for float64 values and 32-bit indices unless compiled for others."""
        return self.default_kernel.source

    @property
    def loop_nest(self) -> str:
        """Readable concrete index notation."""
        return self.default_kernel.loop_nest

    @property
    def stages(self) -> dict[str, str]:
        """The program after every stage and pass, by its name, in order: "concrete" notation, loop IR from "lowering" on, "c"."""
        return self.default_kernel.stages

    @property
    def costs(self) -> dict[str, int | str]:
        """What the schedule costs, without data.

        Returns:
            loop_depth: the most loops over original indices that are nested in one another.
            memory_depth: the most modes of a workspace.
            time, memory: scalar operations, and elements of workspaces, as ``BoundKernel.count`` has them, as Python expressions
                over extents, named as the indices, and ``nnz_B_1`` .. ``nnz_B_k``: positions of the levels of operand B, in the
                order in which it is read.
            converted: the entries of operands that are converted beforehand, as such an expression; "0" if none is.
        """
        from .space.program_costs import converted, program_costs  # loads the costs of forests, which few need

        program, formats = self.concretized.program, self.concretized.formats
        found = program_costs(program, self.viewed.assignment, formats)
        return {
            "loop_depth": found.loop_depth, "memory_depth": found.memory_depth, "time": str(found.time), "memory": str(found.memory),
            "converted": str(converted(program, formats)),
        }  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what cannot be pickled: the code loaded into this process."""
        kept = {name: value for name, value in self.__dict__.items() if name != "default_kernel"}
        return kept | {"_kernels": {}, "_kernels_apart": {}, "_repeats": Repeats()}

    @cached_property
    def default_kernel(self) -> TypedKernel:
        """The kernel for operands of the requested dtype, or float64, with 32-bit indices."""
        name = "float64" if self.dtype is None else self.dtype.name
        return self.kernel_for(Signature(
            tuple((operand, name) for operand in self._operand_names),
            tuple((operand, (32,) * len(self.formats[operand])) for operand in self._operand_names),
        ))  # fmt: skip

    def kernel_for(self, signature: Signature) -> TypedKernel:
        """Return the kernel for given dtypes and index widths; it is compiled once."""
        if signature not in self._kernels:
            target = find_target(self.target, self.arch)
            apart = None if target.on_device else partial(_kernel_apart, weakref.ref(self), signature)
            self._kernels[signature] = TypedKernel(self._lowered(signature), target, apart)
        return self._kernels[signature]

    def kernel_apart(self, signature: Signature, keys: frozenset[str]) -> TypedKernel | None:
        """Return the kernel for some operands whose rows lie apart in memory, or for as many of these as it can read so; None for none."""
        wanted = replace(signature, apart=keys)
        if wanted not in self._kernels_apart:
            spec = self._lowered(wanted)
            found = frozenset(key for key in keys if reads_rows_apart(spec.function, key))
            whole = TypedKernel(spec, find_target(self.target, self.arch))
            self._kernels_apart[wanted] = whole if found == keys else self.kernel_apart(signature, found) if found else None
        return self._kernels_apart[wanted]

    def __call__(self, /, *unnamed: Never, threads: int | None = None, out: NDArray[Any] | None = None, **operands: Any) -> Any:
        """Compute the expression on operands given by name.

        Args:
            threads: the most threads that run, and the number of shares into which work is cut; None: $SPARSETUNE_THREADS, or the
                available cores.
            out: an array that is filled with a dense result and returned.
            operands: by name. If the expression has an operand called ``threads`` or ``out``, that keyword means the operand.

        Returns:
            An ndarray (a numpy scalar for order 0) where the result is dense, else a ``Tensor``.
        """
        if unnamed:
            self._refuse_unnamed(len(unnamed))
        if threads is not None or out is not None:
            threads, out = self._options(operands, threads, out)
        if out is not None or self.derived is not None:
            return self.bind_operands(operands, threads, out, once=True).once()
        result = self._repeats(operands, self.threads if threads is None else threads)
        if result is MISS:
            bound = self.bind_operands(operands, threads, once=True)
            result = bound.once()
            self._repeats.learn(bound, operands)
        return result

    def bind(self, /, *unnamed: Never, threads: int | None = None, out: NDArray[Any] | None = None, **operands: Any) -> BoundKernel:
        """Check and convert operands once. The returned kernel runs at C speed and sees changed values of arrays that needed no conversion:
        C order, the right type. Arguments as for a call."""
        if unnamed:
            self._refuse_unnamed(len(unnamed))
        threads, out = self._options(operands, threads, out)
        return self.bind_operands(operands, threads, out)

    def bind_operands(
        self, operands: Mapping[str, Any], threads: int | None = None, out: Any = None, extents: Mapping[str, int] | None = None,
        once: bool = False,
    ) -> BoundKernel:  # fmt: skip
        """Bind operands given as a mapping.

        Args:
            extents: those of indices that no operand determines.
            once: the bound kernel is called once, right away, so that index arrays of other libraries need not be copied.

        Raises:
            ExpressionError, ShapeError, DataError, FormatError: the operands do not fit.
        """
        running = self.threads if threads is None else threads
        kernel, ready = self.specialised(operands if self.derived is None else self.derived(operands), extents, once, running)
        return kernel.bind_operands(ready, running, out, {**self.extents, **(extents or {})}, once)

    def specialised(
        self, operands: Mapping[str, Any], extents: Mapping[str, int] | None = None, once: bool = False, threads: int | None = None
    ) -> tuple[TypedKernel, dict[str, Any]]:
        """Return the kernel for the dtypes and widths of some operands, and the operands in the formats that it reads.

        ``threads`` is how many will run: a kernel that has no schedule yet decides for them.
        """
        ready = {name: self._ready(name, data, once) for name, data in operands.items()}
        return self.kernel_for(self._signature(ready, extents or {})), ready

    def _refuse_unnamed(self, count: int) -> None:
        named = ", ".join(f"{name}=..." for name in self._operand_names)
        raise ExpressionError(f"{count} operand{'s' if count > 1 else ''} without a name; operands are given by name: k({named})")

    def _options(self, operands: dict[str, Any], threads: Any, out: Any) -> tuple[Any, Any]:
        """Return the options. An option with the name of an operand is moved to the operands, and is returned as None."""
        if threads is not None and "threads" in self._operand_names:
            operands["threads"], threads = threads, None
        if out is not None and "out" in self._operand_names:
            operands["out"], out = out, None
        return threads, out

    def _ready(self, name: str, data: Any, once: bool) -> Any:
        """Bring an operand into the format that the kernel was compiled for."""
        form = self.formats.get(name)
        if form is None or name not in self._operand_names or (type(data) is np.ndarray and form.is_dense):
            return data
        kind = type(data)  # isinstance may fail for foreign objects, which can define __class__
        if issubclass(kind, (int, float)):
            return data
        if not issubclass(kind, Tensor) and find_target(self.target).on_device and (there := on_device(name, data)) is not None:
            check_order(name, there.order, len(form))
            return there.as_operand()
        found: Any = data if issubclass(kind, Tensor) else None
        try:
            if found is None and once:
                found = borrowed(data, self._meets_again)
            if found is None:
                return tensor(data, form)
            return found if found.format == form else found.convert(form)
        except DataError as error:
            raise DataError(f"operand '{name}': {error}") from None
        except FormatError:
            found = tensor(data) if found is None else found
            check_order(name, found.order, len(form))
            raise

    def _signature(self, operands: Mapping[str, Any], extents: Mapping[str, int]) -> Signature:
        dtypes, widths, wide = [], [], bool(extents) and max(extents.values()) > aligned.INDEX_LIMIT
        kinds = [attribute(data, "dtype") for data in operands.values()]
        for name in self._operand_names:
            data = operands.get(name)
            kind = self.dtype or getattr(data, "dtype", None) or number_dtype(0.0 if data is None else data, kinds)
            dtypes.append((name, supported_dtype(kind, name)))
            widths.append((name, _widths(data) if isinstance(data, Tensor | DeviceTensor) else (32,) * len(self.formats[name])))
            wide = wide or max(getattr(data, "shape", None) or (0,)) > aligned.INDEX_LIMIT
        return Signature(tuple(dtypes), tuple(widths), wide)

    def _lowered(self, signature: Signature) -> KernelSpec:
        dtypes, widths = dict(signature.dtypes), dict(signature.widths)
        result = self.viewed.assignment.target
        kind = result_dtype(self.assignment, dtypes.values()) if self.dtype is None else self.dtype.name
        check_values(self.assignment, kind)
        types = {}
        for name, given in self.concretized.sources.items():
            form, source = self.concretized.formats[name], self.viewed.source(given)
            if given in self.viewed.points:
                types[name] = TensorType(form, kind, (32,) * len(form.in_memory))
            else:
                types[name] = TensorType(form, dtypes[source], widths[source], name in signature.apart)
        form = self.formats[result.tensor]
        wide = 64 if signature.wide else max((bits for found in widths.values() for bits in found), default=32)
        types[result.tensor] = TensorType(form, kind, (wide,) * len(form))
        check_depth(self.concretized.program)
        with depth_is_bounded():
            return lower(
                self.concretized.program, types, result, sources=self.concretized.sources,
                extents={**self.extents, **self.viewed.constants}, viewed=self.viewed,
                expression=self.assignment.text, schedule=str(self.schedule), wide=signature.wide,
            )  # fmt: skip

    def __repr__(self) -> str:
        sparse = {name: str(form) for name, form in self.formats.items() if not form.is_dense}
        return f"sparsetune.compile({self.assignment.text!r}, {sparse}, schedule={str(self.schedule)!r})"

    def _repr_html_(self) -> str:
        formats = {name: str(form) for name, form in self.formats.items()}
        return html.facts(self.assignment.text, {**formats, "schedule": str(self.schedule) or "default"}) + html.listing(self.loop_nest)


def _kernel_apart(kernel: weakref.ref[Kernel], signature: Signature, keys: frozenset[str]) -> TypedKernel | None:
    """Return what ``Kernel.kernel_apart`` does, as long as somebody else holds the kernel: specialised ones do not, so that no cycle has to
    be collected."""
    found = kernel()
    return None if found is None else found.kernel_apart(signature, keys)


def _widths(operand: Tensor | DeviceTensor) -> tuple[int, ...]:
    """Return the bits of the index arrays of each level; 32 where there are none."""
    return tuple(64 if any(part.dtype.itemsize == 8 for part in arrays.parts.values()) else 32 for arrays in operand.levels)
