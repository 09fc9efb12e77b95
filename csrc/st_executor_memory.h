/* Memory that kernels use: which arrays there are, elements outside of them, what the threads of a block share. */
#ifndef ST_EXECUTOR_MEMORY_H
#define ST_EXECUTOR_MEMORY_H

#include "st_executor_state.h"

static void st_forget(void *memory) {
  auto found = st_it.regions.find((uintptr_t)memory);
  if (found == st_it.regions.end()) return;
  delete found->second.uses;
  st_it.regions.erase(found);
}
static void st_register(void *memory, size_t bytes, size_t known, bool writable) {
  st_forget(memory);
  st_it.regions[(uintptr_t)memory] = st_region{(char *)memory, bytes, known, writable, new st_uses};
}
ST_FAST st_region *st_find(const void *memory) {
  auto next = st_it.regions.upper_bound((uintptr_t)memory);
  if (next == st_it.regions.begin()) return nullptr;
  st_region &found = (--next)->second;
  return (const char *)memory <= found.begin + found.bytes ? &found : nullptr;
}

/* The host wrote bytes from a place on. */
static void st_known(const void *place, size_t bytes) {
  st_region *const found = st_find(place);
  const size_t begin = found ? (size_t)((const char *)place - found->begin) : 0;
  if (found && begin <= found->known && begin + bytes > found->known) found->known = begin + bytes;
}

void st_out_of_bounds(int64_t index) {
  st_error("uses element %lld, which is out of bounds", (long long)index);
  st_stop();
}
/* What -fsanitize=bounds calls where a thread's own array has no such element. */
extern "C" __attribute__((visibility("hidden"))) void __ubsan_handle_out_of_bounds(void *, void *index) {
  st_out_of_bounds((int64_t)(intptr_t)index);
}
/* A GPU moves 16 bytes at a time between memory and a thread's own array. */
void st_check_wide(const void *place, int64_t index, size_t bytes, size_t own) {
  if ((uintptr_t)place % 16 == 0 && bytes % 16 == 0 && bytes <= own) return;
  if ((uintptr_t)place % 16) st_error("uses 16 bytes from element %lld on, which do not begin at a multiple of 16", (long long)index);
  else st_error("moves %zu bytes, 16 at a time, between memory and an array of %zu", bytes, own);
  st_stop();
}

/* A part of the memory that a kernel is launched with for each block; no two arrays have any of it together. */
void *st_launched_memory(size_t place, size_t bytes) {
  if (place + bytes > (size_t)st_here.shared) {
    st_error("shares bytes %zu to %zu, and the kernel is launched with %d", place, place + bytes, st_here.shared);
    st_stop();
  }
  if (!st_it.launched) st_it.launched = (char *)malloc(st_here.shared);
  char *const begin = st_it.launched + place;
  const auto [mine, fresh] = st_it.parts.emplace(place, bytes);
  if (!fresh && mine->second == bytes) return begin;
  const auto next = std::next(mine), last = std::prev(mine == st_it.parts.begin() ? st_it.parts.end() : mine);
  if (!fresh || (next != st_it.parts.end() && next->first < place + bytes) || (last->first < place && last->first + last->second > place)) {
    st_error("shares bytes %zu to %zu, some of which another array has", place, place + bytes);
    st_stop();
  }
  st_register(begin, bytes, 0, true);
  return begin;
}

void *st_shared_memory(int number, size_t size, int64_t length) {
  void *&memory = st_it.shared[std::make_pair(number, size)];
  if (!memory) {
    memory = malloc(length * size);
    st_register(memory, length * size, 0, true);
  }
  return memory;
}
static void st_forget_shared() {
  for (auto &each : st_it.shared) {
    st_forget(each.second);
    free(each.second);
  }
  for (const auto &each : st_it.parts) st_forget(st_it.launched + each.first);
  free(st_it.launched);
  st_it.shared.clear();
  st_it.parts.clear();
  st_it.launched = nullptr;
}

#endif
