"""The passes for GPUs, in order: from loop IR as lowering makes it to host code and kernels that are printed as CUDA C++."""

from __future__ import annotations

from .atomics import gather_atomics
from .carries import carried, carry_in_order
from .counted import name_registers_apart, shared_register_names
from .dead import remove_dead, unread
from .kernels import outside_kernels, split_kernels
from .loads_ahead import load_ahead
from .manager import Pass, PassList, Property
from .members import deal_to_members, done_by_all
from .needs import count_needs
from .owned_rows import store_owned_rows
from .row_bases import address_in_rows
from .searches import search_together
from .simplify import simplify
from .strides import load_in_strides
from .unique import name_scalars_apart, shared_scalar_names
from .unrolled_rows import unroll_rows
from .wide_loads import load_widely
from .wide_stores import store_widely

FOLDED = Property("constant expressions are constants")
LIVE = Property("variables and arrays that nothing reads are gone", unread)
COUNTED = Property("tables have room for all keys that come into them")
LOCKED_ONCE = Property("loops that update one place atomically do so once")
CARRIED = Property("sums that threads make in order are kept in slots, and added behind the kernel", carried)
APART = Property("register arrays have names of their own", shared_register_names)
UNIQUE = Property("scalars have names of their own", shared_scalar_names)
WIDE = Property("neighbouring elements of rows are loaded at once")
UNROLLED = Property("loops over the elements of a row that a thread has are unrolled")
AHEAD = Property("loops that are to load several iterations at once do so")
SPLIT = Property("everything that touches memory stands in kernels", outside_kernels)
DEALT = Property("elements that all threads of a block or warp see are stored by one of them", done_by_all)


def _all(*properties: Property) -> frozenset[Property]:
    return frozenset(properties)


CUDA = PassList(
    [
        Pass("simplify", lambda function, _: simplify(function), gives=_all(FOLDED)),
        Pass("dead", lambda function, _: remove_dead(function), requires=_all(FOLDED), gives=_all(LIVE)),
        Pass("needs", count_needs, requires=_all(LIVE), gives=_all(COUNTED)),
        Pass("atomics", gather_atomics, requires=_all(LIVE, COUNTED), gives=_all(LOCKED_ONCE)),
        Pass("carries", carry_in_order, requires=_all(LOCKED_ONCE), gives=_all(CARRIED)),
        Pass("owned_rows", store_owned_rows, requires=_all(CARRIED)),
        Pass("wide_loads", load_widely, requires=_all(CARRIED), gives=_all(WIDE)),
        Pass("unrolled_rows", unroll_rows, requires=_all(CARRIED), gives=_all(UNROLLED), ends=_all(LIVE, APART, UNIQUE)),
        Pass("loads_ahead", load_ahead, requires=_all(CARRIED), gives=_all(AHEAD)),
        Pass("registers", name_registers_apart, requires=_all(LOCKED_ONCE, CARRIED), gives=_all(APART)),
        Pass("names", name_scalars_apart, requires=_all(LOCKED_ONCE, CARRIED), gives=_all(UNIQUE)),
        Pass("unread", lambda function, _: remove_dead(function), requires=_all(UNIQUE), gives=_all(LIVE)),
        Pass(
            "kernels", split_kernels, requires=_all(APART, UNIQUE, WIDE, UNROLLED, AHEAD), gives=_all(SPLIT), ends=_all(LIVE, UNIQUE)
        ),
        Pass("strides", load_in_strides, requires=_all(SPLIT)),
        Pass("members", deal_to_members, requires=_all(SPLIT), gives=_all(DEALT), ends=_all(UNIQUE)),
        Pass("searches", search_together, requires=_all(DEALT)),
        Pass("wide_stores", store_widely, requires=_all(DEALT, APART)),
        Pass("row_bases", address_in_rows, requires=_all(DEALT)),
    ]
)
