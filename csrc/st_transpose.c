/* Rows of coordinates: their check, and the transposition of a dense level above a compressed one (Gustavson 1978). */
#include <stdlib.h>
#include <string.h>

#include "st_columns.h"
#include "st_items.h"
#include "st_pack.h"

typedef struct {
  int64_t rows, columns, count;
  const void *pos, *row_of, *crd, *values; /* positions of rows, or else the row of each entry, as wide as it will be stored */
  int64_t itemsize;
  int32_t pos_wide, crd_wide;
} rows_of_coordinates;

typedef struct {
  void *pos, *crd, *values;
  int32_t pos_wide, crd_wide;
} transposed;

enum {
  MOST_THREADS = 255,
  AHEAD = 40,          /* entries between the prefetch of a line and the write to it */
  SAMPLED = 256,       /* entries */
  FIRST_CACHE = 32768, /* bytes */
  LINES = 128,         /* bytes of the lines of a column: of coordinates, and of values */
  NEAR = 1 << 17,      /* bytes of lines, a part of the second cache: there writes that are not prefetched are not waited for */
  SMALL = 3 << 20      /* bytes of a transpose that the caches still hold for the most part when it is written again */
};

/* Whether the columns of neighbouring entries lie so far apart that not all their places stay in the first cache, other than in a band
   matrix. */
static bool are_apart(const rows_of_coordinates *in, int64_t first, int64_t last) {
  const int64_t far = last - AHEAD, step = (last - first) / SAMPLED + 1;
  double span = 0, samples = 0;
  for (int64_t p = first; p < far; p += step, samples++) {
    const int64_t distance = st_get(in->crd, in->crd_wide, p + AHEAD) - st_get(in->crd, in->crd_wide, p);
    span += (double)(distance < 0 ? -distance : distance);
  }
  const double column = (double)in->count / (double)(in->columns ? in->columns : 1) * (double)(in->itemsize + 4);
  return span * column >= FIRST_CACHE * samples;
}

/* Up to which entry lines are prefetched: none if those that are written to are near, where prefetches only add instructions. Of a small
   transpose they are, unless another thread writes to them too: then they come from its cache. */
static int64_t ahead_until(const rows_of_coordinates *in, int64_t first, int64_t last, bool alone) {
  const bool near = in->columns * LINES <= NEAR || (alone && in->count * (in->itemsize + 4) <= SMALL);
  return !near && are_apart(in, first, last) ? last - AHEAD : first;
}

/* Rows whose entries one thread looks at; where the rows of entries are given, these alone. */
typedef struct {
  int64_t begin, end, first, last;
} share_of_rows;

static inline share_of_rows entries_of(const rows_of_coordinates *in, int64_t share, int64_t shares) {
  if (in->row_of) return (share_of_rows){0, 0, st_share(in->count, share, shares), st_share(in->count, share + 1, shares)};
  const int64_t begin = st_balanced_row(in->rows, in->pos, in->pos_wide, share, shares);
  const int64_t end = st_balanced_row(in->rows, in->pos, in->pos_wide, share + 1, shares);
  return (share_of_rows){begin, end, st_get(in->pos, in->pos_wide, begin), st_get(in->pos, in->pos_wide, end)};
}

#define ST_PLACE uint32_t
#define ST_NAMED(name) name##_narrow
#include "st_transpose_rows.h"
#undef ST_PLACE
#undef ST_NAMED
#define ST_PLACE int64_t
#define ST_NAMED(name) name##_wide
#include "st_transpose_rows.h"
#include "st_transpose_blocks.h"

int64_t st_transpose_room(int64_t count, int64_t columns, const void *crd, int32_t wide, int64_t itemsize, int64_t cache) {
  const rows_of_coordinates in = {0, columns, count, NULL, NULL, crd, NULL, itemsize, 0, 0};
  return !wide && count < INT32_MAX && are_scattered(&in, cache) ? count * (int64_t)record_bytes(itemsize) : 0;
}

static int32_t transpose_any(rows_of_coordinates in, transposed out, void *room, void *places, int32_t threads) {
  if (room) return transpose_by_blocks(in, out, room, threads);
  /* places of 32 bits, where they suffice, keep twice as many columns in a cache */
  if (in.count < UINT32_MAX)
    transpose_narrow(in, out, places, threads);
  else
    transpose_wide(in, out, places, threads);
  return 0;
}

int32_t st_transpose(int64_t rows, int64_t columns, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide,
                     const void *values, int64_t itemsize, void *out_pos, int32_t out_pos_wide, void *out_crd, int32_t out_crd_wide,
                     void *out_values, void *room, void *places, int32_t threads) {
  const rows_of_coordinates in = {rows, columns, st_get(pos, pos_wide, rows), pos, NULL, crd, values, itemsize, pos_wide, crd_wide};
  return transpose_any(in, (transposed){out_pos, out_crd, out_values, out_pos_wide, out_crd_wide}, room, places, threads);
}

int32_t st_transpose_entries(int64_t count, int64_t columns, const void *row_of, int32_t row_wide, const void *crd, int32_t crd_wide,
                             const void *values, int64_t itemsize, void *out_pos, int32_t out_pos_wide, void *out_crd,
                             void *out_values, void *room, void *places, int32_t threads) {
  const rows_of_coordinates in = {0, columns, count, NULL, row_of, crd, values, itemsize, 0, crd_wide};
  return transpose_any(in, (transposed){out_pos, out_crd, out_values, out_pos_wide, row_wide}, room, places, threads);
}
