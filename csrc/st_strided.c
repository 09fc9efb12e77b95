/* Copies of dense matrices whose items do not lie one after another: slices, transposes, reversed rows and columns. */
#include "st_strided.h"

#include <string.h>

#include "st_columns.h"
#include "st_items.h"

enum { TALL = 64, WIDE = 16 /* rows and columns of tiles: their lines stay in the first cache, read along columns, written along rows */ };

typedef struct {
  int64_t rows, columns, row_step, column_step, shares;
  const char *from;
  char *to;
  int32_t itemsize;
} strided;

#define COPY_TILES(T)                                                                                                     \
  for (int64_t top = first; top < last; top += TALL)                                                                      \
    for (int64_t left = 0; left < in.columns; left += WIDE) {                                                             \
      const int64_t below = top + TALL < last ? top + TALL : last;                                                        \
      const int64_t right = left + WIDE < in.columns ? left + WIDE : in.columns;                                          \
      for (int64_t row = top; row < below; row++) {                                                                       \
        const char *from = in.from + row * in.row_step;                                                                   \
        T *to = (T *)in.to + row * in.columns;                                                                            \
        for (int64_t column = left; column < right; column++) to[column] = *(const T *)(from + column * in.column_step); \
      }                                                                                                                   \
    }

static void copy_rows(const void *context, st_claims *claims, int64_t share) {
  const strided in = *(const strided *)context;
  const int64_t bytes = in.columns * in.itemsize;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t first = st_share(in.rows, share, in.shares), last = st_share(in.rows, share + 1, in.shares);
    if (in.column_step == in.itemsize)
      for (int64_t row = first; row < last; row++) memcpy(in.to + row * bytes, in.from + row * in.row_step, (size_t)bytes);
    else
      ST_EACH_ITEMSIZE(in.itemsize, COPY_TILES)
  }
}

void st_copy_strided(int64_t rows, int64_t columns, int64_t row_step, int64_t column_step, const void *from, int32_t itemsize, void *to,
                     int32_t threads) {
  const strided in = {rows, columns, row_step, column_step, st_fine_shares(threads), from, to, itemsize};
  st_run(threads, in.shares, true, copy_rows, &in);
}
