/* Runs CUDA kernels on the processor, as st_cuda.h writes them, and checks what they do: for tests on machines without a GPU.

   Every thread of a block is a fibre; blocks run one after another. A fibre is suspended where threads wait for one another: at
   barriers and shuffles. An error is one line of st_trouble(): elements outside of an array, 16 bytes at a place that is no multiple
   of 16, elements read before anything was written there, arrays written that are only read; races: two threads use an element, one
   of them writes, not both atomically, and no barrier stands between; barriers and shuffles that some threads of the block or warp do
   not reach, or not at the same place. Iterations are distributed to at most ST_MOST_BLOCKS blocks. Kernels are compiled without
   optimisation, so that the return address identifies a call that waits. With ST_EXECUTOR_APART, the machine (st_executor_machine.h)
   is an object of its own, which is compiled once. */
#ifndef ST_EXECUTOR_H
#define ST_EXECUTOR_H

#include <cstdlib>

#include "st_cuda_shape.h"

#ifndef ST_MOST_BLOCKS
#define ST_MOST_BLOCKS 6
#endif

#define ST_WAITS __attribute__((noinline))
#define ST_BOTH inline __attribute__((always_inline))
#define ST_DEVICE inline __attribute__((always_inline))
#define ST_KERNEL(...) static void
#define ST_KERNEL_WITH(threads, registers) static void
#define ST_KERNEL_OF_TYPES(threads) ST_KERNEL(threads)
#define ST_WARPS_OF(lanes) st_warps_of(lanes)
#define ST_ARRAY(T) st_array<T>
#define ST_SHARED(T, name, length) st_array<T> name = st_shared<T>(__COUNTER__, length)
#define ST_SHARED_OF_WARP(T, name, length, warps, lanes) \
  st_array<T> name = st_part(st_shared<T>(__COUNTER__, (length) * (warps)), st_warp_of_block<lanes>() * (length), length)
#define ST_LAUNCHED(T, name, length, place) st_array<T> name = st_launched<T>(length, place)
#define ST_LAUNCHED_OF_WARP(T, name, length, warps, lanes, place) \
  st_array<T> name = st_part(st_launched<T>((length) * (warps), place), st_warp_of_block<lanes>() * (length), length)

/* The thread that runs. */
struct st_now {
  int64_t block = 0, blocks = 1;
  int threads = 1, thread = 0;
  int shared = 0; /* bytes that the kernel is launched with for each block */
};
extern st_now st_here;
ST_DEVICE int64_t st_thread_of_block() { return st_here.thread; }
ST_DEVICE int64_t st_threads_of_block() { return st_here.threads; }
ST_DEVICE int64_t st_block_of_grid() { return st_here.block; }
ST_DEVICE int64_t st_blocks_of_grid() { return st_here.blocks; }

/* Memory. The machine records who used its elements, and after how many barriers. */
struct st_uses;
struct st_region {
  char *begin;
  size_t bytes, known; /* known: so many bytes were written before; others are not to be read before a kernel writes them */
  bool writable;
  st_uses *uses;
};
st_region *st_find(const void *memory);
void st_check(st_region *region, const char *place, size_t size, bool writes, bool atomic);
void st_out_of_bounds(int64_t index);
void st_check_wide(const void *place, int64_t index, size_t bytes, size_t own);
void *st_shared_memory(int number, size_t size, int64_t length);
void *st_launched_memory(size_t place, size_t bytes);

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
    const bool inside = region && index >= low && index < high && (const char *)(base + index) >= region->begin &&
                        (const char *)(base + index + 1) <= region->begin + region->bytes;
    if (!inside) st_out_of_bounds(index);
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
  return st_array<T>((T *)st_shared_memory(number, sizeof(T), length));
}

template <class T> st_array<T> st_launched(int64_t length, size_t place) {
  return st_array<T>((T *)st_launched_memory(place, (size_t)length * sizeof(T)));
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
inline int st_last_bit(int64_t number) { return 63 - __builtin_clzll((uint64_t)number | 1); }

/* Waiting: st_exchange gives what the lane so far apart has sent. */
ST_WAITS void st_barrier_of_block();
void st_warps_of(int lanes);
void st_wait_for_lanes(int lanes, const void *site);
template <int L = 32> ST_WAITS void st_barrier_of_warp() { st_wait_for_lanes(L, __builtin_return_address(0)); }
void st_exchange(const void *sent, void *got, size_t size, int apart, int lanes, const void *site);
template <int L = 32, class T> ST_WAITS T st_shuffle(T value, int apart) {
  T got;
  st_exchange(&value, &got, sizeof(T), apart, L, __builtin_return_address(0));
  return got;
}

/* The same for lanes that happen to be here together, which orders none of their accesses: the lanes that wait when no other can
   continue. */
ST_WAITS unsigned st_lanes_here();
void st_show(const void *sent, void *got, size_t size, int apart, const void *site);
template <class T> ST_WAITS T st_shown(T value, int apart) {
  T got;
  st_show(&value, &got, sizeof(T), apart, __builtin_return_address(0));
  return got;
}
ST_DEVICE bool st_same_of_lanes(uintptr_t number) {
  int same = 1;
  for (int apart = 16; apart > 0; apart /= 2) same &= st_shown(number, apart) == number;
  for (int apart = 16; apart > 0; apart /= 2) same &= st_shown(same, apart);
  return same;
}
template <class T> ST_DEVICE uintptr_t st_address(st_element<T> element) { return (uintptr_t)element.place; }
extern int64_t st_added; /* how often something was added to memory atomically */
template <class T> ST_DEVICE void st_add_at(st_element<T> element, T value) {
  st_added++;
  st_check(element.region, (const char *)element.place, sizeof(T), true, true);
  *element.place += value;
}

template <int L = 32> ST_DEVICE int st_count_of_lanes(bool holds) {
  int count = holds;
  for (int apart = L / 2; apart > 0; apart /= 2) count += st_shuffle<L>(count, apart);
  return count;
}

template <class... P> using st_entry = void (*)(P...);

/* Memory of the device is memory of the processor. */
struct st_runtime {
  static inline thread_local void *stream = nullptr;
  enum { processors = 1 };
  static int32_t open(const void *) { return 0; }
  static void use(void *wanted) { stream = wanted; }
  static int32_t code() { return 0; }
  static void begin(); /* forgets the error of an earlier execution, and what its last block shared */
  static void adopt(void *memory, size_t bytes, bool writable);
  static void disown(void *memory);
  static void *get(size_t bytes);
  static void put(void *memory);
  static void *take(size_t bytes) { return get(bytes); }
  static void give_back(void *memory) { put(memory); }
  static bool zero(void *memory, size_t bytes);
  static bool read(void *to, const void *from, size_t bytes);
  static bool write(void *to, const void *from, size_t bytes);
  static bool finish();
  static bool copy(void *to, const void *from, size_t bytes) { return write(to, from, bytes); }
  static void *moment();
  static double between(void *first, void *last);
  static const char *trouble();
  /* Runs a function in every thread of so many blocks. */
  static bool run_all(int64_t blocks, st_shape shape, void (*thread)(void *), void *given);
  template <class... P> static bool run(int64_t blocks, st_shape shape, void (*kernel)(P...), P... given) {
    auto thread = [=] { kernel(given...); };
    return run_all(blocks, shape, [](void *body) { (*(decltype(thread) *)body)(); }, &thread);
  }
};

#ifndef ST_EXECUTOR_APART
#include "st_executor_machine.h"
#endif
#endif
