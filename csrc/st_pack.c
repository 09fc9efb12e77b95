/* Packing sorted entries into levels, and unpacking them: each function is one pass over entries, in parallel. */
#include "st_pack.h"

#include <string.h>

#include "st_columns.h"
#include "st_items.h"

enum { BLOCK = 1024 /* entries whose bytes stay in the first cache while levels are read one after another */ };

#define COMPARE_LEVEL(T, EXPRESSION)                                             \
  do {                                                                           \
    const T *column = (const T *)columns[level] + begin;                         \
    for (int64_t e = skip; e < length; e++) {                                    \
      const T here = column[e], before = column[e - 1];                          \
      state[e] = (int8_t)(EXPRESSION);                                           \
    }                                                                            \
  } while (0)

typedef struct {
  int64_t count;
  int32_t levels;
  const void *const *columns;
  const int8_t *wide;
  int8_t *first;
  int64_t *histogram, *worst;
} compared_columns;

static inline int64_t blocks_of(int64_t count) { return (count + BLOCK - 1) / BLOCK; }

static void order_state(const void *context, st_claims *claims, int64_t block) {
  const compared_columns in = *(const compared_columns *)context;
  const void *const *columns = in.columns;
  int8_t state[BLOCK]; /* 0 greater, 1 equal, 2 smaller: by the levels from `level` on */
  for (; block >= 0; block = st_next(claims)) {
    const int64_t begin = block * BLOCK, length = in.count - begin < BLOCK ? in.count - begin : BLOCK, skip = begin == 0;
    if (__atomic_load_n(in.worst, __ATOMIC_RELAXED) == 2) continue;
    memset(state, 1, sizeof state);
    for (int32_t level = in.levels - 1; level >= 0; level--) {
      if (in.wide[level])
        COMPARE_LEVEL(int64_t, here > before ? 0 : here < before ? 2 : state[e]);
      else
        COMPARE_LEVEL(int32_t, here > before ? 0 : here < before ? 2 : state[e]);
    }
    int8_t most = 0;
    for (int64_t e = skip; e < length; e++) most = state[e] > most ? state[e] : most;
    st_raise(in.worst, most);
  }
}

int32_t st_order_state(int64_t count, int32_t levels, const void *const *columns, const int8_t *wide, int32_t threads) {
  int64_t worst = 0;
  const compared_columns in = {count, levels, columns, wide, NULL, NULL, &worst};
  st_run(threads, blocks_of(count), true, order_state, &in);
  return (int32_t)worst;
}

static void first_differences(const void *context, st_claims *claims, int64_t block) {
  const compared_columns in = *(const compared_columns *)context;
  const void *const *columns = in.columns;
  int64_t seen[65] = {0};
  for (; block >= 0; block = st_next(claims)) {
    const int64_t begin = block * BLOCK, length = in.count - begin < BLOCK ? in.count - begin : BLOCK, skip = begin == 0;
    int8_t *state = in.first + begin;
    memset(state, in.levels, (size_t)length);
    for (int32_t level = in.levels - 1; level >= 0; level--) {
      if (in.wide[level])
        COMPARE_LEVEL(int64_t, here != before ? level : state[e]);
      else
        COMPARE_LEVEL(int32_t, here != before ? level : state[e]);
    }
    if (skip) state[0] = 0;
    for (int32_t level = 0; level <= in.levels; level++) {
      int64_t here = 0;
      for (int64_t e = 0; e < length; e++) here += state[e] == level;
      seen[level] += here;
    }
  }
  for (int32_t level = 0; level <= in.levels; level++) __atomic_fetch_add(&in.histogram[level], seen[level], __ATOMIC_RELAXED);
}

void st_first_differences(int64_t count, int32_t levels, const void *const *columns, const int8_t *wide, int8_t *first,
                          int64_t *histogram, int32_t threads) {
  const compared_columns in = {count, levels, columns, wide, first, histogram, NULL};
  st_run(threads, blocks_of(count), true, first_differences, &in);
}

/* Each entry is written where the next parent begins; the next entry of the same parent is written over it. So no branch depends on how
   many entries parents have, other than those without. Where a parent begins behind the share, the next share writes. */
#define FILL_SEGMENTS(PARENT, POS)                                                         \
  do {                                                                                     \
    const PARENT *restrict of = in.parent;                                                 \
    POS *restrict to = in.pos;                                                             \
    int64_t filled = begin ? (int64_t)of[begin - 1] : -1;                                  \
    for (int64_t e = begin; e < end && filled < of[end - 1]; e++) {                        \
      to[filled + 1] = (POS)e;                                                             \
      filled += filled < of[e];                                                            \
      while (filled < of[e]) to[++filled] = (POS)e;                                        \
    }                                                                                      \
    if (share == in.shares - 1)                                                            \
      while (filled < in.parents) to[++filled] = (POS)in.count;                            \
  } while (0)

typedef struct {
  int64_t count, parents, shares;
  const void *parent;
  void *pos;
  int32_t parent_wide, pos_wide;
} segments;

static void fill_segments(const void *context, st_claims *claims, int64_t share) {
  const segments in = *(const segments *)context;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t begin = st_share(in.count, share, in.shares), end = st_share(in.count, share + 1, in.shares);
    if (in.parent_wide && in.pos_wide)
      FILL_SEGMENTS(int64_t, int64_t);
    else if (in.parent_wide)
      FILL_SEGMENTS(int64_t, int32_t);
    else if (in.pos_wide)
      FILL_SEGMENTS(int32_t, int64_t);
    else
      FILL_SEGMENTS(int32_t, int32_t);
  }
}

void st_segments(int64_t count, const void *parent, int32_t parent_wide, int64_t parents, void *pos, int32_t pos_wide, int32_t threads) {
  const segments in = {count, parents, st_fine_shares(threads), parent, pos, parent_wide, pos_wide};
  st_run(threads, in.shares, true, fill_segments, &in);
}

/* The last parent whose segment begins at or before a place: that of the child at the place. */
static int64_t parent_of(int64_t parents, const void *pos, int pos_wide, int64_t place) {
  int64_t low = 0, high = parents;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (st_get(pos, pos_wide, middle + 1) <= place)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

typedef struct {
  int64_t bytes, shares;
  const char *from;
  char *to;
} copying;

static void copy_shares(const void *context, st_claims *claims, int64_t share) {
  const copying in = *(const copying *)context;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t begin = st_share(in.bytes, share, in.shares);
    memcpy(in.to + begin, in.from + begin, (size_t)(st_share(in.bytes, share + 1, in.shares) - begin));
  }
}

void st_copy(int64_t bytes, const void *from, void *to, int32_t threads) {
  const copying in = {bytes, st_fine_shares(threads), from, to};
  st_run(threads, in.shares, true, copy_shares, &in);
}

typedef struct {
  int64_t parents, begin, count, shares;
  const void *pos, *column;
  void *out;
  int32_t pos_wide, column_wide, out_wide;
} expansion;

/* Each parent is written FEW times at once, whether it has so many children or not, as the next ones are written over the rest: lengths of
   short rows, which no processor foresees, decide no branch. */
#define EXPAND(POS, OUT)                                                                      \
  {                                                                                           \
    const POS *restrict pos = in.pos;                                                         \
    OUT *restrict out = in.out;                                                               \
    for (; k < end; p++) {                                                                    \
      const int64_t next = pos[p + 1] - in.begin, stop = next < end ? next : end;             \
      const OUT value = (OUT)(column ? st_get(column, column_wide, p) : p);                   \
      if (k + FEW <= end)                                                                     \
        for (const int64_t few = k + FEW; k < few; k++) out[k] = value;                       \
      for (; k < stop; k++) out[k] = value;                                                   \
      k = next;                                                                               \
    }                                                                                         \
  }

static void expand(const void *context, st_claims *claims, int64_t share) {
  enum { FEW = 16 };
  const expansion in = *(const expansion *)context;
  const void *column = in.column;
  const int column_wide = in.column_wide;
  for (; share >= 0; share = st_next(claims)) {
    int64_t k = st_share(in.count, share, in.shares);
    const int64_t end = st_share(in.count, share + 1, in.shares);
    int64_t p = k < end ? parent_of(in.parents, in.pos, in.pos_wide, in.begin + k) : in.parents;
    if (in.pos_wide && in.out_wide)
      EXPAND(int64_t, int64_t)
    else if (in.pos_wide)
      EXPAND(int64_t, int32_t)
    else if (in.out_wide)
      EXPAND(int32_t, int64_t)
    else
      EXPAND(int32_t, int32_t)
  }
}

void st_expand(int64_t parents, const void *pos, int32_t pos_wide, const void *column, int32_t column_wide, void *out, int32_t out_wide,
               int32_t threads) {
  const int64_t begin = parents ? st_get(pos, pos_wide, 0) : 0, count = parents ? st_get(pos, pos_wide, parents) - begin : 0;
  const expansion in = {parents, begin, count, st_fine_shares(threads), pos, column, out, pos_wide, column_wide, out_wide};
  st_run(threads, in.shares, true, expand, &in);
}

typedef struct {
  int64_t parents, shares;
  const void *pos, *crd;
  void *base;
  uint16_t *out;
  int32_t pos_wide, crd_wide, base_wide;
  int64_t *widest;
} narrowing;

static void narrow(const void *context, st_claims *claims, int64_t share) {
  const narrowing in = *(const narrowing *)context;
  int64_t widest = 0;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t stop = st_balanced_row(in.parents, in.pos, in.pos_wide, share + 1, in.shares);
    for (int64_t p = st_balanced_row(in.parents, in.pos, in.pos_wide, share, in.shares); p < stop; p++) {
      const int64_t begin = st_get(in.pos, in.pos_wide, p), end = st_get(in.pos, in.pos_wide, p + 1);
      const int64_t first = begin < end ? st_get(in.crd, in.crd_wide, begin) : 0;
      st_put(in.base, in.base_wide, p, first);
      if (in.crd_wide)
        for (int64_t k = begin; k < end; k++) in.out[k] = (uint16_t)(((const int64_t *)in.crd)[k] - first);
      else
        for (int64_t k = begin; k < end; k++) in.out[k] = (uint16_t)(((const int32_t *)in.crd)[k] - first);
      const int64_t reach = begin < end ? st_get(in.crd, in.crd_wide, end - 1) - first + 1 : 0;
      widest = reach > widest ? reach : widest;
    }
  }
  st_raise(in.widest, widest);
}

int64_t st_distances(int64_t parents, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide, void *base, int32_t base_wide,
                     uint16_t *out, int32_t threads) {
  int64_t widest = 0;
  const narrowing in = {parents, st_fine_shares(threads), pos, crd, base, out, pos_wide, crd_wide, base_wide, &widest};
  st_run(threads, in.shares, true, narrow, &in);
  return widest;
}

typedef struct {
  int64_t count, shares, extent;
  const void *position, *column;
  int32_t position_wide, column_wide;
  int64_t *out;
} dense_places;

static void place_below_dense(const void *context, st_claims *claims, int64_t share) {
  const dense_places in = *(const dense_places *)context;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t end = st_share(in.count, share + 1, in.shares);
    for (int64_t e = st_share(in.count, share, in.shares); e < end; e++)
      in.out[e] = (in.position ? st_get(in.position, in.position_wide, e) * in.extent : 0) + st_get(in.column, in.column_wide, e);
  }
}

void st_below_dense(int64_t count, const void *position, int32_t position_wide, int64_t extent, const void *column, int32_t column_wide,
                    int64_t *out, int32_t threads) {
  const dense_places in = {count, st_fine_shares(threads), extent, position, column, position_wide, column_wide, out};
  st_run(threads, in.shares, true, place_below_dense, &in);
}

typedef struct {
  int64_t count, shares, itemsize;
  const void *values, *position;
  void *out;
  int32_t position_wide;
} moves;

#define MOVE(T, TO, FROM)                                                                            \
  for (int64_t e = begin; e < end; e++) {                                                            \
    const int64_t place = st_get(in.position, in.position_wide, e);                                  \
    ((T *)in.out)[TO] = ((const T *)in.values)[FROM];                                                \
  }
#define MOVE_SHARES(NAME, TO, FROM)                                                                                           \
  static void NAME(const void *context, st_claims *claims, int64_t share) {                                                   \
    const moves in = *(const moves *)context;                                                                                 \
    for (; share >= 0; share = st_next(claims)) {                                                                             \
      const int64_t begin = st_share(in.count, share, in.shares), end = st_share(in.count, share + 1, in.shares);             \
      ST_EACH_ITEMSIZE(in.itemsize, MOVE, TO, FROM)                                                                           \
    }                                                                                                                         \
  }
MOVE_SHARES(scatter_shares, place, e)
MOVE_SHARES(gather_shares, e, place)

void st_scatter(int64_t count, const void *values, int64_t itemsize, const void *position, int32_t position_wide, void *out,
                int32_t threads) {
  const moves in = {count, st_fine_shares(threads), itemsize, values, position, out, position_wide};
  st_run(threads, in.shares, true, scatter_shares, &in);
}

void st_gather(int64_t count, const void *values, int64_t itemsize, const void *position, int32_t position_wide, void *out,
               int32_t threads) {
  const moves in = {count, st_fine_shares(threads), itemsize, values, position, out, position_wide};
  st_run(threads, in.shares, true, gather_shares, &in);
}
