/* Hashed levels: the table of one fibre is a power of two of slots, -1 in free ones, with at least one free.
   Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4) with linear probing. */
#ifndef ST_HASH_H
#define ST_HASH_H

#include <stdint.h>

/* Where the search for a key begins; size is a power of two, at least 2. */
static inline int64_t st_hash_slot(int64_t key, int64_t size) {
  return (int64_t)(((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - __builtin_ctzll((uint64_t)size)));
}

/* The position in crd[low .. high) that holds the key, or -1. */
#define ST_HASH_FIND(T, S)                                                                          \
  static inline int64_t st_hash_find_##S(const T *crd, int64_t low, int64_t high, int64_t key) {    \
    if (low >= high) return -1;                                                                     \
    const int64_t mask = high - low - 1;                                                            \
    for (int64_t slot = st_hash_slot(key, mask + 1);; slot = (slot + 1) & mask) {                   \
      if (crd[low + slot] == key) return low + slot;                                                \
      if (crd[low + slot] < 0) return -1;                                                           \
    }                                                                                               \
  }
/* The position in crd[low .. high) that holds the key, or a free one for it; not all positions are taken. */
#define ST_HASH_VACANT(T, S)                                                                        \
  static inline int64_t st_hash_vacant_##S(const T *crd, int64_t low, int64_t high, int64_t key) {  \
    const int64_t mask = high - low - 1;                                                            \
    int64_t slot = st_hash_slot(key, mask + 1);                                                     \
    while (crd[low + slot] >= 0 && crd[low + slot] != key) slot = (slot + 1) & mask;                \
    return low + slot;                                                                              \
  }
ST_HASH_FIND(int32_t, i32)
ST_HASH_FIND(int64_t, i64)
#undef ST_HASH_FIND
ST_HASH_VACANT(int32_t, i32)
ST_HASH_VACANT(int64_t, i64)
#undef ST_HASH_VACANT

/* How many slots a table of `count` keys has: none for no key, else the least power of two that is at least twice the count. */
static inline int64_t st_table_size(int64_t count) {
  return count > 0 ? INT64_C(1) << (64 - __builtin_clzll((uint64_t)(2 * count - 1))) : 0;
}

#endif
