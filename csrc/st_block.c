/* Plain rows to rows of dense blocks (BCSR) and back. `rows` of a blocking are plain rows one way, block rows the other. */
#include "st_block.h"

#include <stdlib.h>

#include "st_bits.h"
#include "st_columns.h"

enum { FEW = 64 /* blocks of a block row that are sorted in their list */ };

typedef struct {
  uint64_t low, high;
} item16;

#define EACH_ITEMSIZE(PASS)                 \
  switch (in.itemsize) {                    \
    case 1: PASS(uint8_t); break;           \
    case 2: PASS(uint16_t); break;          \
    case 4: PASS(uint32_t); break;          \
    case 8: PASS(uint64_t); break;          \
    default: PASS(item16); break;           \
  }

/* Run a statement with the `block` of each `column` among some coordinates; usually those are narrow, and the width is a power of two. */
#define EACH_BLOCK(in, begin, stop, STATEMENT)                                             \
  if (!in->crd_wide && !(in->width & (in->width - 1))) {                                   \
    const int32_t *restrict columns = in->crd;                                             \
    const int shift = __builtin_ctzll((uint64_t)in->width);                                \
    for (int64_t p = begin, end = stop; p < end; p++) {                                    \
      const int64_t column = columns[p], block = column >> shift;                          \
      STATEMENT                                                                            \
    }                                                                                      \
  } else                                                                                   \
    for (int64_t p = begin, end = stop; p < end; p++) {                                    \
      const int64_t column = st_get(in->crd, in->crd_wide, p), block = column / in->width; \
      STATEMENT                                                                            \
    }

/* The last block row, from 1 on, in which there was a block of this column, and its place there. */
typedef struct {
  uint32_t stamp, place;
} block_mark;

static int64_t end_of_rows(const st_blocking *in, int64_t block_row) {
  const int64_t row = (block_row + 1) * in->height;
  return row < in->rows ? row : in->rows;
}

/* The blocks that the rows of a block row touch, into `found` in the order in which they are met; returns how many. One more item
   than there are columns of blocks may be written. */
static int64_t find_blocks(const st_blocking *in, int64_t block_row, block_mark *restrict marks, uint32_t *restrict found) {
  const uint32_t stamp = (uint32_t)(block_row + 1);
  int64_t count = 0;
  EACH_BLOCK(in, st_get(in->pos, in->pos_wide, block_row * in->height), st_get(in->pos, in->pos_wide, end_of_rows(in, block_row)), {
    found[count] = (uint32_t)block; /* overwritten by the next one where this is not new */
    count += marks[block].stamp != stamp;
    marks[block].stamp = stamp;
  })
  return count;
}

/* Store the found blocks in order of their columns, and note the place of each: few by counting how many lie before each, without
   branches, more of them through a set. */
#define STORE_BLOCKS(T, S)                                                                                                      \
  static void store_blocks_##S(const uint32_t *restrict found, int64_t count, int64_t columns, uint64_t *bits, T *restrict crd, \
                               block_mark *restrict marks) {                                                                    \
    if (count <= FEW) {                                                                                                         \
      for (int64_t b = 0; b < count; b++) {                                                                                     \
        uint32_t place = 0;                                                                                                     \
        for (int64_t other = 0; other < count; other++) place += found[other] < found[b];                                       \
        crd[place] = (T)found[b];                                                                                               \
        marks[found[b]].place = place;                                                                                          \
      }                                                                                                                         \
      return;                                                                                                                   \
    }                                                                                                                           \
    for (int64_t b = 0; b < count; b++) st_bits_insert(bits, columns, found[b]);                                                \
    st_bits_drain_##S(crd, bits, columns);                                                                                      \
    for (int64_t place = 0; place < count; place++) marks[crd[place]].place = (uint32_t)place;                                  \
  }
STORE_BLOCKS(int32_t, i32)
STORE_BLOCKS(int64_t, i64)

/* The values of a block row whose first block begins at `to`. */
#define FILL_BLOCKS(T)                                                                                                      \
  static void fill_blocks_##T(const st_blocking *in, int64_t block_row, const block_mark *restrict marks, T *restrict to) { \
    const T *restrict from = in->values;                                                                                    \
    const int64_t size = in->height * in->width, last_row = end_of_rows(in, block_row);                                     \
    for (int64_t row = block_row * in->height; row < last_row; row++, to += in->width)                                      \
      EACH_BLOCK(in, st_get(in->pos, in->pos_wide, row), st_get(in->pos, in->pos_wide, row + 1),                            \
                 to[marks[block].place * size + column - block * in->width] = from[p];)                                     \
  }
FILL_BLOCKS(uint8_t)
FILL_BLOCKS(uint16_t)
FILL_BLOCKS(uint32_t)
FILL_BLOCKS(uint64_t)
FILL_BLOCKS(item16)

int32_t st_count_blocks(const st_blocking *blocking, int64_t block_rows, int64_t block_columns, int64_t *counts, int32_t threads) {
  int32_t failed = 0;
#pragma omp parallel num_threads(threads) reduction(| : failed)
  {
    block_mark *marks = calloc((size_t)block_columns + 1, sizeof *marks);
    uint32_t *found = malloc(((size_t)block_columns + 1) * sizeof *found);
    failed = !marks || !found;
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < block_rows; block_row++)
      if (!failed) counts[block_row] = find_blocks(blocking, block_row, marks, found);
    free(found);
    free(marks);
  }
  return failed;
}

#define FILL(T) fill_blocks_##T(&in, block_row, marks, (T *)values + first * in.height * in.width)

int32_t st_fill_blocks(const st_blocking *blocking, int64_t block_rows, int64_t block_columns, const int64_t *starts, void *crd,
                       int32_t crd_wide, void *values, int32_t threads) {
  const size_t words = (size_t)((block_columns >> 6) + (block_columns >> 12) + (block_columns >> 18) + 6);
  int32_t failed = 0;
#pragma omp parallel num_threads(threads) reduction(| : failed)
  {
    const st_blocking in = *blocking; /* a copy that no store can change */
    block_mark *marks = calloc((size_t)block_columns + 1, sizeof *marks);
    uint32_t *found = malloc(((size_t)block_columns + 1) * sizeof *found);
    uint64_t *bits = calloc(words, sizeof *bits);
    failed = !marks || !found || !bits;
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < block_rows; block_row++) {
      if (failed) continue;
      const int64_t first = starts[block_row], count = find_blocks(&in, block_row, marks, found);
      if (crd_wide)
        store_blocks_i64(found, count, block_columns, bits, (int64_t *)crd + first, marks);
      else
        store_blocks_i32(found, count, block_columns, bits, (int32_t *)crd + first, marks);
      EACH_ITEMSIZE(FILL)
    }
    free(bits);
    free(found);
    free(marks);
  }
  return failed;
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
