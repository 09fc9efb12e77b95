/* The machine on which st_executor.h runs kernels: fibres that take turns, what is known of every element of memory, and what is wrong.
   To be compiled by itself with -DST_EXECUTOR_APART, or included. */
#ifndef ST_EXECUTOR_MACHINE_H
#define ST_EXECUTOR_MACHINE_H

#undef _FORTIFY_SOURCE /* takes a jump to another fibre's stack for a fault */

#include <setjmp.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "st_executor.h"

/* Of this file where it is included into kernels, whose calls must stay as they are. */
#ifdef __clang__
#define ST_FAST __attribute__((noinline))
#else
#define ST_FAST __attribute__((noinline, optimize("O2")))
#endif

/* Who used an element, and after how many barriers of its block and its warp. */
struct st_use {
  int64_t block = -1;
  int warp = -1, thread = -1; /* -2: several */
  unsigned of_block = 0, of_warp = 0;
};
struct st_cell {
  int64_t launch = 0;
  bool atomic = false;
  st_use write, read;
};
struct st_uses {
  size_t grain = 0; /* bytes of an element */
  std::vector<st_cell> cells;
  std::vector<bool> written;
};

enum st_state { ST_READY, ST_AT_BLOCK, ST_AT_WARP, ST_MET, ST_DONE };
struct st_fibre {
  ucontext_t context; /* where it begins */
  jmp_buf left;       /* where it was left */
  bool begun;
  st_state state;
  const void *site;
  int apart; /* of a shuffle; 0 at a barrier */
  int lanes; /* of the warp that waits */
  bool orders;  /* whether what waits comes before what is done behind */
  unsigned met; /* the lanes that were where this one was */
  unsigned of_block, of_warp;
  char sent[16];
};

/* One processor for all kernels of a file; not for several threads of the processor at once. */
struct st_machine {
  enum { STACK = 128 * 1024, MOST_THREADS = 1024 };
  std::map<uintptr_t, st_region> regions;
  std::map<std::pair<int, size_t>, void *> shared;
  std::vector<st_fibre> fibres;
  void (*body)(void *) = nullptr;
  void *given = nullptr;
  jmp_buf scheduler;
  char *stacks = nullptr;
  char error[400] = "";
  int64_t launch = 0;
  int lanes = 32; /* of the kernel's warps */
  bool failed = false;
};
static st_machine st_it;
st_now st_here;
int64_t st_added = 0;

static void st_error(const char *form, ...) __attribute__((format(printf, 1, 2)));
static void st_error(const char *form, ...) {
  if (!st_it.failed) {
    va_list given;
    va_start(given, form);
    const int used = snprintf(st_it.error, sizeof st_it.error, "block %lld, thread %d: ", (long long)st_here.block, st_here.thread);
    vsnprintf(st_it.error + used, sizeof st_it.error - used, form, given);
    va_end(given);
  }
  st_it.failed = true;
}
/* Ends the fibre that found an error; it is never gone on with. */
static void st_stop() { _longjmp(st_it.scheduler, 1); }

static void st_forget(void *memory) {
  auto found = st_it.regions.find((uintptr_t)memory);
  if (found == st_it.regions.end()) return;
  delete found->second.uses;
  st_it.regions.erase(found);
}
static void st_register(void *memory, size_t bytes, bool writable, bool checked) {
  st_forget(memory);
  st_it.regions[(uintptr_t)memory] = st_region{(char *)memory, bytes, writable, checked, new st_uses};
}
ST_FAST st_region *st_find(const void *memory) {
  auto next = st_it.regions.upper_bound((uintptr_t)memory);
  if (next == st_it.regions.begin()) return nullptr;
  st_region &found = (--next)->second;
  return (const char *)memory <= found.begin + found.bytes ? &found : nullptr;
}

/* A warp, by its first thread. */
static int st_warp() { return st_here.thread - st_here.thread % st_it.lanes; }
static bool st_ordered(const st_use &earlier) {
  const st_fibre &now = st_it.fibres[st_here.thread];
  if (earlier.block < 0) return earlier.block == -1;
  if (earlier.block != st_here.block) return false;
  if (earlier.thread == st_here.thread || earlier.of_block < now.of_block) return true;
  return earlier.warp == st_warp() && earlier.of_warp < now.of_warp;
}
static void st_used(st_use &use, bool alone) {
  const st_fibre &now = st_it.fibres[st_here.thread];
  const st_use mine{st_here.block, st_warp(), st_here.thread, now.of_block, now.of_warp};
  if (alone || st_ordered(use)) {
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
  if (!writes && !region->writable && !region->checked) return; /* nobody writes it, so it may be of any size */
  st_uses &uses = *region->uses;
  if (!uses.grain) {
    uses.grain = size;
    uses.cells.resize(region->bytes / size + 1);
    uses.written.resize(region->bytes / size + 1, !region->checked);
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
  if ((!writes || atomic) && !uses.written[index]) {
    st_error("reads element %zu before anything was written there", index);
    return st_stop();
  }
  if (!st_ordered(cell.write) && !(atomic && cell.atomic)) {
    st_error("race on element %zu: %s what another thread wrote, without a barrier between", index, writes ? "writes over" : "reads");
    return st_stop();
  }
  if (writes && !st_ordered(cell.read)) {
    st_error("race on element %zu: writes over what another thread read, without a barrier between", index);
    return st_stop();
  }
  if (writes) {
    cell.atomic = atomic;
    st_used(cell.write, !atomic);
    uses.written[index] = true;
  } else {
    st_used(cell.read, false);
  }
}

void st_out_of_bounds(int64_t index) {
  st_error("uses element %lld, which is out of bounds", (long long)index);
  st_stop();
}
void st_check_wide(const void *place, int64_t index) {
  if ((uintptr_t)place % 16 == 0) return;
  st_error("uses 16 bytes from element %lld on, which do not begin at a multiple of 16", (long long)index);
  st_stop();
}
void *st_shared_memory(int number, size_t size, int64_t length) {
  void *&memory = st_it.shared[std::make_pair(number, size)];
  if (!memory) {
    memory = malloc(length * size);
    st_register(memory, length * size, true, true);
  }
  return memory;
}
static void st_forget_shared() {
  for (auto &each : st_it.shared) {
    st_forget(each.second);
    free(each.second);
  }
  st_it.shared.clear();
}

/* Waiting */

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
/* Lets threads go on that are at one place with others of their processor's warp; returns whether there were any. */
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
/* Lets threads that wait for one another go on, where all that must be there are; returns whether any could. */
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
      st_it.fibres[lane].of_warp += st_it.fibres[lane].orders;
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
  for (st_fibre &each : st_it.fibres) {
    each.state = ST_READY;
    each.of_block++;
    each.of_warp++;
  }
  return true;
}

static void st_enter() {
  st_it.body(st_it.given);
  st_it.fibres[st_here.thread].state = ST_DONE;
  _longjmp(st_it.scheduler, 1);
}
/* Runs a fibre until it waits, ends, or finds an error. */
ST_FAST static void st_resume(st_fibre &fibre) {
  if (_setjmp(st_it.scheduler)) return;
  if (fibre.begun) _longjmp(fibre.left, 1);
  fibre.begun = true;
  setcontext(&fibre.context);
}
ST_FAST void st_run_block() {
  st_it.fibres.assign(st_here.threads, st_fibre());
  for (int thread = 0; thread < st_here.threads; thread++) {
    st_fibre &each = st_it.fibres[thread];
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

/* What the host's part asks of the device. */

void st_runtime::adopt(void *memory, size_t bytes, bool writable) { st_register(memory, bytes, writable, false); }
void st_runtime::disown(void *memory) { st_forget(memory); }
void *st_runtime::get(size_t bytes) {
  void *made = malloc(bytes);
  if (made) st_register(made, bytes, true, true);
  return made;
}
void st_runtime::put(void *memory) {
  st_forget(memory);
  free(memory);
}
bool st_runtime::zero(void *memory, size_t bytes) {
  memset(memory, 0, bytes);
  st_find(memory)->checked = false;
  return true;
}
bool st_runtime::read(void *to, const void *from, size_t bytes) {
  memcpy(to, from, bytes);
  return !st_it.failed;
}
bool st_runtime::write(void *to, const void *from, size_t bytes) {
  memcpy(to, from, bytes);
  if (st_region *const found = st_find(to)) found->checked = false;
  return true;
}
bool st_runtime::finish() { return !st_it.failed; }
void *st_runtime::moment() {
  timespec *const made = new timespec;
  clock_gettime(CLOCK_MONOTONIC, made);
  return made;
}
double st_runtime::between(void *first, void *last) {
  const timespec *const begin = (timespec *)first, *const end = (timespec *)last;
  const double seconds = (double)(end->tv_sec - begin->tv_sec) + 1e-9 * (double)(end->tv_nsec - begin->tv_nsec);
  delete begin;
  delete end;
  return seconds;
}
const char *st_runtime::trouble() { return st_it.error; }
bool st_runtime::run_all(int64_t blocks, int threads, void (*thread)(void *), void *given) {
  if (!st_it.stacks)
    st_it.stacks = (char *)mmap(nullptr, (size_t)st_machine::STACK * st_machine::MOST_THREADS, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (st_it.stacks == MAP_FAILED || threads > st_machine::MOST_THREADS) return false;
  st_it.body = thread;
  st_it.given = given;
  st_it.launch++;
  st_it.lanes = 32;
  st_here.threads = threads;
  st_here.blocks = blocks < ST_MOST_BLOCKS ? blocks : ST_MOST_BLOCKS;
  for (st_here.block = 0; st_here.block < st_here.blocks && !st_it.failed; st_here.block++) st_run_block();
  return !st_it.failed;
}

/* Forgets an error, before another kernel is run. */
extern "C" __attribute__((visibility("default"))) void st_executor_begin() {
  st_forget_shared();
  st_it.failed = false;
  st_it.error[0] = 0;
}

#endif
