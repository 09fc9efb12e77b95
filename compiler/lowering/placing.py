"""Results whose last stored level can place its entries only after counting them: hash tables, fibres of equal length.

Entries are first appended to a list, as to a compressed level. Then the kind of the level makes its arrays with room for all, and gives
every entry its place (``LevelKind.slots``, ``vacant`` and ``place``).
"""

from __future__ import annotations

from ..ir.arithmetic import ONE, ZERO, add, load_index, multiply
from ..ir.names import Names
from ..ir.nodes import I64, Allocate, Declare, Fill, For, Free, Load, Parallel, Publish, Step, Steps, Store, Value, Var
from ..levels.level import Listed
from .assembly import Assembly


def placed(assembly: Assembly, names: Names, *, in_threads: bool) -> list[Step]:
    """Return the steps that make the result of the list of entries and hand it over; empty if entries are not listed."""
    if not assembly.is_listed:
        return []
    entry = assembly.levels[assembly.last]
    kind, level, block = entry.kind, entry.level, assembly.block(assembly.last)
    listed = Listed(entry.pos, assembly.parents(entry.head))
    steps, lengths = kind.slots(level, listed, lambda wish: Var(names.permanent(wish), I64))
    slots, crd = Var(names.permanent("slots"), I64), level.array("crd")
    values = multiply(slots, block)
    return [
        *steps,
        Declare(slots, lengths["crd"]),
        Allocate(crd.name, crd.type, slots),
        Fill(crd.name, ZERO, slots, kind.vacant(level)),
        Allocate(assembly.given, assembly.value_type, values),
        Fill(assembly.given, ZERO, values, assembly.zero),
        _moves(assembly, listed, block, names, Parallel("static") if in_threads else None),
        *(Free(array) for array in (entry.pos, entry.crd, assembly.values)),
        *(Publish(f"{array.name}_out", array.name, slots if array is crd else lengths[array.part]) for array in level.arrays),
        Publish(f"{assembly.given}_out", assembly.given, values),
    ]


def _moves(assembly: Assembly, listed: Listed, block: Value, names: Names, tag: Parallel | None) -> Step:
    """Return the loop over parents that moves every entry to its place."""
    entry = assembly.levels[assembly.last]
    parent, number, slot, below = (Var(names.permanent(wish), I64) for wish in ("parent", "entry", "slot", "below"))
    coordinate = load_index(entry.crd, number, entry.width)
    place = entry.kind.place(entry.level, listed, parent, number, coordinate)

    def moved(offset: Value) -> Step:
        value = Load(assembly.values, add(multiply(number, block), offset), assembly.value_type)
        return Store(assembly.given, add(multiply(slot, block), offset), value)

    values = moved(ZERO) if block == ONE else For(below, ZERO, block, Steps((moved(below),)))
    body = Steps((Declare(slot, place), Store(entry.level.array("crd").name, slot, Load(entry.crd, number, entry.width)), values))
    entries = For(number, listed.begin(parent), listed.begin(add(parent, ONE)), body)
    return For(parent, ZERO, listed.parents, Steps((entries,)), tag)
