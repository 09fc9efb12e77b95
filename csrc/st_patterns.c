/* Fibres with equal distances from their parents, each stored once: a table of hashes of the fibres so far, in the order of parents. */
#include <stdbool.h>
#include <stdlib.h>

#include "st_columns.h"
#include "st_pack.h"

typedef struct {
  uint64_t hash;
  int64_t parent; /* the first that has the fibre; -1 in free slots */
} met;

typedef struct {
  met *slots;
  int64_t size, taken; /* size is a power of two; half of the slots and more are free */
} met_fibres;

typedef struct {
  const void *pos, *crd;
  void *start, *distances;
  int32_t pos_wide, crd_wide, start_wide, distances_wide;
} fibres;

static int64_t slot_of(const met_fibres *table, uint64_t hash) { return (int64_t)(hash >> 20) & (table->size - 1); }

static bool enlarge(met_fibres *table) {
  met_fibres larger = {NULL, table->size ? 2 * table->size : 1024, table->taken};
  larger.slots = malloc((size_t)larger.size * sizeof *larger.slots);
  if (larger.slots == NULL) return false;
  for (int64_t k = 0; k < larger.size; k++) larger.slots[k].parent = -1;
  for (int64_t k = 0; k < table->size; k++) {
    if (table->slots[k].parent < 0) continue;
    int64_t at = slot_of(&larger, table->slots[k].hash);
    while (larger.slots[at].parent >= 0) at = (at + 1) & (larger.size - 1);
    larger.slots[at] = table->slots[k];
  }
  free(table->slots);
  *table = larger;
  return true;
}

static inline int64_t length_of(const fibres *in, int64_t parent) {
  return st_get(in->pos, in->pos_wide, parent + 1) - st_get(in->pos, in->pos_wide, parent);
}

/* Whether the fibre of a parent, from `begin` on, has the same distances as an earlier one. */
static bool alike(const fibres *in, int64_t parent, int64_t begin, int64_t length, int64_t other) {
  if (length_of(in, other) != length) return false;
  const int64_t start = st_get(in->start, in->start_wide, other);
  int64_t differ = 0;
  for (int64_t k = 0; k < length; k++)
    differ |= (st_get(in->crd, in->crd_wide, begin + k) - parent) ^ st_get(in->distances, in->distances_wide, start + k);
  return differ == 0;
}

static uint64_t hash_of(const fibres *in, int64_t parent, int64_t begin, int64_t length) {
  uint64_t hash = (uint64_t)length;
  for (int64_t k = 0; k < length; k++) {
    const uint64_t distance = (uint64_t)(st_get(in->crd, in->crd_wide, begin + k) - parent);
    hash = (hash ^ distance ^ hash >> 29) * 0x9e3779b97f4a7c15u;
  }
  return hash;
}

int64_t st_patterns(int64_t parents, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide, void *start, int32_t start_wide,
                    void *distances, int32_t distances_wide) {
  const fibres in = {pos, crd, start, distances, pos_wide, crd_wide, start_wide, distances_wide};
  met_fibres table = {NULL, 0, 0};
  int64_t used = 0, last = -1; /* the last parent with a fibre: neighbours are equal most often */
  for (int64_t p = 0; p < parents; p++) {
    const int64_t begin = st_get(pos, pos_wide, p), length = length_of(&in, p);
    st_put(start, start_wide, p, 0);
    if (length == 0) continue;
    int64_t same = last;
    if (same < 0 || !alike(&in, p, begin, length, same)) {
      if (2 * table.taken >= table.size && !enlarge(&table)) {
        free(table.slots);
        return -1;
      }
      const uint64_t hash = hash_of(&in, p, begin, length);
      int64_t at = slot_of(&table, hash);
      for (; (same = table.slots[at].parent) >= 0; at = (at + 1) & (table.size - 1))
        if (table.slots[at].hash == hash && alike(&in, p, begin, length, same)) break;
      if (same < 0) {
        table.slots[at] = (met){hash, p};
        table.taken++;
        for (int64_t k = 0; k < length; k++) st_put(distances, distances_wide, used + k, st_get(crd, crd_wide, begin + k) - p);
      }
    }
    st_put(start, start_wide, p, same < 0 ? used : st_get(start, start_wide, same));
    used += same < 0 ? length : 0;
    last = p;
  }
  free(table.slots);
  return used;
}
