#ifndef ST_ORDER_H
#define ST_ORDER_H

#include <stdint.h>

/* cdef */
enum { ST_F32, ST_F64, ST_I8, ST_I16, ST_I32, ST_I64, ST_BOOL, ST_C64, ST_C128, ST_MOST_THREADS = 256 };

/* One key an entry: the coordinates of all levels side by side, `widths` bits each, the outermost on top. */
void st_build_keys(int64_t count, int32_t levels, const void *const *columns, const int8_t *wide, const int8_t *widths, uint64_t *keys,
                   int32_t threads);

/* The coordinates of keys. */
void st_split_keys(int64_t count, int32_t levels, const uint64_t *keys, const int8_t *widths, void *const *columns, const int8_t *wide,
                   int32_t threads);

/* Stable sort of keys with a payload by the bits [low, high). 1 when there is no memory. */
int32_t st_sort_pairs(int64_t count, int32_t low, int32_t high, const uint64_t *keys, const uint64_t *payload, uint64_t *sorted_keys,
                      uint64_t *sorted_payload, int32_t threads);

/* Sum the values of equal neighbouring keys, in order, in place; returns how many are left. */
int64_t st_sum_duplicates(int64_t count, uint64_t *keys, void *values, int32_t kind, int64_t itemsize, int32_t threads);
/* end */

#endif
