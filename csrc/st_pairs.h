/* Pairs of a key and a payload, sorted by one thread: stable, in linear time, the least significant digit first inside a cache; what is
   too large for that is divided by the most significant digit before. */
#ifndef ST_PAIRS_H
#define ST_PAIRS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  SHORT = 32,       /* pairs that are sorted by insertion */
  CACHED = 1 << 15, /* pairs that fit into the second cache, twice */
  DIVIDE_BITS = 9,  /* bits of a division: two streams to each of 512 parts still fit into the first cache */
  DIGIT_BITS = 9,   /* largest digit of a pass inside a cache */
};

typedef struct {
  uint64_t *key, *payload;
} pairs;

static inline pairs from(pairs all, int64_t place) { return (pairs){all.key + place, all.payload + place}; }

/* Room for some pairs, to be freed by its keys; without keys when there is none. */
static pairs new_pairs(int64_t count) {
  uint64_t *memory = malloc(2 * sizeof *memory * (size_t)(count + 1));
  return (pairs){memory, memory ? memory + count : NULL};
}

static inline int bits_of(uint64_t value) { return value ? 64 - __builtin_clzll(value) : 0; }

static void copy(pairs to, pairs a, int64_t count) {
  memcpy(to.key, a.key, (size_t)count * sizeof *a.key);
  memcpy(to.payload, a.payload, (size_t)count * sizeof *a.payload);
}

static void sort_short(pairs a, int64_t count, uint64_t mask) {
  for (int64_t k = 1; k < count; k++) {
    const uint64_t key = a.key[k], payload = a.payload[k];
    int64_t place = k;
    for (; place > 0 && (a.key[place - 1] & mask) > (key & mask); place--) {
      a.key[place] = a.key[place - 1];
      a.payload[place] = a.payload[place - 1];
    }
    a.key[place] = key;
    a.payload[place] = payload;
  }
}

/* Stable scatter by the digit at [low, low + bits); place[d] is where digit d goes on. */
static void scatter(pairs to, pairs a, int64_t count, int low, int bits, int64_t *place) {
  const uint64_t mask = (UINT64_C(1) << bits) - 1;
  for (int64_t k = 0; k < count; k++) {
    const int64_t at = place[a.key[k] >> low & mask]++;
    to.key[at] = a.key[k];
    to.payload[at] = a.payload[k];
  }
}

/* Add to place[d] how many keys have digit d. */
static void count_digits(const uint64_t *key, int64_t count, int low, int bits, int64_t *place) {
  const uint64_t mask = (UINT64_C(1) << bits) - 1;
  for (int64_t k = 0; k < count; k++) place[key[k] >> low & mask]++;
}

/* Where each digit begins. */
static void find_places(const uint64_t *key, int64_t count, int low, int bits, int64_t *place) {
  memset(place, 0, sizeof *place << bits);
  count_digits(key, count, low, bits, place);
  int64_t sum = 0;
  for (int64_t digit = 0; digit < (int64_t)1 << bits; digit++) {
    const int64_t here = place[digit];
    place[digit] = sum;
    sum += here;
  }
}

/* Least significant digit first over bits [low, high), in place, with the help of the scratch. */
static void sort_cached(pairs a, pairs scratch, int64_t count, int low, int high) {
  const int passes = (high - low + DIGIT_BITS - 1) / DIGIT_BITS;
  int64_t place[1 << DIGIT_BITS];
  bool moved = false;
  for (int pass = 0; pass < passes; pass++) {
    const int bits = (high - low + passes - pass - 1) / (passes - pass);
    const pairs source = moved ? scratch : a, target = moved ? a : scratch;
    find_places(source.key, count, low, bits, place);
    scatter(target, source, count, low, bits, place);
    moved = !moved;
    low += bits;
  }
  if (moved) copy(a, scratch, count);
}

/* Sort `a` in place by the bits [low, high) of its keys. `scratch` holds CACHED pairs. 1 when there is no memory. */
static int sort_part(pairs a, pairs scratch, int64_t count, int low, int high) {
  uint64_t differing = 0;
  for (int64_t k = 1; k < count; k++) differing |= a.key[k] ^ a.key[0];
  differing &= (high < 64 ? (UINT64_C(1) << high) - 1 : ~UINT64_C(0)) >> low << low;
  if (!differing) return 0;
  low = __builtin_ctzll(differing);
  high = bits_of(differing);
  if (count <= SHORT) {
    sort_short(a, count, differing);
    return 0;
  }
  if (count <= CACHED) {
    sort_cached(a, scratch, count, low, high);
    return 0;
  }
  const int bits = high - low < DIVIDE_BITS ? high - low : DIVIDE_BITS;
  const pairs b = new_pairs(count);
  int failed = !b.key;
  if (!failed) {
    int64_t place[1 << DIVIDE_BITS];
    find_places(a.key, count, high - bits, bits, place);
    scatter(b, a, count, high - bits, bits, place);
    for (int64_t digit = 0, begin = 0; digit < (int64_t)1 << bits; begin = place[digit++])
      if (high - bits > low) failed |= sort_part(from(b, begin), scratch, place[digit] - begin, low, high - bits);
    copy(a, b, count);
  }
  free(b.key);
  return failed;
}

#endif
