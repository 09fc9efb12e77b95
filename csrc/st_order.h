#ifndef ST_ORDER_H
#define ST_ORDER_H

#include <stdint.h>

/* cdef */
enum { ST_F32, ST_F64, ST_I8, ST_I16, ST_I32, ST_I64, ST_BOOL, ST_C64, ST_C128, ST_KEY_BLOCK = 1024 };

/* Stable sort of entries by their keys without the lowest `low` bits. A key has the coordinates of all levels side by side, `widths` bits
   each, the outermost on top. A payload has the value of an entry, or its number where values have more than 8 bytes. 1 when there is
   no memory. */
int32_t st_sort_entries(int64_t count, int32_t levels, void *const *columns, const int8_t *wide, const int8_t *widths, int32_t low,
                        const void *values, int64_t itemsize, uint64_t *keys, uint64_t *payload, int32_t threads);

/* How many different keys there are among sorted ones; places: how many stand before each block of ST_KEY_BLOCK, and how many in all. */
int64_t st_count_distinct(int64_t count, const uint64_t *keys, int64_t *places, int32_t threads);

/* The coordinates of different keys, and the sums of their values in order: of what payloads hold, or of the `values` that they number
   where these have more than 8 bytes. No `sums`: payloads are wanted as they are. No `places`: all keys differ. */
void st_write_entries(int64_t count, int32_t levels, void *const *columns, const int8_t *wide, const int8_t *widths, const uint64_t *keys,
                      const uint64_t *payload, const int64_t *places, const void *values, int32_t kind, void *sums, int32_t threads);
/* end */

#endif
