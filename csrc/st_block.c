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

/* A plain row inside a block row: a line of `width` values in each of its blocks, `stride` values apart. */
typedef struct {
  int64_t first_block, blocks, stride;
  const void *fill, *mask;
} row_lines;

/* Where the entries of a plain row go. */
typedef struct {
  int64_t place, end;
  void *crd, *values;
  int32_t crd_wide;
} row_entries;

/* Both passes over a row for one type of values, whose loops over a line have constant length for the usual widths. The second one
   stores each value before it knows whether it counts, and ends with the last that does. */
#define EACH_WIDTH(FUNCTION, ...)                     \
  switch (in->width) {                                \
    case 1: return FUNCTION(__VA_ARGS__, 1);          \
    case 2: return FUNCTION(__VA_ARGS__, 2);          \
    case 3: return FUNCTION(__VA_ARGS__, 3);          \
    case 4: return FUNCTION(__VA_ARGS__, 4);          \
    case 8: return FUNCTION(__VA_ARGS__, 8);          \
    default: return FUNCTION(__VA_ARGS__, in->width); \
  }
#define ROW_PASSES(T, DIFFER)                                                                                                      \
  static inline __attribute__((always_inline)) int64_t count_lines_##T(row_lines row, const T *line, int64_t width) {              \
    const T padding = *(const T *)row.fill, bits = *(const T *)row.mask;                                                           \
    int64_t found = 0;                                                                                                             \
    for (int64_t p = 0; p < row.blocks; p++, line += row.stride)                                                                   \
      for (int64_t c = 0; c < width; c++) found += DIFFER(line[c], padding, bits);                                                 \
    return found;                                                                                                                  \
  }                                                                                                                                \
  static inline __attribute__((always_inline)) int64_t fill_lines_##T(const st_blocking *in, row_lines row, row_entries out,       \
                                                                      const T *line, int64_t width) {                              \
    const T padding = *(const T *)row.fill, bits = *(const T *)row.mask;                                                           \
    T *restrict values = out.values;                                                                                               \
    if (out.end - out.place == row.blocks * width)                                                                                 \
      for (int64_t p = row.first_block, end = p + row.blocks; p < end; p++, line += row.stride, out.place += width)                \
        for (int64_t c = 0; c < width; c++) {                                                                                      \
          st_put(out.crd, out.crd_wide, out.place + c, st_get(in->crd, in->crd_wide, p) * width + c);                              \
          values[out.place + c] = line[c];                                                                                         \
        }                                                                                                                          \
    for (int64_t p = row.first_block; out.place < out.end; p++, line += row.stride) {                                              \
      const int64_t column = st_get(in->crd, in->crd_wide, p) * width;                                                             \
      for (int64_t c = 0; c < width && out.place < out.end; c++) {                                                                 \
        st_put(out.crd, out.crd_wide, out.place, column + c);                                                                      \
        values[out.place] = line[c];                                                                                               \
        out.place += DIFFER(line[c], padding, bits);                                                                               \
      }                                                                                                                            \
    }                                                                                                                              \
    return out.place;                                                                                                              \
  }                                                                                                                                \
  static int64_t count_##T(const st_blocking *in, row_lines row, int64_t r) {                                                      \
    const T *line = (const T *)in->values + row.first_block * row.stride + r * in->width;                                          \
    EACH_WIDTH(count_lines_##T, row, line)                                                                                         \
  }                                                                                                                                \
  static int64_t fill_##T(const st_blocking *in, row_lines row, int64_t r, row_entries out) {                                      \
    const T *line = (const T *)in->values + row.first_block * row.stride + r * in->width;                                          \
    EACH_WIDTH(fill_lines_##T, in, row, out, line)                                                                                 \
  }
ROW_PASSES(uint8_t, DIFFERS)
ROW_PASSES(uint16_t, DIFFERS)
ROW_PASSES(uint32_t, DIFFERS)
ROW_PASSES(uint64_t, DIFFERS)
ROW_PASSES(item16, DIFFERS16)

#define EACH_ITEMSIZE(PASS)                 \
  switch (in.itemsize) {                    \
    case 1: PASS(uint8_t); break;           \
    case 2: PASS(uint16_t); break;          \
    case 4: PASS(uint32_t); break;          \
    case 8: PASS(uint64_t); break;          \
    default: PASS(item16); break;           \
  }

static row_lines lines_of(const st_blocking *in, int64_t block_row, const void *fill, const void *mask) {
  const int64_t begin = st_get(in->pos, in->pos_wide, block_row), end = st_get(in->pos, in->pos_wide, block_row + 1);
  return (row_lines){begin, end - begin, in->height * in->width, fill, mask};
}

#define COUNT(T) \
  for (int64_t r = 0; r < in.height; r++) counts[block_row * in.height + r] = count_##T(&in, row, r)

void st_count_unblocked(const st_blocking *blocking, const void *fill, const void *mask, int64_t *counts, int32_t threads) {
#pragma omp parallel num_threads(threads)
  {
    const st_blocking in = *blocking;
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < in.rows; block_row++) {
      const row_lines row = lines_of(&in, block_row, fill, mask);
      EACH_ITEMSIZE(COUNT)
    }
  }
}

#define STORE(T)                                                                                              \
  for (int64_t r = 0; r < in.height; r++) {                                                                   \
    const int64_t plain = block_row * in.height + r;                                                          \
    fill_##T(&in, row, r, (row_entries){starts[plain], starts[plain + 1], crd, values, crd_wide});            \
  }

void st_fill_unblocked(const st_blocking *blocking, const void *fill, const void *mask, const int64_t *starts, void *crd,
                       int32_t crd_wide, void *values, int32_t threads) {
#pragma omp parallel num_threads(threads)
  {
    const st_blocking in = *blocking;
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < in.rows; block_row++) {
      const row_lines row = lines_of(&in, block_row, fill, mask);
      EACH_ITEMSIZE(STORE)
    }
  }
}
