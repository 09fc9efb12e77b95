/* The base of every generated kernel: memory (st_memory.h), searches, minimum and maximum. All names begin with st_ or ST_. */
#ifndef ST_RUNTIME_H
#define ST_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "st_called.h"
#include "st_memory.h"

#define ST_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define ST_UNROLL(times) ST_PRAGMA(unroll times)
#else
#define ST_UNROLL(times) ST_PRAGMA(GCC unroll times)
#endif

/* Keeps a sum of gathered numbers, which may not be reordered, out of vectors: gcc gathers and multiplies in vectors, then adds what is in
   these one by one, which takes longer, most of all where rows are short. */
#if defined(__x86_64__)
#define ST_IN_ORDER(sum) __asm__("" : "+x"(sum))
#elif defined(__aarch64__)
#define ST_IN_ORDER(sum) __asm__("" : "+w"(sum))
#else
#define ST_IN_ORDER(sum)
#endif

#ifdef __has_builtin
#define ST_BUILTIN(builtin) __has_builtin(builtin)
#else
#define ST_BUILTIN(builtin) 0
#endif

/* Builtins of AVX-512. Processors of the Zen family put a vector of 32 bytes together faster from single elements than by the gather
   instruction; a vector of 64 bytes they gather faster by the instruction. */
#ifdef __AVX512VL__
#define ST_AVX512(builtin) ST_BUILTIN(builtin)
#else
#define ST_AVX512(builtin) 0
#endif
#ifdef __AVX512BW__ /* those of 16-bit integers */
#define ST_AVX512BW(builtin) ST_AVX512(builtin)
#else
#define ST_AVX512BW(builtin) 0
#endif
#if defined(__znver1__) || defined(__znver2__) || defined(__znver3__) || defined(__znver4__)
#define ST_GATHERS(bytes) ((bytes) >= 64)
#else
#define ST_GATHERS(bytes) 1
#endif
#define ST_FIRST(count) ((1u << (count)) - 1) /* the mask of the first lanes, not all */

/* The condition; compilers move the code for the true case out of the way. */
static inline bool st_seldom(bool condition) { return __builtin_expect(condition, false); }
/* The condition; the guarded data can be read even if it does not hold. */
static inline bool st_harmless(bool condition) { return condition; }

/* Memory. */

static inline void st_zero(void *array, int64_t low, int64_t high, size_t size) {
  if (high > low) memset((char *)array + (size_t)low * size, 0, (size_t)(high - low) * size);
}

/* The status that the threads of a parallel region share: 1 once one of them found no memory. */
static inline void st_fail(int32_t *status) { __atomic_store_n(status, 1, __ATOMIC_RELAXED); }
static inline bool st_failed(const int32_t *status) { return __atomic_load_n(status, __ATOMIC_RELAXED); }

/* Ask for a cache line, into the first level of cache or the second. */
static inline __attribute__((always_inline)) void st_prefetch_line(const char *line, int cache) {
  if (cache == 1)
    __builtin_prefetch(line, 0, 3);
  else
    __builtin_prefetch(line, 0, 2);
}

/* How far apart rows begin within cache lines, of which the first bytes are `at`, as far as compilers know that of all rows. */
#define ST_APART(at, size) \
  (__builtin_constant_p((at) % 64) ? 64 : __builtin_constant_p((at) % 32) ? 32 : __builtin_constant_p((at) % 16) ? 16 : (uint64_t)(size))

/* Ask for the cache lines of array[index .. index + count], elements of `size` bytes, which may lie past the array's end. Rows that begin
 * within a line may end in a line more than their bytes fill. Where one row of an array can, all ask for it: that is the same in all
 * iterations, so that compilers take it out of loops, and to find it out for each row costs more than a line that is not needed. */
static inline __attribute__((always_inline)) void st_prefetch(const void *array, int64_t index, int64_t count, int64_t size, int cache) {
  const uint64_t at = (uint64_t)(index * size), bytes = (uint64_t)(count * size), lines = (bytes + 63) / 64, apart = ST_APART(at, size);
  const uint64_t latest = 64 - apart + (uintptr_t)array % apart; /* that a row begins within a line */
  const char *first = (const char *)((uintptr_t)array + at);
  for (uint64_t line = 0; line < lines; line++) st_prefetch_line(first + 64 * line, cache);
  if (count > 1 && latest + bytes > 64 * lines) st_prefetch_line(first + bytes - 1, cache);
}

/* Make writes that bypass the caches visible before later writes. */
static inline void st_drain_stores(void) {
#if ST_BUILTIN(__builtin_ia32_sfence)
  __builtin_ia32_sfence();
#endif
}

/* Minimum and maximum as numpy has them: NaN if either is NaN. */

#define ST_MIN_MAX(T, S)                                                          \
  static inline T st_min_##S(T a, T b) { return a < b || a != a ? a : b; }        \
  static inline T st_max_##S(T a, T b) { return a > b || a != a ? a : b; }
ST_MIN_MAX(float, f32)
ST_MIN_MAX(double, f64)
ST_MIN_MAX(int32_t, i32)
ST_MIN_MAX(int64_t, i64)
ST_MIN_MAX(int8_t, i8)
ST_MIN_MAX(int16_t, i16)
ST_MIN_MAX(uint8_t, u8)
ST_MIN_MAX(uint16_t, u16)
ST_MIN_MAX(uint32_t, u32)
ST_MIN_MAX(uint64_t, u64)
ST_MIN_MAX(bool, bool)
#undef ST_MIN_MAX

/* Searches in sorted coordinates crd[low .. high). */

#define ST_SEARCHES(T, S)                                                                                    \
  /* the first position whose coordinate is at least `key`; `high` if there is none */                       \
  static inline int64_t st_lower_bound_##S(const T *crd, int64_t low, int64_t high, int64_t key) {           \
    int64_t count = high - low;                                                                              \
    while (count > 0) {                                                                                      \
      const int64_t half = count >> 1;                                                                       \
      const bool right = crd[low + half] < key;                                                              \
      low = right ? low + half + 1 : low;                                                                    \
      count = right ? count - half - 1 : half;                                                               \
    }                                                                                                        \
    return low;                                                                                              \
  }                                                                                                          \
  /* the same among low, low + stride ... up to `high`, which is as far from `low` */                         \
  static inline int64_t st_lower_bound_apart_##S(const T *crd, int64_t low, int64_t high, int64_t key, int64_t stride) { \
    int64_t count = (high - low) / stride;                                                                   \
    while (count > 0) {                                                                                      \
      const int64_t half = count >> 1, middle = low + half * stride;                                         \
      const bool right = crd[middle] < key;                                                                  \
      low = right ? middle + stride : low;                                                                   \
      count = right ? count - half - 1 : half;                                                               \
    }                                                                                                        \
    return low;                                                                                              \
  }                                                                                                          \
  /* the first position whose coordinate is above `key` */                                                   \
  static inline int64_t st_upper_bound_##S(const T *crd, int64_t low, int64_t high, int64_t key) {           \
    int64_t count = high - low;                                                                              \
    while (count > 0) {                                                                                      \
      const int64_t half = count >> 1;                                                                       \
      const bool right = crd[low + half] <= key;                                                             \
      low = right ? low + half + 1 : low;                                                                    \
      count = right ? count - half - 1 : half;                                                               \
    }                                                                                                        \
    return low;                                                                                              \
  }                                                                                                          \
  /* the first fibre whose end is not before `item` of the merge path, on which the end of fibre f has number pos[f + 1] + f */ \
  static inline int64_t st_path_fibre_##S(const T *pos, int64_t low, int64_t high, int64_t item) {           \
    int64_t count = high - low;                                                                              \
    while (count > 0) {                                                                                      \
      const int64_t half = count >> 1;                                                                       \
      const bool right = (int64_t)pos[low + half + 1] + low + half < item;                                   \
      low = right ? low + half + 1 : low;                                                                    \
      count = right ? count - half - 1 : half;                                                               \
    }                                                                                                        \
    return low;                                                                                              \
  }                                                                                                          \
  /* the first of the rows low .. high that has elements; `high` if none has. Where 16 are empty, one line of pos is enough to see it; \
     to read all lines in order is faster than to leap, since processors fetch them ahead. A function that is called, as it compiles \
     faster */ \
  __attribute__((noinline, unused)) static int64_t st_filled_row_##S(const T *pos, int64_t low, int64_t high) { \
    for (; low + 16 <= high; low += 16) {                                                                    \
      const T begin = pos[low];                                                                              \
      if (pos[low + 16] == begin) continue;                                                                  \
      for (int64_t step = 8; step > 0; step >>= 1) low += step & -(int64_t)(pos[low + step] == begin);       \
      return low;                                                                                            \
    }                                                                                                        \
    while (low < high && pos[low + 1] == pos[low]) low++;                                                    \
    return low;                                                                                              \
  }                                                                                                          \
  /* as st_lower_bound, by exponential search from `low` in steps of `stride`, 2 * stride, ...: quick near there */ \
  static inline int64_t st_gallop_##S(const T *crd, int64_t low, int64_t high, int64_t key, int64_t stride) { \
    int64_t step = stride, begin = low;                                                                      \
    if (low >= high || crd[low] >= key) return low;                                                          \
    while (step < high - begin && crd[begin + step] < key) {                                                 \
      begin += step;                                                                                         \
      step <<= 1;                                                                                            \
    }                                                                                                        \
    return st_lower_bound_##S(crd, begin + 1, step < high - begin ? begin + step : high, key);               \
  }                                                                                                          \
  /* the same as a function that is called, for so many searches in one loop that copies of it would take long to compile */ \
  __attribute__((noinline, unused)) static int64_t st_far_gallop_##S(const T *crd, int64_t low, int64_t high, int64_t key, \
                                                                     int64_t stride) {                       \
    return st_gallop_##S(crd, low, high, key, stride);                                                       \
  }
ST_SEARCHES(uint16_t, u16)
ST_SEARCHES(int32_t, i32)
ST_SEARCHES(int64_t, i64)
#undef ST_SEARCHES

/* The first step of galloping through `length` coordinates when `shortest` others are looked for in them: the power of two
   near their mean distance. */
static inline int64_t st_gallop_stride(int64_t length, int64_t shortest) {
  const int shift = __builtin_clzll((uint64_t)shortest | 1) - __builtin_clzll((uint64_t)length | 1);
  return INT64_C(1) << (shift > 0 ? shift : 0);
}

/* Inclusive prefix sums in place: counts at [1 .. count) below a 0 at [0] become positions. */

ST_CALLED void st_scan_i32(int32_t *array, int64_t count);
ST_CALLED void st_scan_i64(int64_t *array, int64_t count);

#ifndef ST_LINKED
#define ST_SCAN(T, S)                                               \
  ST_CALLED void st_scan_##S(T *array, int64_t count) {             \
    T sum = 0;                                                      \
    for (int64_t k = 0; k < count; k++) array[k] = sum += array[k]; \
  }
ST_SCAN(int32_t, i32)
ST_SCAN(int64_t, i64)
#undef ST_SCAN
#endif

#endif
