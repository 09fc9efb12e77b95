/* Copies of dense matrices whose items do not lie one after another: slices, transposes, reversed rows and columns. */
#include "st_strided.h"

#include <string.h>

#include "st_columns.h"
#include "st_items.h"
#include "st_turned.h"

enum {
  TALL = 64, WIDE = 16, /* rows and columns of tiles: their lines stay in the first cache, read along columns, written along rows */
  HIGH = 512,           /* rows of tiles whose columns are read in vectors */
  LINE = 64, WORD = 8   /* bytes that are copied at once, and of what is left of a row */
};

typedef struct {
  int64_t rows, columns, row_step, column_step, shares;
  const char *from;
  char *to;
  int32_t itemsize;
} strided;

/* Rows whose items lie one after another. Most are short: a call for each would take longer than its copy. */
static void copy_lines(strided in, int64_t first, int64_t last) {
  const int64_t bytes = in.columns * in.itemsize;
  for (int64_t row = first; row < last; row++) {
    const char *restrict from = in.from + row * in.row_step;
    char *restrict to = in.to + row * bytes;
    int64_t at = 0;
    for (; at + LINE <= bytes; at += LINE) memcpy(to + at, from + at, LINE);
    for (; at + WORD <= bytes; at += WORD) memcpy(to + at, from + at, WORD);
    for (; at < bytes; at++) to[at] = from[at];
  }
}

/* The items of some rows and columns. */
#define COPY_ITEMS(T, FIRST, LAST, LEFT, RIGHT, FROM)       \
  for (int64_t row = (FIRST); row < (LAST); row++) {        \
    const char *from = in.from + row * in.row_step;         \
    T *restrict to = (T *)in.to + row * in.columns;         \
    for (int64_t k = (LEFT); k < (RIGHT); k++) to[k] = FROM; \
  }

#define COPY_TILES(T, FIRST, LAST, LEFT)                                            \
  for (int64_t top = (FIRST); top < (LAST); top += TALL)                            \
    for (int64_t left = (LEFT); left < in.columns; left += WIDE) {                  \
      const int64_t below = top + TALL < (LAST) ? top + TALL : (LAST);              \
      const int64_t right = left + WIDE < in.columns ? left + WIDE : in.columns;    \
      COPY_ITEMS(T, top, below, left, right, *(const T *)(from + k * in.column_step)) \
    }

/* Compilers make vectors of loops over every second item, and over items in reverse, where they know these steps. */
#define COPY_ROWS(T)                                                            \
  if (in.column_step == 2 * (int64_t)sizeof(T))                                 \
    COPY_ITEMS(T, first, last, 0, in.columns, ((const T *)from)[2 * k])         \
  else if (in.column_step == -(int64_t)sizeof(T))                               \
    COPY_ITEMS(T, first, last, 0, in.columns, ((const T *)from)[-k])            \
  else                                                                          \
    COPY_TILES(T, first, last, 0)

static inline int64_t least(int64_t one, int64_t other) { return one < other ? one : other; }

#ifdef ST_TURN
/* Columns whose items lie one after another: as many columns at a time as give whole lines of rows, and of these so many rows that each
   column is read in order for a while, as hardware follows only so many streams at once. Then what is left on the right and below. */
#define COPY_TURNED(T)                                                                                                            \
  static void copy_turned_##T(strided in, int64_t first, int64_t last) {                                                          \
    const int64_t size = sizeof(T), even = in.columns - in.columns % ST_TURN, end = last - (last - first) % ST_TURN;              \
    for (int64_t top = first; top < end; top += HIGH)                                                                             \
      for (int64_t left = 0; left < even; left += LINE / size)                                                                    \
        for (int64_t row = top; row < least(top + HIGH, end); row += ST_TURN)                                                     \
          for (int64_t column = left; column < least(left + LINE / size, even); column += ST_TURN)                                \
            st_turn_##T(in.from + row * size + column * in.column_step, in.column_step, in.to + (row * in.columns + column) * size, \
                        in.columns * size);                                                                                       \
    COPY_TILES(T, first, end, even)                                                                                               \
    COPY_TILES(T, end, last, 0)                                                                                                   \
  }
COPY_TURNED(uint32_t)
COPY_TURNED(uint64_t)
#endif

/* Whether rows were copied as parts of columns. */
static bool turned(strided in, int64_t first, int64_t last) {
#ifdef ST_TURN
  if (in.row_step != in.itemsize) return false;
  if (in.itemsize == 4) return copy_turned_uint32_t(in, first, last), true;
  if (in.itemsize == 8 && ST_TURNED == 8) return copy_turned_uint64_t(in, first, last), true;
#endif
  return false;
}

static void copy_rows(const void *context, st_claims *claims, int64_t share) {
  const strided whole = *(const strided *)context;
  for (; share >= 0; share = st_next(claims)) {
    strided in = whole;
    int64_t first = st_share(in.rows, share, in.shares), last = st_share(in.rows, share + 1, in.shares);
    if (in.row_step == in.columns * in.column_step) { /* all rows are one, as where a matrix of an even width has every second column */
      in.from += first * in.row_step;
      in.to += first * in.columns * in.itemsize;
      in.columns *= last - first;
      first = 0, last = 1;
    }
    if (in.column_step == in.itemsize)
      copy_lines(in, first, last);
    else if (!turned(in, first, last))
      ST_EACH_ITEMSIZE(in.itemsize, COPY_ROWS)
  }
}

void st_copy_strided(int64_t rows, int64_t columns, int64_t row_step, int64_t column_step, const void *from, int32_t itemsize, void *to,
                     int32_t threads) {
  const strided in = {rows, columns, row_step, column_step, st_fine_shares(threads), from, to, itemsize};
  st_run(threads, in.shares, true, copy_rows, &in);
}
