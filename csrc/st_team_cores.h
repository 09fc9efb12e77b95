/* Which cores the team has, and whether it has them.

   A woken worker may run on any core but the caller's: if the system put it into the queue of that core although others are idle, it
   would wait for the next tick, and a thousand short calls would be over by then.

   A worker that loses its core while it holds a piece keeps the caller waiting until it gets another turn. If that took longer than
   the caller's own work, the caller alone would have been as fast, and callers work alone for a few times as long. They also work
   alone after a short call that spent most of its time waiting for a core itself: then there are no cores for workers, which would
   only disturb it. What takes a core now and then costs little so. Where a call waits again soon after, somebody keeps the core:
   callers work alone for twice as long each time. */
#ifndef ST_TEAM_CORES_H
#define ST_TEAM_CORES_H

#include "st_team_state.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SHORT = 5000000 /* nanoseconds of work of a call that workers without a core of their own cannot make faster */ };
enum { ALONE = 3, LONG_ALONE = 25 }; /* callers work alone for so many times as long as a call has waited for cores, first and at most */

/* How often this thread has lost its core to another one. */
static int64_t losses(void) {
#ifdef RUSAGE_THREAD
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
#else
  return 0;
#endif
}

static int64_t most_running(void) {
  int64_t running = __atomic_load_n(&allowed.running, __ATOMIC_RELAXED);
  if (running) return running;
#ifdef __linux__
  cpu_set_t cores;
  running = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
#else
  running = sysconf(_SC_NPROCESSORS_ONLN);
#endif
  __atomic_store_n(&allowed.running, running < 1 ? 1 : running, __ATOMIC_RELAXED);
  return running < 1 ? 1 : running;
}

/* Deny this thread's core to all workers, of which some sleep and will be woken. */
static void keep_core(void) {
#ifdef __linux__
  const int32_t core = sched_getcpu(), workers = __atomic_load_n(&team.workers, __ATOMIC_RELAXED);
  if (core < 0 || core >= 8 * allowed.bytes) return;
  uint64_t mask[MASK_BYTES / 8], any = 0;
  for (int32_t at = 0; at < workers; at++) {
    st_member *member = &team.members[at];
    const int32_t thread = __atomic_load_n(&member->thread, __ATOMIC_RELAXED);
    if (!thread || __atomic_load_n(&member->off, __ATOMIC_RELAXED) == core + 1) continue;
    if (!any) {
      memcpy(mask, allowed.mask, (size_t)allowed.bytes);
      mask[core / 64] &= ~((uint64_t)1 << core % 64);
      for (int64_t word = 0; word < allowed.bytes / 8; word++) any |= mask[word];
      if (!any) return;
    }
    sched_setaffinity(thread, (size_t)allowed.bytes, (const cpu_set_t *)mask); /* where that is forbidden, the system chooses */
    __atomic_store_n(&member->off, core + 1, __ATOMIC_RELAXED);
  }
#endif
}

/* Nanoseconds for which this thread has been ready without a core so far (Linux's schedstat); 0 where the system does not say. */
static int64_t waits_for_cores(void) {
  char text[64] = {0};
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  const char *second = length > 0 ? strchr(text, ' ') : NULL;
  return second ? strtoll(second, NULL, 10) : 0;
}

/* For how many of the last nanoseconds the caller had no core. Threads seldom lose it where there are enough; for one that has not,
   nothing else is read. */
static int64_t without_core(int64_t nanoseconds) {
  static __thread int64_t times, waits;
  if (nanoseconds < OFF_CORE) return 0;
  const int64_t now_lost = losses(), before = waits;
  if (now_lost == times) return 0;
  times = now_lost;
  waits = waits_for_cores();
  return before && waits - before < nanoseconds ? waits - before : 0;
}

/* Let callers work alone, since one has waited for so many nanoseconds: for twice as many times as long as the last time if that ended
   no longer ago than it took. Several threads may be here at once, which may lose a doubling. */
static void stay_alone(int64_t waited) {
  const int64_t at = now(), until = __atomic_load_n(&team.alone, __ATOMIC_RELAXED);
  const int64_t before = __atomic_load_n(&team.alone_for, __ATOMIC_RELAXED), times = __atomic_load_n(&team.alone_times, __ATOMIC_RELAXED);
  const int64_t twice = until && at - waited - until < before ? (2 * times < LONG_ALONE ? 2 * times : LONG_ALONE) : ALONE;
  __atomic_store_n(&team.alone_times, twice, __ATOMIC_RELAXED);
  __atomic_store_n(&team.alone_for, twice * waited, __ATOMIC_RELAXED);
  __atomic_store_n(&team.alone, at + twice * waited, __ATOMIC_RELAXED);
}

/* Let callers work alone for a while where this call, of so many nanoseconds, waited too long for cores. */
static void judge(int64_t nanoseconds, int64_t for_worker, bool lost) {
  const int64_t own = without_core(nanoseconds);
  const bool stalled = lost && for_worker > OFF_CORE && 2 * for_worker > nanoseconds;
  const bool crowded = 2 * own > nanoseconds && nanoseconds - own < SHORT;
  if (stalled || crowded) stay_alone(stalled ? for_worker : own);
}

/* Whether this call is to work alone, as callers do for the time being. */
static bool alone(void) {
  const int64_t until = __atomic_load_n(&team.alone, __ATOMIC_RELAXED);
  if (!until || now() >= until) return false;
  __atomic_fetch_add(&team.alone_calls, 1, __ATOMIC_RELAXED);
  return true;
}

#endif
