"""The operands of a kernel: the formats in which a program reads them, and their specifications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..concrete.affine import Viewed
from ..concrete.nodes import Program, reads
from ..concrete.said import said_of
from ..format import Format
from ..fresh import fresh
from ..notation.nodes import Access
from .kernel_spec import OperandSpec
from .tensor_types import TensorType


def operand_keys(program: Program, types: Mapping[str, TensorType], written: set[str]) -> tuple[dict[Access, str], dict[str, TensorType]]:
    """Return, for every operand access, the name of its stored copy, and the type of every copy."""
    workspaces = {workspace.name for workspace in program.workspaces}
    keys: dict[Access, str] = {}
    kinds: dict[str, TensorType] = {}
    for access in dict.fromkeys(reads(program.statement)):
        if access.tensor in workspaces or access.tensor in written:
            continue
        given = types[access.tensor]
        wanted = access.stored or said_of(access, program.conversions) or given.format
        if wanted == given.format:
            key, kind = access.tensor, given
        else:
            kind = TensorType(wanted, given.dtype, converted_widths(given, wanted))
            key = _copy_name(access.tensor, kind, kinds, types)
        keys[access], kinds[key] = key, kind
    return keys, kinds


def read_format(wanted: Access, keys: Mapping[Access, str], kinds: Mapping[str, TensorType]) -> Format | None:
    """Return the format in which an operand is read, for an access with any protocols."""
    alike = ((access.tensor, access.subscripts) == (wanted.tensor, wanted.subscripts) for access in keys)
    return next((kinds[key].format for key, same in zip(keys.values(), alike, strict=True) if same), None)


def converted_widths(given: TensorType, wanted: Format) -> tuple[int, ...]:
    """Return the index widths of a converted copy: 64 bits if any level of the original has them."""
    widest = max(given.widths, default=32)
    return tuple(widest for _ in wanted.in_memory.levels)


def _copy_name(tensor: str, kind: TensorType, kinds: Mapping[str, TensorType], types: Mapping[str, TensorType]) -> str:
    wish = f"{tensor}_{''.join(level.letters[:1] or level for level in kind.format.levels)}{''.join(map(str, kind.format.order))}"
    return fresh(wish, {*types, *(name for name, other in kinds.items() if other != kind)}, "_")


def each_use(
    keys: Mapping[Access, str], kinds: Mapping[str, TensorType], aliases: Mapping[str, str]
) -> Iterator[tuple[str, str, tuple[str | None, ...]]]:
    """Yield (tensor, key, index of each mode in memory) for every combination of stored copy and indices."""
    seen: set[tuple[str, tuple[str | None, ...]]] = set()
    for access, key in keys.items():
        modes = (None if mode is None else access.subscripts[mode].index for mode in kinds[key].format.plain_modes)
        indices = tuple(None if index is None else aliases.get(index, index) for index in modes)
        if (key, indices) not in seen:
            seen.add((key, indices))
            yield access.tensor, key, indices


def operand_spec(
    indices: tuple[str | None, ...], key: str, tensor: str, given: TensorType, kind: TensorType, viewed: Viewed
) -> OperandSpec:
    """Return the specification of a stored copy of an operand, with the index of each of its modes in memory."""
    form = kind.format.in_memory
    widths, point = kind.widths[: len(form)], tensor in viewed.points
    return OperandSpec(key, viewed.source(tensor), given.format.in_memory, form, indices, kind.dtype, widths, point)
