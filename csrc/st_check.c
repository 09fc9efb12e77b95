/* Checks what kernels require of rows of coordinates, reading each position and each coordinate once; and makes long ones short. */
#include "st_columns.h"
#include "st_pack.h"
#include "st_team.h"

typedef struct {
  int64_t rows, count, shares, extent;
  const void *pos, *crd;
  int32_t pos_wide, crd_wide;
  int64_t *broken, *outside, *descents;
} checked_rows;

/* Coordinates of a block, which is read twice, the second time from the nearest cache. */
enum { BLOCK = 4096 };

#define CHECK_POSITIONS(P, S)                                                          \
  static bool decreases_##S(const P *pos, int64_t begin, int64_t end) {                 \
    P broken = 0;                                                                       \
    for (int64_t row = begin; row < end; row++) broken |= pos[row + 1] < pos[row];       \
    return broken;                                                                      \
  }                                                                                    \
  /* the first row that begins at `place` or later */                                   \
  static int64_t row_from_##S(const P *pos, int64_t rows, int64_t place) {              \
    int64_t low = 0, high = rows;                                                       \
    while (low < high) {                                                                \
      const int64_t middle = low + (high - low) / 2;                                    \
      if (pos[middle] < place)                                                          \
        low = middle + 1;                                                               \
      else                                                                              \
        high = middle;                                                                  \
    }                                                                                   \
    return low;                                                                         \
  }
CHECK_POSITIONS(int32_t, i32)
CHECK_POSITIONS(int64_t, i64)

/* The greatest coordinate, where negative ones are greater than all others, and the descents. A block has so few coordinates that
   counters as wide as these suffice, which keeps all lanes of a vector busy. */
#define CHECK_COORDINATES(T, U, S)                                                                            \
  static int64_t descents_##S(const T *crd, int64_t begin, int64_t end, uint64_t *greatest) {                  \
    T descents = 0;                                                                                           \
    U most = 0;                                                                                               \
    for (int64_t p = begin; p < end; p++) {                                                                   \
      most = most > (U)crd[p] ? most : (U)crd[p];                                                             \
      descents += crd[p] <= crd[p - 1];                                                                       \
    }                                                                                                         \
    if (most > *greatest) *greatest = most;                                                                   \
    return descents;                                                                                          \
  }
CHECK_COORDINATES(int32_t, uint32_t, i32)
CHECK_COORDINATES(int64_t, uint64_t, i64)

/* The descents from one row to the next, for rows that begin inside a block: these are allowed. */
#define CHECK_ROWS(P, PS, T, S)                                                                                                   \
  static int64_t between_##PS##_##S(const P *pos, int64_t rows, const T *crd, int64_t begin, int64_t end) {                        \
    const int64_t last = row_from_##PS(pos, rows, end);                                                                           \
    int64_t descents = 0;                                                                                                         \
    for (int64_t row = row_from_##PS(pos, rows, begin); row < last; row++)                                                        \
      descents += (pos[row + 1] > pos[row]) & (crd[pos[row]] <= crd[pos[row] - 1]);                                               \
    return descents;                                                                                                              \
  }
CHECK_ROWS(int32_t, i32, int32_t, i32)
CHECK_ROWS(int32_t, i32, int64_t, i64)
CHECK_ROWS(int64_t, i64, int32_t, i32)
CHECK_ROWS(int64_t, i64, int64_t, i64)

static void check_positions(const void *context, st_claims *claims, int64_t share) {
  const checked_rows in = *(const checked_rows *)context;
  bool broken = false;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t begin = st_share(in.rows, share, in.shares), end = st_share(in.rows, share + 1, in.shares);
    broken |= in.pos_wide ? decreases_i64(in.pos, begin, end) : decreases_i32(in.pos, begin, end);
  }
  if (broken) __atomic_store_n(in.broken, 1, __ATOMIC_RELAXED);
}

static int64_t block_descents(const checked_rows *in, int64_t begin, int64_t end, uint64_t *greatest) {
  if (in->crd_wide) {
    const int64_t *crd = in->crd, found = descents_i64(crd, begin, end, greatest);
    return found - (in->pos_wide ? between_i64_i64(in->pos, in->rows, crd, begin, end) : between_i32_i64(in->pos, in->rows, crd, begin, end));
  }
  const int32_t *crd = in->crd;
  const int64_t found = descents_i32(crd, begin, end, greatest);
  return found - (in->pos_wide ? between_i64_i32(in->pos, in->rows, crd, begin, end) : between_i32_i32(in->pos, in->rows, crd, begin, end));
}

static void check_coordinates(const void *context, st_claims *claims, int64_t share) {
  const checked_rows in = *(const checked_rows *)context;
  uint64_t greatest = 0;
  int64_t descents = 0;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t first = st_share(in.count, share, in.shares), end = st_share(in.count, share + 1, in.shares);
    if (first == 0 && end > 0) { /* before the first coordinate there is none */
      const uint64_t only = in.crd_wide ? *(const uint64_t *)in.crd : *(const uint32_t *)in.crd;
      if (only > greatest) greatest = only;
    }
    for (int64_t begin = first ? first : 1; begin < end; begin += BLOCK)
      descents += block_descents(&in, begin, begin + BLOCK < end ? begin + BLOCK : end, &greatest);
  }
  const uint64_t most = in.crd_wide || in.extent < INT32_MAX ? (uint64_t)in.extent : (uint64_t)INT32_MAX + 1;
  if (greatest >= most && in.count) __atomic_store_n(in.outside, 1, __ATOMIC_RELAXED);
  if (descents) __atomic_store_n(in.descents, 1, __ATOMIC_RELAXED);
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

typedef struct {
  int64_t count, shares;
  const int64_t *from;
  int32_t *to;
} shortening;

static void shorten(const void *context, st_claims *claims, int64_t share) {
  const shortening in = *(const shortening *)context;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t end = st_share(in.count, share + 1, in.shares);
    for (int64_t e = st_share(in.count, share, in.shares); e < end; e++) {
      const int32_t short_one = (int32_t)in.from[e];
      in.to[e] = short_one == in.from[e] ? short_one : -1;
    }
  }
}

void st_shorten(int64_t count, const int64_t *from, int32_t *to, int32_t threads) {
  const shortening in = {count, st_fine_shares(threads), from, to};
  st_run(threads, in.shares, true, shorten, &in);
}
