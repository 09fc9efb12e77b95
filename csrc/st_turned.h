/* Transposes squares of items in registers, on processors whose vectors hold a row. Where vectors are shorter, compilers put the shuffles
   together from so many instructions that moving single items is faster. */
#ifndef ST_TURNED_H
#define ST_TURNED_H

#include <stdint.h>

#include "st_runtime.h"

#if ST_BUILTIN(__builtin_shufflevector) && defined(__AVX2__)

#define ST_TURN 8 /* rows and columns of a square */

#ifdef __AVX512F__
#define ST_TURNED 8 /* bytes of the largest items */
#else
#define ST_TURNED 4
#endif

/* First single items change places, then pairs, then halves of rows. The steps are those between rows that are read, and rows that are
   written, in bytes. */
#define ST_TURNS(T)                                                                                                  \
  typedef T st_row_##T __attribute__((vector_size(ST_TURN * sizeof(T)), aligned(sizeof(T)), may_alias));             \
  static inline void st_turn_##T(const char *from, int64_t from_step, char *to, int64_t to_step) {                   \
    st_row_##T a[ST_TURN], b[ST_TURN];                                                                               \
    for (int k = 0; k < 8; k++) a[k] = *(const st_row_##T *)(from + k * from_step);                                  \
    for (int k = 0; k < 8; k += 2) {                                                                                 \
      b[k] = __builtin_shufflevector(a[k], a[k + 1], 0, 8, 2, 10, 4, 12, 6, 14);                                     \
      b[k + 1] = __builtin_shufflevector(a[k], a[k + 1], 1, 9, 3, 11, 5, 13, 7, 15);                                 \
    }                                                                                                                \
    for (int k = 0; k < 4; k++) {                                                                                    \
      const int at = k + (k & 2); /* 0, 1, 4, 5 */                                                                   \
      a[at] = __builtin_shufflevector(b[at], b[at + 2], 0, 1, 8, 9, 4, 5, 12, 13);                                   \
      a[at + 2] = __builtin_shufflevector(b[at], b[at + 2], 2, 3, 10, 11, 6, 7, 14, 15);                             \
    }                                                                                                                \
    for (int k = 0; k < 4; k++) {                                                                                    \
      *(st_row_##T *)(to + k * to_step) = __builtin_shufflevector(a[k], a[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);         \
      *(st_row_##T *)(to + (k + 4) * to_step) = __builtin_shufflevector(a[k], a[k + 4], 4, 5, 6, 7, 12, 13, 14, 15); \
    }                                                                                                                \
  }
ST_TURNS(uint32_t)
ST_TURNS(uint64_t)

#endif

#endif
