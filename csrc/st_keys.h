/* Keys of entries: the coordinates of all levels side by side in 64 bits, the outermost on top. */
#ifndef ST_KEYS_H
#define ST_KEYS_H

#include <stdint.h>
#include <string.h>

#include "st_order.h"

/* Columns of coordinates by level: int32, or int64 where `wide`; `widths` bits of a key each. */
typedef struct {
  int32_t levels;
  void *const *columns;
  const int8_t *wide, *widths;
} st_keyed;

static inline int64_t st_key_blocks(int64_t count) { return (count + ST_KEY_BLOCK - 1) / ST_KEY_BLOCK; }

static inline int st_key_bits(const st_keyed *of) {
  int bits = 0;
  for (int32_t level = 0; level < of->levels; level++) bits += of->widths[level];
  return bits;
}

/* The keys of entries `begin` to `begin + length`. */
static inline void st_build_keys(const st_keyed *of, int64_t begin, int64_t length, uint64_t *restrict key) {
  memset(key, 0, (size_t)length * sizeof *key);
  for (int32_t level = 0; level < of->levels; level++) {
    const int width = of->widths[level];
    if (width == 0) continue;
    if (of->wide[level]) {
      const int64_t *column = (const int64_t *)of->columns[level] + begin;
      for (int64_t e = 0; e < length; e++) key[e] = key[e] << (width & 63) | (uint64_t)column[e];
    } else {
      const int32_t *column = (const int32_t *)of->columns[level] + begin;
      for (int64_t e = 0; e < length; e++) key[e] = key[e] << width | (uint32_t)column[e];
    }
  }
}

/* The coordinates of some keys, written from place `begin` of the columns on. */
static inline void st_split_keys(const st_keyed *of, int64_t begin, int64_t length, const uint64_t *restrict key) {
  int shift = 0;
  for (int32_t level = of->levels - 1; level >= 0; shift += of->widths[level--]) {
    const int by = of->widths[level] ? shift : 0;
    const uint64_t mask = of->widths[level] ? ~UINT64_C(0) >> (64 - of->widths[level]) : 0;
    if (of->wide[level]) {
      int64_t *restrict column = (int64_t *)of->columns[level] + begin;
      for (int64_t e = 0; e < length; e++) column[e] = (int64_t)(key[e] >> by & mask);
    } else {
      int32_t *restrict column = (int32_t *)of->columns[level] + begin;
      for (int64_t e = 0; e < length; e++) column[e] = (int32_t)(key[e] >> by & mask);
    }
  }
}

#endif
