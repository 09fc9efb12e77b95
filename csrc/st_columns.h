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

#endif
