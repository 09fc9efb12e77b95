/* Plain rows to rows of dense blocks (BCSR) and back. `rows` of a blocking are plain rows one way, block rows the other. */
#include "st_block.h"

#include <stdlib.h>
#include <string.h>

#include "st_columns.h"
#include "st_sort.h"

enum {
  FEW = 192,   /* blocks of a block row that are ranked by comparing all of them */
  SPARE = 16,  /* items that may be read and written behind a list of blocks */
  SHORT = 128, /* bytes of a block that is asked for before it is written: of wider ones most lines may stay as they are */
  LINE = 64,   /* bytes of a cache line */
};

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

/* Run a statement with the `block` of each `column` among some coordinates; usually those are narrow, and the width is a power of
   two. */
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

static int64_t row_start(const st_blocking *in, int64_t row) {
  return st_get(in->pos, in->pos_wide, row < in->rows ? row : in->rows);
}

/* Number the blocks that the rows of a block row touch in the order in which they are met, on from `first`; `numbers` has those of
   the columns met by now, less than `first` where that was in another block row. Returns how many there are. */
static int64_t number_blocks(const st_blocking *in, int64_t block_row, uint32_t first, uint32_t *restrict numbers,
                             uint32_t *restrict owners) {
  uint32_t next = first;
  EACH_BLOCK(in, row_start(in, block_row * in->height), row_start(in, (block_row + 1) * in->height), {
    const bool fresh = numbers[block] < first;
    const uint32_t number = fresh ? next : numbers[block];
    next += fresh;
    numbers[block] = number;
    owners[p] = number - first;
  })
  return next - first;
}

int32_t st_count_blocks(const st_blocking *blocking, int64_t block_rows, int64_t block_columns, uint32_t *owners, int64_t *counts,
                        int32_t threads) {
  int32_t failed = 0;
#pragma omp parallel num_threads(threads) reduction(| : failed)
  {
    const st_blocking in = *blocking; /* a copy that no store can change */
    uint32_t *numbers = calloc((size_t)block_columns + 1, sizeof *numbers);
    int64_t next = 1;
    failed = !numbers;
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < block_rows; block_row++) {
      if (failed) continue;
      if (next + block_columns > UINT32_MAX) {
        memset(numbers, 0, (size_t)block_columns * sizeof *numbers);
        next = 1;
      }
      counts[block_row] = number_blocks(&in, block_row, (uint32_t)next, numbers, owners);
      next += counts[block_row];
    }
    free(numbers);
  }
  return failed;
}

/* The blocks of one block row in the order in which they were met, and what puts them in order. */
typedef struct {
  int32_t *columns, *sorted;
  uint32_t *places;  /* of the blocks in the order of their columns */
  uint32_t *numbers; /* of the blocks, by column */
} block_list;

/* Make a list for up to `most` blocks; false where there is not enough memory. */
static bool open_list(block_list *list, int64_t most, int64_t block_columns) {
  list->columns = malloc((size_t)(most + SPARE) * sizeof *list->columns);
  list->sorted = malloc((size_t)(most + SPARE) * sizeof *list->sorted);
  list->places = malloc((size_t)(most + SPARE) * sizeof *list->places);
  list->numbers = malloc((size_t)(block_columns + 1) * sizeof *list->numbers);
  return list->columns && list->sorted && list->places && list->numbers;
}

static void close_list(block_list *list) {
  free(list->numbers);
  free(list->places);
  free(list->sorted);
  free(list->columns);
}

static void list_blocks(const st_blocking *in, int64_t block_row, const uint32_t *restrict owners, int32_t *restrict met) {
  uint32_t count = 0;
  EACH_BLOCK(in, row_start(in, block_row * in->height), row_start(in, (block_row + 1) * in->height), {
    met[count] = (int32_t)block; /* overwritten by the next one where this is not new */
    count += owners[p] == count;
  })
}

/* Columns that are compared at once. */
typedef int32_t some __attribute__((vector_size(4 * SPARE), aligned(4), may_alias));

/* The places of few blocks: how many of them lie before each, counted without branches. */
static __attribute__((noinline)) void rank_few(const block_list *list, int64_t count) {
  int32_t *columns = list->columns;
  for (int64_t beyond = count; beyond < count + SPARE; beyond++) columns[beyond] = INT32_MAX;
  for (int64_t b = 0; b < count; b += SPARE) {
    const some present = *(const some *)(columns + b);
    some before = {0};
    for (int64_t other = 0; other < count; other++) before -= columns[other] < present;
    *(some *)(list->places + b) = before;
  }
}

static void rank_many(const block_list *list, int64_t count) {
  memcpy(list->sorted, list->columns, (size_t)count * sizeof *list->sorted);
  st_sort_i32(list->sorted, count);
  for (int64_t b = 0; b < count; b++) list->numbers[list->columns[b]] = (uint32_t)b;
  for (int64_t place = 0; place < count; place++) list->places[list->numbers[list->sorted[place]]] = (uint32_t)place;
}

/* The values of a block row whose first block begins at `to`. Not inlined, where its loops would lack registers. */
#define FILL_BLOCKS(T)                                                                                                             \
  static __attribute__((noinline)) void fill_blocks_##T(const st_blocking *in, int64_t block_row, const uint32_t *restrict owners, \
                                                        const uint32_t *restrict places, T *restrict to) {                         \
    const T *restrict from = in->values;                                                                                           \
    const int64_t size = in->height * in->width;                                                                                   \
    for (int64_t r = 0, row = block_row * in->height; r < in->height && row < in->rows; r++, row++, to += in->width)               \
      EACH_BLOCK(in, row_start(in, row), row_start(in, row + 1),                                                                   \
                 to[places[owners[p]] * size + column - block * in->width] = from[p];)                                             \
  }
FILL_BLOCKS(uint8_t)
FILL_BLOCKS(uint16_t)
FILL_BLOCKS(uint32_t)
FILL_BLOCKS(uint64_t)
FILL_BLOCKS(item16)

#define FILL(T) fill_blocks_##T(&in, block_row, owners, list.places, (T *)to)

int32_t st_fill_blocks(const st_blocking *blocking, int64_t block_rows, int64_t block_columns, const uint32_t *owners,
                       const int64_t *starts, int64_t most, void *crd, int32_t crd_wide, void *values, int32_t threads) {
  int32_t failed = 0;
#pragma omp parallel num_threads(threads) reduction(| : failed)
  {
    const st_blocking in = *blocking;
    const int64_t bytes = in.itemsize * in.height * in.width;
    block_list list;
    failed = !open_list(&list, most, block_columns);
#pragma omp for schedule(dynamic, 64)
    for (int64_t block_row = 0; block_row < block_rows; block_row++) {
      if (failed) continue;
      const int64_t first = starts[block_row], count = starts[block_row + 1] - first;
      char *to = (char *)values + first * bytes;
      list_blocks(&in, block_row, owners, list.columns);
      if (bytes <= SHORT) /* values come by plain rows, which is no order that a processor foresees */
        for (int64_t line = 0; line < count * bytes; line += LINE) __builtin_prefetch(to + line, 1);
      if (count <= FEW)
        rank_few(&list, count);
      else
        rank_many(&list, count);
      for (int64_t b = 0; b < count; b++) st_put(crd, crd_wide, first + list.places[b], list.columns[b]);
      EACH_ITEMSIZE(FILL)
    }
    close_list(&list);
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
    for (int64_t p = row.first_block, last = p + row.blocks; p < last && out.place < out.end; p++, line += row.stride) {           \
      const int64_t column = st_get(in->crd, in->crd_wide, p) * width;                                                             \
      bool full = true;                                                                                                            \
      for (int64_t c = 0; c < width; c++) full &= DIFFER(line[c], padding, bits);                                                  \
      if (full) {                                                                                                                  \
        for (int64_t c = 0; c < width; c++) st_put(out.crd, out.crd_wide, out.place + c, column + c);                              \
        for (int64_t c = 0; c < width; c++) values[out.place + c] = line[c];                                                       \
        out.place += width;                                                                                                        \
        continue;                                                                                                                  \
      }                                                                                                                            \
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
  static int64_t fill_##T(const st_blocking *in, const row_lines *row, int64_t r, const row_entries *out) {                        \
    const T *line = (const T *)in->values + row->first_block * row->stride + r * in->width;                                        \
    EACH_WIDTH(fill_lines_##T, in, *row, *out, line)                                                                               \
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
  for (int64_t r = 0; r < in.height; r++) counts[block_row * in.height + r] = count_##T(&in, &row, r)

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

#define STORE(T)                                                                                           \
  for (int64_t r = 0; r < in.height; r++) {                                                                \
    const int64_t plain = block_row * in.height + r, end = counted ? starts[plain + 1] : INT64_MAX;        \
    const row_entries out = {starts[plain], end, crd, values, crd_wide};                                   \
    const int64_t place = fill_##T(&in, &row, r, &out);                                                    \
    if (!counted) starts[plain + 1] = place;                                                               \
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
      EACH_ITEMSIZE(STORE)
    }
  }
}
