/* Dense loops by BLAS: C += s A B (gemm), y += s A x (gemv), A += s x y' (ger), y += s x (axpy), and x' y (dot).

   Arrays come with the place of their first element and the distance between elements along each loop, in elements. Plain loops do
   what BLAS cannot do (no distance of 1, more than 2^31 elements, no BLAS at hand). */
#ifndef ST_BLAS_H
#define ST_BLAS_H

#include <limits.h>

#include "st_runtime.h"

/* cdef */
/* Routines with the arguments of Fortran, by name; NULL: plain loops. One table for all kernels of a process. */
typedef struct {
  void *sgemm, *dgemm, *sgemv, *dgemv, *sger, *dger, *saxpy, *daxpy, *sdot, *ddot;
  void *threads, *set_threads; /* tell and set how many threads a routine takes: int (void), void (int); NULL where that cannot be done */
  int lock, holders, before;   /* a spin lock; kernels that limit BLAS to few threads now; how many it had before them */
} st_blas_table;
/* end */

/* The loader of an object points this to the table of the process. */
__attribute__((weak)) st_blas_table *st_blas = NULL;

/* Hold BLAS to at most `threads` threads until st_blas_release. */
static inline int st_blas_hold(int64_t threads) {
  st_blas_table *table = st_blas;
  if (!table || !table->threads || !table->set_threads) return 0;
  while (__atomic_exchange_n(&table->lock, 1, __ATOMIC_ACQUIRE)) {}
  const int now = ((int (*)(void))table->threads)();
  if (table->holders++ == 0) table->before = now;
  if (threads < now) ((void (*)(int))table->set_threads)((int)threads);
  __atomic_store_n(&table->lock, 0, __ATOMIC_RELEASE);
  return 1;
}

static inline void st_blas_release(const int *held) {
  st_blas_table *table = st_blas;
  if (!*held) return;
  while (__atomic_exchange_n(&table->lock, 1, __ATOMIC_ACQUIRE)) {}
  if (--table->holders == 0) ((void (*)(int))table->set_threads)(table->before);
  __atomic_store_n(&table->lock, 0, __ATOMIC_RELEASE);
}

/* At the begin of a kernel: BLAS takes no more threads than this until the kernel returns. */
#define ST_BLAS_THREADS(threads) const int st_blas_held __attribute__((cleanup(st_blas_release))) = st_blas_hold(threads)

static inline bool st_blas_fits(int64_t a, int64_t b, int64_t c) { return a <= INT_MAX && b <= INT_MAX && c <= INT_MAX; }

/* The distance between rows, or columns, that BLAS asks for: at least one row, also where there is only one. */
static inline int st_blas_lead(int64_t stride, int64_t length) { return (int)(stride > length ? stride : length > 1 ? length : 1); }

/* Whether a matrix has rows of consecutive elements, `rows` of `length`, a distance `stride` apart. */
static inline bool st_blas_rows(int64_t step, int64_t stride, int64_t rows, int64_t length) {
  return (step == 1 || length <= 1) && (stride >= length || rows <= 1) && stride <= INT_MAX;
}

#define ST_BLAS(T, S, P)                                                                                                                 \
  static inline void st_gemv_##S(T *y, int64_t at_y, int64_t y_m, const T *a, int64_t at_a, int64_t a_m, int64_t a_k, const T *x,        \
                                 int64_t at_x, int64_t x_k, int64_t m, int64_t k, T scale);                                              \
  static inline void st_gemm_##S(T *c, int64_t at_c, int64_t c_m, int64_t c_n, const T *a, int64_t at_a, int64_t a_m, int64_t a_k,       \
                                 const T *b, int64_t at_b, int64_t b_k, int64_t b_n, int64_t m, int64_t n, int64_t k, T scale) {         \
    if (m <= 0 || n <= 0 || k <= 0) return;                                                                                              \
    if (m == 1 || n == 1) { /* a gemm copies the matrix into blocks, which takes longer than the product */                              \
      if (n == 1) st_gemv_##S(c, at_c, c_m, a, at_a, a_m, a_k, b, at_b, b_k, m, k, scale);                                               \
      else st_gemv_##S(c, at_c, c_n, b, at_b, b_n, b_k, a, at_a, a_k, n, k, scale);                                                      \
      return;                                                                                                                            \
    }                                                                                                                                    \
    if (!st_blas_rows(c_n, c_m, m, n) && st_blas_rows(c_m, c_n, n, m)) {                                                                 \
      st_gemm_##S(c, at_c, c_n, c_m, b, at_b, b_n, b_k, a, at_a, a_k, a_m, n, m, k, scale); /* C' = B' A' */                             \
      return;                                                                                                                            \
    }                                                                                                                                    \
    c += at_c, a += at_a, b += at_b;                                                                                                     \
    const bool rows_a = st_blas_rows(a_k, a_m, m, k), rows_b = st_blas_rows(b_n, b_k, k, n);                                             \
    const bool is_matrix = st_blas_rows(c_n, c_m, m, n) && (rows_a || st_blas_rows(a_m, a_k, k, m)) &&                                   \
                           (rows_b || st_blas_rows(b_k, b_n, n, k));                                                                     \
    if (st_blas && st_blas->P##gemm && is_matrix && st_blas_fits(m, n, k)) {                                                             \
      const int rows = (int)n, columns = (int)m, inner = (int)k, lead_c = st_blas_lead(c_m, n);                                          \
      const int lead_a = rows_a ? st_blas_lead(a_m, k) : st_blas_lead(a_k, m);                                                           \
      const int lead_b = rows_b ? st_blas_lead(b_k, n) : st_blas_lead(b_n, k);                                                           \
      const T one = 1;                                                                                                                   \
      ((void (*)(const char *, const char *, const int *, const int *, const int *, const T *, const T *, const int *, const T *,        \
                 const int *, const T *, T *, const int *))st_blas->P##gemm)(rows_b ? "N" : "T", rows_a ? "N" : "T", &rows, &columns,    \
                                                                             &inner, &scale, b, &lead_b, a, &lead_a, &one, c, &lead_c);  \
      return;                                                                                                                            \
    }                                                                                                                                    \
    for (int64_t i = 0; i < m; i++)                                                                                                      \
      for (int64_t p = 0; p < k; p++) {                                                                                                  \
        const T factor = scale * a[i * a_m + p * a_k];                                                                                   \
        for (int64_t j = 0; j < n; j++) c[i * c_m + j * c_n] += factor * b[p * b_k + j * b_n];                                           \
      }                                                                                                                                  \
  }                                                                                                                                      \
                                                                                                                                         \
  static inline void st_gemv_##S(T *y, int64_t at_y, int64_t y_m, const T *a, int64_t at_a, int64_t a_m, int64_t a_k, const T *x,        \
                                 int64_t at_x, int64_t x_k, int64_t m, int64_t k, T scale) {                                             \
    if (m <= 0 || k <= 0) return;                                                                                                        \
    y += at_y, a += at_a, x += at_x;                                                                                                     \
    const bool rows = st_blas_rows(a_k, a_m, m, k);                                                                                      \
    if (st_blas && st_blas->P##gemv && (rows || st_blas_rows(a_m, a_k, k, m)) && y_m > 0 && x_k > 0 && st_blas_fits(m, k, y_m) &&        \
        st_blas_fits(x_k, 0, 0)) {                                                                                                       \
      const int length = (int)(rows ? k : m), count = (int)(rows ? m : k), step_x = (int)x_k, step_y = (int)y_m;                         \
      const int lead = st_blas_lead(rows ? a_m : a_k, length);                                                                           \
      const T one = 1;                                                                                                                   \
      ((void (*)(const char *, const int *, const int *, const T *, const T *, const int *, const T *, const int *, const T *, T *,      \
                 const int *))st_blas->P##gemv)(rows ? "T" : "N", &length, &count, &scale, a, &lead, x, &step_x, &one, y, &step_y);      \
      return;                                                                                                                            \
    }                                                                                                                                    \
    for (int64_t i = 0; i < m; i++) {                                                                                                    \
      T sum = 0;                                                                                                                         \
      for (int64_t p = 0; p < k; p++) sum += a[i * a_m + p * a_k] * x[p * x_k];                                                          \
      y[i * y_m] += scale * sum;                                                                                                         \
    }                                                                                                                                    \
  }                                                                                                                                      \
                                                                                                                                         \
  static inline void st_ger_##S(T *a, int64_t at_a, int64_t a_m, int64_t a_n, const T *x, int64_t at_x, int64_t x_m, const T *y,         \
                                int64_t at_y, int64_t y_n, int64_t m, int64_t n, T scale) {                                              \
    if (m <= 0 || n <= 0) return;                                                                                                        \
    if (!st_blas_rows(a_n, a_m, m, n) && st_blas_rows(a_m, a_n, n, m)) {                                                                 \
      st_ger_##S(a, at_a, a_n, a_m, y, at_y, y_n, x, at_x, x_m, n, m, scale);                                                            \
      return;                                                                                                                            \
    }                                                                                                                                    \
    a += at_a, x += at_x, y += at_y;                                                                                                     \
    if (st_blas && st_blas->P##ger && st_blas_rows(a_n, a_m, m, n) && x_m > 0 && y_n > 0 && st_blas_fits(m, n, x_m) &&                   \
        st_blas_fits(y_n, 0, 0)) {                                                                                                       \
      const int rows = (int)n, columns = (int)m, step_x = (int)x_m, step_y = (int)y_n, lead = st_blas_lead(a_m, n);                      \
      ((void (*)(const int *, const int *, const T *, const T *, const int *, const T *, const int *, T *, const int *))st_blas          \
           ->P##ger)(&rows, &columns, &scale, y, &step_y, x, &step_x, a, &lead);                                                         \
      return;                                                                                                                            \
    }                                                                                                                                    \
    for (int64_t i = 0; i < m; i++)                                                                                                      \
      for (int64_t j = 0; j < n; j++) a[i * a_m + j * a_n] += scale * x[i * x_m] * y[j * y_n];                                           \
  }                                                                                                                                      \
                                                                                                                                         \
  static inline void st_axpy_##S(T *y, int64_t at_y, int64_t y_n, const T *x, int64_t at_x, int64_t x_n, int64_t n, T scale) {           \
    y += at_y, x += at_x;                                                                                                                \
    if (st_blas && st_blas->P##axpy && y_n > 0 && x_n > 0 && st_blas_fits(n, y_n, x_n)) {                                                \
      const int length = (int)n, step_x = (int)x_n, step_y = (int)y_n;                                                                   \
      ((void (*)(const int *, const T *, const T *, const int *, T *, const int *))st_blas->P##axpy)(&length, &scale, x, &step_x, y,     \
                                                                                                     &step_y);                           \
      return;                                                                                                                            \
    }                                                                                                                                    \
    for (int64_t j = 0; j < n; j++) y[j * y_n] += scale * x[j * x_n];                                                                    \
  }                                                                                                                                      \
                                                                                                                                         \
  static inline T st_dot_##S(const T *x, int64_t at_x, int64_t x_n, const T *y, int64_t at_y, int64_t y_n, int64_t n) {                  \
    x += at_x, y += at_y;                                                                                                                \
    if (st_blas && st_blas->P##dot && y_n > 0 && x_n > 0 && st_blas_fits(n, x_n, y_n)) {                                                 \
      const int length = (int)n, step_x = (int)x_n, step_y = (int)y_n;                                                                   \
      return ((T(*)(const int *, const T *, const int *, const T *, const int *))st_blas->P##dot)(&length, x, &step_x, y, &step_y);      \
    }                                                                                                                                    \
    T sum = 0;                                                                                                                           \
    for (int64_t j = 0; j < n; j++) sum += x[j * x_n] * y[j * y_n];                                                                      \
    return sum;                                                                                                                          \
  }

ST_BLAS(float, f32, s)
ST_BLAS(double, f64, d)

#endif
