/* Packs some of four 64-bit values by a table of permutations instead of branches (AVX2). */
#ifndef ST_QUADS_H
#define ST_QUADS_H

#include <stdint.h>

enum { ST_QUAD = 4 };

#ifdef __AVX2__
#include <immintrin.h>

/* By a mask of the values that are kept: their numbers, and the halves of them. */
#define ST_HALVES(a, b, c, d) {2 * (a), 2 * (a) + 1, 2 * (b), 2 * (b) + 1, 2 * (c), 2 * (c) + 1, 2 * (d), 2 * (d) + 1}
#define ST_KEPT(ROW)                                                                                               \
  {                                                                                                                \
    ROW(0, 0, 0, 0), ROW(0, 0, 0, 0), ROW(1, 0, 0, 0), ROW(0, 1, 0, 0), ROW(2, 0, 0, 0), ROW(0, 2, 0, 0),          \
    ROW(1, 2, 0, 0), ROW(0, 1, 2, 0), ROW(3, 0, 0, 0), ROW(0, 3, 0, 0), ROW(1, 3, 0, 0), ROW(0, 1, 3, 0),          \
    ROW(2, 3, 0, 0), ROW(0, 2, 3, 0), ROW(1, 2, 3, 0), ROW(0, 1, 2, 3)                                             \
  }
#define ST_NUMBERS(a, b, c, d) {a, b, c, d}
static const uint8_t st_kept_numbers[16][4] = ST_KEPT(ST_NUMBERS), st_kept_halves[16][8] = ST_KEPT(ST_HALVES);
#undef ST_HALVES
#undef ST_KEPT
#undef ST_NUMBERS

/* Write the four values at `from` that differ from `fill` in a bit of `mask` to `place`, with their columns; all four places are
   written to. Returns the place after the last one. */
static inline int64_t st_keep_quad(const uint64_t *from, uint64_t fill, uint64_t mask, int32_t column, int64_t place, int32_t *crd,
                                   uint64_t *values) {
  const __m256i quad = _mm256_loadu_si256((const __m256i *)from), zeros = _mm256_setzero_si256();
  const __m256i bits = _mm256_and_si256(_mm256_xor_si256(quad, _mm256_set1_epi64x((int64_t)fill)), _mm256_set1_epi64x((int64_t)mask));
  const int kept = 15 ^ _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(bits, zeros)));
  const __m256i halves = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)st_kept_halves[kept]));
  const __m128i numbers = _mm_cvtepu8_epi32(_mm_loadu_si32(st_kept_numbers[kept]));
  _mm256_storeu_si256((__m256i *)(values + place), _mm256_permutevar8x32_epi32(quad, halves));
  _mm_storeu_si128((__m128i *)(crd + place), _mm_add_epi32(_mm_set1_epi32(column), numbers));
  return place + __builtin_popcount((unsigned)kept);
}
#endif

#endif
