"""Calls of BLAS in place of dense loops (``call``); arguments are arrays with first elements and strides (csrc/st_blas.h)."""

from __future__ import annotations

from itertools import permutations

from ..concrete.loop_tag import PRIVATE
from ..concrete.nodes import Assign, Forall, Stmt
from ..errors import ScheduleError
from ..ir.arithmetic import ONE, multiply, subtract
from ..ir.nodes import F32, F64, ArrayRef, Binary, Call, Const, Run, Step, Value
from ..levels import DENSE
from ..levels.level import Place
from ..notation.nodes import Access, Expr, Mul, accesses
from ..notation.printer import show
from ..schedule.factors import flatten, product_factors
from ..workspaces.dense import DenseWorkspace
from ..workspaces.levels import Storage
from .assigning import assigned, race_at, result_position
from .context import Context
from .privatize import NeedsCopies, private_copies
from .recovery import known
from .requests import NeedsZeros
from .scope import Scope
from .values import value_of
from .windows import window

SHAPES = {
    "gemm": ("mnk", ("mn", "mk", "kn")),
    "gemv": ("mk", ("m", "mk", "k")),
    "ger": ("mn", ("mn", "m", "n")),
    "axpy": ("n", ("n", "n")),
    "dot": ("n", ("", "n", "n")),
}
"""The loops of each routine, then those of its output and of its factors, in the order of its arguments."""


def called(context: Context, scope: Scope, forall: Forall) -> list[Step]:
    """Return the call of the routine in a loop's tag, which replaces the loop and the loops in it.

    Raises:
        ScheduleError: the loops do not compute what the routine computes.
    """
    return _Routine(context, scope, forall).steps()


class _Routine:
    """One call: the loops that it replaces, by letter, and the accesses, the target first."""

    def __init__(self, context: Context, scope: Scope, forall: Forall) -> None:
        self.context, self.scope, self.routine = context, scope, str(forall.tag.routine)
        nest: list[Forall] = []
        inner: Stmt = forall
        while isinstance(inner, Forall):
            nest.append(inner)
            inner = inner.body
        self.indices = tuple(loop.index for loop in nest)
        if not isinstance(inner, Assign) or any(loop.tag.unit for loop in nest) or any(loop.tag.routine for loop in nest[1:]):
            raise self._refused("they hold more than one assignment, or one of them is dealt out or handed over by itself")
        if any(map(context.graph.is_derived, self.indices)):
            raise self._refused("they are pieces of loops, and whole ones are handed over")
        self.leaf = inner
        self.scale, factors = self._parts(flatten(inner.value))
        self.loops, self.accesses = self._matched(factors)
        self.windows = {letter: window(context, scope, index) for letter, index in self.loops.items()}
        inside = scope
        for letter, index in self.loops.items():
            inside = inside.know(index, self.windows[letter].low)
        self.inside = inside

    def _refused(self, why: str) -> ScheduleError:
        return ScheduleError(f"call(.., {self.routine}) of the loops {', '.join(self.indices)}: {why}; leave them to the generator")

    def _parts(self, value: Expr) -> tuple[Expr | None, tuple[Access, ...]]:
        """Return the factor that is constant in the loops, and the accesses that change in them."""
        factors = product_factors(value) if isinstance(value, Mul) else (value,)
        moving = tuple(one for one in factors if any(set(access.indices) & set(self.indices) for access in accesses(one)))
        if not all(isinstance(one, Access) and all(subscript.is_index for subscript in one.subscripts) for one in moving):
            raise self._refused(f"{show(value)} is no product of tensors with plain indices")
        still = tuple(one for one in factors if one not in moving)
        scale = None if not still else still[0] if len(still) == 1 else Mul(still)
        return scale, tuple(one for one in moving if isinstance(one, Access))

    def _matched(self, factors: tuple[Access, ...]) -> tuple[dict[str, str], tuple[Access, ...]]:
        letters, shapes = SHAPES[self.routine]
        for indices in permutations(self.indices, len(letters)):
            loops = dict(zip(letters, indices, strict=True))
            wanted = [{loops[letter] for letter in shape} for shape in shapes]
            for order in permutations(factors):
                found = (self.leaf.target, *order)
                if [set(access.indices) & set(self.indices) for access in found] == wanted:
                    return loops, found
        raise self._refused(f"{show(self.leaf.target)} += {show(self.leaf.value)} is not what {self.routine} computes")

    def steps(self) -> list[Step]:
        """Return the call."""
        kind, semiring = self.context.value_type, self.context.semiring
        if kind not in (F32, F64) or (semiring.add, semiring.multiply) != ("+", "*"):
            raise self._refused(f"BLAS adds and multiplies float32 and float64, not {kind.name} by {semiring.add} and {semiring.multiply}")
        if self.context.on_gpu:
            raise self._refused("a GPU has no BLAS inside of kernels")
        read = [argument for access, shape in self._shapes()[1:] for argument in self._read(access, shape)]
        lengths = [subtract(found.high, found.low) for found in self.windows.values()]
        scale = Const(1.0, kind) if self.scale is None else value_of(self.context, self.scope, self.scale)
        if self.routine == "dot":
            value: Value = Call("dot", (*read, *lengths), kind)
            value = value if self.scale is None else Binary("*", scale, value, kind)
            return assigned(self.context, self.scope, Assign(self.leaf.target, "+=", self.leaf.value), value)
        asked, written = self._written()
        if not written:
            return []
        return [NeedsZeros(self.leaf.target.tensor), *asked, Run(self.routine, (*written, *read, *lengths, scale))]

    def _shapes(self) -> list[tuple[Access, str]]:
        return list(zip(self.accesses, SHAPES[self.routine][1], strict=True))

    def _read(self, access: Access, shape: str) -> list[Value]:
        storage, place = self.context.tensors.storage(self.scope, access), self.inside.place(access)
        self._check(access, storage, place)
        return self._array(storage.values, storage, storage.dense_position(place, known(self.context, self.inside)), shape)

    def _written(self) -> tuple[list[Step], list[Value]]:
        """Return what the output asks for, and the arguments for it; none if entries are only counted in this pass."""
        context, (target, shape) = self.context, self._shapes()[0]
        held = self.scope.held(target.tensor)
        if held is None and self.scope.assembly is not None:
            raise self._refused(f"{target.tensor} is put together entry by entry")
        if held is not None and not isinstance(held, DenseWorkspace):
            raise self._refused(f"the workspace {target.tensor} keeps its entries; say workspace({target.tensor}, dense)")
        if held is not None and self.scope.assembly is not None and self.scope.assembly.counting:
            return [], []
        storage = context.tensors.storage(self.scope, target) if held is None else held.stored
        if held is not None:
            place, position = Place(), storage.dense_position(Place(), known(context, self.inside))
        else:
            shared = context.shares
            place = self.inside.place(target if shared is None else shared)
            position = result_position(context, self.inside, target)
        self._check(target, storage, place)
        array, race = storage.values, race_at(context, self.scope.around(target.tensor), self.leaf, "+")
        asked: list[Step] = []
        if race in PRIVATE:
            copies = private_copies(context, self.scope, storage)
            array, position = copies.array, copies.position(position)
            asked.append(NeedsCopies(copies))
        elif race is not None:
            raise self._refused(f"threads of the loops around may meet at one component of {target.tensor}")
        return asked, self._array(array, storage, position, shape)

    def _check(self, access: Access, storage: Storage, place: Place) -> None:
        if storage.type != self.context.value_type:
            raise self._refused(f"{access.tensor} holds {storage.type.name}, and what is computed is {self.context.value_type.name}")
        if any(level.kind is not DENSE for level in storage.levels[place.depth :]):
            raise self._refused(f"{show(access)} is not dense in them")

    def _array(self, name: str, storage: Storage, position: Value, shape: str) -> list[Value]:
        return [ArrayRef(name, storage.type), position, *(self._stride(storage, self.loops[letter]) for letter in shape)]

    def _stride(self, storage: Storage, index: str) -> Value:
        """Return the distance between the elements of neighbouring coordinates."""
        length: Value = ONE
        for level in reversed(storage.levels):
            if level.index == index:
                return length
            length = multiply(length, level.extent)
        raise AssertionError(f"{storage.name} has no level of {index}")
