/* A set as in st_bits.h whose keys are listed as they come and put in order at the end: very few keys, or keys nearly in order, by
   insertion; few keys by counting how many are smaller than each, which has no branches to mispredict; many by the upper levels of the
   set. */
#ifndef ST_FEW_H
#define ST_FEW_H

#include "st_bits.h"

enum { ST_FEW = 64, ST_COMPARED = 16, ST_INSERTED = 8 };

typedef int32_t st_compared __attribute__((vector_size(4 * ST_COMPARED)));

/* Put a key into the lowest level alone; true if it was not there, so that the caller lists it. */
static inline bool st_few_insert(uint64_t *bits, int64_t n, int64_t key) {
  (void)n;
  const uint64_t mask = UINT64_C(1) << (key & 63), old = bits[key >> 6];
  if (old & mask) return false;
  bits[key >> 6] = old | mask;
  return true;
}

/* Take all keys out: the `count` keys listed in `keys`, which are sorted. Return how many. */
ST_CALLED int64_t st_few_drain_i32(int32_t *keys, uint64_t *bits, int64_t n, int64_t count);

#ifndef ST_LINKED

/* How many of 16 keys are smaller. */
static inline int st_smaller(const int32_t *keys, int32_t key) {
#if ST_AVX512(__builtin_ia32_cmpd512_mask)
  st_compared all;
  memcpy(&all, keys, sizeof all);
  return __builtin_popcount((uint16_t)__builtin_ia32_cmpd512_mask(all, (st_compared){0} + key, 1, -1));
#else
  int smaller = 0;
  for (int lane = 0; lane < ST_COMPARED; lane++) smaller += keys[lane] < key;
  return smaller;
#endif
}

/* Whether listed keys are so few, or so nearly in order, that insertion takes less than ranks do. */
static inline bool st_few_in_order(const int32_t *keys, int64_t count) {
  if (count <= ST_INSERTED) return true;
  int64_t descents = 0;
  for (int64_t place = 1; place < count; place++) descents += keys[place] < keys[place - 1];
  return descents * ST_INSERTED <= count;
}

/* Put listed keys in order by insertion and take them out of the set. */
static inline void st_few_inserted(int32_t *keys, uint64_t *bits, int64_t count) {
  for (int64_t place = 0; place < count; place++) {
    const int32_t key = keys[place];
    int64_t at = place;
    bits[key >> 6] = 0;
    for (; at > 0 && keys[at - 1] > key; at--) keys[at] = keys[at - 1];
    keys[at] = key;
  }
}

/* Put listed keys, at most `wide`, a multiple of 16, in order and take them out of the set. */
static inline __attribute__((always_inline)) void st_few_ranked(int32_t *keys, uint64_t *bits, int64_t count, int wide) {
  int32_t listed[ST_FEW];
  for (int place = 0; place < wide; place++) listed[place] = place < count ? keys[place] : INT32_MAX;
  for (int64_t place = 0; place < count; place++) {
    int rank = 0;
    for (int part = 0; part < wide; part += ST_COMPARED) rank += st_smaller(listed + part, listed[place]);
    keys[rank] = listed[place];
    bits[listed[place] >> 6] = 0;
  }
}

ST_CALLED int64_t st_few_drain_i32(int32_t *keys, uint64_t *bits, int64_t n, int64_t count) {
  if (count <= ST_FEW && st_few_in_order(keys, count)) {
    st_few_inserted(keys, bits, count);
  } else if (count <= ST_COMPARED) {
    st_few_ranked(keys, bits, count, ST_COMPARED);
  } else if (count <= 2 * ST_COMPARED) {
    st_few_ranked(keys, bits, count, 2 * ST_COMPARED);
  } else if (count <= 3 * ST_COMPARED) {
    st_few_ranked(keys, bits, count, 3 * ST_COMPARED);
  } else if (count <= ST_FEW) {
    st_few_ranked(keys, bits, count, ST_FEW);
  } else {
    for (int64_t place = 0; place < count; place++) st_bits_lift(bits, n, keys[place] >> 6);
    return st_bits_drain_i32(keys, bits, n);
  }
  return count;
}

#endif

#endif
