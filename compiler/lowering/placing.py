"""Results whose last stored level has places for its entries only once they are counted: hash tables, fibres of one length.

They are appended to a list first, as to a compressed level. Then the kind of the level makes its arrays, with room for all, and every entry
goes to the place that the kind gives it (``LevelKind.slots``, ``vacant`` and ``place``).
"""

from __future__ import annotations

from ..ir.arithmetic import ONE, ZERO, add, load_index, multiply
from ..ir.names import Names
from ..ir.nodes import I64, Allocate, Declare, Fill, For, Free, Load, Parallel, Publish, Step, Steps, Store, Value, Var
from ..levels.level import Listed
from .assembly import Assembly


def placed(assembly: Assembly, names: Names, *, in_threads: bool) -> list[Step]:
    """Return the steps from the list of all entries to the result, which is handed over; nothing where no entries are listed."""
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
    """Return the loop over parents that puts every entry in its place."""
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
