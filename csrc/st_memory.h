/* Memory of kernels: aligned, in huge pages where it is large, and kept for the next call when it is released. All of it comes from the
   C library, so that `free` takes it too. NULL means that there is none; a length of 0 gets memory too. */
#ifndef ST_MEMORY_H
#define ST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "st_called.h"

#ifdef __linux__
#include <sys/mman.h>
size_t malloc_usable_size(void *memory); /* malloc.h would bring stdio.h along */
#endif

#define ST_ALIGNMENT 128 /* bytes: two cache lines, which processors fetch together, and a multiple of the widest vector register */

static inline size_t st_bytes(int64_t length, size_t size) {
  if (length < 0 || (uint64_t)length > (SIZE_MAX / 2 - 2 * ST_ALIGNMENT) / size) return 0;
  return ((size_t)length * size / ST_ALIGNMENT + 1) * ST_ALIGNMENT;
}

/* Spares: released blocks, which the system would have to clear before it gave them out again. One set serves all kernels of a
   process: the loader of a kernel points `st_spares` to it; kernels without one free everything. Blocks far smaller than the 128 KiB
   from which on the C library returns what is free are kept too: the arrays of one result, released together, are more than that. */

enum { ST_SPARES = 64, ST_SPARE_LEAST = 1 << 14, ST_SPARE_MOST = 1 << 26 }; /* blocks, bytes of a block, bytes of all */
enum { ST_FREED = 4 }; /* blocks that were too large to keep, and are remembered: two results of two arrays */

typedef struct {
  int32_t busy, count;
  size_t bytes;
  struct {
    void *memory;
    size_t bytes;
  } blocks[ST_SPARES]; /* the oldest first */
  size_t freed[ST_FREED]; /* bytes, the latest first */
} st_spare_set;

_Static_assert(sizeof(st_spare_set) <= 4096, "callers make one of 4096 zero bytes");

extern __attribute__((weak)) st_spare_set *st_spares;

/* Give memory back: to the spares, which free the oldest when they hold too much, or to the system. */
__attribute__((weak)) void st_release(void *memory);

ST_CALLED void *st_allocate(int64_t length, size_t size);
ST_CALLED void *st_allocate_zeros(int64_t length, size_t size);

/* Memory for an array that grows: room for `capacity` elements, which is more than most need, or the largest spare below that, and what
   it has room for. No spare is taken where a block that was too large for one was released before: the array will probably outgrow it
   too, and then it is copied, or the threads that fill it leave their parts elsewhere. */
ST_CALLED void *st_reserve(int64_t *capacity, size_t size);

/* Make room for `needed` elements, at least doubling the capacity; NULL, and nothing changed, when there is no memory. Blocks that
   have pages of their own move without a copy, and keep their alignment, so that larger arrays get such a block at once: the unused
   part is never touched. realloc might copy smaller blocks twice. */
ST_CALLED void *st_grow(void *array, int64_t *capacity, int64_t needed, size_t size);

/* Give back what an array holds beyond `length` elements, unless it is a small part of it: the next array may be a little longer. */
ST_CALLED void *st_trim(void *array, int64_t length, size_t size);

#ifndef ST_LINKED

__attribute__((weak)) st_spare_set *st_spares = NULL;

/* Whether there is a set and this thread has locked it. Nobody waits: a thread that finds it busy asks the system. Sanitizers see
   each block for itself. */
static inline bool st_spares_enter(void) {
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  return st_spares && !__atomic_exchange_n(&st_spares->busy, 1, __ATOMIC_ACQUIRE);
#else
  return false;
#endif
}

static inline void st_spares_leave(void) { __atomic_store_n(&st_spares->busy, 0, __ATOMIC_RELEASE); }

static inline void *st_spares_remove(int32_t place) {
  st_spare_set *set = st_spares;
  void *memory = set->blocks[place].memory;
  set->bytes -= set->blocks[place].bytes;
  memmove(&set->blocks[place], &set->blocks[place + 1], (size_t)(--set->count - place) * sizeof set->blocks[0]);
  return memory;
}

/* A spare of at least `least` and at most `most` bytes, the smallest, or the largest if asked; NULL if there is none. */
static void *st_spare(size_t least, size_t most, bool largest, size_t *bytes) {
  void *memory = NULL;
  if (most < ST_SPARE_LEAST || !st_spares_enter()) return NULL;
  int32_t best = -1;
  for (int32_t place = 0; place < st_spares->count; place++) {
    const size_t here = st_spares->blocks[place].bytes;
    if (here < least || here > most) continue;
    if (best < 0 || (here > st_spares->blocks[best].bytes) == largest) best = place;
  }
  if (best >= 0) {
    *bytes = st_spares->blocks[best].bytes;
    memory = st_spares_remove(best);
  }
  st_spares_leave();
  return memory;
}

/* Remember a block that is too large to keep. */
static inline void st_note_freed(size_t bytes) {
  if (!st_spares_enter()) return;
  memmove(st_spares->freed + 1, st_spares->freed, (ST_FREED - 1) * sizeof st_spares->freed[0]);
  st_spares->freed[0] = bytes;
  st_spares_leave();
}

/* Whether a block that was too large to keep was not much larger than this; it is forgotten then. */
static inline bool st_was_freed(size_t bytes) {
  enum { MUCH = 4 };
  if (bytes < ST_SPARE_MOST / MUCH || !st_spares_enter()) return false;
  int32_t place = 0;
  while (place < ST_FREED && (!st_spares->freed[place] || st_spares->freed[place] / MUCH > bytes)) place++;
  if (place < ST_FREED) st_spares->freed[place] = 0;
  st_spares_leave();
  return place < ST_FREED;
}

__attribute__((weak)) void st_release(void *memory) {
#ifdef __linux__
  const size_t bytes = memory && st_spares ? malloc_usable_size(memory) : 0;
  if (bytes > ST_SPARE_MOST) st_note_freed(bytes);
  if (bytes >= ST_SPARE_LEAST && bytes <= ST_SPARE_MOST && (uintptr_t)memory % ST_ALIGNMENT == 0 && st_spares_enter()) {
    while (st_spares->count == ST_SPARES || st_spares->bytes + bytes > ST_SPARE_MOST) free(st_spares_remove(0));
    st_spares->blocks[st_spares->count].memory = memory;
    st_spares->blocks[st_spares->count++].bytes = bytes;
    st_spares->bytes += bytes;
    st_spares_leave();
    return;
  }
#endif
  free(memory);
}

static inline void st_spares_drop(void) {
  if (!st_spares_enter()) return;
  while (st_spares->count) free(st_spares_remove(0));
  st_spares_leave();
}

/* Large arrays in huge pages, where the system grants them on request: the first touch of a small page costs more than what a kernel
   writes into it. All pages of the array are asked for, as the system moves (below) only blocks with one kind of pages. */
static inline void *st_in_huge_pages(void *array, size_t bytes) {
#ifdef MADV_HUGEPAGE
  enum { PAGE = 4096, LARGE = 1 << 22 };
  if (array && bytes >= LARGE) {
    const uintptr_t first = (uintptr_t)array / PAGE * PAGE, end = ((uintptr_t)array + bytes + PAGE - 1) / PAGE * PAGE;
    madvise((void *)first, end - first, MADV_HUGEPAGE);
  }
#endif
  return array;
}

ST_CALLED void *st_allocate(int64_t length, size_t size) {
  size_t bytes = st_bytes(length, size);
  if (!bytes) return NULL;
  void *memory = st_spare(bytes, bytes + bytes / 4, false, &bytes);
  if (memory) return memory;
  memory = aligned_alloc(ST_ALIGNMENT, bytes);
  if (!memory) {
    st_spares_drop();
    memory = aligned_alloc(ST_ALIGNMENT, bytes);
  }
  return st_in_huge_pages(memory, bytes);
}

ST_CALLED void *st_allocate_zeros(int64_t length, size_t size) {
  void *memory = st_allocate(length, size);
  if (memory) memset(memory, 0, st_bytes(length, size));
  return memory;
}

ST_CALLED void *st_reserve(int64_t *capacity, size_t size) {
  enum { TOO_SMALL = 128 };
  size_t bytes = st_bytes(*capacity, size);
  void *memory = st_was_freed(bytes) ? NULL : st_spare(bytes / TOO_SMALL, bytes, true, &bytes);
  if (!memory) return st_allocate(*capacity, size);
  *capacity = (int64_t)(bytes / size);
  return memory;
}

/* A block that realloc copied may have any alignment. */
static inline void *st_realigned(void *array, size_t bytes, size_t used) {
  if ((uintptr_t)array % ST_ALIGNMENT == 0) return array;
  void *memory = aligned_alloc(ST_ALIGNMENT, bytes);
  if (!memory) return array;
  memcpy(memory, array, used);
  free(array);
  return memory;
}

ST_CALLED void *st_grow(void *array, int64_t *capacity, int64_t needed, size_t size) {
  enum { LARGE = 1 << 20, OWN_PAGES = 1 << 25 };
  int64_t wanted = *capacity < 16 ? 16 : 2 * *capacity;
  if (wanted < needed) wanted = needed;
  if (wanted > LARGE / (int64_t)size && wanted < OWN_PAGES / (int64_t)size) wanted = OWN_PAGES / (int64_t)size;
  const size_t bytes = st_bytes(wanted, size), used = (size_t)*capacity * size;
  void *memory = NULL;
  if (bytes && used >= OWN_PAGES) {
    memory = st_realigned(st_in_huge_pages(realloc(array, bytes), bytes), bytes, used);
  } else if (bytes) {
    memory = st_allocate(wanted, size);
    if (memory && array) memcpy(memory, array, used);
    if (memory) st_release(array);
  }
  if (memory) *capacity = wanted;
  return memory;
}

ST_CALLED void *st_trim(void *array, int64_t length, size_t size) {
  enum { SMALL_PART = 8 };
  const size_t bytes = st_bytes(length, size);
#ifdef __linux__
  if (st_spares && malloc_usable_size(array) <= bytes + bytes / SMALL_PART) return array;
#endif
  void *memory = realloc(array, bytes);
  return memory ? memory : array;
}

#endif

#endif
