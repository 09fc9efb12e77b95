/* Plain rows to rows of dense blocks (BCSR); the rows of a blocking are plain rows. */
#include "st_block.h"

#include <stdlib.h>
#include <string.h>

#include "st_bits.h"
#include "st_columns.h"
#include "st_items.h"

enum {
  FEW = 128,   /* most entries of a block row that are compared with all its blocks */
  SHORT = 128, /* most bytes of a block that is prefetched before it is written; of larger blocks most lines may not be written */
  LINE = 64,   /* bytes of a cache line */
  CLAIMED = 64 /* block rows that a thread claims at once */
};

/* Run statements with the `block` of each `column` among some coordinates; usually those are narrow, and the width is a power of
   two. */
#define EACH_BLOCK(in, begin, stop, ...)                                                   \
  if (!in->crd_wide && !(in->width & (in->width - 1))) {                                   \
    const int32_t *restrict columns = in->crd;                                             \
    const int shift = __builtin_ctzll((uint64_t)in->width);                                \
    for (int64_t p = begin, end = stop; p < end; p++) {                                    \
      const int64_t column = columns[p], block = column >> shift;                          \
      __VA_ARGS__                                                                          \
    }                                                                                      \
  } else                                                                                   \
    for (int64_t p = begin, end = stop; p < end; p++) {                                    \
      const int64_t column = st_get(in->crd, in->crd_wide, p), block = column / in->width; \
      __VA_ARGS__                                                                          \
    }

static int64_t row_start(const st_blocking *in, int64_t row) {
  return st_get(in->pos, in->pos_wide, row < in->rows ? row : in->rows);
}

/* The columns of blocks that a block row touches. */
typedef struct {
  int64_t columns;
  uint64_t *bits;             /* a set of st_bits.h, empty between block rows */
  uint32_t *words, *smaller;  /* those that hold some; by word, how many blocks lie in words before it */
} block_set;

static bool open_set(block_set *set, int64_t columns) {
  const size_t words = (size_t)columns / 64 + 1;
  set->columns = columns;
  set->bits = calloc((size_t)columns / 63 + 6, sizeof *set->bits);
  set->words = malloc(words * sizeof *set->words);
  set->smaller = malloc(words * sizeof *set->smaller);
  return set->bits && set->words && set->smaller;
}

static void close_set(block_set *set) {
  free(set->smaller);
  free(set->words);
  free(set->bits);
}

/* Columns that are compared at once: one register of them, since compilers split wider vectors into single comparisons. */
#if defined(__AVX512F__)
#define TOGETHER 16
#elif defined(__AVX2__)
#define TOGETHER 8
#else
#define TOGETHER 4
#endif
#define PADDED (2 * TOGETHER)
typedef int32_t some __attribute__((vector_size(4 * TOGETHER), aligned(4), may_alias));

/* How many of `met` are less than each of the blocks, counted without branches, two registers at a time. */
static void rank(const int32_t *blocks, int64_t count, const int32_t *met, int64_t distinct, uint32_t *ranks) {
  for (int64_t b = 0; b < count; b += PADDED) {
    const some present = *(const some *)(blocks + b), next = *(const some *)(blocks + b + TOGETHER);
    some smaller = {0}, smaller_next = {0};
    for (int64_t other = 0; other < distinct; other++) {
      smaller -= met[other] < present;
      smaller_next -= met[other] < next;
    }
    *(some *)(ranks + b) = smaller;
    *(some *)(ranks + b + TOGETHER) = smaller_next;
  }
}

/* Few entries are compared with all blocks that they touch. */
static int64_t number_few(const st_blocking *in, int64_t begin, int64_t stop, const block_set *set, uint32_t *restrict owners) {
  int32_t blocks[FEW + PADDED], met[FEW + 1];
  uint32_t ranks[FEW + PADDED];
  uint64_t *restrict bits = set->bits;
  int64_t distinct = 0;
  EACH_BLOCK(in, begin, stop, {
    const uint64_t word = bits[block >> 6], bit = UINT64_C(1) << (block & 63);
    bits[block >> 6] = word | bit;
    blocks[p - begin] = met[distinct] = (int32_t)block; /* overwritten by the next one if this is not new */
    distinct += !(word & bit);
  })
  for (int64_t beyond = stop - begin; beyond < stop - begin + PADDED; beyond++) blocks[beyond] = 0;
  rank(blocks, stop - begin, met, distinct, ranks);
  memcpy(owners + begin, ranks, (size_t)(stop - begin) * sizeof *ranks);
  for (int64_t b = 0; b < distinct; b++) bits[met[b] >> 6] = 0;
  return distinct;
}

/* The words of a set of bits give the blocks of many entries in order without sorting. */
static int64_t number_many(const st_blocking *in, int64_t begin, int64_t stop, const block_set *set, uint32_t *restrict owners) {
  const int64_t extent = set->columns;
  uint64_t *restrict bits = set->bits;
  uint32_t *restrict words = set->words, *restrict smaller = set->smaller;
  EACH_BLOCK(in, begin, stop, st_bits_insert(bits, extent, block);)
  const int64_t filled = st_bits_words(words, bits, extent);
  uint32_t count = 0;
  for (int64_t w = 0; w < filled; w++) {
    smaller[words[w]] = count;
    count += (uint32_t)__builtin_popcountll(bits[words[w]]);
  }
  EACH_BLOCK(in, begin, stop, {
    const uint64_t before = (UINT64_C(1) << (block & 63)) - 1;
    owners[p] = smaller[block >> 6] + (uint32_t)__builtin_popcountll(bits[block >> 6] & before);
  })
  for (int64_t w = 0; w < filled; w++) bits[words[w]] = 0;
  return count;
}

/* Number the blocks that the rows of a block row touch in the order of their columns. Returns how many there are. */
static int64_t number_blocks(const st_blocking *in, int64_t block_row, const block_set *set, uint32_t *owners) {
  const int64_t begin = row_start(in, block_row * in->height), stop = row_start(in, (block_row + 1) * in->height);
  return stop - begin <= FEW ? number_few(in, begin, stop, set, owners) : number_many(in, begin, stop, set, owners);
}

/* Block rows are claimed some at a time. */
static inline int64_t shares_of(int64_t block_rows) { return (block_rows + CLAIMED - 1) / CLAIMED; }

static inline int64_t share_end(int64_t block_rows, int64_t share) {
  return (share + 1) * CLAIMED < block_rows ? (share + 1) * CLAIMED : block_rows;
}

typedef struct {
  const st_blocking *blocking;
  int64_t block_rows, block_columns;
  uint32_t *owners;
  int64_t *counts;
  int32_t *failed;
} block_counts;

static void count_blocks(const void *context, st_claims *claims, int64_t share) {
  const block_counts out = *(const block_counts *)context;
  const st_blocking in = *out.blocking; /* a copy that no store can change */
  block_set set;
  const bool failed = !open_set(&set, out.block_columns);
  if (failed) __atomic_store_n(out.failed, 1, __ATOMIC_RELAXED);
  for (; share >= 0; share = st_next(claims))
    for (int64_t block_row = share * CLAIMED, end = share_end(out.block_rows, share); block_row < end && !failed; block_row++)
      out.counts[block_row] = number_blocks(&in, block_row, &set, out.owners);
  close_set(&set);
}

int32_t st_count_blocks(const st_blocking *blocking, int64_t block_rows, int64_t block_columns, uint32_t *owners, int64_t *counts,
                        int32_t threads) {
  int32_t failed = 0;
  const block_counts out = {blocking, block_rows, block_columns, owners, counts, &failed};
  st_run(threads, shares_of(block_rows), true, count_blocks, &out);
  return failed;
}

/* The coordinates and values of a block row whose first block begins at `to`. Not inlined, where its loops would lack registers. */
#define FILL_BLOCKS(T, CRD)                                                                                                         \
  static __attribute__((noinline)) void fill_##CRD##_##T(const st_blocking *in, int64_t block_row, const uint32_t *restrict owners, \
                                                         CRD *restrict crd, T *restrict to) {                                       \
    const T *restrict from = in->values;                                                                                            \
    const int64_t size = in->height * in->width;                                                                                    \
    for (int64_t r = 0, row = block_row * in->height; r < in->height && row < in->rows; r++, row++, to += in->width)                \
      EACH_BLOCK(in, row_start(in, row), row_start(in, row + 1), {                                                                  \
        crd[owners[p]] = (CRD)block;                                                                                                \
        to[owners[p] * size + column - block * in->width] = from[p];                                                                \
      })                                                                                                                            \
  }
#define FILL_EITHER(T)    \
  FILL_BLOCKS(T, int32_t) \
  FILL_BLOCKS(T, int64_t)
FILL_EITHER(uint8_t)
FILL_EITHER(uint16_t)
FILL_EITHER(uint32_t)
FILL_EITHER(uint64_t)
FILL_EITHER(item16)

#define FILL(T)                                                                             \
  if (out.crd_wide)                                                                         \
    fill_int64_t_##T(&in, block_row, owners, (int64_t *)crd + first, (T *)values + first * size); \
  else                                                                                      \
    fill_int32_t_##T(&in, block_row, owners, (int32_t *)crd + first, (T *)values + first * size)

typedef struct {
  const st_blocking *blocking;
  int64_t block_rows;
  const uint32_t *owners;
  const int64_t *starts;
  void *crd, *values;
  int32_t crd_wide;
} filled_blocks;

static void fill_blocks(const void *context, st_claims *claims, int64_t share) {
  const filled_blocks out = *(const filled_blocks *)context;
  const st_blocking in = *out.blocking;
  const uint32_t *owners = out.owners;
  void *const crd = out.crd, *const values = out.values;
  const int64_t size = in.height * in.width, bytes = in.itemsize * size;
  for (; share >= 0; share = st_next(claims))
    for (int64_t block_row = share * CLAIMED, end = share_end(out.block_rows, share); block_row < end; block_row++) {
      const int64_t first = out.starts[block_row], count = out.starts[block_row + 1] - first;
      if (bytes <= SHORT) /* values come by plain rows, in an order that a processor does not predict */
        for (int64_t line = 0; line < count * bytes; line += LINE) __builtin_prefetch((char *)values + first * bytes + line, 1);
      ST_EACH_ITEMSIZE(in.itemsize, FILL)
    }
}

void st_fill_blocks(const st_blocking *blocking, int64_t block_rows, const uint32_t *owners, const int64_t *starts, void *crd,
                    int32_t crd_wide, void *values, int32_t threads) {
  const filled_blocks out = {blocking, block_rows, owners, starts, crd, values, crd_wide};
  st_run(threads, shares_of(block_rows), true, fill_blocks, &out);
}
