/* Sorting entries by keys that are made of their coordinates, by all threads.

   One pass divides the entries by the most significant bits into parts that fit into a cache, and makes keys on the way; one thread
   each then sorts the parts (st_pairs.h). */
#include "st_order.h"

#include "st_columns.h"
#include "st_items.h"
#include "st_keys.h"
#include "st_pairs.h"

/* What is sorted: pairs, or else entries, whose keys and payloads are made block by block. */
typedef struct {
  st_keyed columns;
  const void *values;
  int64_t itemsize;
  pairs made;
} unsorted;

#define WIDEN(T) \
  for (int64_t e = 0; e < length; e++) to[e] = ((const T *)in->values)[begin + e];

static void load_payload(const unsorted *in, int64_t begin, int64_t length, uint64_t *restrict to) {
  switch (in->itemsize) {
    case 1: WIDEN(uint8_t) break;
    case 2: WIDEN(uint16_t) break;
    case 4: WIDEN(uint32_t) break;
    case 8: WIDEN(uint64_t) break;
    default:
      for (int64_t e = 0; e < length; e++) to[e] = (uint64_t)(begin + e);
  }
}

/* One division into parts by all threads. Each share has its own places in every part, so that the sort is stable. */
typedef struct {
  const unsorted *in;
  pairs out;
  int64_t count, shares, parts;
  int low, bits;
  int64_t *place; /* by share and part: first how many pairs there are, then where they go */
} division;

/* The leading columns that have the uppermost bits of keys, and how many bits these have. */
static st_keyed leading_columns(st_keyed all, int bits, int *found) {
  *found = 0;
  for (int32_t level = 0; level < all.levels; level++) {
    *found += all.widths[level];
    if (*found >= bits) all.levels = level + 1;
  }
  return all;
}

static void count_parts(const void *context, st_claims *claims, int64_t share) {
  const division in = *(const division *)context;
  int leading_bits = 0;
  const st_keyed leading = leading_columns(in.in->columns, in.bits, &leading_bits);
  uint64_t block[ST_KEY_BLOCK];
  for (; share >= 0; share = st_next(claims)) {
    const int64_t end = st_share(in.count, share + 1, in.shares);
    int64_t *place = in.place + share * in.parts, length;
    memset(place, 0, sizeof *place * (size_t)in.parts);
    for (int64_t e = st_share(in.count, share, in.shares); e < end; e += length) {
      length = end - e < ST_KEY_BLOCK ? end - e : ST_KEY_BLOCK;
      if (in.in->made.key) {
        count_digits(in.in->made.key + e, length, in.low, in.bits, place);
      } else {
        st_build_keys(&leading, e, length, block);
        count_digits(block, length, leading_bits - in.bits, in.bits, place);
      }
    }
  }
}

static void scatter_parts(const void *context, st_claims *claims, int64_t share) {
  const division in = *(const division *)context;
  uint64_t key[ST_KEY_BLOCK], payload[ST_KEY_BLOCK];
  for (; share >= 0; share = st_next(claims)) {
    const int64_t end = st_share(in.count, share + 1, in.shares);
    for (int64_t e = st_share(in.count, share, in.shares), length; e < end; e += length) {
      length = end - e < ST_KEY_BLOCK ? end - e : ST_KEY_BLOCK;
      pairs block = {key, payload};
      if (in.in->made.key) {
        block = from(in.in->made, e);
      } else {
        st_build_keys(&in.in->columns, e, length, key);
        load_payload(in.in, e, length, payload);
      }
      scatter(in.out, block, length, in.low, in.bits, in.place + share * in.parts);
    }
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
  pairs all;
  const int64_t *bounds;
  int64_t count;
  int low, high;
  int32_t threads;
  int *failed;
} parts_to_sort;

/* Whether a part is so long that all threads sort it together: one alone would keep the others waiting. */
static bool shared_part(int64_t length, int64_t count, int32_t threads) {
  return threads > 1 && length > CACHED && length > count / (2 * threads);
}

static void sort_parts(const void *context, st_claims *claims, int64_t part) {
  const parts_to_sort in = *(const parts_to_sort *)context;
  const pairs scratch = new_pairs(CACHED);
  bool failed = !scratch.key;
  for (; part >= 0; part = st_next(claims)) {
    const int64_t length = in.bounds[part + 1] - in.bounds[part];
    if (!failed && !shared_part(length, in.count, in.threads))
      failed = sort_part(from(in.all, in.bounds[part]), scratch, length, in.low, in.high);
  }
  if (failed) __atomic_store_n(in.failed, 1, __ATOMIC_RELAXED);
  free(scratch.key);
}

typedef struct {
  pairs to, from;
  int64_t count;
} copied_pairs;

static void copy_pairs(const void *context, st_claims *claims, int64_t block) {
  const copied_pairs in = *(const copied_pairs *)context;
  for (; block >= 0; block = st_next(claims)) {
    const int64_t begin = block * CACHED, length = in.count - begin < CACHED ? in.count - begin : CACHED;
    copy(from(in.to, begin), from(in.from, begin), length);
  }
}

/* Sort what is `in` into `out`, by bits [low, high). */
static int sort_team(const unsorted *in, pairs out, int64_t count, int low, int high, int32_t threads) {
  const int bits = high - low < DIVIDE_BITS ? high - low : DIVIDE_BITS;
  const int64_t parts = (int64_t)1 << bits, shares = st_fine_shares(threads);
  int64_t bounds[(1 << DIVIDE_BITS) + 1];
  int64_t *place = malloc(sizeof *place * (size_t)shares * (size_t)parts);
  int failed = !place;
  if (failed) return 1;
  high -= bits;
  const division whole = {in, out, count, shares, parts, high, bits, place};
  st_run(threads, shares, true, count_parts, &whole);
  place_parts(&whole, bounds);
  st_run(threads, shares, true, scatter_parts, &whole);
  free(place);
  if (high == low) return 0;
  for (int64_t part = 0; part < parts && !failed; part++) {
    const int64_t length = bounds[part + 1] - bounds[part];
    if (!shared_part(length, count, threads)) continue;
    const unsorted here = {.made = from(out, bounds[part])};
    const pairs other = new_pairs(length);
    const copied_pairs back = {here.made, other, length};
    failed = !other.key || sort_team(&here, other, length, low, high, threads);
    if (!failed) st_run(threads, (length + CACHED - 1) / CACHED, true, copy_pairs, &back);
    free(other.key);
  }
  const parts_to_sort rest = {out, bounds, count, low, high, threads, &failed};
  if (!failed) st_run(threads, parts, true, sort_parts, &rest);
  return failed;
}

int32_t st_sort_entries(int64_t count, int32_t levels, void *const *columns, const int8_t *wide, const int8_t *widths, int32_t low,
                        const void *values, int64_t itemsize, uint64_t *keys, uint64_t *payload, int32_t threads) {
  const unsorted in = {{levels, columns, wide, widths}, values, itemsize, {NULL, NULL}};
  const pairs out = {keys, payload};
  const int high = st_key_bits(&in.columns);
  if (count > CACHED && high > low) return sort_team(&in, out, count, low, high, threads);
  st_build_keys(&in.columns, 0, count, keys);
  load_payload(&in, 0, count, payload);
  if (high <= low) return 0;
  const pairs scratch = new_pairs(count);
  const int failed = !scratch.key || sort_part(out, scratch, count, low, high);
  free(scratch.key);
  return failed;
}
