/* Pieces of a result that threads make: a table of how many entries each has, which gives their places, and the arrays in which
   threads leave pieces whose place was not known in time. */
#ifndef ST_PIECES_H
#define ST_PIECES_H

#include "st_runtime.h"

/* A table: how many pieces are summed, a lock, a row of zeros, and for each piece a row with its numbers of entries, one for each level.
   The rows of pieces that are summed hold the sums over all pieces up to them instead. */
enum { ST_SUMMED, ST_SUMMING, ST_PIECES_HEAD };

ST_CALLED void st_begin_pieces(int64_t *table, int64_t levels, int64_t pieces);

static inline void st_note_piece(int64_t *table, int64_t levels, int64_t piece, int64_t level, int64_t count) {
  __atomic_store_n(&table[ST_PIECES_HEAD + levels * (piece + 1) + level], count, __ATOMIC_RELEASE);
}

/* How many pieces have no piece before them whose numbers are unknown. Nobody waits for another thread that is summing. */
ST_CALLED int64_t st_sum_pieces(int64_t *table, int64_t levels, int64_t pieces);

static inline int64_t st_piece_place(const int64_t *table, int64_t levels, int64_t piece, int64_t level) {
  return table[ST_PIECES_HEAD + levels * piece + level];
}

/* Numbered places for arrays that threads leave behind, and how many threads have asked for a number. */
typedef struct {
  int64_t enlisted, places;
  void *arrays[];
} st_parts;

ST_CALLED st_parts *st_parts_make(int64_t places);
ST_CALLED void st_parts_free(st_parts *parts);

static inline int64_t st_enlist(st_parts *parts) { return __atomic_fetch_add(&parts->enlisted, 1, __ATOMIC_RELAXED); }

/* Bytes of a result's array from which on copies bypass the caches: it is in memory when it is made, and a store to a line that is in no
   cache reads the line first. Smaller ones are read again from caches. */
enum { ST_PAST_CACHES = 1 << 22 };

/* Until st_drain_stores other threads may not see the copy. */
ST_CALLED void st_copy_past_caches(void *restrict to, const void *restrict from, size_t bytes);

/* Copy `count` elements, from `first` on, of an array, or of what was left at a place, to `array` from `at` on. There will be about
   `whole` elements in the array. */
#define ST_COPIES(T, S)                                                                                                          \
  static inline void st_copy_##S(T *restrict array, int64_t at, const T *restrict source, int64_t first, int64_t count,          \
                                 int64_t whole) {                                                                                \
    if (count <= 0) return;                                                                                                      \
    if (whole >= ST_PAST_CACHES / (int64_t)sizeof(T))                                                                            \
      st_copy_past_caches(array + at, source + first, (size_t)count * sizeof(T));                                                \
    else                                                                                                                         \
      memcpy(array + at, source + first, (size_t)count * sizeof(T));                                                             \
  }                                                                                                                              \
  static inline void st_copy_part_##S(T *array, int64_t at, const st_parts *parts, int64_t place, int64_t first, int64_t count,  \
                                      int64_t whole) {                                                                           \
    st_copy_##S(array, at, parts->arrays[place], first, count, whole);                                                           \
  }
ST_COPIES(float, f32)
ST_COPIES(double, f64)
ST_COPIES(int8_t, i8)
ST_COPIES(int16_t, i16)
ST_COPIES(int32_t, i32)
ST_COPIES(int64_t, i64)
ST_COPIES(uint8_t, u8)
ST_COPIES(uint16_t, u16)
ST_COPIES(uint32_t, u32)
ST_COPIES(uint64_t, u64)
ST_COPIES(bool, bool)
#undef ST_COPIES

#ifndef ST_LINKED

ST_CALLED void st_begin_pieces(int64_t *table, int64_t levels, int64_t pieces) {
  for (int64_t k = 0; k < ST_PIECES_HEAD + levels; k++) table[k] = 0;
  for (int64_t k = 0; k < levels * pieces; k++) table[ST_PIECES_HEAD + levels + k] = -1;
}

ST_CALLED int64_t st_sum_pieces(int64_t *table, int64_t levels, int64_t pieces) {
  if (!__atomic_exchange_n(&table[ST_SUMMING], 1, __ATOMIC_ACQUIRE)) {
    int64_t summed = table[ST_SUMMED];
    for (int64_t *row = table + ST_PIECES_HEAD + levels * (summed + 1);
         summed < pieces && __atomic_load_n(&row[levels - 1], __ATOMIC_ACQUIRE) >= 0; summed++, row += levels)
      for (int64_t level = 0; level < levels; level++) row[level] += row[level - levels];
    __atomic_store_n(&table[ST_SUMMED], summed, __ATOMIC_RELEASE);
    __atomic_store_n(&table[ST_SUMMING], 0, __ATOMIC_RELEASE);
    return summed;
  }
  return __atomic_load_n(&table[ST_SUMMED], __ATOMIC_ACQUIRE);
}

#if ST_BUILTIN(__builtin_nontemporal_store)
#define ST_PASS(to, vector) __builtin_nontemporal_store(vector, to)
enum { ST_PASSED = 32 };
#elif ST_BUILTIN(__builtin_ia32_movntps512)
#define ST_PASS(to, vector) __builtin_ia32_movntps512((float *)(to), vector)
enum { ST_PASSED = 64 };
#elif ST_BUILTIN(__builtin_ia32_movntps256)
#define ST_PASS(to, vector) __builtin_ia32_movntps256((float *)(to), vector)
enum { ST_PASSED = 32 };
#elif ST_BUILTIN(__builtin_ia32_movntps)
#define ST_PASS(to, vector) __builtin_ia32_movntps((float *)(to), vector)
enum { ST_PASSED = 16 };
#endif

ST_CALLED void st_copy_past_caches(void *restrict to, const void *restrict from, size_t bytes) {
#ifdef ST_PASS
  enum { LINE = 64 };
  typedef float vector __attribute__((vector_size(ST_PASSED), may_alias));
  const size_t ahead = -(uintptr_t)to % LINE, head = ahead < bytes ? ahead : bytes, end = head + (bytes - head) / LINE * LINE;
  memcpy(to, from, head);
  for (size_t k = head; k < end; k += ST_PASSED) {
    vector read;
    memcpy(&read, (const char *)from + k, sizeof read);
    ST_PASS((vector *)((char *)to + k), read);
  }
  memcpy((char *)to + end, (const char *)from + end, bytes - end);
#else
  memcpy(to, from, bytes);
#endif
}
#undef ST_PASS

ST_CALLED st_parts *st_parts_make(int64_t places) {
  const size_t bytes = st_bytes(places, sizeof(void *));
  st_parts *parts = bytes ? calloc(1, sizeof *parts + bytes) : NULL;
  if (parts) parts->places = places;
  return parts;
}

ST_CALLED void st_parts_free(st_parts *parts) {
  for (int64_t place = 0; parts && place < parts->places; place++) st_release(parts->arrays[place]);
  free(parts);
}

#endif

#endif
