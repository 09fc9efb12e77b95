/* spmm, 32-byte vectors */
#include "st_runtime.h"
#include "st_loop.h"

typedef double f64x4 __attribute__((vector_size(32)));
typedef double f64x4_u __attribute__((vector_size(32), aligned(8), may_alias));

typedef struct {
  st_loop st_loop;
  void **st_arrays;
  int64_t A_length;
} st_region;

static __attribute__((noinline)) void st_parallel(const void *st_given, st_claims *st_claimed, int64_t st_piece) {
  const st_region *const st_in = st_given;
  const st_loop st_iterations = st_in->st_loop;
  void **const st_arrays = st_in->st_arrays;
  const int64_t A_length = st_in->A_length;
  double *restrict Y_vals = st_arrays[0];
  const int32_t *restrict A2_pos = st_arrays[1];
  const int32_t *restrict A2_crd = st_arrays[2];
  const double *restrict A_vals = st_arrays[3];
  const double *restrict X_vals = st_arrays[4];
  for (; st_piece >= 0; st_piece = st_next(st_claimed)) {
    for (int64_t i = st_begin(&st_iterations, st_piece), i_end = st_end(&st_iterations, st_piece); i < i_end; i++) {
      f64x4 w_0 = {0};
      f64x4 w_4 = {0};
      f64x4 w_8 = {0};
      f64x4 w_12 = {0};
      f64x4 w_16 = {0};
      for (int64_t p = A2_pos[i], p_end = A2_pos[i + 1]; p < p_end; p++) {
        st_prefetch(X_vals, (int64_t)A2_crd[st_min_i64(p + 12, A_length - 1)] * 20, 20, 8, 1);
        double A_vals_value = A_vals[p];
        int64_t A2_crd_row = A2_crd[p] * 20;
        w_0 += A_vals_value * *(const f64x4_u *)&X_vals[A2_crd_row];
        w_4 += A_vals_value * *(const f64x4_u *)&X_vals[A2_crd_row + 4];
        w_8 += A_vals_value * *(const f64x4_u *)&X_vals[A2_crd_row + 8];
        w_12 += A_vals_value * *(const f64x4_u *)&X_vals[A2_crd_row + 12];
        w_16 += A_vals_value * *(const f64x4_u *)&X_vals[A2_crd_row + 16];
      }
      *(f64x4_u *)&Y_vals[i * 20] = w_0;
      *(f64x4_u *)&Y_vals[i * 20 + 4] = w_4;
      *(f64x4_u *)&Y_vals[i * 20 + 8] = w_8;
      *(f64x4_u *)&Y_vals[i * 20 + 12] = w_12;
      *(f64x4_u *)&Y_vals[i * 20 + 16] = w_16;
    }
  }
}

int32_t st_kernel(void **st_arrays, int64_t *st_sizes, int64_t st_threads) {
  const int64_t i_size = st_sizes[0];
  const int64_t A_length = st_sizes[1];
  {
    const st_region st_shared = {st_chunks(0, i_size, 64, st_threads), st_arrays, A_length};
    st_run(st_threads, st_shared.st_loop.pieces, true, st_parallel, &st_shared);
  }
  return 0;
}
