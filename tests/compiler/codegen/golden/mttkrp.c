/* mttkrp, 32-byte vectors */
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
  double *restrict M_vals = st_arrays[0];
  const int32_t *restrict A2_pos = st_arrays[1];
  const int32_t *restrict A2_crd = st_arrays[2];
  const int32_t *restrict A3_pos = st_arrays[3];
  const int32_t *restrict A3_crd = st_arrays[4];
  const double *restrict A_vals = st_arrays[5];
  const double *restrict B_vals = st_arrays[6];
  const double *restrict C_vals = st_arrays[7];
  for (; st_piece >= 0; st_piece = st_next(st_claimed)) {
    for (int64_t i = st_begin(&st_iterations, st_piece), i_end = st_end(&st_iterations, st_piece); i < i_end; i++) {
      f64x4 total_0 = {0};
      f64x4 total_4 = {0};
      f64x4 total_8 = {0};
      f64x4 total_12 = {0};
      f64x4 total_16 = {0};
      f64x4 total_20 = {0};
      f64x4 total_24 = {0};
      f64x4 total_28 = {0};
      for (int64_t q = A2_pos[i], q_end = A2_pos[i + 1]; q < q_end; q++) {
        f64x4 fibre_0 = {0};
        f64x4 fibre_4 = {0};
        f64x4 fibre_8 = {0};
        f64x4 fibre_12 = {0};
        f64x4 fibre_16 = {0};
        f64x4 fibre_20 = {0};
        f64x4 fibre_24 = {0};
        f64x4 fibre_28 = {0};
        for (int64_t p = A3_pos[q], p_end = A3_pos[q + 1]; p < p_end; p++) {
          st_prefetch(C_vals, (int64_t)A3_crd[st_min_i64(p + 8, A_length - 1)] * 32, 32, 8, 1);
          double A_vals_value = A_vals[p];
          int64_t A3_crd_row = A3_crd[p] * 32;
          fibre_0 += A_vals_value * *(const f64x4_u *)&C_vals[A3_crd_row];
          fibre_4 += A_vals_value * *(const f64x4_u *)&C_vals[A3_crd_row + 4];
          fibre_8 += A_vals_value * *(const f64x4_u *)&C_vals[A3_crd_row + 8];
          fibre_12 += A_vals_value * *(const f64x4_u *)&C_vals[A3_crd_row + 12];
          fibre_16 += A_vals_value * *(const f64x4_u *)&C_vals[A3_crd_row + 16];
          fibre_20 += A_vals_value * *(const f64x4_u *)&C_vals[A3_crd_row + 20];
          fibre_24 += A_vals_value * *(const f64x4_u *)&C_vals[A3_crd_row + 24];
          fibre_28 += A_vals_value * *(const f64x4_u *)&C_vals[A3_crd_row + 28];
        }
        int64_t A2_crd_row = A2_crd[q] * 32;
        total_0 += fibre_0 * *(const f64x4_u *)&B_vals[A2_crd_row];
        total_4 += fibre_4 * *(const f64x4_u *)&B_vals[A2_crd_row + 4];
        total_8 += fibre_8 * *(const f64x4_u *)&B_vals[A2_crd_row + 8];
        total_12 += fibre_12 * *(const f64x4_u *)&B_vals[A2_crd_row + 12];
        total_16 += fibre_16 * *(const f64x4_u *)&B_vals[A2_crd_row + 16];
        total_20 += fibre_20 * *(const f64x4_u *)&B_vals[A2_crd_row + 20];
        total_24 += fibre_24 * *(const f64x4_u *)&B_vals[A2_crd_row + 24];
        total_28 += fibre_28 * *(const f64x4_u *)&B_vals[A2_crd_row + 28];
      }
      *(f64x4_u *)&M_vals[i * 32] = total_0;
      *(f64x4_u *)&M_vals[i * 32 + 4] = total_4;
      *(f64x4_u *)&M_vals[i * 32 + 8] = total_8;
      *(f64x4_u *)&M_vals[i * 32 + 12] = total_12;
      *(f64x4_u *)&M_vals[i * 32 + 16] = total_16;
      *(f64x4_u *)&M_vals[i * 32 + 20] = total_20;
      *(f64x4_u *)&M_vals[i * 32 + 24] = total_24;
      *(f64x4_u *)&M_vals[i * 32 + 28] = total_28;
    }
  }
}

int32_t st_kernel(void **st_arrays, int64_t *st_sizes, int64_t st_threads) {
  const int64_t i_size = st_sizes[0];
  const int64_t A_length = st_sizes[1];
  {
    const st_region st_shared = {st_chunks(0, i_size, 16, st_threads), st_arrays, A_length};
    st_run(st_threads, st_shared.st_loop.pieces, true, st_parallel, &st_shared);
  }
  return 0;
}
