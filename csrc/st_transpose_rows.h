/* The transposition of st_transpose.c for one type of places: ST_PLACE; ST_NAMED(x) is a name for it. */

/* Each entry goes to the place after the last one of its column. Its line is prefetched some entries ahead: the place of a column
   changes by a few elements at most until then. */
#define MOVE(row, T)                              \
  const ST_PLACE to = next[crd[p]]++;             \
  out_crd[to] = (row);                            \
  out_values[to] = values[p];
#define ASK(p)                                    \
  const ST_PLACE soon = next[crd[p]];             \
  __builtin_prefetch(out_crd + soon, 1);          \
  __builtin_prefetch(out_values + soon, 1);
#define MOVE_ROWS(T, CRD, OUT_CRD)                                                                     \
  {                                                                                                    \
    const CRD *restrict crd = in.crd;                                                                  \
    const T *restrict values = in.values;                                                              \
    OUT_CRD *restrict out_crd = out.crd;                                                               \
    T *restrict out_values = out.values;                                                               \
    const OUT_CRD *restrict row_of = in.row_of;                                                        \
    int64_t p = first;                                                                                 \
    if (row_of) {                                                                                      \
      for (; p < far; p++) {                                                                           \
        ASK(p + AHEAD)                                                                                 \
        MOVE(row_of[p], T)                                                                             \
      }                                                                                                \
      for (; p < last; p++) {                                                                          \
        MOVE(row_of[p], T)                                                                             \
      }                                                                                                \
    }                                                                                                  \
    for (int64_t row = begin; row < end; row++) {                                                      \
      const int64_t stop = st_get(in.pos, in.pos_wide, row + 1);                                       \
      if (p < far) {                                                                                   \
        for (const int64_t part = stop < far ? stop : far; p < part; p++) {                            \
          ASK(p + AHEAD)                                                                               \
          MOVE((OUT_CRD)row, T)                                                                        \
        }                                                                                              \
      }                                                                                                \
      for (; p < stop; p++) {                                                                          \
        MOVE((OUT_CRD)row, T)                                                                          \
      }                                                                                                \
    }                                                                                                  \
  }
/* Each share of the entries has places of its own in every column, so that entries stay in order. The columns are cut into as many
   shares. */
typedef struct {
  rows_of_coordinates in;
  transposed out;
  ST_PLACE *places; /* by share and column: first how many entries there are, then where they go */
  int64_t *sums;    /* by share: the entries of its columns, behind a 0 */
  int64_t shares;
  bool in_place; /* the places are where the positions go in the end */
} ST_NAMED(plan);

static void ST_NAMED(count_entries)(const void *context, st_claims *claims, int64_t share) {
  const ST_NAMED(plan) plan = *(const ST_NAMED(plan) *)context;
  for (; share >= 0; share = st_next(claims)) {
    const share_of_rows own = entries_of(&plan.in, share, plan.shares);
    ST_PLACE *restrict next = plan.places + share * plan.in.columns;
    memset(next, 0, sizeof *next * (size_t)plan.in.columns);
    const void *crd = plan.in.crd; /* which no store to `next` can change */
    const int crd_wide = plan.in.crd_wide;
    for (int64_t p = own.first; p < own.last; p++) next[st_get(crd, crd_wide, p)]++;
  }
}

static void ST_NAMED(sum_columns)(const void *context, st_claims *claims, int64_t share) {
  const ST_NAMED(plan) plan = *(const ST_NAMED(plan) *)context;
  const int64_t columns = plan.in.columns;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t low = st_share(columns, share, plan.shares), high = st_share(columns, share + 1, plan.shares);
    int64_t sum = 0;
    for (int64_t other = 0; other < plan.shares; other++)
      for (int64_t column = low; column < high; column++) sum += plan.places[other * columns + column];
    plan.sums[share + 1] = sum;
  }
}

static void ST_NAMED(place_columns)(const void *context, st_claims *claims, int64_t share) {
  const ST_NAMED(plan) plan = *(const ST_NAMED(plan) *)context;
  const int64_t columns = plan.in.columns;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t low = st_share(columns, share, plan.shares), high = st_share(columns, share + 1, plan.shares);
    int64_t sum = 0;
    for (int64_t other = 0; other <= share; other++) sum += plan.sums[other];
    for (int64_t column = low; column < high; column++) {
      if (!plan.in_place) st_put(plan.out.pos, plan.out.pos_wide, column, sum);
      for (int64_t other = 0; other < plan.shares; other++) {
        const ST_PLACE here = plan.places[other * columns + column];
        plan.places[other * columns + column] = (ST_PLACE)sum;
        sum += here;
      }
    }
    if (share == plan.shares - 1 && !plan.in_place) st_put(plan.out.pos, plan.out.pos_wide, columns, sum);
  }
}

static void ST_NAMED(move_entries)(const void *context, st_claims *claims, int64_t share) {
  const ST_NAMED(plan) plan = *(const ST_NAMED(plan) *)context;
  const rows_of_coordinates in = plan.in;
  const transposed out = plan.out;
  for (; share >= 0; share = st_next(claims)) {
    const share_of_rows own = entries_of(&in, share, plan.shares);
    const int64_t begin = own.begin, end = own.end, first = own.first, last = own.last;
    const int64_t far = ahead_until(&in, first, last, plan.shares == 1);
    ST_PLACE *restrict next = plan.places + share * in.columns;
    if (in.crd_wide && out.crd_wide) {
      ST_EACH_ITEMSIZE(in.itemsize, MOVE_ROWS, int64_t, int64_t)
    } else if (in.crd_wide) {
      ST_EACH_ITEMSIZE(in.itemsize, MOVE_ROWS, int64_t, int32_t)
    } else if (out.crd_wide) {
      ST_EACH_ITEMSIZE(in.itemsize, MOVE_ROWS, int32_t, int64_t)
    } else {
      ST_EACH_ITEMSIZE(in.itemsize, MOVE_ROWS, int32_t, int32_t)
    }
  }
}

static void ST_NAMED(transpose)(rows_of_coordinates in, transposed out, void *room, int32_t threads) {
  const bool in_place = !room;
  ST_PLACE *places = in_place ? out.pos : room;
  int64_t sums[MOST_THREADS + 1] = {0};
  const ST_NAMED(plan) plan = {in, out, places, sums, threads, in_place};
  st_run(threads, threads, true, ST_NAMED(count_entries), &plan);
  if (threads > 1) st_run(threads, threads, true, ST_NAMED(sum_columns), &plan);
  st_run(threads, threads, true, ST_NAMED(place_columns), &plan);
  st_run(threads, threads, true, ST_NAMED(move_entries), &plan);
  if (!in_place) return;
  memmove(places + 1, places, sizeof *places * (size_t)in.columns); /* the place behind a column is where the next one begins */
  places[0] = 0;
}

#undef MOVE
#undef ASK
#undef MOVE_ROWS
