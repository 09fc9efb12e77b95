/* A set of keys 0 .. n-1 as bits in three levels of words: a bit of a higher level says that a word below it is not empty,
   so that the keys come out sorted in time proportional to their number (and to n / 2^18), without sorting. The levels
   stand one after another in one array of n/2^6 + n/2^12 + n/2^18 + 6 words, all zero while the set is empty. */
#ifndef ST_BITS_H
#define ST_BITS_H

#include "st_runtime.h"

/* Mark in the levels above that a word holds keys. */
static inline void st_bits_lift(uint64_t *bits, int64_t n, int64_t word) {
  const int64_t words = (n + 63) >> 6, above = word >> 6;
  uint64_t *middle = bits + words;
  if (!middle[above]) middle[((words + 63) >> 6) + (above >> 6)] |= UINT64_C(1) << (above & 63);
  middle[above] |= UINT64_C(1) << (word & 63);
}

/* Whether a key is in the set. Only the words of keys are read, so that the levels above need not be kept up to date. */
static inline bool st_bits_have(const uint64_t *bits, int64_t key) { return bits[key >> 6] >> (key & 63) & 1; }

/* Put a key in; true if it was not there. */
static inline bool st_bits_insert(uint64_t *bits, int64_t n, int64_t key) {
  const int64_t word = key >> 6;
  const uint64_t mask = UINT64_C(1) << (key & 63), old = bits[word];
  if (old & mask) return false;
  bits[word] = old | mask;
  if (!old) st_bits_lift(bits, n, word);
  return true;
}

/* Write the numbers of the words that hold keys into `words`, in increasing order, and empty the levels above them; the caller
   empties the words. Returns how many there are. */
static inline int64_t st_bits_words(uint32_t *words, uint64_t *bits, int64_t n) {
  const int64_t below = (n + 63) >> 6, middles = (below + 63) >> 6, tops = (middles + 63) >> 6;
  uint64_t *middle = bits + below, *top = middle + middles;
  int64_t count = 0;
  for (int64_t t = 0; t < tops; t++) {
    for (uint64_t high = top[t]; high; high &= high - 1) {
      const int64_t m = t * 64 + __builtin_ctzll(high);
      for (uint64_t filled = middle[m]; filled; filled &= filled - 1) words[count++] = (uint32_t)(m * 64 + __builtin_ctzll(filled));
      middle[m] = 0;
    }
    top[t] = 0;
  }
  return count;
}

/* Take all keys out, in increasing order, into `keys`; return how many. */
ST_CALLED int64_t st_bits_drain_i32(int32_t *keys, uint64_t *bits, int64_t n);
ST_CALLED int64_t st_bits_drain_i64(int64_t *keys, uint64_t *bits, int64_t n);

#ifndef ST_LINKED

#define ST_BITS_DRAIN(T, S)                                                                      \
  ST_CALLED int64_t st_bits_drain_##S(T *keys, uint64_t *bits, int64_t n) {                      \
    const int64_t words = (n + 63) >> 6, middles = (words + 63) >> 6, tops = (middles + 63) >> 6; \
    uint64_t *middle = bits + words, *top = middle + middles;                                    \
    int64_t count = 0;                                                                           \
    for (int64_t t = 0; t < tops; t++) {                                                         \
      uint64_t high = top[t];                                                                    \
      if (!high) continue;                                                                       \
      top[t] = 0;                                                                                \
      for (; high; high &= high - 1) {                                                           \
        const int64_t m = t * 64 + __builtin_ctzll(high);                                        \
        uint64_t filled = middle[m];                                                             \
        middle[m] = 0;                                                                           \
        for (; filled; filled &= filled - 1) {                                                   \
          const int64_t w = m * 64 + __builtin_ctzll(filled);                                    \
          uint64_t low = bits[w];                                                                \
          bits[w] = 0;                                                                           \
          for (; low; low &= low - 1) keys[count++] = (T)(w * 64 + __builtin_ctzll(low));        \
        }                                                                                        \
      }                                                                                          \
    }                                                                                            \
    return count;                                                                                \
  }
ST_BITS_DRAIN(int32_t, i32)
ST_BITS_DRAIN(int64_t, i64)
#undef ST_BITS_DRAIN

#endif

#endif
