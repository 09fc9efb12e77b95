/* The transposition of st_transpose.c by blocks of columns, for entries that are scattered over more columns than caches hold lines of:
   first each entry goes to its block, behind the last one there, with its row and column, then the entries of each block go to their
   places, which are near. All of it moves three times as many bytes as entries have, but in order. */

enum {
  BLOCKS = 256,            /* at most: so many places are written at once */
  BLOCK_ENTRIES = 1 << 14, /* of a block at least: these fit into the second level of cache together with their places */
  COUNTERS = 4,            /* for each block: neighbouring entries are often of one, and each would wait for the one before */
  WINDOWS = 4,             /* so often are neighbouring entries looked at */
  WINDOW = ST_SCATTERED_LEAST / WINDOWS, /* so many of them */
  MARK_BITS = 16           /* of the number of a mark: so many that few columns share one */
};

/* Whether hardly a column comes again soon, and the columns have more lines than half of a cache of so many bytes. */
static bool are_scattered(const rows_of_coordinates *in, int64_t cache) {
  uint64_t marks[(1 << MARK_BITS) / 64];
  int64_t found = 0;
  if (in->columns < cache / (2 * LINES) || in->count < ST_SCATTERED_LEAST || !are_apart(in, 0, in->count)) return false;
  for (int64_t window = 0; window < WINDOWS; window++) {
    const int64_t first = st_share(in->count - WINDOW, window, WINDOWS);
    memset(marks, 0, sizeof marks);
    for (int64_t p = first; p < first + WINDOW; p++) {
      const uint64_t hash = ((uint64_t)st_get(in->crd, in->crd_wide, p) * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - MARK_BITS);
      uint64_t *word = &marks[hash / 64], bit = UINT64_C(1) << hash % 64;
      found += !(*word & bit);
      *word |= bit;
    }
  }
  return found * 10 > WINDOWS * WINDOW * 9;
}

static size_t record_bytes(int64_t itemsize) { return 8 + (size_t)(itemsize < 4 ? 4 : itemsize); }

typedef struct {
  rows_of_coordinates in;
  transposed out;
  void *room;     /* for a record of each entry */
  uint32_t *ends; /* by share and block: where the next entry of the block goes */
  int64_t shares;
  int shift; /* columns of a block, as a power of two */
} blocks_plan;

static void count_in_blocks(const void *context, st_claims *claims, int64_t share) {
  const blocks_plan plan = *(const blocks_plan *)context;
  const int32_t *restrict crd = plan.in.crd;
  for (; share >= 0; share = st_next(claims)) {
    const share_of_rows own = entries_of(&plan.in, share, plan.shares);
    uint32_t counts[COUNTERS][BLOCKS] = {{0}};
    int64_t p = own.first;
    for (; p + COUNTERS <= own.last; p += COUNTERS)
      for (int k = 0; k < COUNTERS; k++) counts[k][crd[p + k] >> plan.shift]++;
    for (; p < own.last; p++) counts[0][crd[p] >> plan.shift]++;
    for (int block = 0; block < BLOCKS; block++) {
      plan.ends[share * BLOCKS + block] = 0;
      for (int k = 0; k < COUNTERS; k++) plan.ends[share * BLOCKS + block] += counts[k][block];
    }
  }
}

#define KEEP(row_)                                                                                          \
  {                                                                                                         \
    const uint32_t column = (uint32_t)crd[p];                                                               \
    record *one = &room[ends[column >> plan.shift]++];                                                      \
    one->row = (row_);                                                                                      \
    one->column = (int32_t)column;                                                                          \
    one->value = values[p];                                                                                 \
  }
#define SPLIT_ROWS(T)                                                                                       \
  {                                                                                                         \
    typedef struct {                                                                                        \
      int32_t row, column;                                                                                  \
      T value;                                                                                              \
    } record;                                                                                               \
    record *restrict room = plan.room;                                                                      \
    const T *restrict values = plan.in.values;                                                              \
    if (row_of)                                                                                             \
      for (; p < own.last; p++) KEEP(row_of[p])                                                             \
    for (int64_t row = own.begin; row < own.end; row++)                                                     \
      for (const int64_t stop = st_get(plan.in.pos, plan.in.pos_wide, row + 1); p < stop; p++) KEEP((int32_t)row) \
  }

static void split_into_blocks(const void *context, st_claims *claims, int64_t share) {
  const blocks_plan plan = *(const blocks_plan *)context;
  const int32_t *restrict crd = plan.in.crd, *restrict row_of = plan.in.row_of;
  for (; share >= 0; share = st_next(claims)) {
    const share_of_rows own = entries_of(&plan.in, share, plan.shares);
    uint32_t *restrict ends = plan.ends + share * BLOCKS;
    int64_t p = own.first;
    ST_EACH_ITEMSIZE(plan.in.itemsize, SPLIT_ROWS)
  }
}

#define PLACE_BLOCK(T)                                                                                      \
  {                                                                                                         \
    typedef struct {                                                                                        \
      int32_t row, column;                                                                                  \
      T value;                                                                                              \
    } record;                                                                                               \
    const record *restrict room = plan.room;                                                                \
    T *restrict out_values = plan.out.values;                                                               \
    for (uint32_t p = first; p < last; p++) next[room[p].column - low]++;                                   \
    for (int64_t column = 0; column < width; column++) {                                                    \
      const uint32_t here = next[column];                                                                   \
      next[column] = begin;                                                                                 \
      begin += here;                                                                                        \
    }                                                                                                       \
    for (uint32_t p = first; p < last; p++) {                                                               \
      const uint32_t to = next[room[p].column - low]++;                                                     \
      out_crd[to] = room[p].row;                                                                            \
      out_values[to] = room[p].value;                                                                       \
    }                                                                                                       \
  }

static void place_block(const void *context, st_claims *claims, int64_t block) {
  const blocks_plan plan = *(const blocks_plan *)context;
  const uint32_t *ends = plan.ends + (plan.shares - 1) * BLOCKS;
  int32_t *restrict out_crd = plan.out.crd;
  for (; block >= 0; block = st_next(claims)) {
    const int64_t low = block << plan.shift, beyond = low + (INT64_C(1) << plan.shift);
    const int64_t width = (beyond < plan.in.columns ? beyond : plan.in.columns) - low;
    const uint32_t first = block ? ends[block - 1] : 0, last = ends[block];
    uint32_t begin = first, *restrict next = (uint32_t *)plan.out.pos + low; /* in the end where the next column begins */
    memset(next, 0, sizeof *next * (size_t)width);
    ST_EACH_ITEMSIZE(plan.in.itemsize, PLACE_BLOCK)
    memmove(next + 1, next, sizeof *next * (size_t)(width - 1));
    *next = first;
  }
}

static int32_t transpose_by_blocks(rows_of_coordinates in, transposed out, void *room, int32_t threads) {
  const int64_t most = in.count / BLOCK_ENTRIES + 1 < BLOCKS ? in.count / BLOCK_ENTRIES + 1 : BLOCKS;
  blocks_plan plan = {in, out, room, malloc(sizeof *plan.ends * BLOCKS * (size_t)threads), threads, 0};
  if (!plan.ends) return 1;
  while ((in.columns - 1) >> plan.shift >= most) plan.shift++;
  st_run(threads, threads, true, count_in_blocks, &plan);
  uint32_t sum = 0;
  for (int64_t block = 0; block < BLOCKS; block++)
    for (int64_t share = 0; share < threads; share++) {
      const uint32_t here = plan.ends[share * BLOCKS + block];
      plan.ends[share * BLOCKS + block] = sum;
      sum += here;
    }
  st_run(threads, threads, true, split_into_blocks, &plan);
  st_run(threads, ((in.columns - 1) >> plan.shift) + 1, false, place_block, &plan);
  st_put(out.pos, 0, in.columns, in.count);
  free(plan.ends);
  return 0;
}

#undef KEEP
#undef SPLIT_ROWS
#undef PLACE_BLOCK
