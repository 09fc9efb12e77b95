"""The interface between the compiler and what kernels run on.

A program for a target is host code: statements, loops and conditions over sizes and arrays, with device kernels in between. Every loop
that is dealt out to units of the target becomes a device kernel; the statements before, between and after them run in order on the
host. For example, a result that is counted, scanned and filled is two such loops with a scan between. A target says which units and kinds
of memory it has, which passes bring loop IR into the form that it prints, and how the text is compiled, loaded and launched on arrays.

To add one: a class with these members, and ``registry.register(it)``. What schedules and the tuner ask of a target, without loading it,
is in ``compiler.units``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..ir.intrinsics import Intrinsic
from ..ir.nodes import Function
from ..lowering.kernel_spec import KernelSpec
from ..numpy_later import np
from ..passes.manager import PassList, VectorUnit
from ..storage.on_device import DeviceArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Launch(Protocol):
    """A loaded kernel with its arrays and sizes, which it keeps alive.

    Attributes:
        run: runs host code and kernels to the end; returns 0, or 1 when there was no memory.
    """

    @property
    def run(self) -> Callable[[], int]: ...

    def published(self, pointer: int, length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array that the last run made: ``pointer`` is its slot among the arrays, ``length`` the slot of its length."""
        ...


@runtime_checkable
class RepeatedLaunch(Launch, Protocol):
    """A launch that can be run again on other arrays of the same sizes.

    Attributes:
        pointers: the addresses of the arrays in the order of the kernel's parameters, which may be set between runs; memory of ``cffi``.
    """

    @property
    def pointers(self) -> Any: ...

    def without_operands(self) -> RepeatedLaunch:
        """Return the same launch, which no longer keeps the arrays alive: whoever runs it sets their addresses."""
        ...


class DeviceLaunch(Launch, Protocol):
    """A launch of a target that has memory of its own, and a clock for it."""

    def left(self, pointer: int, length: int, dtype: np.dtype[Any]) -> DeviceArray:
        """Return an array that the last run made where it is; the arguments are those of ``published``."""
        ...

    def fill(self, array: DeviceArray, value: float) -> None:
        """Set all elements of an array of the device."""
        ...

    def seconds(self, runs: int, flushed: int = 0) -> list[float]:
        """Return the seconds that each of some runs takes by the device's clock; operands and result are there already.

        Args:
            flushed: bytes of other memory that are written before each run.
        """
        ...


class Executable(Protocol):
    """A loaded kernel.

    Attributes:
        compiler: the compiler's name and version, for records.
        flags: all flags it was compiled with.
    """

    @property
    def compiler(self) -> str: ...

    @property
    def flags(self) -> tuple[str, ...]: ...

    def bind(self, arrays: Sequence[NDArray[Any] | None], sizes: Sequence[int], made: int, threads: int) -> Launch:
        """Return a launch on arrays and sizes.

        Args:
            arrays: flat arrays of the host in the order of the kernel's parameters, None for those that it makes. If the target has
                memory of its own, every run transfers them there and back.
            sizes: in the order of the kernel's parameters.
            made: how many arrays it makes; their lengths are put behind ``sizes``.
            threads: the number of shares into which work is cut.
        """
        ...


class DeviceExecutable(Executable, Protocol):
    """A loaded kernel of a target that has memory of its own: it is bound to arrays there too, and its launches are ``DeviceLaunch``."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        """Return an array of the device. Raises ``ResourceError`` where it has no memory for it."""
        ...


class Target(Protocol):
    """Something for which kernels are generated, and on which they run.

    Attributes:
        name: by which users ask for it.
        language: of its source: the name of the last stage.
        units: parallel units of loops, by their names in schedules.
        memory: the kinds of storage that ``Allocate`` may ask for.
        groups: the groups whose members wait for one another (``Barrier``), and see what the others have (``Combine``).
        intrinsics: the functions that its kernels may call, by name.
        passes: bring loop IR, as lowering makes it, into the form that is printed.
        on_device: whether it has memory of its own, and takes arrays there as they are: its kernels are ``DeviceExecutable``.
        has_architectures: whether code is generated for one of several architectures, which is named or that of this machine. If so, the
            target is an ``ArchitectureTarget``.

    A program that the passes leave with a storage, group or function that is not among these is refused (``build.stages``).
    """

    @property
    def name(self) -> str: ...

    @property
    def language(self) -> str: ...

    @property
    def units(self) -> tuple[str, ...]: ...

    @property
    def memory(self) -> tuple[str, ...]: ...

    @property
    def groups(self) -> tuple[str, ...]: ...

    @property
    def intrinsics(self) -> Mapping[str, Intrinsic]: ...

    @property
    def passes(self) -> PassList: ...

    @property
    def on_device(self) -> bool: ...

    @property
    def has_architectures(self) -> bool: ...

    def vectors(self, spec: KernelSpec) -> VectorUnit:
        """Return the vectors for which a kernel is generated."""
        ...

    def print(self, function: Function, heading: str) -> str:
        """Return the source of a kernel after all passes; everything is decided by then."""
        ...

    def compile(self, spec: KernelSpec, source: str, timeout: float) -> Executable:
        """Compile and load a source.

        Raises:
            BuildError: there is no compiler, it fails or takes longer than ``timeout`` seconds, or this machine lacks the target.
        """
        ...

    def built_by(self, spec: KernelSpec, source: str) -> tuple[str, str]:
        """Return the name and version of what ``compile`` compiles with, and its flags.

        Raises:
            BuildError: there is no such compiler, or no device that says which architecture it is.
        """
        ...


class ArchitectureTarget(Target, Protocol):
    """A target that has several architectures."""

    def for_architecture(self, arch: str) -> Target:
        """Return this target for an architecture. Raises ``ScheduleError`` if it has none of that name."""
        ...

    def require(self) -> None:
        """Raise ``BuildError`` if no architecture is named, and this machine has no device that would say which it is."""
        ...
