/* sddmm, 32-byte vectors */
#include "st_runtime.h"
#include "st_loop.h"

typedef double f64x2 __attribute__((vector_size(16)));
typedef double f64x2_u __attribute__((vector_size(16), aligned(8), may_alias));
typedef double f64x4 __attribute__((vector_size(32)));
typedef double f64x4_u __attribute__((vector_size(32), aligned(8), may_alias));

static inline double st_lanes_sum_f64x2(f64x2 v) { return v[0] + v[1]; }

static inline double st_lanes_sum_f64x4(f64x4 v) {
  f64x2 half[2];
  memcpy(half, &v, sizeof v);
  return st_lanes_sum_f64x2(half[0] + half[1]);
}

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
  double *restrict O_vals = st_arrays[0];
  const int32_t *restrict A2_pos = st_arrays[1];
  const int32_t *restrict A2_crd = st_arrays[2];
  const double *restrict A_vals = st_arrays[3];
  const double *restrict U_vals = st_arrays[4];
  const double *restrict V_vals = st_arrays[5];
  for (; st_piece >= 0; st_piece = st_next(st_claimed)) {
    for (int64_t i = st_begin(&st_iterations, st_piece), i_end = st_end(&st_iterations, st_piece); i < i_end; i++) {
      for (int64_t p = A2_pos[i], p_end = A2_pos[i + 1]; p < p_end; p++) {
        st_prefetch(V_vals, (int64_t)A2_crd[st_min_i64(p + 4, A_length - 1)] * 40, 40, 8, 1);
        double s = 0.0;
        int64_t A2_crd_row = A2_crd[p] * 40;
        f64x4 s_2 = *(const f64x4_u *)&U_vals[i * 40] * *(const f64x4_u *)&V_vals[A2_crd_row];
        f64x4 s_3 = *(const f64x4_u *)&U_vals[i * 40 + 4] * *(const f64x4_u *)&V_vals[A2_crd_row + 4];
        s_2 += *(const f64x4_u *)&U_vals[i * 40 + 8] * *(const f64x4_u *)&V_vals[A2_crd_row + 8];
        s_3 += *(const f64x4_u *)&U_vals[i * 40 + 12] * *(const f64x4_u *)&V_vals[A2_crd_row + 12];
        s_2 += *(const f64x4_u *)&U_vals[i * 40 + 16] * *(const f64x4_u *)&V_vals[A2_crd_row + 16];
        s_3 += *(const f64x4_u *)&U_vals[i * 40 + 20] * *(const f64x4_u *)&V_vals[A2_crd_row + 20];
        s_2 += *(const f64x4_u *)&U_vals[i * 40 + 24] * *(const f64x4_u *)&V_vals[A2_crd_row + 24];
        s_3 += *(const f64x4_u *)&U_vals[i * 40 + 28] * *(const f64x4_u *)&V_vals[A2_crd_row + 28];
        s_2 += *(const f64x4_u *)&U_vals[i * 40 + 32] * *(const f64x4_u *)&V_vals[A2_crd_row + 32];
        s_3 += *(const f64x4_u *)&U_vals[i * 40 + 36] * *(const f64x4_u *)&V_vals[A2_crd_row + 36];
        s += st_lanes_sum_f64x4(s_2 + s_3);
        O_vals[p] = A_vals[p] * s;
      }
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
