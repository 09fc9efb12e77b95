/* The children of parents among sorted entries, as levels store them: compressed ones in order of their parents, and those of parents in
   any order, one after the other or in tables. Each function is one or two passes over entries, in parallel. */
#include "st_columns.h"
#include "st_hash.h"
#include "st_pack.h"

static int64_t count_heads(const int8_t *first, int64_t begin, int64_t end, int32_t last_level) {
  int64_t heads = 0;
  for (int64_t e = begin; e < end; e++) heads += first[e] <= last_level;
  return heads;
}

typedef struct {
  int64_t count, parents, shares;
  const int8_t *first;
  int32_t last_level;
  const void *parent, *column;
  void *crd, *pos, *child;
  int32_t parent_wide, column_wide, crd_wide, pos_wide, child_wide;
  int64_t *heads; /* by share: how many children begin in it; then, how many begin before it */
} compression;

static void count_shares(const void *context, st_claims *claims, int64_t share) {
  const compression in = *(const compression *)context;
  for (; share >= 0; share = st_next(claims))
    in.heads[share] = count_heads(in.first, st_share(in.count, share, in.shares), st_share(in.count, share + 1, in.shares), in.last_level);
}

static void compress_shares(const void *context, st_claims *claims, int64_t share) {
  const compression in = *(const compression *)context;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t begin = st_share(in.count, share, in.shares), end = st_share(in.count, share + 1, in.shares);
    int64_t heads = in.heads[share];
    int64_t filled = begin ? (in.parent ? st_get(in.parent, in.parent_wide, begin - 1) : 0) : -1; /* last parent whose begin is known */
    for (int64_t e = begin; e < end; e++) {
      if (in.first[e] <= in.last_level) {
        const int64_t p = in.parent ? st_get(in.parent, in.parent_wide, e) : 0;
        while (filled < p) st_put(in.pos, in.pos_wide, ++filled, heads);
        if (in.crd) st_put(in.crd, in.crd_wide, heads, st_get(in.column, in.column_wide, e));
        heads++;
      }
      if (in.child) st_put(in.child, in.child_wide, e, heads - 1);
    }
    if (share == in.shares - 1)
      while (filled < in.parents) st_put(in.pos, in.pos_wide, ++filled, heads);
  }
}

void st_compress(int64_t count, const int8_t *first, int32_t last_level, const void *parent, int32_t parent_wide, int64_t parents,
                 const void *column, int32_t column_wide, void *crd, int32_t crd_wide, void *pos, int32_t pos_wide, void *child,
                 int32_t child_wide, int32_t threads) {
  enum { MOST_SHARES = 2048 };
  int64_t heads[MOST_SHARES], sum = 0;
  const int64_t fine = st_fine_shares(threads), shares = fine < MOST_SHARES ? fine : MOST_SHARES;
  const compression in = {count,  parents, shares,      first,       last_level, parent,   column,     crd,
                          pos,    child,   parent_wide, column_wide, crd_wide,   pos_wide, child_wide, heads};
  heads[0] = 0;
  if (shares > 1) st_run(threads, shares, true, count_shares, &in);
  for (int64_t share = 0; share < shares; share++) {
    const int64_t here = heads[share];
    heads[share] = sum;
    sum += here;
  }
  st_run(threads, shares, true, compress_shares, &in);
}

typedef struct {
  int64_t count, shares;
  const int8_t *first;
  int32_t level, column_wide, crd_wide, hashed;
  const int64_t *parent, *starts;
  const void *column;
  void *crd;
  int64_t *out; /* counts by parent, or children by entry */
} children;

/* The shares of a loop over entries, moved on to where a parent begins. */
static int64_t share_of_parents(const children *in, int64_t share) {
  int64_t at = st_share(in->count, share, in->shares);
  while (at > 0 && at < in->count && in->parent[at] == in->parent[at - 1]) at++;
  return at;
}

static void count_children(const void *context, st_claims *claims, int64_t share) {
  const children in = *(const children *)context;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t end = share_of_parents(&in, share + 1);
    for (int64_t e = share_of_parents(&in, share); e < end; e++) in.out[in.parent[e]] += in.first[e] <= in.level;
  }
}

void st_count_children(int64_t count, const int8_t *first, int32_t level, const int64_t *parent, int64_t *counts, int32_t threads) {
  const children in = {.count = count, .shares = st_fine_shares(threads), .first = first, .level = level, .parent = parent, .out = counts};
  st_run(threads, in.shares, true, count_children, &in);
}

static void place_children(const void *context, st_claims *claims, int64_t share) {
  const children in = *(const children *)context;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t end = share_of_parents(&in, share + 1);
    int64_t place = 0;
    for (int64_t e = share_of_parents(&in, share), before = -1; e < end; e++) {
      const int64_t p = in.parent[e];
      if (in.first[e] <= in.level) {
        const int64_t begin = in.starts[p], coordinate = st_get(in.column, in.column_wide, e);
        if (in.hashed) {
          const int64_t mask = in.starts[p + 1] - begin - 1;
          place = begin + st_hash_slot(coordinate, mask + 1);
          while (st_get(in.crd, in.crd_wide, place) >= 0) place = begin + ((place - begin + 1) & mask);
        } else {
          place = p == before ? place + 1 : begin;
        }
        before = p;
        st_put(in.crd, in.crd_wide, place, coordinate);
      }
      in.out[e] = place;
    }
  }
}

void st_place_children(int64_t count, const int8_t *first, int32_t level, const int64_t *parent, const int64_t *starts, const void *column,
                       int32_t column_wide, void *crd, int32_t crd_wide, int32_t hashed, int64_t *child, int32_t threads) {
  const int64_t shares = st_fine_shares(threads);
  const children in = {count, shares, first, level, column_wide, crd_wide, hashed, parent, starts, column, crd, child};
  st_run(threads, shares, true, place_children, &in);
}
