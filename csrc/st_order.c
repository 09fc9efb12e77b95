/* Sorting entries: coordinates become one 64-bit key, keys are sorted with a payload, and become coordinates again.

   The sort is stable and takes linear time: one parallel pass by the most significant bits makes parts that fit into a
   cache, where each is sorted by the least significant digit first. Parts that are too large for that are divided again. */
#include <stdlib.h>
#include <string.h>

#include "st_columns.h"
#include "st_order.h"

enum {
  BLOCK = 1024,      /* entries whose keys stay in the first cache while they are built */
  SHORT = 32,        /* pairs that are sorted by insertion */
  CACHED = 1 << 15,  /* pairs that fit into the second cache, twice */
  DIVIDE_BITS = 9,   /* bits of a division: two streams to each of 512 parts still fit into the first cache */
  DIGIT_BITS = 9,    /* largest digit of a pass inside a cache */
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

/* Keys and the coordinates that they consist of: one is read, the other is written. */
typedef struct {
  int64_t count;
  int32_t levels;
  void *const *columns;
  const int8_t *wide, *widths;
  uint64_t *keys;
} keyed_columns;

static inline int64_t blocks_of(int64_t count) { return (count + BLOCK - 1) / BLOCK; }

static void build_keys(const void *context, st_claims *claims, int64_t block) {
  const keyed_columns in = *(const keyed_columns *)context;
  for (; block >= 0; block = st_next(claims)) {
    const int64_t begin = block * BLOCK, length = in.count - begin < BLOCK ? in.count - begin : BLOCK;
    uint64_t *key = in.keys + begin;
    memset(key, 0, (size_t)length * sizeof *key);
    for (int32_t level = 0; level < in.levels; level++) {
      const int width = in.widths[level];
      if (width == 0) continue;
      if (in.wide[level]) {
        const int64_t *column = (const int64_t *)in.columns[level] + begin;
        for (int64_t e = 0; e < length; e++) key[e] = key[e] << width | (uint64_t)column[e];
      } else {
        const int32_t *column = (const int32_t *)in.columns[level] + begin;
        for (int64_t e = 0; e < length; e++) key[e] = key[e] << width | (uint32_t)column[e];
      }
    }
  }
}

void st_build_keys(int64_t count, int32_t levels, const void *const *columns, const int8_t *wide, const int8_t *widths, uint64_t *keys,
                   int32_t threads) {
  const keyed_columns in = {count, levels, (void *const *)columns, wide, widths, keys};
  st_run(threads, blocks_of(count), true, build_keys, &in);
}

static void split_keys(const void *context, st_claims *claims, int64_t block) {
  const keyed_columns in = *(const keyed_columns *)context;
  for (; block >= 0; block = st_next(claims)) {
    const int64_t begin = block * BLOCK, length = in.count - begin < BLOCK ? in.count - begin : BLOCK;
    const uint64_t *key = in.keys + begin;
    int shift = 0;
    for (int32_t level = in.levels - 1; level >= 0; shift += in.widths[level--]) {
      const int by = in.widths[level] ? shift : 0;
      const uint64_t mask = in.widths[level] ? ~UINT64_C(0) >> (64 - in.widths[level]) : 0;
      if (in.wide[level]) {
        int64_t *column = (int64_t *)in.columns[level] + begin;
        for (int64_t e = 0; e < length; e++) column[e] = (int64_t)(key[e] >> by & mask);
      } else {
        int32_t *column = (int32_t *)in.columns[level] + begin;
        for (int64_t e = 0; e < length; e++) column[e] = (int32_t)(key[e] >> by & mask);
      }
    }
  }
}

void st_split_keys(int64_t count, int32_t levels, const uint64_t *keys, const int8_t *widths, void *const *columns, const int8_t *wide,
                   int32_t threads) {
  const keyed_columns in = {count, levels, columns, wide, widths, (uint64_t *)keys};
  st_run(threads, blocks_of(count), true, split_keys, &in);
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

static void copy(pairs to, pairs a, int64_t count) {
  memcpy(to.key, a.key, (size_t)count * sizeof *a.key);
  memcpy(to.payload, a.payload, (size_t)count * sizeof *a.payload);
}

/* Stable scatter by the digit at [low, low + bits); place[d] is where digit d begins. */
static void scatter(pairs to, pairs a, int64_t count, int low, int bits, int64_t *place) {
  const uint64_t mask = (UINT64_C(1) << bits) - 1;
  for (int64_t k = 0; k < count; k++) {
    const int64_t at = place[a.key[k] >> low & mask]++;
    to.key[at] = a.key[k];
    to.payload[at] = a.payload[k];
  }
}

static void count_digits(pairs a, int64_t count, int low, int bits, int64_t *place) {
  const uint64_t mask = (UINT64_C(1) << bits) - 1;
  memset(place, 0, sizeof *place << bits);
  for (int64_t k = 0; k < count; k++) place[a.key[k] >> low & mask]++;
}

static void begins(int64_t *place, int64_t digits) {
  int64_t sum = 0;
  for (int64_t digit = 0; digit < digits; digit++) {
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
    count_digits(source, count, low, bits, place);
    begins(place, (int64_t)1 << bits);
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
    count_digits(a, count, high - bits, bits, place);
    begins(place, (int64_t)1 << bits);
    scatter(b, a, count, high - bits, bits, place);
    for (int64_t digit = 0, begin = 0; digit < (int64_t)1 << bits; begin = place[digit++])
      if (high - bits > low) failed |= sort_part(from(b, begin), scratch, place[digit] - begin, low, high - bits);
    copy(a, b, count);
  }
  free(b.key);
  return failed;
}

static bool shared_part(int64_t length, int64_t count, int32_t threads) {
  return threads > 1 && length > CACHED && length > count / (2 * threads);
}

/* One division of pairs into parts by all threads. Each share of `a` has its own places in every part, so that the sort is stable. */
typedef struct {
  pairs a, b;
  int64_t count, shares, parts;
  int low, bits;
  int64_t *place; /* by share and part: first how many pairs there are, then where they go */
} division;

static void count_parts(const void *context, st_claims *claims, int64_t share) {
  const division in = *(const division *)context;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t begin = st_share(in.count, share, in.shares), length = st_share(in.count, share + 1, in.shares) - begin;
    count_digits(from(in.a, begin), length, in.low, in.bits, in.place + share * in.parts);
  }
}

static void scatter_parts(const void *context, st_claims *claims, int64_t share) {
  const division in = *(const division *)context;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t begin = st_share(in.count, share, in.shares), length = st_share(in.count, share + 1, in.shares) - begin;
    scatter(in.b, from(in.a, begin), length, in.low, in.bits, in.place + share * in.parts);
  }
}

/* Turn counts into places, and note where parts begin. */
static void place_parts(const division *in, int64_t *bounds) {
  int64_t sum = 0;
  for (int64_t part = 0; part < in->parts; part++) {
    bounds[part] = sum;
    for (int64_t share = 0; share < in->shares; share++) {
      const int64_t here = in->place[share * in->parts + part];
      in->place[share * in->parts + part] = sum;
      sum += here;
    }
  }
  bounds[in->parts] = sum;
}

/* Parts that are sorted by one thread each. */
typedef struct {
  pairs b;
  const int64_t *bounds;
  int64_t count;
  int low, high;
  int32_t threads;
  int *failed;
} parts_to_sort;

static void sort_parts(const void *context, st_claims *claims, int64_t part) {
  const parts_to_sort in = *(const parts_to_sort *)context;
  const pairs scratch = new_pairs(CACHED);
  bool failed = !scratch.key;
  for (; part >= 0; part = st_next(claims)) {
    const int64_t length = in.bounds[part + 1] - in.bounds[part];
    if (!failed && !shared_part(length, in.count, in.threads))
      failed = sort_part(from(in.b, in.bounds[part]), scratch, length, in.low, in.high);
  }
  if (failed) __atomic_store_n(in.failed, 1, __ATOMIC_RELAXED);
  free(scratch.key);
}

/* Sort the pairs of `a`, which is only read, into `b`, by bits [low, high). */
static int sort_team(pairs a, pairs b, int64_t count, int low, int high, int32_t threads) {
  const int bits = high - low < DIVIDE_BITS ? high - low : DIVIDE_BITS;
  const int64_t parts = (int64_t)1 << bits;
  int64_t bounds[(1 << DIVIDE_BITS) + 1];
  int64_t *place = malloc(sizeof *place * (size_t)threads * (size_t)parts);
  int failed = !place;
  if (failed) return 1;
  const division whole = {a, b, count, threads, parts, high - bits, bits, place};
  st_run(threads, threads, true, count_parts, &whole);
  place_parts(&whole, bounds);
  st_run(threads, threads, true, scatter_parts, &whole);
  free(place);
  high -= bits;
  if (high == low) return 0;
  /* all threads sort the parts together that would keep one thread busy while the others wait */
  for (int64_t part = 0; part < parts; part++) {
    const int64_t length = bounds[part + 1] - bounds[part];
    if (!shared_part(length, count, threads)) continue;
    const pairs other = new_pairs(length), here = from(b, bounds[part]);
    failed |= !other.key || sort_team(here, other, length, low, high, threads);
    if (!failed) copy(here, other, length);
    free(other.key);
  }
  const parts_to_sort rest = {b, bounds, count, low, high, threads, &failed};
  if (!failed) st_run(threads, parts, true, sort_parts, &rest);
  return failed;
}

int32_t st_sort_pairs(int64_t count, int32_t low, int32_t high, const uint64_t *keys, const uint64_t *payload, uint64_t *sorted_keys,
                      uint64_t *sorted_payload, int32_t threads) {
  /* sort_team only reads its first argument */
  const pairs a = {(uint64_t *)keys, (uint64_t *)payload}, b = {sorted_keys, sorted_payload};
  if (count > CACHED && high > low) return sort_team(a, b, count, low, high, threads);
  copy(b, a, count);
  if (high <= low) return 0;
  const pairs scratch = new_pairs(count);
  const int failed = !scratch.key || sort_part(b, scratch, count, low, high);
  free(scratch.key);
  return failed;
}

#define SUM_DUPLICATES(T, NAME, ADD)                                                                                  \
  static int64_t sum_##NAME(uint64_t *keys, T *values, int64_t begin, int64_t end) {                                  \
    int64_t last = begin;                                                                                             \
    for (int64_t e = begin + 1; e < end; e++) {                                                                       \
      if (keys[e] == keys[last]) {                                                                                    \
        values[last] = (T)(ADD);                                                                                      \
      } else {                                                                                                        \
        keys[++last] = keys[e];                                                                                       \
        values[last] = values[e];                                                                                     \
      }                                                                                                               \
    }                                                                                                                 \
    return begin < end ? last + 1 - begin : 0;                                                                        \
  }
SUM_DUPLICATES(float, f32, values[last] + values[e])
SUM_DUPLICATES(double, f64, values[last] + values[e])
SUM_DUPLICATES(uint8_t, u8, values[last] + values[e])
SUM_DUPLICATES(uint16_t, u16, values[last] + values[e])
SUM_DUPLICATES(uint32_t, u32, values[last] + values[e])
SUM_DUPLICATES(uint64_t, u64, values[last] + values[e])
SUM_DUPLICATES(uint8_t, bool, values[last] | values[e])
SUM_DUPLICATES(float _Complex, c64, values[last] + values[e])
SUM_DUPLICATES(double _Complex, c128, values[last] + values[e])

static int64_t sum_range(int32_t kind, uint64_t *keys, void *values, int64_t begin, int64_t end) {
  switch (kind) {
    case ST_F32: return sum_f32(keys, values, begin, end);
    case ST_F64: return sum_f64(keys, values, begin, end);
    case ST_I8: return sum_u8(keys, values, begin, end);
    case ST_I16: return sum_u16(keys, values, begin, end);
    case ST_I32: return sum_u32(keys, values, begin, end);
    case ST_I64: return sum_u64(keys, values, begin, end);
    case ST_BOOL: return sum_bool(keys, values, begin, end);
    case ST_C64: return sum_c64(keys, values, begin, end);
    default: return sum_c128(keys, values, begin, end);
  }
}

typedef struct {
  int32_t kind;
  uint64_t *keys;
  void *values;
  const int64_t *bounds;
  int64_t *kept;
} duplicates;

static void sum_shares(const void *context, st_claims *claims, int64_t share) {
  const duplicates in = *(const duplicates *)context;
  for (; share >= 0; share = st_next(claims))
    in.kept[share] = sum_range(in.kind, in.keys, in.values, in.bounds[share], in.bounds[share + 1]);
}

int64_t st_sum_duplicates(int64_t count, uint64_t *keys, void *values, int32_t kind, int64_t itemsize, int32_t threads) {
  int64_t bounds[ST_MOST_THREADS + 1], kept[ST_MOST_THREADS];
  if (threads > ST_MOST_THREADS) threads = ST_MOST_THREADS;
  for (int64_t thread = 0; thread <= threads; thread++) {
    int64_t at = st_share(count, thread, threads);
    while (at > 0 && at < count && keys[at] == keys[at - 1]) at++;
    bounds[thread] = at;
  }
  const duplicates in = {kind, keys, values, bounds, kept};
  st_run(threads, threads, true, sum_shares, &in);
  int64_t total = 0;
  for (int64_t thread = 0; thread < threads; thread++) {
    if (total != bounds[thread]) {
      memmove(keys + total, keys + bounds[thread], (size_t)kept[thread] * sizeof *keys);
      memmove((char *)values + total * itemsize, (char *)values + bounds[thread] * itemsize, (size_t)(kept[thread] * itemsize));
    }
    total += kept[thread];
  }
  return total;
}
