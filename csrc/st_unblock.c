/* Rows of dense blocks (BCSR) to plain rows; the rows of a blocking are block rows. */
#include <string.h>

#include "st_block.h"
#include "st_columns.h"
#include "st_items.h"
#include "st_quads.h"

enum {
  LINE = 64,         /* bytes of a cache line */
  CHUNK = 128 << 10, /* bytes of blocks: some stay in a cache of the second level */
  CHUNKS = 4,        /* chunks that a thread counts before all threads write */
  TOGETHER = 1024    /* most chunks that are counted before all threads write */
};

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

/* The passes over values of one type: how many of a chunk of blocks are entries, and those of a plain row, in loops over a line that
   have constant length for the usual widths. The latter stores each value before it knows whether it is an entry, and stops at the
   last entry. */
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
  static int64_t count_##T(const T *values, int64_t length, const void *fill, const void *mask) {                                    \
    const T padding = *(const T *)fill, bits = *(const T *)mask;                                                                   \
    int64_t found = 0;                                                                                                             \
    for (int64_t k = 0; k < length; k++) found += DIFFER(values[k], padding, bits);                                                \
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

/* The rows of some block rows, one after another. Blocks of the next block row, which has about as many, are prefetched: they are
   read in another order than they are stored. */
static void fill_block_rows(const st_blocking *in, int64_t begin, int64_t end, const void *fill, const void *mask, int64_t *starts,
                            row_entries out) {
  for (int64_t block_row = begin; block_row < end; block_row++) {
    const row_lines row = lines_of(in, block_row, fill, mask);
    const int64_t bytes = row.blocks * row.stride * in->itemsize;
    const char *next = (const char *)in->values + row.first_block * row.stride * in->itemsize + bytes;
    for (int64_t line = 0; line < bytes; line += LINE) __builtin_prefetch(next + line);
    for (int64_t r = 0; r < in->height; r++) starts[block_row * in->height + r + 1] = out.place = fill_row(in, &row, &out, r);
  }
}

/* How many values of some block rows are entries. */
static int64_t count_block_rows(const st_blocking *in, int64_t begin, int64_t end, const void *fill, const void *mask) {
  const int64_t size = in->height * in->width, first = st_get(in->pos, in->pos_wide, begin) * size;
  const int64_t length = st_get(in->pos, in->pos_wide, end) * size - first;
#define COUNT(T) return count_##T((const T *)in->values + first, length, fill, mask)
  ST_EACH_ITEMSIZE(in->itemsize, COUNT)
}

/* Block rows that are unblocked together, in chunks. */
typedef struct {
  const st_blocking *in;
  const void *fill, *mask;
  int64_t *starts;
  row_entries out;
  int64_t first, chunks; /* the first of the chunks that are claimed, and how many there are of all block rows */
  int64_t *places;       /* by claimed chunk: how many entries it has, then where they begin; and where the last one's end */
} unblocking;

static inline int64_t chunk_begin(const unblocking *plan, int64_t chunk) {
  return st_balanced_row(plan->in->rows, plan->in->pos, plan->in->pos_wide, plan->first + chunk, plan->chunks);
}

static void count_chunks(const void *context, st_claims *claims, int64_t chunk) {
  const unblocking *plan = context;
  for (; chunk >= 0; chunk = st_next(claims))
    plan->places[chunk] = count_block_rows(plan->in, chunk_begin(plan, chunk), chunk_begin(plan, chunk + 1), plan->fill, plan->mask);
}

static void fill_chunks(const void *context, st_claims *claims, int64_t chunk) {
  const unblocking *plan = context;
  for (; chunk >= 0; chunk = st_next(claims)) {
    row_entries here = plan->out;
    here.place = plan->places[chunk];
    here.end = plan->places[chunk + 1];
    fill_block_rows(plan->in, chunk_begin(plan, chunk), chunk_begin(plan, chunk + 1), plan->fill, plan->mask, plan->starts, here);
  }
}

void st_unblock(const st_blocking *blocking, const void *fill, const void *mask, int64_t *starts, void *crd, int32_t crd_wide,
                void *values, int32_t threads) {
  const st_blocking in = *blocking;
  const row_entries out = {0, INT64_MAX, crd, values, crd_wide};
  starts[0] = 0;
  if (threads == 1) {
    fill_block_rows(&in, 0, in.rows, fill, mask, starts, out);
    return;
  }
  /* some chunks at a time, whose blocks are read from memory where entries are counted, and from the cache where they are written */
  const int64_t bytes = st_get(in.pos, in.pos_wide, in.rows) * in.height * in.width * in.itemsize;
  int64_t places[TOGETHER + 1], place = 0;
  unblocking plan = {&in, fill, mask, starts, out, 0, bytes / CHUNK + threads, places};
  const int64_t together = CHUNKS * threads < TOGETHER ? CHUNKS * threads : TOGETHER;
  for (; plan.first < plan.chunks; plan.first += together) {
    const int64_t claimed = plan.chunks - plan.first < together ? plan.chunks - plan.first : together;
    st_run(threads, claimed, true, count_chunks, &plan);
    for (int64_t chunk = 0; chunk < claimed; chunk++) {
      const int64_t found = places[chunk];
      places[chunk] = place;
      place += found;
    }
    places[claimed] = place;
    st_run(threads, claimed, true, fill_chunks, &plan);
  }
}
