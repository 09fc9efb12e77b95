/* spmv, 32-byte vectors */
#include "st_runtime.h"
#include "st_loop.h"

typedef struct {
  st_loop st_loop;
  void **st_arrays;
} st_region;

static __attribute__((noinline)) void st_parallel(const void *st_given, st_claims *st_claimed, int64_t st_piece) {
  const st_region *const st_in = st_given;
  const st_loop st_iterations = st_in->st_loop;
  void **const st_arrays = st_in->st_arrays;
  double *restrict y_vals = st_arrays[0];
  const int32_t *restrict A2_pos = st_arrays[1];
  const int32_t *restrict A2_crd = st_arrays[2];
  const double *restrict A_vals = st_arrays[3];
  const double *restrict x_vals = st_arrays[4];
  for (; st_piece >= 0; st_piece = st_next(st_claimed)) {
    for (int64_t i = st_begin(&st_iterations, st_piece), i_end = st_end(&st_iterations, st_piece); i < i_end; i++) {
      double s = 0.0;
      for (int64_t p = A2_pos[i], p_end = A2_pos[i + 1]; p < p_end; p++) {
        s += A_vals[p] * x_vals[A2_crd[p]];
      }
      y_vals[i] = s;
    }
  }
}

int32_t st_kernel(void **st_arrays, int64_t *st_sizes, int64_t st_threads) {
  const int64_t i_size = st_sizes[0];
  {
    const st_region st_shared = {st_chunks(0, i_size, 512, st_threads), st_arrays};
    st_run(st_threads, st_shared.st_loop.pieces, true, st_parallel, &st_shared);
  }
  return 0;
}
