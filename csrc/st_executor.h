/* Runs CUDA kernels on the processor, as st_cuda.h writes them, and checks what they do: for tests on machines without a GPU.

   Every thread of a block is a fibre; blocks run one after another. A fibre is left where threads wait for one another: at barriers
   and shuffles. What is found is one line of st_trouble(): elements outside of an array, elements read before anything was
   written there, arrays written that are only read; races: two threads use an element, one of them writes, not both atomically, and
   no barrier stands between; barriers and shuffles that some threads of the block or warp do not reach, or not at the same place.
   Iterations are dealt out to at most ST_MOST_BLOCKS blocks. Kernels are compiled without optimisation, so that a call that waits is
   told from others by where it returns to. */
#ifndef ST_EXECUTOR_H
#define ST_EXECUTOR_H

#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <vector>

#ifndef ST_MOST_BLOCKS
#define ST_MOST_BLOCKS 6
#endif

/* Of this file, not of kernels, whose calls must stay as they are. */
#ifdef __clang__
#define ST_FAST static __attribute__((noinline))
#else
#define ST_FAST static __attribute__((noinline, optimize("O2")))
#endif

#define ST_BOTH inline __attribute__((always_inline))
#define ST_DEVICE inline __attribute__((always_inline))
#define ST_KERNEL(threads) static void
#define ST_KERNEL_OF_TYPES(threads) ST_KERNEL(threads)
#define ST_ARRAY(T) st_array<T>
#define ST_SHARED(T, name, length) st_array<T> name = st_shared<T>(__COUNTER__, length)
#define ST_SHARED_OF_WARP(T, name, length, warps) \
  st_array<T> name = st_part(st_shared<T>(__COUNTER__, (length) * (warps)), st_warp_of_block() * (length), length)

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
struct st_region {
  char *begin;
  size_t bytes, grain;
  bool writable, checked; /* checked: elements are not to be read before they are written */
  std::vector<st_cell> cells;
  std::vector<bool> written;
};

enum st_state { ST_READY, ST_AT_BLOCK, ST_AT_WARP, ST_DONE };
struct st_fibre {
  ucontext_t context;
  st_state state;
  const void *site;
  int apart; /* of a shuffle; 0 at a barrier */
  unsigned of_block, of_warp;
  char sent[16];
};

/* One processor for all kernels of a file; not for several threads of the processor at once. */
struct st_machine {
  enum { STACK = 128 * 1024, MOST_THREADS = 1024 };
  std::map<uintptr_t, st_region> regions;
  std::map<std::pair<int, size_t>, void *> shared;
  std::vector<st_fibre> fibres;
  std::function<void()> body;
  ucontext_t scheduler;
  char *stacks = nullptr;
  char error[400] = "";
  int64_t launch = 0, block = 0, blocks = 1;
  int threads = 1, current = 0;
  bool failed = false;
};
static st_machine st_it;

static void st_error(const char *form, ...) __attribute__((format(printf, 1, 2)));
static void st_error(const char *form, ...) {
  if (!st_it.failed) {
    va_list given;
    va_start(given, form);
    const int used = snprintf(st_it.error, sizeof st_it.error, "block %lld, thread %d: ", (long long)st_it.block, st_it.current);
    vsnprintf(st_it.error + used, sizeof st_it.error - used, form, given);
    va_end(given);
  }
  st_it.failed = true;
}
/* Ends the fibre that found an error; it is never gone on with. */
static void st_stop() { swapcontext(&st_it.fibres[st_it.current].context, &st_it.scheduler); }

ST_DEVICE int64_t st_thread_of_block() { return st_it.current; }
ST_DEVICE int64_t st_threads_of_block() { return st_it.threads; }
ST_DEVICE int64_t st_block_of_grid() { return st_it.block; }
ST_DEVICE int64_t st_blocks_of_grid() { return st_it.blocks; }

/* Memory */

static st_region *st_register(void *memory, size_t bytes, bool writable, bool checked) {
  st_region made{(char *)memory, bytes, 0, writable, checked, {}, {}};
  return &(st_it.regions[(uintptr_t)memory] = made);
}
ST_FAST st_region *st_find(const void *memory) {
  auto next = st_it.regions.upper_bound((uintptr_t)memory);
  if (next == st_it.regions.begin()) return nullptr;
  st_region &found = (--next)->second;
  return (const char *)memory <= found.begin + found.bytes ? &found : nullptr;
}

static bool st_ordered(const st_use &earlier) {
  const st_fibre &now = st_it.fibres[st_it.current];
  if (earlier.block < 0) return earlier.block == -1;
  if (earlier.block != st_it.block) return false;
  if (earlier.thread == st_it.current || earlier.of_block < now.of_block) return true;
  return earlier.warp == st_it.current / 32 && earlier.of_warp < now.of_warp;
}
static void st_used(st_use &use, bool alone) {
  const st_fibre &now = st_it.fibres[st_it.current];
  const st_use mine{st_it.block, st_it.current / 32, st_it.current, now.of_block, now.of_warp};
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
  if (!region->grain) {
    region->grain = size;
    region->cells.resize(region->bytes / size + 1);
    region->written.resize(region->bytes / size + 1, !region->checked);
  }
  const size_t index = (size_t)(place - region->begin) / region->grain;
  st_cell &cell = region->cells[index];
  if (cell.launch != st_it.launch) {
    cell = st_cell();
    cell.launch = st_it.launch;
  }
  if (writes && !region->writable) {
    st_error("writes element %zu of an array that is only read", index);
    return st_stop();
  }
  if ((!writes || atomic) && !region->written[index]) {
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
    st_used(cell.write, true);
    region->written[index] = true;
  } else {
    st_used(cell.read, false);
  }
}

template <class T> struct st_array;

/* An element that may be assigned. */
template <class T> struct st_element {
  T *place;
  st_region *region;
  T load() const {
    st_check(region, (const char *)place, sizeof(T), false, false);
    return *place;
  }
  T store(T value) const {
    st_check(region, (const char *)place, sizeof(T), true, false);
    return *place = value;
  }
  operator T() const { return load(); }
  T operator=(T value) const { return store(value); }
  T operator=(const st_element &other) const { return store(other.load()); }
  T operator+=(T value) const { return store((T)(load() + value)); }
  T operator-=(T value) const { return store((T)(load() - value)); }
  T operator*=(T value) const { return store((T)(load() * value)); }
  T operator/=(T value) const { return store((T)(load() / value)); }
  T operator|=(T value) const { return store((T)(load() | value)); }
  T operator&=(T value) const { return store((T)(load() & value)); }
  st_element operator&() const { return *this; }
};

/* An array, or a part of one, whose elements are checked. */
template <class T> struct st_array {
  T *base;
  int64_t low = INT64_MIN, high = INT64_MAX;
  st_region *region;
  st_array(T *memory) : base(memory), region(st_find(memory)) {}
  T *at(int64_t index) const {
    if (!region || index < low || index >= high || (const char *)(base + index) < region->begin ||
        (const char *)(base + index + 1) > region->begin + region->bytes) {
      st_error("uses element %lld, which is out of bounds", (long long)index);
      st_stop();
    }
    return base + index;
  }
  st_element<T> operator[](int64_t index) const { return {at(index), region}; }
};
template <class T> struct st_array<const T> {
  st_array<T> plain;
  st_array(const T *memory) : plain((T *)memory) {}
  T operator[](int64_t index) const { return plain[index].load(); }
};
template <class T> st_array<T> st_part(st_array<T> array, int64_t begin, int64_t length) {
  array.base += begin;
  array.low = 0;
  array.high = length;
  return array;
}
template <class T> st_array<T> st_shared(int number, int64_t length) {
  void *&memory = st_it.shared[std::make_pair(number, sizeof(T))];
  if (!memory) {
    memory = malloc(length * sizeof(T));
    st_register(memory, length * sizeof(T), true, true);
  }
  return st_array<T>((T *)memory);
}
static void st_forget_shared() {
  for (auto &each : st_it.shared) {
    st_it.regions.erase((uintptr_t)each.second);
    free(each.second);
  }
  st_it.shared.clear();
}

template <class T, class F> void st_atomically(st_element<T> element, F updated) {
  st_check(element.region, (const char *)element.place, sizeof(T), true, true);
  *element.place = updated(*element.place);
}

template <class T> int64_t st_claim(st_element<T> element, int64_t key) {
  st_check(element.region, (const char *)element.place, sizeof(T), true, true);
  const T before = *element.place;
  if (before == -1) *element.place = (T)key;
  return before;
}
static inline int st_last_bit(int64_t number) { return 63 - __builtin_clzll((uint64_t)number | 1); }

/* Waiting */

static __attribute__((noinline)) void st_wait(st_state state, const void *site, int apart) {
  st_fibre &mine = st_it.fibres[st_it.current];
  mine.state = state;
  mine.site = site;
  mine.apart = apart;
  swapcontext(&mine.context, &st_it.scheduler);
}
static __attribute__((noinline)) void st_barrier_of_block() { st_wait(ST_AT_BLOCK, __builtin_return_address(0), 0); }
static __attribute__((noinline)) void st_barrier_of_warp() { st_wait(ST_AT_WARP, __builtin_return_address(0), 0); }
template <class T> __attribute__((noinline)) T st_shuffle(T value, int apart) {
  const int partner = st_it.current ^ apart;
  memcpy(st_it.fibres[st_it.current].sent, &value, sizeof(T));
  st_wait(ST_AT_WARP, __builtin_return_address(0), apart);
  T got;
  memcpy(&got, st_it.fibres[partner].sent, sizeof(T));
  st_wait(ST_AT_WARP, __builtin_return_address(0), -apart); /* until all have read */
  return got;
}

/* Lets threads that wait for one another go on, where all that must be there are; returns whether any could. */
ST_FAST bool st_release_waiting() {
  bool any = false, all = true, some = false;
  int first = -1;
  for (int base = 0; base < st_it.threads; base += 32) {
    int waiting = 0, left = 0, lanes = 0, leader = -1, other = -1;
    for (int lane = base; lane < base + 32 && lane < st_it.threads; lane++, lanes++) {
      st_fibre &each = st_it.fibres[lane];
      left += each.state == ST_DONE;
      if (each.state != ST_AT_WARP) continue;
      waiting++;
      if (leader < 0) leader = lane;
      if (each.site != st_it.fibres[leader].site || each.apart != st_it.fibres[leader].apart) other = lane;
    }
    if (!waiting) continue;
    st_it.current = leader;
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
      st_it.fibres[lane].of_warp++;
    }
    any = true;
  }
  if (any) return true;
  for (int thread = 0; thread < st_it.threads; thread++) {
    st_fibre &each = st_it.fibres[thread];
    all = all && each.state == ST_AT_BLOCK;
    some = some || each.state == ST_AT_BLOCK;
    if (each.state != ST_AT_BLOCK) continue;
    if (first < 0) first = thread;
    if (each.site != st_it.fibres[first].site) {
      st_it.current = thread;
      st_error("waits at a barrier of the block, and thread %d at another", first);
      return false;
    }
  }
  if (!all) {
    st_it.current = first < 0 ? 0 : first;
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
  st_it.body();
  st_it.fibres[st_it.current].state = ST_DONE;
  swapcontext(&st_it.fibres[st_it.current].context, &st_it.scheduler);
}
ST_FAST void st_run_block() {
  st_it.fibres.assign(st_it.threads, st_fibre());
  for (int thread = 0; thread < st_it.threads; thread++) {
    st_fibre &each = st_it.fibres[thread];
    getcontext(&each.context);
    each.context.uc_stack.ss_sp = st_it.stacks + (size_t)thread * st_machine::STACK;
    each.context.uc_stack.ss_size = st_machine::STACK;
    each.context.uc_link = &st_it.scheduler;
    makecontext(&each.context, st_enter, 0);
  }
  for (bool all = false; !st_it.failed && !all;) {
    bool ran = false;
    all = true;
    for (int turn = 0; turn < st_it.threads && !st_it.failed; turn++) {
      const int thread = (int)((turn + 5 * st_it.launch) % st_it.threads); /* none is always the first */
      if (st_it.fibres[thread].state == ST_READY) {
        st_it.current = thread;
        swapcontext(&st_it.scheduler, &st_it.fibres[thread].context);
        ran = true;
      }
      all = all && st_it.fibres[thread].state == ST_DONE;
    }
    if (!all && !ran && !st_release_waiting()) return;
  }
  st_forget_shared();
}

template <class... P> using st_entry = void (*)(P...);

/* Memory of the device is memory of the processor. */
struct st_runtime {
  static inline thread_local void *stream = nullptr;
  enum { processors = 1 };
  static int32_t open(const void *) { return 0; }
  static void use(void *wanted) { stream = wanted; }
  static void adopt(void *memory, size_t bytes, bool writable) { st_register(memory, bytes, writable, false); }
  static void disown(void *memory) { st_it.regions.erase((uintptr_t)memory); }
  static int32_t code() { return 0; }
  static void *get(size_t bytes) {
    void *made = malloc(bytes);
    if (made) st_register(made, bytes, true, true);
    return made;
  }
  static void put(void *memory) {
    st_it.regions.erase((uintptr_t)memory);
    free(memory);
  }
  static void *take(size_t bytes) { return get(bytes); }
  static void give_back(void *memory) { put(memory); }
  static bool zero(void *memory, size_t bytes) {
    memset(memory, 0, bytes);
    st_find(memory)->checked = false;
    return true;
  }
  static bool read(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    return !st_it.failed;
  }
  static bool write(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    st_find(to)->checked = false;
    return true;
  }
  static bool finish() { return !st_it.failed; }
  static bool copy(void *to, const void *from, size_t bytes) { return memcpy(to, from, bytes) == to; }
  static void *moment() {
    timespec *const made = new timespec;
    clock_gettime(CLOCK_MONOTONIC, made);
    return made;
  }
  static double between(void *first, void *last) {
    const timespec *const begin = (timespec *)first, *const end = (timespec *)last;
    const double seconds = (double)(end->tv_sec - begin->tv_sec) + 1e-9 * (double)(end->tv_nsec - begin->tv_nsec);
    delete begin;
    delete end;
    return seconds;
  }
  static const char *trouble() { return st_it.error; }
  template <class... P> static bool run(int64_t blocks, int threads, void (*kernel)(P...), P... given) {
    if (!st_it.stacks)
      st_it.stacks = (char *)mmap(nullptr, (size_t)st_machine::STACK * st_machine::MOST_THREADS, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (st_it.stacks == MAP_FAILED || threads > st_machine::MOST_THREADS) return false;
    st_it.body = [=] { kernel(given...); };
    st_it.launch++;
    st_it.threads = threads;
    st_it.blocks = blocks < ST_MOST_BLOCKS ? blocks : ST_MOST_BLOCKS;
    for (st_it.block = 0; st_it.block < st_it.blocks && !st_it.failed; st_it.block++) st_run_block();
    return !st_it.failed;
  }
};

/* Forgets an error, before another kernel is run. */
ST_EXPORT void st_executor_begin() {
  st_forget_shared();
  st_it.failed = false;
  st_it.error[0] = 0;
}

#endif
