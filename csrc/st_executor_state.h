/* What the machine of st_executor.h knows: who used each element of memory, where each thread waits, and the error, if any. */
#ifndef ST_EXECUTOR_STATE_H
#define ST_EXECUTOR_STATE_H

#undef _FORTIFY_SOURCE /* takes a jump to another fibre's stack for a fault */

#include <setjmp.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "st_executor.h"

/* Of these files where they are included into kernels, whose calls must stay as they are. */
#ifdef __clang__
#define ST_FAST __attribute__((noinline))
#else
#define ST_FAST __attribute__((noinline, optimize("O2")))
#endif

/* Who used an element, and after how many barriers of its block and its warp. */
struct st_use {
  int64_t block = -1;
  int warp = -1, thread = -1; /* -2: several */
  unsigned of_block = 0, of_warp = 0;
};
struct st_cell {
  int64_t launch = 0;
  st_use write, update, read; /* update: atomically */
};
struct st_uses {
  size_t grain = 0; /* bytes of an element */
  std::vector<st_cell> cells;
  std::vector<bool> written;
};

enum st_state { ST_READY, ST_AT_BLOCK, ST_AT_WARP, ST_MET, ST_DONE };
struct st_fibre {
  ucontext_t context; /* where it begins */
  jmp_buf left;       /* where it was left */
  bool begun;
  st_state state;
  const void *site;
  int apart; /* of a shuffle; 0 at a barrier */
  int lanes; /* of the warp that waits */
  bool orders;  /* whether accesses before the wait are ordered before those after it */
  unsigned met; /* the lanes that were where this one was */
  unsigned of_block, of_warp;
  char sent[16];
};

/* One processor for all kernels of a file; not for several threads of the processor at once. */
struct st_machine {
  enum { STACK = 128 * 1024, MOST_THREADS = 1024, STALE = 1 << 20 };
  std::map<uintptr_t, st_region> regions;
  std::map<std::pair<int, size_t>, void *> shared;
  char *launched = nullptr;        /* what a block is launched with, */
  std::map<size_t, size_t> parts; /* and the bytes of its parts, by where they begin */
  std::vector<st_fibre> fibres;
  void (*body)(void *) = nullptr;
  void *given = nullptr;
  jmp_buf scheduler;
  char *stacks = nullptr;
  char error[400] = "";
  int64_t launch = 0;
  int64_t allowed = -1; /* how many further allocations succeed; -1: all */
  int lanes = 32; /* of the kernel's warps */
  bool failed = false;
};
static st_machine st_it;
st_now st_here;
int64_t st_added = 0;

static void st_error(const char *form, ...) __attribute__((format(printf, 1, 2)));
static void st_error(const char *form, ...) {
  if (!st_it.failed) {
    va_list given;
    va_start(given, form);
    const int used = snprintf(st_it.error, sizeof st_it.error, "block %lld, thread %d: ", (long long)st_here.block, st_here.thread);
    vsnprintf(st_it.error + used, sizeof st_it.error - used, form, given);
    va_end(given);
  }
  st_it.failed = true;
}
/* Ends the fibre that found an error; it never continues. */
static void st_stop() { _longjmp(st_it.scheduler, 1); }

#endif
