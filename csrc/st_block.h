#ifndef ST_BLOCK_H
#define ST_BLOCK_H

#include <stdint.h>

/* cdef */
/* A dense level above a compressed one: positions, coordinates and the values below them. */
typedef struct {
  int64_t rows;
  const void *pos, *crd, *values;
  int32_t pos_wide, crd_wide;
  int64_t itemsize;      /* bytes of a value: 1, 2, 4, 8 or 16 */
  int64_t height, width; /* extents of a block */
} st_blocking;

/* counts[I] = blocks that the rows I * height and on touch, owners[p] = which of them, by column, entry p lies in. There are fewer
   than 2^31 columns of blocks. Each thread has a set of them in memory of its own; 1: there is not enough. */
int32_t st_count_blocks(const st_blocking *blocking, int64_t block_rows, int64_t block_columns, uint32_t *owners, int64_t *counts,
                        int32_t threads);

/* The blocks of each block row in order of their columns, row-major inside, into values that hold the fill value. */
void st_fill_blocks(const st_blocking *blocking, int64_t block_rows, const uint32_t *owners, const int64_t *starts, void *crd,
                    int32_t crd_wide, void *values, int32_t threads);

/* Plain rows of rows of blocks (positions and coordinates of blocks in `blocking`): the values that differ from `fill` in a bit of
   `mask` (both of the width of an item; the mask leaves the sign out where the fill value is 0) with their columns, row i from
   starts[i] on. There is room for all values of blocks. */
void st_unblock(const st_blocking *blocking, const void *fill, const void *mask, int64_t *starts, void *crd, int32_t crd_wide,
                void *values, int32_t threads);
/* end */

#endif
