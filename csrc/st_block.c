/* Plain rows to rows of dense blocks (BCSR) and back. `rows` of a blocking are plain rows one way, block rows the other. */
#include "st_block.h"

#include "st_columns.h"

enum { MOST_HEIGHT = 64 };

typedef struct {
  uint64_t low, high;
} item16;

/* The next entry of each row of a block row. */
typedef struct {
  int64_t count, at[MOST_HEIGHT], end[MOST_HEIGHT];
} cursors;

static inline void begin_rows(const st_blocking *in, int64_t block_row, cursors *rows) {
  const int64_t row = block_row * in->height, left = in->rows - row;
  rows->count = left < in->height ? left : in->height;
  for (int64_t r = 0; r < rows->count; r++) {
    rows->at[r] = st_get(in->pos, in->pos_wide, row + r);
    rows->end[r] = st_get(in->pos, in->pos_wide, row + r + 1);
  }
}

/* The column of the next block: that of the smallest column that a cursor stands at; -1 when all are at their end. */
static inline int64_t next_block(const st_blocking *in, const cursors *rows) {
  int64_t least = INT64_MAX;
  for (int64_t r = 0; r < rows->count; r++)
    if (rows->at[r] < rows->end[r]) {
      const int64_t column = st_get(in->crd, in->crd_wide, rows->at[r]);
      if (column < least) least = column;
    }
  return least == INT64_MAX ? -1 : least / in->width;
}

void st_count_blocks(const st_blocking *blocking, int64_t block_rows, int64_t *counts, int32_t threads) {
#pragma omp parallel num_threads(threads)
  {
    const st_blocking in = *blocking; /* a copy that no store can change */
    cursors rows;
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < block_rows; block_row++) {
      int64_t count = 0;
      begin_rows(&in, block_row, &rows);
      for (int64_t block; (block = next_block(&in, &rows)) >= 0; count++) {
        const int64_t end = (block + 1) * in.width;
        for (int64_t r = 0; r < rows.count; r++)
          while (rows.at[r] < rows.end[r] && st_get(in.crd, in.crd_wide, rows.at[r]) < end) rows.at[r]++;
      }
      counts[block_row] = count;
    }
  }
}

#define FILL_BLOCK(T)                                                                                           \
  for (int64_t r = 0; r < rows.count; r++) {                                                                    \
    T *line = (T *)values + (place * in.height + r) * in.width;                                                 \
    for (int64_t p; (p = rows.at[r]) < rows.end[r]; rows.at[r]++) {                                             \
      const int64_t column = st_get(in.crd, in.crd_wide, p) - block * in.width;                                 \
      if (column >= in.width) break;                                                                            \
      line[column] = ((const T *)in.values)[p];                                                                 \
    }                                                                                                           \
  }

void st_fill_blocks(const st_blocking *blocking, int64_t block_rows, const int64_t *starts, void *crd, int32_t crd_wide, void *values,
                    int32_t threads) {
#pragma omp parallel num_threads(threads)
  {
    const st_blocking in = *blocking;
    cursors rows;
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < block_rows; block_row++) {
      int64_t place = starts[block_row];
      begin_rows(&in, block_row, &rows);
      for (int64_t block; (block = next_block(&in, &rows)) >= 0; place++) {
        st_put(crd, crd_wide, place, block);
        switch (in.itemsize) {
          case 1: FILL_BLOCK(uint8_t) break;
          case 2: FILL_BLOCK(uint16_t) break;
          case 4: FILL_BLOCK(uint32_t) break;
          case 8: FILL_BLOCK(uint64_t) break;
          default: FILL_BLOCK(item16) break;
        }
      }
    }
  }
}

#define DIFFERS(a, b, mask) ((((a) ^ (b)) & (mask)) != 0)
#define DIFFERS16(a, b, mask) (DIFFERS((a).low, (b).low, (mask).low) || DIFFERS((a).high, (b).high, (mask).high))

/* What to do with each value of a block row that is no padding: p block, r row and c column inside it. */
#define EACH_VALUE(T, DIFFER, ACTION)                                                        \
  {                                                                                          \
    const T padding = *(const T *)fill, bits = *(const T *)mask;                             \
    const T *value = (const T *)in.values + begin * in.height * in.width;                    \
    for (int64_t p = begin; p < end; p++)                                                    \
      for (int64_t r = 0; r < in.height; r++)                                                \
        for (int64_t c = 0; c < in.width; c++, value++) ACTION(T, DIFFER(*value, padding, bits)) \
  }
#define BY_ITEMSIZE(ACTION)                                          \
  switch (in.itemsize) {                                             \
    case 1: EACH_VALUE(uint8_t, DIFFERS, ACTION) break;              \
    case 2: EACH_VALUE(uint16_t, DIFFERS, ACTION) break;             \
    case 4: EACH_VALUE(uint32_t, DIFFERS, ACTION) break;             \
    case 8: EACH_VALUE(uint64_t, DIFFERS, ACTION) break;             \
    default: EACH_VALUE(item16, DIFFERS16, ACTION) break;            \
  }

#define COUNT(T, STORED) found[r] += STORED;

void st_count_unblocked(const st_blocking *blocking, const void *fill, const void *mask, int64_t *counts, int32_t threads) {
#pragma omp parallel num_threads(threads)
  {
    const st_blocking in = *blocking;
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < in.rows; block_row++) {
      const int64_t begin = st_get(in.pos, in.pos_wide, block_row), end = st_get(in.pos, in.pos_wide, block_row + 1);
      int64_t found[MOST_HEIGHT] = {0};
      BY_ITEMSIZE(COUNT)
      for (int64_t r = 0; r < in.height; r++) counts[block_row * in.height + r] = found[r];
    }
  }
}

#define STORE(T, STORED)                                                                \
  if (STORED) {                                                                         \
    st_put(crd, crd_wide, places[r], st_get(in.crd, in.crd_wide, p) * in.width + c);    \
    ((T *)values)[places[r]++] = *value;                                                \
  }

void st_fill_unblocked(const st_blocking *blocking, const void *fill, const void *mask, const int64_t *starts, void *crd,
                       int32_t crd_wide, void *values, int32_t threads) {
#pragma omp parallel num_threads(threads)
  {
    const st_blocking in = *blocking;
    int64_t places[MOST_HEIGHT];
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < in.rows; block_row++) {
      const int64_t begin = st_get(in.pos, in.pos_wide, block_row), end = st_get(in.pos, in.pos_wide, block_row + 1);
      for (int64_t r = 0; r < in.height; r++) places[r] = starts[block_row * in.height + r];
      BY_ITEMSIZE(STORE)
    }
  }
}
