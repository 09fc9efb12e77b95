/* Index arrays of either width, and the shares into which loops over them are cut. */
#ifndef ST_COLUMNS_H
#define ST_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "st_team.h"

/* An index array: int32 where `wide` is 0, else int64. The test is invariant in loops, so that compilers hoist it. */
static inline int64_t st_get(const void *array, int wide, int64_t place) {
  return wide ? ((const int64_t *)array)[place] : ((const int32_t *)array)[place];
}

static inline void st_put(void *array, int wide, int64_t place, int64_t value) {
  if (wide)
    ((int64_t *)array)[place] = value;
  else
    ((int32_t *)array)[place] = (int32_t)value;
}

/* Where a share of `count` elements begins, of `shares` equal ones; it ends where the next one begins. */
static inline int64_t st_share(int64_t count, int64_t share, int64_t shares) {
  return count / shares * share + (count % shares * share) / shares;
}

/* The number of shares of a loop that may be cut anywhere. There are more shares than threads, so that a thread that loses its core
   delays only a small part. */
static inline int64_t st_fine_shares(int32_t threads) { return threads > 1 ? 8 * (int64_t)threads : 1; }

/* Keep the greatest value that several threads have found. */
static inline void st_raise(int64_t *most, int64_t value) {
  int64_t before = __atomic_load_n(most, __ATOMIC_RELAXED);
  while (value > before && !__atomic_compare_exchange_n(most, &before, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
}

/* The same as st_share for rows of entries: shares have nearly equally many rows and entries together. */
static inline int64_t st_balanced_row(int64_t rows, const void *pos, int pos_wide, int64_t share, int64_t shares) {
  const int64_t wanted = st_share(st_get(pos, pos_wide, rows) + rows, share, shares);
  int64_t low = 0, high = rows;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (st_get(pos, pos_wide, middle) + middle < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

#endif
