/* Hand-written kernels that race against generated ones on a GPU. Arrays: pos, crd and values of compressed rows (of columns for a sparse
   vector), dense operands (of a sparse vector crd and values), the result; sizes: rows, entries (those of a sparse vector if there is
   one), which kernel, and how many columns dense operands have (32 or 128). */
#include "st_cuda.h"

enum { ST_ROW_WARPS, ST_MERGE_PATH, ST_WIDE_ROWS, ST_SAMPLED, ST_COLUMN_WARPS };
#define ST_THREADS 128
#define ST_ITEMS 7
#define ST_TILE (ST_THREADS * ST_ITEMS)

#if ST_KERNELS

/* y = A x, a row to a warp. */
ST_KERNEL(ST_THREADS) row_warps(ST_ARRAY(const int32_t) pos, ST_ARRAY(const int32_t) crd, ST_ARRAY(const double) values,
                                ST_ARRAY(const double) x, ST_ARRAY(double) y, const int64_t rows) {
  for (int64_t i = st_warp_of_grid(); i < rows; i += st_warps_of_grid()) {
    double sum = 0;
    for (int64_t p = pos[i] + st_lane(); p < pos[i + 1]; p += ST_LANES) sum += values[p] * x[crd[p]];
    sum = st_add_of_threads_of_warp(sum);
    if (st_first_of_warp()) y[i] = sum;
  }
}

/* y += A x by equal shares of rows and entries together (Merrill and Garland, "Merge-based parallel sparse matrix-vector
   multiplication", SC 2016): a share ends at a point of the merge of the ends of rows with the numbers of entries. */
template <class A> ST_DEVICE int64_t merged_rows(A ends, int64_t skipped, int64_t first, int64_t rows, int64_t entries, int64_t diagonal) {
  int64_t low = diagonal > entries ? diagonal - entries : 0, high = diagonal < rows ? diagonal : rows;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if ((int64_t)ends[skipped + middle] - first <= diagonal - 1 - middle) low = middle + 1;
    else high = middle;
  }
  return low;
}
ST_KERNEL(ST_THREADS) merge_path(ST_ARRAY(const int32_t) pos, ST_ARRAY(const int32_t) crd, ST_ARRAY(const double) values,
                                 ST_ARRAY(const double) x, ST_ARRAY(double) y, const int64_t rows, const int64_t entries) {
  ST_SHARED(double, products, ST_TILE);
  ST_SHARED(int32_t, ends, ST_TILE + 1);
  for (int64_t tile = st_block_of_grid() * ST_TILE; tile < rows + entries; tile += st_blocks_of_grid() * ST_TILE) {
    const int64_t past = tile + ST_TILE < rows + entries ? tile + ST_TILE : rows + entries;
    const int64_t row = merged_rows(pos, 1, 0, rows, entries, tile), last = merged_rows(pos, 1, 0, rows, entries, past);
    const int64_t entry = tile - row, count = past - last - entry;
    st_barrier_of_block();
    for (int64_t k = st_thread_of_block(); k < count; k += ST_THREADS) products[k] = values[entry + k] * x[crd[entry + k]];
    for (int64_t k = st_thread_of_block(); k < last - row; k += ST_THREADS) ends[k] = pos[row + k + 1];
    st_barrier_of_block();
    const int64_t begin = st_thread_of_block() * ST_ITEMS;
    if (begin < past - tile) {
      const int64_t end = begin + ST_ITEMS < past - tile ? begin + ST_ITEMS : past - tile;
      int64_t r = merged_rows(ends, 0, entry, last - row, count, begin), k = begin - r;
      bool whole = false;
      double sum = 0;
      for (int64_t item = begin; item < end; item++) {
        if (r < last - row && (int64_t)ends[r] - entry <= k) {
          if (whole) y[row + r] = sum;
          else st_atomic_add(y, row + r, sum);
          sum = 0;
          whole = true;
          r++;
        } else {
          sum += products[k++];
        }
      }
      if (row + r < rows) st_atomic_add(y, row + r, sum);
    }
  }
}

/* Y = A X, a row to as many lanes as its pairs of columns fill. */
struct st_two {
  double x, y;
};
#ifdef ST_EXECUTOR
ST_DEVICE st_two two_of(st_array<const double> array, int64_t place) { return {array[place], array[place + 1]}; }
ST_DEVICE void put_two(st_array<double> array, int64_t place, st_two value) {
  array[place] = value.x;
  array[place + 1] = value.y;
}
#else
ST_DEVICE st_two two_of(const double *array, int64_t place) {
  const double2 found = *(const double2 *)(array + place);
  return {found.x, found.y};
}
ST_DEVICE void put_two(double *array, int64_t place, st_two value) { *(double2 *)(array + place) = make_double2(value.x, value.y); }
#endif
template <int COLUMNS> struct st_columns {
  static constexpr int PAIRS = COLUMNS >= 2 * ST_LANES ? COLUMNS / (2 * ST_LANES) : 1, LANES = COLUMNS / (2 * PAIRS);
};
template <int COLUMNS>
ST_DEVICE void wide_rows(ST_ARRAY(const int32_t) pos, ST_ARRAY(const int32_t) crd, ST_ARRAY(const double) values,
                         ST_ARRAY(const double) X, ST_ARRAY(double) Y, const int64_t rows) {
  constexpr int PAIRS = st_columns<COLUMNS>::PAIRS, LANES = st_columns<COLUMNS>::LANES;
  const int64_t lane = st_thread_of_grid() % LANES, step = st_threads_of_grid() / LANES;
  for (int64_t i = st_thread_of_grid() / LANES; i < rows; i += step) {
    st_two sums[PAIRS] = {};
    for (int64_t p = pos[i]; p < pos[i + 1]; p++) {
      const double value = values[p];
      const int64_t j = crd[p];
      for (int c = 0; c < PAIRS; c++) {
        const st_two found = two_of(X, j * COLUMNS + 2 * (lane + c * LANES));
        sums[c].x += value * found.x;
        sums[c].y += value * found.y;
      }
    }
    for (int c = 0; c < PAIRS; c++) put_two(Y, i * COLUMNS + 2 * (lane + c * LANES), sums[c]);
  }
}

/* Z = B .* (C D^T), a row to a warp, which sums over the columns. */
template <int COLUMNS>
ST_DEVICE void sampled(ST_ARRAY(const int32_t) pos, ST_ARRAY(const int32_t) crd, ST_ARRAY(const double) values,
                       ST_ARRAY(const double) C, ST_ARRAY(const double) D, ST_ARRAY(double) Z, const int64_t rows) {
  for (int64_t i = st_warp_of_grid(); i < rows; i += st_warps_of_grid()) {
    for (int64_t p = pos[i]; p < pos[i + 1]; p++) {
      double sum = 0;
      const int64_t j = crd[p];
      for (int64_t k = st_lane(); k < COLUMNS; k += ST_LANES) sum += C[i * COLUMNS + k] * D[j * COLUMNS + k];
      sum = st_add_of_threads_of_warp(sum);
      if (st_first_of_warp()) Z[p] = values[p] * sum;
    }
  }
}

/* y += A x for a sparse x and the columns of A: a warp adds the column of an entry of x to y, and reads no other column. */
ST_KERNEL(ST_THREADS) column_warps(ST_ARRAY(const int32_t) pos, ST_ARRAY(const int32_t) crd, ST_ARRAY(const double) values,
                                   ST_ARRAY(const int32_t) columns, ST_ARRAY(const double) x, ST_ARRAY(double) y, const int64_t entries) {
  for (int64_t e = st_warp_of_grid(); e < entries; e += st_warps_of_grid()) {
    const int64_t j = columns[e];
    const double factor = x[e];
    for (int64_t p = pos[j] + st_lane(); p < pos[j + 1]; p += ST_LANES) st_atomic_add(y, crd[p], values[p] * factor);
  }
}

#define ST_OF_COLUMNS(N)                                                                                                       \
  ST_KERNEL(ST_THREADS) wide_rows_##N(ST_ARRAY(const int32_t) pos, ST_ARRAY(const int32_t) crd, ST_ARRAY(const double) values, \
                                      ST_ARRAY(const double) X, ST_ARRAY(double) Y, const int64_t rows) {                      \
    wide_rows<N>(pos, crd, values, X, Y, rows);                                                                                \
  }                                                                                                                            \
  ST_KERNEL(ST_THREADS) sampled_##N(ST_ARRAY(const int32_t) pos, ST_ARRAY(const int32_t) crd, ST_ARRAY(const double) values,   \
                                    ST_ARRAY(const double) C, ST_ARRAY(const double) D, ST_ARRAY(double) Z, const int64_t rows) { \
    sampled<N>(pos, crd, values, C, D, Z, rows);                                                                               \
  }
ST_OF_COLUMNS(32)
ST_OF_COLUMNS(128)
#endif

ST_ENTRY(row_warps, const int32_t *, const int32_t *, const double *, const double *, double *, int64_t)
ST_ENTRY(merge_path, const int32_t *, const int32_t *, const double *, const double *, double *, int64_t, int64_t)
ST_ENTRY(wide_rows_32, const int32_t *, const int32_t *, const double *, const double *, double *, int64_t)
ST_ENTRY(wide_rows_128, const int32_t *, const int32_t *, const double *, const double *, double *, int64_t)
ST_ENTRY(sampled_32, const int32_t *, const int32_t *, const double *, const double *, const double *, double *, int64_t)
ST_ENTRY(sampled_128, const int32_t *, const int32_t *, const double *, const double *, const double *, double *, int64_t)
ST_ENTRY(column_warps, const int32_t *, const int32_t *, const double *, const int32_t *, const double *, double *, int64_t)

#if ST_HOST
ST_EXPORT int32_t st_kernel(void **arrays, int64_t *sizes, int64_t) {
  st_host device;
  const int64_t rows = sizes[0], entries = sizes[1], which = sizes[2], warps = ST_THREADS / ST_LANES;
  const int64_t tiles = (rows + entries + ST_TILE - 1) / ST_TILE, blocks = (rows + warps - 1) / warps;
  const bool few = sizes[3] == 32;
  const int64_t together = ST_THREADS / (few ? 16 : 32), wide = (rows + together - 1) / together;
  const int32_t *pos = (const int32_t *)arrays[0], *crd = (const int32_t *)arrays[1];
  const double *values = (const double *)arrays[2], *first = (const double *)arrays[3];
  double *fifth = (double *)arrays[4];
  switch (which) {
    case ST_ROW_WARPS: device.launch(blocks, ST_THREADS, row_warps, pos, crd, values, first, fifth, rows); break;
    case ST_MERGE_PATH: device.launch(tiles, ST_THREADS, merge_path, pos, crd, values, first, fifth, rows, entries); break;
    case ST_WIDE_ROWS: device.launch(wide, ST_THREADS, few ? wide_rows_32 : wide_rows_128, pos, crd, values, first, fifth, rows); break;
    case ST_COLUMN_WARPS:
      device.launch((entries + warps - 1) / warps, ST_THREADS, column_warps, pos, crd, values, (const int32_t *)arrays[3],
                    (const double *)fifth, (double *)arrays[5], entries);
      break;
    default:
      device.launch(blocks, ST_THREADS, few ? sampled_32 : sampled_128, pos, crd, values, first, (const double *)fifth,
                    (double *)arrays[5], rows);
  }
  return device.status();
}
#endif
