/* Sorted entries become columns of coordinates again; the values of equal keys are summed on the way. Both passes go over blocks of
   keys, which begin where a key differs from the one before. */
#include "st_columns.h"
#include "st_keys.h"
#include "st_order.h"

/* Where a block begins: behind the keys that equal the last one before it. */
static int64_t begin_of(const uint64_t *keys, int64_t count, int64_t block) {
  const int64_t at = block * ST_KEY_BLOCK;
  if (at >= count) return count;
  if (at == 0 || keys[at] != keys[at - 1]) return at;
  int64_t low = at + 1, high = count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (keys[middle] == keys[at])
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

typedef struct {
  int64_t count;
  const uint64_t *keys;
  int64_t *places;
} distinct;

static void count_distinct(const void *context, st_claims *claims, int64_t block) {
  const distinct in = *(const distinct *)context;
  for (; block >= 0; block = st_next(claims)) {
    const int64_t begin = begin_of(in.keys, in.count, block), end = begin_of(in.keys, in.count, block + 1);
    int64_t found = begin < end;
    for (int64_t e = begin + 1; e < end; e++) found += in.keys[e] != in.keys[e - 1];
    in.places[block] = found;
  }
}

int64_t st_count_distinct(int64_t count, const uint64_t *keys, int64_t *places, int32_t threads) {
  const distinct in = {count, keys, places};
  const int64_t blocks = st_key_blocks(count);
  st_run(threads, blocks, true, count_distinct, &in);
  int64_t sum = 0;
  for (int64_t block = 0; block < blocks; block++) {
    const int64_t here = places[block];
    places[block] = sum;
    sum += here;
  }
  places[blocks] = sum;
  return sum;
}

typedef struct {
  int64_t count;
  st_keyed columns;
  const uint64_t *keys, *payload;
  const int64_t *places;
  const void *values;
  int32_t kind;
  void *sums;
} written;

#define VALUES(T, NAME, GET, ADD)                                                                         \
  static inline T value_##NAME(const written *in, int64_t e) {                                            \
    T value;                                                                                              \
    GET;                                                                                                  \
    return value;                                                                                         \
  }                                                                                                       \
  static void move_##NAME(const written *in, int64_t begin, int64_t end, int64_t place) {                 \
    T *restrict to = (T *)in->sums + place - begin;                                                       \
    for (int64_t e = begin; e < end; e++) to[e] = value_##NAME(in, e);                                    \
  }                                                                                                       \
  static void sum_##NAME(const written *in, int64_t begin, int64_t end, int64_t place) {                  \
    T *restrict sum = (T *)in->sums + place - 1;                                                          \
    for (int64_t e = begin; e < end; e++) {                                                               \
      const T value = value_##NAME(in, e);                                                                \
      if (e > begin && in->keys[e] == in->keys[e - 1])                                                    \
        *sum = (T)(ADD);                                                                                  \
      else                                                                                                \
        *++sum = value;                                                                                   \
    }                                                                                                     \
  }
#define HELD(BITS)                             \
  const BITS bits = (BITS)in->payload[e];      \
  memcpy(&value, &bits, sizeof value)

VALUES(float, f32, HELD(uint32_t), *sum + value)
VALUES(double, f64, HELD(uint64_t), *sum + value)
VALUES(uint8_t, u8, HELD(uint8_t), *sum + value)
VALUES(uint16_t, u16, HELD(uint16_t), *sum + value)
VALUES(uint32_t, u32, HELD(uint32_t), *sum + value)
VALUES(uint64_t, u64, HELD(uint64_t), *sum + value)
VALUES(uint8_t, bool, HELD(uint8_t), *sum | value)
VALUES(float _Complex, c64, HELD(uint64_t), *sum + value)
VALUES(double _Complex, c128, value = ((const double _Complex *)in->values)[in->payload[e]], *sum + value)

typedef void range_writer(const written *in, int64_t begin, int64_t end, int64_t place);

typedef struct {
  range_writer *move, *sum;
} value_writers;

static value_writers writers_of(int32_t kind) {
  switch (kind) {
    case ST_F32: return (value_writers){move_f32, sum_f32};
    case ST_F64: return (value_writers){move_f64, sum_f64};
    case ST_I8: return (value_writers){move_u8, sum_u8};
    case ST_I16: return (value_writers){move_u16, sum_u16};
    case ST_I32: return (value_writers){move_u32, sum_u32};
    case ST_I64: return (value_writers){move_u64, sum_u64};
    case ST_BOOL: return (value_writers){move_bool, sum_bool};
    case ST_C64: return (value_writers){move_c64, sum_c64};
    default: return (value_writers){move_c128, sum_c128};
  }
}

/* The last key of each run of equal ones. */
static void take_distinct(const uint64_t *keys, int64_t begin, int64_t end, uint64_t *restrict taken) {
  int64_t place = 0;
  for (int64_t e = begin; e < end; e++) {
    taken[place] = keys[e];
    place += e + 1 == end || keys[e + 1] != keys[e];
  }
}

static void write_entries(const void *context, st_claims *claims, int64_t block) {
  const written in = *(const written *)context;
  const value_writers writers = writers_of(in.kind);
  uint64_t taken[ST_KEY_BLOCK];
  for (; block >= 0; block = st_next(claims)) {
    const int64_t begin = in.places ? begin_of(in.keys, in.count, block) : block * ST_KEY_BLOCK;
    const int64_t next = begin + ST_KEY_BLOCK, last = next < in.count ? next : in.count;
    const int64_t end = in.places ? begin_of(in.keys, in.count, block + 1) : last;
    const int64_t place = in.places ? in.places[block] : begin, kept = in.places ? in.places[block + 1] - place : end - begin;
    const bool repeated = kept < end - begin;
    if (repeated) take_distinct(in.keys, begin, end, taken);
    st_split_keys(&in.columns, place, kept, repeated ? taken : in.keys + begin);
    if (in.sums) (repeated ? writers.sum : writers.move)(&in, begin, end, place);
  }
}

void st_write_entries(int64_t count, int32_t levels, void *const *columns, const int8_t *wide, const int8_t *widths, const uint64_t *keys,
                      const uint64_t *payload, const int64_t *places, const void *values, int32_t kind, void *sums, int32_t threads) {
  const written in = {count, {levels, columns, wide, widths}, keys, payload, places, values, kind, sums};
  st_run(threads, st_key_blocks(count), true, write_entries, &in);
}
