/* Checks each use of an element: not written where its array is only read, not read before anything was written there, and in no race
   with what other threads did. */
#ifndef ST_EXECUTOR_RACES_H
#define ST_EXECUTOR_RACES_H

#include "st_executor_state.h"

/* A warp, by its first thread. */
static int st_warp() { return st_here.thread - st_here.thread % st_it.lanes; }
static bool st_ordered(const st_use &earlier) {
  const st_fibre &now = st_it.fibres[st_here.thread];
  if (earlier.block < 0) return earlier.block == -1;
  if (earlier.block != st_here.block) return false;
  if (earlier.thread == st_here.thread || earlier.of_block < now.of_block) return true;
  return earlier.warp == st_warp() && earlier.of_warp < now.of_warp;
}
static void st_used(st_use &use) {
  const st_fibre &now = st_it.fibres[st_here.thread];
  const st_use mine{st_here.block, st_warp(), st_here.thread, now.of_block, now.of_warp};
  if (st_ordered(use)) {
    use = mine;
    return;
  }
  if (use.block != mine.block) use.block = -2;
  if (use.warp != mine.warp) use.warp = -2;
  if (use.thread != mine.thread) use.thread = -2;
  use.of_block = mine.of_block;
  use.of_warp = mine.of_warp > use.of_warp ? mine.of_warp : use.of_warp;
}
ST_FAST void st_check(st_region *region, const char *place, size_t size, bool writes, bool atomic) {
  if (!region) {
    st_error("uses memory that no kernel was given");
    return st_stop();
  }
  if (!writes && !region->writable && region->known == region->bytes) return; /* nobody writes it, so elements may have any size */
  st_uses &uses = *region->uses;
  if (!uses.grain) {
    uses.grain = size;
    uses.cells.resize(region->bytes / size + 1);
    uses.written.resize(region->bytes / size + 1, false);
  }
  const size_t index = (size_t)(place - region->begin) / uses.grain;
  st_cell &cell = uses.cells[index];
  if (cell.launch != st_it.launch) {
    cell = st_cell();
    cell.launch = st_it.launch;
  }
  if (writes && !region->writable) {
    st_error("writes element %zu of an array that is only read", index);
    return st_stop();
  }
  if ((!writes || atomic) && !uses.written[index] && place + size > region->begin + region->known) {
    st_error("reads element %zu before anything was written there", index);
    return st_stop();
  }
  if (!st_ordered(cell.write) || (!atomic && !st_ordered(cell.update))) {
    st_error("race on element %zu: %s what another thread wrote, without a barrier between", index, writes ? "writes over" : "reads");
    return st_stop();
  }
  if (writes && !st_ordered(cell.read)) {
    st_error("race on element %zu: writes over what another thread read, without a barrier between", index);
    return st_stop();
  }
  st_used(!writes ? cell.read : atomic ? cell.update : cell.write);
  if (writes) uses.written[index] = true;
}

#endif
