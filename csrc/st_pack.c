/* Packing sorted entries into levels, and unpacking them: each function is one pass over entries, in parallel. */
#include "st_pack.h"

#include <string.h>

#include "st_columns.h"
#include "st_hash.h"
#include "st_items.h"

enum { BLOCK = 1024 /* entries whose bytes stay in the first cache while level after level is looked at */ };

#define COMPARE_LEVEL(T, EXPRESSION)                                             \
  do {                                                                           \
    const T *column = (const T *)columns[level] + begin;                         \
    for (int64_t e = skip; e < length; e++) {                                    \
      const T here = column[e], before = column[e - 1];                          \
      state[e] = (int8_t)(EXPRESSION);                                           \
    }                                                                            \
  } while (0)

int32_t st_order_state(int64_t count, int32_t levels, const void *const *columns, const int8_t *wide, int32_t threads) {
  int32_t worst = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16) reduction(max : worst)
  for (int64_t begin = 0; begin < count; begin += BLOCK) {
    const int64_t length = count - begin < BLOCK ? count - begin : BLOCK, skip = begin == 0;
    int8_t state[BLOCK]; /* 0 greater, 1 equal, 2 smaller: as far as the levels from `level` on tell */
    if (worst == 2) continue;
    memset(state, 1, sizeof state);
    for (int32_t level = levels - 1; level >= 0; level--) {
      if (wide[level])
        COMPARE_LEVEL(int64_t, here > before ? 0 : here < before ? 2 : state[e]);
      else
        COMPARE_LEVEL(int32_t, here > before ? 0 : here < before ? 2 : state[e]);
    }
    int8_t most = 0;
    for (int64_t e = skip; e < length; e++) most = state[e] > most ? state[e] : most;
    worst = most > worst ? most : worst;
  }
  return worst;
}

void st_first_differences(int64_t count, int32_t levels, const void *const *columns, const int8_t *wide, int8_t *first,
                          int64_t *histogram, int32_t threads) {
#pragma omp parallel num_threads(threads)
  {
    int64_t seen[65] = {0};
#pragma omp for schedule(dynamic, 16)
    for (int64_t begin = 0; begin < count; begin += BLOCK) {
      const int64_t length = count - begin < BLOCK ? count - begin : BLOCK, skip = begin == 0;
      int8_t *state = first + begin;
      memset(state, levels, (size_t)length);
      for (int32_t level = levels - 1; level >= 0; level--) {
        if (wide[level])
          COMPARE_LEVEL(int64_t, here != before ? level : state[e]);
        else
          COMPARE_LEVEL(int32_t, here != before ? level : state[e]);
      }
      if (skip) state[0] = 0;
      for (int32_t level = 0; level <= levels; level++) {
        int64_t here = 0;
        for (int64_t e = 0; e < length; e++) here += state[e] == level;
        seen[level] += here;
      }
    }
#pragma omp critical
    for (int32_t level = 0; level <= levels; level++) histogram[level] += seen[level];
  }
}

#define FILL_SEGMENTS(PARENT, POS)                                                         \
  do {                                                                                     \
    const PARENT *restrict of = parent;                                                    \
    POS *restrict to = pos;                                                                \
    int64_t filled = begin ? (int64_t)of[begin - 1] : -1;                                  \
    for (int64_t e = begin; e < end; e++)                                                  \
      while (filled < of[e]) to[++filled] = (POS)e;                                        \
    if (thread == team - 1)                                                                \
      while (filled < parents) to[++filled] = (POS)count;                                  \
  } while (0)

void st_segments(int64_t count, const void *parent, int32_t parent_wide, int64_t parents, void *pos, int32_t pos_wide, int32_t threads) {
#pragma omp parallel num_threads(threads)
  {
    const int64_t team = st_thread_count(), thread = st_thread_number();
    const int64_t begin = st_share(count, thread, team), end = st_share(count, thread + 1, team);
    if (parent_wide && pos_wide)
      FILL_SEGMENTS(int64_t, int64_t);
    else if (parent_wide)
      FILL_SEGMENTS(int64_t, int32_t);
    else if (pos_wide)
      FILL_SEGMENTS(int32_t, int64_t);
    else
      FILL_SEGMENTS(int32_t, int32_t);
  }
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

void st_expand(int64_t parents, const void *pos, int32_t pos_wide, const void *column, int32_t column_wide, void *out, int32_t out_wide,
               int32_t threads) {
  const int64_t begin = parents ? st_get(pos, pos_wide, 0) : 0, count = parents ? st_get(pos, pos_wide, parents) - begin : 0;
#pragma omp parallel num_threads(threads)
  {
    const int64_t team = st_thread_count(), thread = st_thread_number();
    int64_t k = st_share(count, thread, team);
    const int64_t end = st_share(count, thread + 1, team);
    for (int64_t p = k < end ? parent_of(parents, pos, pos_wide, begin + k) : parents; k < end; p++) {
      const int64_t next = st_get(pos, pos_wide, p + 1) - begin, stop = next < end ? next : end;
      const int64_t value = column ? st_get(column, column_wide, p) : p;
      for (; k < stop; k++) st_put(out, out_wide, k, value);
    }
  }
}

int64_t st_distances(int64_t parents, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide, void *base, int32_t base_wide,
                     uint16_t *out, int32_t threads) {
  int64_t widest = 0;
#pragma omp parallel for num_threads(threads) schedule(guided, 1024) reduction(max : widest)
  for (int64_t p = 0; p < parents; p++) {
    const int64_t begin = st_get(pos, pos_wide, p), end = st_get(pos, pos_wide, p + 1);
    const int64_t first = begin < end ? st_get(crd, crd_wide, begin) : 0;
    st_put(base, base_wide, p, first);
    if (crd_wide)
      for (int64_t k = begin; k < end; k++) out[k] = (uint16_t)(((const int64_t *)crd)[k] - first);
    else
      for (int64_t k = begin; k < end; k++) out[k] = (uint16_t)(((const int32_t *)crd)[k] - first);
    const int64_t reach = begin < end ? st_get(crd, crd_wide, end - 1) - first + 1 : 0;
    widest = reach > widest ? reach : widest;
  }
  return widest;
}

void st_below_dense(int64_t count, const void *position, int32_t position_wide, int64_t extent, const void *column, int32_t column_wide,
                    int64_t *out, int32_t threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t e = 0; e < count; e++)
    out[e] = (position ? st_get(position, position_wide, e) * extent : 0) + st_get(column, column_wide, e);
}

static int64_t count_heads(const int8_t *first, int64_t begin, int64_t end, int32_t last_level) {
  int64_t heads = 0;
  for (int64_t e = begin; e < end; e++) heads += first[e] <= last_level;
  return heads;
}

void st_compress(int64_t count, const int8_t *first, int32_t last_level, const void *parent, int32_t parent_wide, int64_t parents,
                 const void *column, int32_t column_wide, void *crd, int32_t crd_wide, void *pos, int32_t pos_wide, void *child,
                 int32_t child_wide, int32_t threads) {
  int64_t before[256] = {0};
  if (threads > 255) threads = 255;
#pragma omp parallel num_threads(threads)
  {
    const int64_t team = st_thread_count(), thread = st_thread_number();
    const int64_t begin = st_share(count, thread, team), end = st_share(count, thread + 1, team);
    before[thread + 1] = count_heads(first, begin, end, last_level);
#pragma omp barrier
    int64_t heads = 0;
    for (int64_t other = 0; other <= thread; other++) heads += before[other];
    int64_t filled = begin ? (parent ? st_get(parent, parent_wide, begin - 1) : 0) : -1; /* last parent whose begin is known */
    for (int64_t e = begin; e < end; e++) {
      if (first[e] <= last_level) {
        const int64_t p = parent ? st_get(parent, parent_wide, e) : 0;
        while (filled < p) st_put(pos, pos_wide, ++filled, heads);
        if (crd) st_put(crd, crd_wide, heads, st_get(column, column_wide, e));
        heads++;
      }
      if (child) st_put(child, child_wide, e, heads - 1);
    }
    if (thread == team - 1)
      while (filled < parents) st_put(pos, pos_wide, ++filled, heads);
  }
}

/* The shares of a loop over entries, moved on to where a parent begins. */
static int64_t share_of_parents(int64_t count, const int64_t *parent, int64_t thread, int64_t team) {
  int64_t at = st_share(count, thread, team);
  while (at > 0 && at < count && parent[at] == parent[at - 1]) at++;
  return at;
}

void st_count_children(int64_t count, const int8_t *first, int32_t level, const int64_t *parent, int64_t *counts, int32_t threads) {
#pragma omp parallel num_threads(threads)
  {
    const int64_t team = st_thread_count(), thread = st_thread_number();
    const int64_t end = share_of_parents(count, parent, thread + 1, team);
    for (int64_t e = share_of_parents(count, parent, thread, team); e < end; e++) counts[parent[e]] += first[e] <= level;
  }
}

void st_place_children(int64_t count, const int8_t *first, int32_t level, const int64_t *parent, const int64_t *starts, const void *column,
                       int32_t column_wide, void *crd, int32_t crd_wide, int32_t hashed, int64_t *child, int32_t threads) {
#pragma omp parallel num_threads(threads)
  {
    const int64_t team = st_thread_count(), thread = st_thread_number();
    const int64_t end = share_of_parents(count, parent, thread + 1, team);
    int64_t place = 0;
    for (int64_t e = share_of_parents(count, parent, thread, team), before = -1; e < end; e++) {
      const int64_t p = parent[e];
      if (first[e] <= level) {
        const int64_t begin = starts[p], coordinate = st_get(column, column_wide, e);
        if (hashed) {
          const int64_t mask = starts[p + 1] - begin - 1;
          place = begin + st_hash_slot(coordinate, mask + 1);
          while (st_get(crd, crd_wide, place) >= 0) place = begin + ((place - begin + 1) & mask);
        } else {
          place = p == before ? place + 1 : begin;
        }
        before = p;
        st_put(crd, crd_wide, place, coordinate);
      }
      child[e] = place;
    }
  }
}

#define MOVE(T, TO, FROM)                                                                            \
  do {                                                                                               \
    _Pragma("omp parallel for num_threads(threads) schedule(static)")                                \
    for (int64_t e = 0; e < count; e++) {                                                            \
      const int64_t place = st_get(position, position_wide, e);                                      \
      ((T *)out)[TO] = ((const T *)values)[FROM];                                                    \
    }                                                                                                \
  } while (0)

void st_scatter(int64_t count, const void *values, int64_t itemsize, const void *position, int32_t position_wide, void *out,
                int32_t threads) {
  ST_EACH_ITEMSIZE(itemsize, MOVE, place, e)
}

void st_gather(int64_t count, const void *values, int64_t itemsize, const void *position, int32_t position_wide, void *out,
               int32_t threads) {
  ST_EACH_ITEMSIZE(itemsize, MOVE, e, place)
}
