/* spmv, 32-byte vectors */
#include "st_runtime.h"

int32_t st_kernel(void **st_arrays, int64_t *st_sizes, int64_t st_threads) {
  const int64_t i_size = st_sizes[0];
  #pragma omp parallel num_threads((int)st_threads)
  {
    double *restrict y_vals = st_arrays[0];
    const int32_t *restrict A2_pos = st_arrays[1];
    const int32_t *restrict A2_crd = st_arrays[2];
    const double *restrict A_vals = st_arrays[3];
    const double *restrict x_vals = st_arrays[4];
    #pragma omp for schedule(dynamic, 512) nowait
    for (int64_t i = 0; i < i_size; i++) {
      double s = 0.0;
      for (int64_t p = A2_pos[i], p_end = A2_pos[i + 1]; p < p_end; p++) {
        s += A_vals[p] * x_vals[A2_crd[p]];
      }
      y_vals[i] = s;
    }
  }
  return 0;
}
