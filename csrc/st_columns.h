/* Index arrays of either width, and the share of a loop that one thread of a team takes. */
#ifndef ST_COLUMNS_H
#define ST_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "st_threads.h"

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

/* Where the share of a thread begins; that of the next one is where it ends. */
static inline int64_t st_share(int64_t count, int64_t thread, int64_t team) {
  return count / team * thread + (count % team * thread) / team;
}

/* The same for rows of entries: shares have nearly equally many rows and entries together. */
static inline int64_t st_balanced_row(int64_t rows, const void *pos, int pos_wide, int64_t thread, int64_t team) {
  const int64_t wanted = st_share(st_get(pos, pos_wide, rows) + rows, thread, team);
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
