/* Rows of dense blocks (BCSR) to plain rows; the rows of a blocking are block rows. */
#include <string.h>

#include "st_block.h"
#include "st_columns.h"
#include "st_items.h"
#include "st_quads.h"

enum { LINE = 64 }; /* bytes of a cache line */

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
    for (int64_t p = row.first_block, last = p + row.blocks; p < last && out.place < out.end; p++, line += row.stride) {           \
      const int64_t column = st_get(in->crd, in->crd_wide, p) * width;                                                             \
      for (int64_t c = 0; c < width && out.place < out.end; c++) {                                                                 \
        st_put(out.crd, out.crd_wide, out.place, column + c);                                                                      \
        values[out.place] = line[c];                                                                                               \
        out.place += DIFFER(line[c], padding, bits);                                                                               \
      }                                                                                                                            \
    }                                                                                                                              \
    return out.place;                                                                                                              \
  }                                                                                                                                \
  static int64_t count_##T(const st_blocking *in, const row_lines *row, int64_t r) {                                               \
    const T *line = (const T *)in->values + row->first_block * row->stride + r * in->width;                                        \
    EACH_WIDTH(count_lines_##T, *row, line)                                                                                        \
  }                                                                                                                                \
  static int64_t fill_##T(const st_blocking *in, const row_lines *row, int64_t r, const row_entries *out) {                                        \
    const T *line = (const T *)in->values + row->first_block * row->stride + r * in->width;                                        \
    EACH_WIDTH(fill_lines_##T, in, *row, *out, line)                                                                               \
  }
ROW_PASSES(uint8_t, DIFFERS)
ROW_PASSES(uint16_t, DIFFERS)
ROW_PASSES(uint32_t, DIFFERS)
ROW_PASSES(uint64_t, DIFFERS)
ROW_PASSES(item16, DIFFERS16)

#ifdef __AVX2__
/* Lines of 64-bit values whose width is a multiple of four. All four places of a quad are written to, where they are the row's. */
static inline __attribute__((always_inline)) int64_t fill_quads(const st_blocking *in, const row_lines *row, const row_entries *out,
                                                                int64_t r, int64_t width) {
  const uint64_t fill = *(const uint64_t *)row->fill, mask = *(const uint64_t *)row->mask;
  const int64_t stride = row->stride, end = out->end, last = row->first_block + row->blocks;
  const int32_t *restrict blocks = in->crd;
  const uint64_t *restrict line = (const uint64_t *)in->values + row->first_block * stride + r * width;
  int32_t *restrict crd = out->crd;
  uint64_t *restrict values = out->values;
  int64_t place = out->place;
  for (int64_t p = row->first_block; p < last; p++, line += stride)
    for (int64_t c = 0; c < width; c += ST_QUAD)
      if (place <= end - ST_QUAD)
        place = st_keep_quad(line + c, fill, mask, (int32_t)(blocks[p] * width + c), place, crd, values);
      else
        for (int64_t k = c; k < c + ST_QUAD && place < end; k++) {
          crd[place] = (int32_t)(blocks[p] * width + k);
          values[place] = line[k];
          place += DIFFERS(line[k], fill, mask);
        }
  return place;
}
#endif

/* The entries of row r of a block row. Returns the place after the last one. */
static int64_t fill_row(const st_blocking *in, const row_lines *row, const row_entries *out, int64_t r) {
#ifdef __AVX2__
  if (in->itemsize == 8 && in->width % ST_QUAD == 0 && !in->crd_wide && !out->crd_wide)
    return in->width == ST_QUAD ? fill_quads(in, row, out, r, ST_QUAD) : fill_quads(in, row, out, r, in->width);
#endif
#define FILL(T) return fill_##T(in, row, r, out)
  ST_EACH_ITEMSIZE(in->itemsize, FILL)
}

static row_lines lines_of(const st_blocking *in, int64_t block_row, const void *fill, const void *mask) {
  const int64_t begin = st_get(in->pos, in->pos_wide, block_row), end = st_get(in->pos, in->pos_wide, block_row + 1);
  return (row_lines){begin, end - begin, in->height * in->width, fill, mask};
}

#define COUNT(T) \
  for (int64_t r = 0; r < in.height; r++) counts[block_row * in.height + r] = count_##T(&in, &row, r)

void st_count_unblocked(const st_blocking *blocking, const void *fill, const void *mask, int64_t *counts, int32_t threads) {
#pragma omp parallel num_threads(threads)
  {
    const st_blocking in = *blocking;
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < in.rows; block_row++) {
      const row_lines row = lines_of(&in, block_row, fill, mask);
      ST_EACH_ITEMSIZE(in.itemsize, COUNT)
    }
  }
}

void st_fill_unblocked(const st_blocking *blocking, const void *fill, const void *mask, int64_t *starts, int32_t counted, void *crd,
                       int32_t crd_wide, void *values, int32_t threads) {
#pragma omp parallel num_threads(counted ? threads : 1)
  {
    const st_blocking in = *blocking;
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < in.rows; block_row++) {
      const row_lines row = lines_of(&in, block_row, fill, mask);
      const char *next = (const char *)in.values + (row.first_block + row.blocks) * row.stride * in.itemsize;
      if (!counted) /* blocks are not in the cache yet: those of the next block row are asked for, which has about as many */
        for (int64_t line = 0; line < row.blocks * row.stride * in.itemsize; line += LINE) __builtin_prefetch(next + line);
      for (int64_t r = 0; r < in.height; r++) {
        const int64_t plain = block_row * in.height + r, end = counted ? starts[plain + 1] : INT64_MAX;
        const row_entries out = {starts[plain], end, crd, values, crd_wide};
        const int64_t place = fill_row(&in, &row, &out, r);
        if (!counted) starts[plain + 1] = place;
      }
    }
  }
}
