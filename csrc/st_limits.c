/* The limits of the machine: bytes a second through memory, and fused multiply-adds a second in registers. */
#include <stddef.h>

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif

typedef double vec __attribute__((vector_size(BYTES)));

enum { CHAINS = 10 }; /* independent ones: enough to fill two units of a latency of five cycles */

/* a(i) = b(i) + 3 * c(i) over n elements: 24 bytes each. */
void st_triad(double *restrict a, const double *restrict b, const double *restrict c, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i];
}

/* Returns a value so that compilers keep the work; operations: 2 * CHAINS * lanes a turn. */
double st_multiply_adds(ptrdiff_t turns) {
  vec x[CHAINS], m = (vec){0} + 0.999999, k = (vec){0} + 1e-9;
  for (int j = 0; j < CHAINS; j++) x[j] = (vec){0} + j;
  for (ptrdiff_t t = 0; t < turns; t++) {
    x[0] = x[0] * m + k; x[1] = x[1] * m + k; x[2] = x[2] * m + k; x[3] = x[3] * m + k; x[4] = x[4] * m + k;
    x[5] = x[5] * m + k; x[6] = x[6] * m + k; x[7] = x[7] * m + k; x[8] = x[8] * m + k; x[9] = x[9] * m + k;
  }
  vec sum = (vec){0};
  for (int j = 0; j < CHAINS; j++) sum += x[j];
  double total = 0;
  for (size_t j = 0; j < BYTES / sizeof(double); j++) total += sum[j];
  return total;
}

/* Operations of a turn of st_multiply_adds. */
ptrdiff_t st_operations_a_turn(void) { return 2 * CHAINS * (ptrdiff_t)(BYTES / sizeof(double)); }
