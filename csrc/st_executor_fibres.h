/* Threads of a block as fibres, which take turns: each runs until it waits for others, and continues when all of these are there. */
#ifndef ST_EXECUTOR_FIBRES_H
#define ST_EXECUTOR_FIBRES_H

#include "st_executor_memory.h"

ST_FAST static void st_wait(st_state state, const void *site, int apart, int lanes = 32, bool orders = true) {
  st_fibre &mine = st_it.fibres[st_here.thread];
  mine.state = state;
  mine.site = site;
  mine.apart = apart;
  mine.lanes = lanes;
  mine.orders = orders;
  if (!_setjmp(mine.left)) _longjmp(st_it.scheduler, 1);
}
void st_barrier_of_block() { st_wait(ST_AT_BLOCK, __builtin_return_address(0), 0); }
void st_warps_of(int lanes) { st_it.lanes = lanes; }
void st_wait_for_lanes(int lanes, const void *site) { st_wait(ST_AT_WARP, site, 0, lanes); }
static void st_exchanged(const void *sent, void *got, size_t size, int apart, int lanes, const void *site, bool orders) {
  const int partner = st_here.thread ^ apart;
  if (partner / lanes != st_here.thread / lanes || partner >= st_here.threads) {
    st_error("takes a value of thread %d, which is no lane of its warp", partner);
    st_stop();
  }
  memcpy(st_it.fibres[st_here.thread].sent, sent, size);
  st_wait(ST_AT_WARP, site, apart, lanes, orders);
  memcpy(got, st_it.fibres[partner].sent, size);
  st_wait(ST_AT_WARP, site, -apart, lanes, orders); /* until all have read */
}
void st_exchange(const void *sent, void *got, size_t size, int apart, int lanes, const void *site) {
  st_exchanged(sent, got, size, apart, lanes, site, true);
}
void st_show(const void *sent, void *got, size_t size, int apart, const void *site) {
  st_exchanged(sent, got, size, apart, 32, site, false);
}
unsigned st_lanes_here() {
  st_wait(ST_MET, __builtin_return_address(0), 0);
  return st_it.fibres[st_here.thread].met;
}
/* Lets threads continue that are at one place with others of their processor's warp; returns whether there were any. */
static bool st_release_met() {
  bool any = false;
  for (int thread = 0; thread < st_here.threads; thread++) {
    const st_fibre &first = st_it.fibres[thread];
    if (first.state != ST_MET) continue;
    const int base = thread - thread % 32;
    unsigned met = 0;
    for (int lane = thread; lane < base + 32 && lane < st_here.threads; lane++)
      if (st_it.fibres[lane].state == ST_MET && st_it.fibres[lane].site == first.site) met |= 1u << (lane - base);
    for (int lane = base; lane < base + 32; lane++) {
      if (!(met >> (lane - base) & 1)) continue;
      st_it.fibres[lane].met = met;
      st_it.fibres[lane].state = ST_READY;
    }
    any = true;
  }
  return any;
}

/* Whether a lane before one of a warp waits there with as many others. */
static bool st_waits_before(int base, int lane) {
  for (int other = base; other < lane; other++)
    if (st_it.fibres[other].state == ST_AT_WARP && st_it.fibres[other].lanes == st_it.fibres[lane].lanes) return true;
  return false;
}
/* Lets threads that wait for one another continue, where all that must be there are; returns whether any could. */
ST_FAST bool st_release_waiting() {
  if (st_release_met()) return true;
  bool any = false, all = true, some = false;
  int first = -1;
  for (int leader = 0; leader < st_here.threads; leader++) {
    if (st_it.fibres[leader].state != ST_AT_WARP) continue;
    const int size = st_it.fibres[leader].lanes, base = leader - leader % size;
    if (st_waits_before(base, leader)) continue;
    int waiting = 0, left = 0, lanes = 0, other = -1;
    for (int lane = base; lane < base + size && lane < st_here.threads; lane++, lanes++) {
      st_fibre &each = st_it.fibres[lane];
      left += each.state == ST_DONE;
      if (each.state != ST_AT_WARP || each.lanes != size) continue;
      waiting++;
      if (each.site != st_it.fibres[leader].site || each.apart != st_it.fibres[leader].apart) other = lane;
    }
    st_here.thread = leader;
    const char *what = st_it.fibres[leader].apart ? "shuffle" : "barrier of the warp";
    if (other >= 0) {
      st_error("waits at a %s, and thread %d at another: they stand in branches that lanes part at", what, other);
      return false;
    }
    if (waiting + left == lanes && left) {
      st_error("waits at a %s that %d lanes of its warp do not reach", what, left);
      return false;
    }
    if (waiting < lanes) continue;
    for (int lane = base; lane < base + lanes; lane++) {
      st_it.fibres[lane].state = ST_READY;
      st_it.fibres[lane].of_warp += st_it.fibres[lane].orders && size >= st_it.lanes; /* fewer lanes order nothing for the others */
    }
    any = true;
  }
  if (any) return true;
  for (int thread = 0; thread < st_here.threads; thread++) {
    st_fibre &each = st_it.fibres[thread];
    all = all && each.state == ST_AT_BLOCK;
    some = some || each.state == ST_AT_BLOCK;
    if (each.state != ST_AT_BLOCK) continue;
    if (first < 0) first = thread;
    if (each.site != st_it.fibres[first].site) {
      st_here.thread = thread;
      st_error("waits at a barrier of the block, and thread %d at another", first);
      return false;
    }
  }
  if (!all) {
    st_here.thread = first < 0 ? 0 : first;
    if (some) st_error("waits at a barrier of the block that some threads do not reach");
    else st_error("waits for lanes of its warp that wait for something else");
    return false;
  }
  for (int thread = 0; thread < st_here.threads; thread++) {
    st_fibre &each = st_it.fibres[thread];
    each.state = ST_READY;
    each.of_block++;
    each.of_warp++;
  }
  return true;
}

/* A fibre that came to the kernel's end waits there for the next block: to make one takes far longer than most threads run. */
static void st_enter() {
  for (;;) {
    st_it.body(st_it.given);
    st_fibre &mine = st_it.fibres[st_here.thread];
    mine.state = ST_DONE;
    if (!_setjmp(mine.left)) _longjmp(st_it.scheduler, 1);
  }
}
/* Runs a fibre until it waits, ends, or finds an error. */
ST_FAST static void st_resume(st_fibre &fibre) {
  if (_setjmp(st_it.scheduler)) return;
  if (fibre.begun) _longjmp(fibre.left, 1);
  fibre.begun = true;
  setcontext(&fibre.context);
}
ST_FAST void st_run_block() {
  for (int thread = 0; thread < st_here.threads; thread++) {
    st_fibre &each = st_it.fibres[thread];
    const bool waits = each.state == ST_DONE;
    each.state = ST_READY;
    each.of_block = each.of_warp = 0;
    if (waits) continue;
    each.begun = false;
    getcontext(&each.context);
    each.context.uc_stack.ss_sp = st_it.stacks + (size_t)thread * st_machine::STACK;
    each.context.uc_stack.ss_size = st_machine::STACK;
    each.context.uc_link = nullptr;
    makecontext(&each.context, st_enter, 0);
  }
  for (bool all = false; !st_it.failed && !all;) {
    bool ran = false;
    all = true;
    for (int turn = 0; turn < st_here.threads && !st_it.failed; turn++) {
      const int thread = (int)((turn + 5 * st_it.launch) % st_here.threads); /* none is always the first */
      if (st_it.fibres[thread].state == ST_READY) {
        st_here.thread = thread;
        st_resume(st_it.fibres[thread]);
        ran = true;
      }
      all = all && st_it.fibres[thread].state == ST_DONE;
    }
    if (!all && !ran && !st_release_waiting()) return;
  }
  st_forget_shared();
}

#endif
