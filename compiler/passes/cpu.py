"""The passes for processors, in order: from loop IR as lowering makes it to what is printed as C.

To add a pass: write ``def change(function: Function, setting: Setting) -> Function`` in a file of its own, and add a line here that says
what it requires, gives and ends. A list in which a pass comes too early or too late is refused.
"""

from __future__ import annotations

from .abreast import rows_abreast
from .accumulators import keep_accumulators
from .atomics import gather_atomics
from .batches import batch_short_sums
from .consecutive import join_segments
from .counted import count_from_zero, name_registers_apart, shared_register_names
from .dead import remove_dead, unread
from .empty_rows import skip_empty_rows
from .factors import take_out_factors
from .flags import raise_flags_before_loops, raised_in_loops
from .held import hold_rows
from .manager import Pass, PassList, Property
from .offered import offer_vectors, undecided
from .placement import place_large_arrays, too_large_for_stack
from .segments import separate_whole_segments
from .simplify import simplify
from .single import single_registers
from .still_first import multiply_still_rows_first
from .streams import pass_caches
from .sums import sum_in_vectors
from .vectorize import vectorize
from .whole_rows import store_whole_rows

PLACED = Property("every array has the storage that it keeps", too_large_for_stack)
FOLDED = Property("constant expressions are constants")
LIVE = Property("variables and arrays that nothing reads are gone", unread)
JOINED = Property("entries that are treated one by one have one loop, whatever their rows")
RAISED = Property("no loop raises a flag in every iteration", raised_in_loops)
LOCKED_ONCE = Property("loops that update one place atomically do so once")
ROW_BY_ROW = Property("rows are visited one by one")
WHOLE = Property("segments that lie inside a tile have a loop of their own")
STORED_ONCE = Property("rows that one tile has are stored")
SCALAR = Property("register arrays of one number are variables")
SKIPPED = Property("loops that store sums of rows have a form for rows nearly all of which are empty")
UNTAGGED = Property("sums of which a schedule says nothing bear no tag")
BATCHED = Property("short rows are summed in batches")
TAGGED = Property("sums are tagged")
FACTORED = Property("sums in vectors multiply nothing that stands still")
APART = Property("register arrays have names of their own", shared_register_names)
COUNTED = Property("loops of constant extent count from zero")
KEPT = Property("rows that loops update again and again are in registers")
STILL_FIRST = Property("products of rows begin with those that change least often")
HELD = Property("rows that loops read again and again are in registers")
CUT = Property("loops are cut into vectors")
OFFERED = Property("loops without a vector form are offered to the C compiler, or are plain", undecided)


def _all(*properties: Property) -> frozenset[Property]:
    return frozenset(properties)


CPU = PassList(
    [
        Pass("place", lambda function, _: place_large_arrays(function), gives=_all(PLACED)),
        Pass("simplify", lambda function, _: simplify(function), gives=_all(FOLDED)),
        Pass("dead", lambda function, _: remove_dead(function), requires=_all(FOLDED), gives=_all(LIVE)),
        Pass("flags", raise_flags_before_loops, requires=_all(LIVE), gives=_all(RAISED)),
        Pass("consecutive", join_segments, requires=_all(LIVE, RAISED), gives=_all(JOINED)),
        Pass("atomics", gather_atomics, requires=_all(LIVE, JOINED, ROW_BY_ROW), gives=_all(LOCKED_ONCE)),
        Pass("segments", separate_whole_segments, requires=_all(PLACED, LOCKED_ONCE, ROW_BY_ROW), gives=_all(WHOLE), ends=_all(APART)),
        Pass("whole_rows", store_whole_rows, requires=_all(WHOLE, ROW_BY_ROW), gives=_all(STORED_ONCE), ends=_all(LIVE)),
        Pass("single", lambda function, _: single_registers(function), requires=_all(PLACED, FOLDED, STORED_ONCE), gives=_all(SCALAR)),
        Pass("abreast", rows_abreast, requires=_all(FOLDED, STORED_ONCE, ROW_BY_ROW, UNTAGGED, SCALAR)),
        Pass("empty_rows", skip_empty_rows, requires=_all(STORED_ONCE, ROW_BY_ROW, UNTAGGED, SCALAR), gives=_all(SKIPPED)),
        Pass(
            "batches",
            batch_short_sums,
            requires=_all(RAISED, STORED_ONCE, SKIPPED, UNTAGGED, SCALAR),
            gives=_all(BATCHED),
            ends=_all(ROW_BY_ROW, WHOLE, APART),
        ),
        Pass("sums", sum_in_vectors, requires=_all(RAISED, BATCHED, SCALAR), gives=_all(TAGGED), ends=_all(UNTAGGED)),
        Pass("factors", take_out_factors, requires=_all(TAGGED), gives=_all(FACTORED)),
        Pass("registers", name_registers_apart, requires=_all(PLACED), gives=_all(APART)),
        Pass("counted", count_from_zero, requires=_all(TAGGED), gives=_all(COUNTED)),
        Pass("accumulators", keep_accumulators, requires=_all(APART, COUNTED), gives=_all(KEPT)),
        Pass("still_first", multiply_still_rows_first, requires=_all(COUNTED, FACTORED), gives=_all(STILL_FIRST)),
        Pass("held", hold_rows, requires=_all(APART, COUNTED, FACTORED, KEPT, STILL_FIRST), gives=_all(HELD)),
        Pass("vectorize", vectorize, requires=_all(APART, COUNTED, KEPT, HELD), gives=_all(CUT), ends=_all(FOLDED, LIVE, RAISED)),
        Pass("fold", lambda function, _: simplify(function), gives=_all(FOLDED)),
        Pass("streams", pass_caches, requires=_all(STORED_ONCE, CUT, FOLDED)),
        Pass("offered", offer_vectors, requires=_all(CUT), gives=_all(OFFERED)),
    ],
    at_first=[ROW_BY_ROW, UNTAGGED],
)

PORTABLE = PassList(CPU.passes[:3], at_first=CPU.at_first)
"""The passes that are the same for all processors. ``counting`` comes after them; a kernel is never compiled directly after them."""
