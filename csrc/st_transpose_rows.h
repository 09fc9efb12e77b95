/* The transposition of st_transpose.c for one type of places: ST_PLACE, ST_NAME. */

/* Each entry goes to the place after the last one of its column. Its line is asked for some entries ahead: where a column stands
   then is where it will stand within a few elements. */
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
static int32_t ST_NAME(rows_of_coordinates in, transposed out, int32_t threads) {
  const int64_t columns = in.columns;
  /* one thread keeps its places where the positions go in the end: new memory would have to be cleared first */
  const bool in_place = threads == 1 && sizeof(ST_PLACE) == (out.pos_wide ? 8 : 4);
  ST_PLACE *places = in_place ? out.pos : malloc(sizeof *places * (size_t)threads * (size_t)(columns + 1));
  int64_t sums[MOST_THREADS + 1] = {0};
  if (!places) return 1;
#pragma omp parallel num_threads(threads)
  {
    const int64_t team = st_thread_count(), thread = st_thread_number();
    const int64_t begin = in.row_of ? 0 : st_balanced_row(in.rows, in.pos, in.pos_wide, thread, team);
    const int64_t end = in.row_of ? 0 : st_balanced_row(in.rows, in.pos, in.pos_wide, thread + 1, team);
    const int64_t first = in.row_of ? st_share(in.count, thread, team) : st_get(in.pos, in.pos_wide, begin);
    const int64_t last = in.row_of ? st_share(in.count, thread + 1, team) : st_get(in.pos, in.pos_wide, end);
    const int64_t far = ahead_until(&in, first, last);
    ST_PLACE *restrict next = places + thread * columns;
    memset(next, 0, sizeof *next * (size_t)columns);
    const void *crd = in.crd; /* which no store to `next` can change */
    const int crd_wide = in.crd_wide;
    for (int64_t p = first; p < last; p++) next[st_get(crd, crd_wide, p)]++;
#pragma omp barrier
    /* each thread sums the counts of its share of the columns, then turns them into places, column by column */
    const int64_t low = st_share(columns, thread, team), high = st_share(columns, thread + 1, team);
    int64_t sum = 0;
    for (int64_t other = 0; team > 1 && other < team; other++)
      for (int64_t column = low; column < high; column++) sum += places[other * columns + column];
    sums[thread + 1] = sum;
#pragma omp barrier
    sum = 0;
    for (int64_t other = 0; other <= thread; other++) sum += sums[other];
    for (int64_t column = low; column < high; column++) {
      if (!in_place) st_put(out.pos, out.pos_wide, column, sum);
      for (int64_t other = 0; other < team; other++) {
        const ST_PLACE here = places[other * columns + column];
        places[other * columns + column] = (ST_PLACE)sum;
        sum += here;
      }
    }
    if (thread == team - 1 && !in_place) st_put(out.pos, out.pos_wide, columns, sum);
#pragma omp barrier
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
  if (!in_place) {
    free(places);
    return 0;
  }
  memmove(places + 1, places, sizeof *places * (size_t)columns); /* the place behind a column is where the next one begins */
  places[0] = 0;
  return 0;
}

#undef MOVE
#undef ASK
#undef MOVE_ROWS
