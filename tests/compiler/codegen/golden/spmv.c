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
  for (; st_piece >= 0; st_piece = st_next(st_claimed)) {
    for (int64_t i_place = st_begin(&st_iterations, st_piece), i_place_end = st_end(&st_iterations, st_piece); i_place < i_place_end; i_place++) {
      y_vals[i_place] = 0.0;
    }
  }
}

typedef struct {
  st_loop st_loop;
  void **st_arrays;
  int64_t i_size;
} st_region2;

static __attribute__((noinline)) void st_parallel2(const void *st_given, st_claims *st_claimed, int64_t st_piece) {
  const st_region2 *const st_in = st_given;
  const st_loop st_iterations = st_in->st_loop;
  void **const st_arrays = st_in->st_arrays;
  const int64_t i_size = st_in->i_size;
  double *restrict y_vals = st_arrays[0];
  const int32_t *restrict A2_pos = st_arrays[1];
  const int32_t *restrict A2_crd = st_arrays[2];
  const double *restrict A_vals = st_arrays[3];
  const double *restrict x_vals = st_arrays[4];
  for (; st_piece >= 0; st_piece = st_next(st_claimed)) {
    for (int64_t i_piece = st_begin(&st_iterations, st_piece), i_piece_end = st_end(&st_iterations, st_piece); i_piece < i_piece_end; i_piece++) {  // pieces of i
      int64_t i_first = i_piece * 4096;
      int64_t i_past = st_min_i64(i_first + 4096, i_size);
      int64_t i_filled = st_filled_row_i32(A2_pos, i_first, i_past);
      while (i_filled < i_past) {  // i with elements
        int64_t i = i_filled;
        double s = 0.0;
        for (int64_t p = A2_pos[i], p_end = A2_pos[i + 1]; p < p_end; p++) {
          s += A_vals[p] * x_vals[A2_crd[p]];
          ST_IN_ORDER(s);
        }
        y_vals[i] = s;
        i_filled = st_filled_row_i32(A2_pos, i_filled + 1, i_past);
      }
    }
  }
}

typedef struct {
  st_loop st_loop;
  void **st_arrays;
} st_region3;

static __attribute__((noinline)) void st_parallel3(const void *st_given, st_claims *st_claimed, int64_t st_piece) {
  const st_region3 *const st_in = st_given;
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
      for (int64_t p = A2_pos[i], p_end_ = A2_pos[i + 1]; p < p_end_; p++) {
        s += A_vals[p] * x_vals[A2_crd[p]];
        ST_IN_ORDER(s);
      }
      y_vals[i] = s;
    }
  }
}

int32_t st_kernel(void **st_arrays, int64_t *st_sizes, int64_t st_threads) {
  const int64_t i_size = st_sizes[0];
  const int32_t *restrict A2_pos = st_arrays[1];
  if (((int64_t)A2_pos[i_size] - (int64_t)A2_pos[0]) * 16 <= i_size) {
    {
      const st_region st_shared = {st_even(0, i_size, st_threads), st_arrays};
      st_run(st_threads, st_shared.st_loop.pieces, true, st_parallel, &st_shared);
    }
    {
      const st_region2 st_shared2 = {st_chunks(0, (i_size + 4095) / 4096, 1, st_threads), st_arrays, i_size};
      st_run(st_threads, st_shared2.st_loop.pieces, true, st_parallel2, &st_shared2);
    }
  } else {
    {
      const st_region3 st_shared3 = {st_chunks(0, i_size, 512, st_threads), st_arrays};
      st_run(st_threads, st_shared3.st_loop.pieces, true, st_parallel3, &st_shared3);
    }
  }
  return 0;
}
