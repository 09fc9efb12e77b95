/* A map from 64-bit keys to ordinals 0, 1, 2 ... in the order of insertion: the index of a hashed workspace. */
#ifndef ST_MAP_H
#define ST_MAP_H

#include "st_hash.h"
#include "st_runtime.h"

typedef struct {
  int64_t key, ordinal; /* ordinal -1: free */
} st_map_slot;

typedef struct {
  st_map_slot *slots; /* a power of two, at most half of them taken */
  int64_t *keys;      /* by ordinal */
  int64_t size, slot_count;
  bool failed; /* there was no memory */
} st_map;

static inline void st_map_free(st_map *map) {
  free(map->slots);
  free(map->keys);
  *map = (st_map){0};
}

static inline int64_t st_map_probe(const st_map *map, int64_t key) {
  const int64_t mask = map->slot_count - 1;
  int64_t slot = st_hash_slot(key, map->slot_count);
  while (map->slots[slot].ordinal >= 0 && map->slots[slot].key != key) slot = (slot + 1) & mask;
  return slot;
}

/* Make room for `count` keys in all; false (and `failed`) when there is no memory. */
static inline bool st_map_reserve(st_map *map, int64_t count) {
  int64_t slots = map->slot_count < 16 ? 16 : map->slot_count;
  while (slots / 2 < count && slots < INT64_MAX / 4) slots *= 2;
  if (slots == map->slot_count) return true;
  st_map_slot *table = st_allocate(slots, sizeof *table);
  int64_t *keys = table ? realloc(map->keys, st_bytes(slots / 2, sizeof *keys)) : NULL;
  if (!keys) {
    free(table);
    map->failed = true;
    return false;
  }
  free(map->slots);
  map->slots = table;
  map->keys = keys;
  map->slot_count = slots;
  for (int64_t slot = 0; slot < slots; slot++) table[slot].ordinal = -1;
  for (int64_t ordinal = 0; ordinal < map->size; ordinal++) table[st_map_probe(map, keys[ordinal])] = (st_map_slot){keys[ordinal], ordinal};
  return true;
}

/* The ordinal of a key, a new one if the key was not there; 0 with `failed` set when there is no memory. */
static inline int64_t st_map_insert(st_map *map, int64_t key) {
  int64_t slot = st_map_probe(map, key);
  if (map->slots[slot].ordinal >= 0) return map->slots[slot].ordinal;
  if (map->size >= map->slot_count / 2) {
    if (!st_map_reserve(map, map->size + 1)) return 0;
    slot = st_map_probe(map, key);
  }
  map->slots[slot] = (st_map_slot){key, map->size};
  map->keys[map->size] = key;
  return map->size++;
}

static inline int64_t st_map_find(const st_map *map, int64_t key) { return map->slots[st_map_probe(map, key)].ordinal; }

/* Whether every insertion so far found memory. */
static inline bool st_map_sound(const st_map *map) { return !map->failed; }

static inline int64_t st_map_size(const st_map *map) { return map->size; }

static inline int64_t st_map_key(const st_map *map, int64_t ordinal) { return map->keys[ordinal]; }

/* Forget all keys and keep the memory. Removing the youngest first leaves every older key reachable. */
static inline void st_map_clear(st_map *map) {
  if (map->size > map->slot_count / 8)
    for (int64_t slot = 0; slot < map->slot_count; slot++) map->slots[slot].ordinal = -1;
  else
    for (int64_t ordinal = map->size - 1; ordinal >= 0; ordinal--) map->slots[st_map_probe(map, map->keys[ordinal])].ordinal = -1;
  map->size = 0;
}

#endif
