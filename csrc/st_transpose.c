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
  AHEAD = 24,         /* entries between asking for a line and writing to it */
  SAMPLED = 256,      /* entries */
  FIRST_CACHE = 32768 /* bytes */
};

/* Up to which entry lines are asked for ahead: none where the columns of entries near one another lie so close together that all the
   places between them stay in the first cache, as in a band matrix. */
static int64_t ahead_until(const rows_of_coordinates *in, int64_t first, int64_t last) {
  const int64_t far = last - AHEAD, step = (last - first) / SAMPLED + 1;
  double span = 0, samples = 0;
  for (int64_t p = first; p < far; p += step, samples++) {
    const int64_t distance = st_get(in->crd, in->crd_wide, p + AHEAD) - st_get(in->crd, in->crd_wide, p);
    span += (double)(distance < 0 ? -distance : distance);
  }
  const double column = (double)in->count / (double)(in->columns ? in->columns : 1) * (double)(in->itemsize + 4);
  return span * column < FIRST_CACHE * samples ? first : far;
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

static int32_t transpose_any(rows_of_coordinates in, transposed out, int32_t threads) {
  if (threads > MOST_THREADS) threads = MOST_THREADS;
  /* places of 32 bits, where they suffice, keep twice as many columns in a cache */
  return in.count < UINT32_MAX ? transpose_narrow(in, out, threads) : transpose_wide(in, out, threads);
}

int32_t st_transpose(int64_t rows, int64_t columns, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide,
                     const void *values, int64_t itemsize, void *out_pos, int32_t out_pos_wide, void *out_crd, int32_t out_crd_wide,
                     void *out_values, int32_t threads) {
  const rows_of_coordinates in = {rows, columns, st_get(pos, pos_wide, rows), pos, NULL, crd, values, itemsize, pos_wide, crd_wide};
  return transpose_any(in, (transposed){out_pos, out_crd, out_values, out_pos_wide, out_crd_wide}, threads);
}

int32_t st_transpose_entries(int64_t count, int64_t columns, const void *row_of, int32_t row_wide, const void *crd, int32_t crd_wide,
                             const void *values, int64_t itemsize, void *out_pos, int32_t out_pos_wide, void *out_crd,
                             void *out_values, int32_t threads) {
  const rows_of_coordinates in = {0, columns, count, NULL, row_of, crd, values, itemsize, 0, crd_wide};
  return transpose_any(in, (transposed){out_pos, out_crd, out_values, out_pos_wide, row_wide}, threads);
}

typedef struct {
  int64_t rows, count, shares, extent;
  const void *pos, *crd;
  int32_t pos_wide, crd_wide;
  int64_t *broken, *outside, *descents;
} checked_rows;

static void check_positions(const void *context, st_claims *claims, int64_t share) {
  const checked_rows in = *(const checked_rows *)context;
  bool broken = false;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t last = st_share(in.rows, share + 1, in.shares);
    for (int64_t row = st_share(in.rows, share, in.shares); row < last; row++)
      broken |= st_get(in.pos, in.pos_wide, row + 1) < st_get(in.pos, in.pos_wide, row);
  }
  st_raise(in.broken, broken);
}

/* The descents inside rows are all descents less those at the beginnings of rows: two loops that compilers vectorise. */
static void check_coordinates(const void *context, st_claims *claims, int64_t share) {
  const checked_rows in = *(const checked_rows *)context;
  int64_t outside = 0, descents = 0;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t begin = st_share(in.count, share, in.shares), end = st_share(in.count, share + 1, in.shares);
    if (in.crd_wide) {
      const int64_t *coordinate = in.crd;
      for (int64_t p = begin; p < end; p++) outside += coordinate[p] < 0 || coordinate[p] >= in.extent;
      for (int64_t p = begin ? begin : 1; p < end; p++) descents += coordinate[p] <= coordinate[p - 1];
    } else {
      const int32_t *coordinate = in.crd, most = in.extent > INT32_MAX ? INT32_MAX : (int32_t)(in.extent - 1);
      for (int64_t p = begin; p < end; p++) outside += coordinate[p] < 0 || coordinate[p] > most;
      for (int64_t p = begin ? begin : 1; p < end; p++) descents += coordinate[p] <= coordinate[p - 1];
    }
    const int64_t last = st_share(in.rows, share + 1, in.shares);
    for (int64_t row = st_share(in.rows, share, in.shares); row < last; row++) {
      const int64_t p = st_get(in.pos, in.pos_wide, row);
      if (p > 0 && p < st_get(in.pos, in.pos_wide, row + 1)) descents -= st_get(in.crd, in.crd_wide, p) <= st_get(in.crd, in.crd_wide, p - 1);
    }
  }
  __atomic_fetch_add(in.outside, outside, __ATOMIC_RELAXED);
  __atomic_fetch_add(in.descents, descents, __ATOMIC_RELAXED);
}

int32_t st_check_segments(int64_t rows, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide, int64_t stored,
                          int64_t extent, int32_t threads) {
  int64_t broken = 0, outside = 0, descents = 0;
  checked_rows in = {rows, 0, st_fine_shares(threads), extent, pos, crd, pos_wide, crd_wide, &broken, &outside, &descents};
  st_run(threads, in.shares, true, check_positions, &in);
  if (broken || st_get(pos, pos_wide, 0) != 0 || st_get(pos, pos_wide, rows) > stored) return 3;
  in.count = st_get(pos, pos_wide, rows);
  st_run(threads, in.shares, true, check_coordinates, &in);
  return outside ? 2 : descents ? 1 : 0;
}
