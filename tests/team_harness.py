"""A team of threads of a test's own, with functions that look inside it and hold its workers up."""

from __future__ import annotations

from typing import Any

from sparsetune.compiler.native.library import foreign_interface, load_source

FUNCTIONS = """
void allow(int64_t running);
int64_t workers(void);
int64_t alone_calls(void);
void count(int64_t threads, int64_t pieces, int32_t own, int32_t *times, int64_t *by_caller);
void stall(int32_t before_seat, int32_t in_piece);
int64_t stalled(void);
int32_t alone_after(int64_t nanoseconds, int64_t for_worker, int32_t lost);
int64_t times_alone(int64_t waited, int64_t ended_ago);
void gather(void);
uint64_t woken_from(int32_t core);
int32_t rivals_hold(int32_t threads, int64_t nanoseconds);
int32_t worker_gets(int32_t policy);
"""

HARNESS = """
#include <stdint.h>
#include <time.h>
static int32_t hold_before_seat, hold_in_piece;
static int64_t held;
static void held_up(const int32_t *while_set) {
  if (!__atomic_load_n(while_set, __ATOMIC_ACQUIRE)) return;
  __atomic_fetch_add(&held, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(while_set, __ATOMIC_ACQUIRE)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
#define ST_TEAM_BEFORE_SEAT(worker) held_up(&hold_before_seat);
#include "st_team.c"

typedef struct { int32_t *times; pthread_t caller; int64_t *by_caller; } counting;

static void count_pieces(const void *context, st_claims *claims, int64_t piece) {
  const counting *in = context;
  const bool calls = pthread_equal(pthread_self(), in->caller);
  for (; piece >= 0; piece = st_next(claims)) {
    /* the caller goes on once a worker holds a piece, which it keeps until the caller has done all others */
    if (!calls) held_up(&hold_in_piece);
    while (calls && __atomic_load_n(&hold_in_piece, __ATOMIC_ACQUIRE) && !__atomic_load_n(&held, __ATOMIC_ACQUIRE)) sched_yield();
    __atomic_fetch_add(&in->times[piece], 1, __ATOMIC_RELAXED);
    if (calls) ++*in->by_caller;
    if (calls && hold_in_piece && *in->by_caller == LAST) __atomic_store_n(&hold_in_piece, 0, __ATOMIC_RELEASE);
  }
}

void count(int64_t threads, int64_t pieces, int32_t own, int32_t *times, int64_t *by_caller) {
  const counting in = {times, pthread_self(), by_caller};
  st_team = st_team_run;
  st_run(threads, pieces, own, count_pieces, &in);
}
void allow(int64_t running) { st_team_allow(running, NULL, 0, 1000000); }
int64_t workers(void) { return st_team_workers(); }
int64_t alone_calls(void) { return st_team_alone_calls(); }
void gather(void) { st_team_gather(); }
int32_t alone_after(int64_t nanoseconds, int64_t for_worker, int32_t lost) {
  team.alone = 0;
  judge(nanoseconds, for_worker, lost);
  return alone();
}
int64_t times_alone(int64_t waited, int64_t ended_ago) { /* the last time alone ended so long before the wait began */
  if (team.alone) team.alone = now() - waited - ended_ago;
  judge(waited, waited, true);
  return (team.alone_for + waited / 2) / waited;
}
uint64_t woken_from(int32_t core) {
  cpu_set_t before, mine, workers;
  sched_getaffinity(0, sizeof before, &before);
  CPU_ZERO(&mine);
  CPU_SET(core, &mine);
  sched_setaffinity(0, sizeof mine, &mine);
  st_team_allow(2, &(uint64_t){3}, 8, 1000000);
  int32_t times[LAST];
  int64_t by_caller;
  count(2, LAST, true, times, &by_caller);
  while (!__atomic_load_n(&team.asleep, __ATOMIC_ACQUIRE)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  count(2, LAST, true, times, &by_caller);
  sched_setaffinity(0, sizeof before, &before);
  sched_getaffinity(team.members[0].thread, sizeof workers, &workers);
  return *(const uint64_t *)&workers;
}
static void *spin_until(void *stop) {
  while (!__atomic_load_n((int32_t *)stop, __ATOMIC_ACQUIRE)) rest();
  return NULL;
}
int32_t rivals_hold(int32_t threads, int64_t nanoseconds) { /* what the second of two calls without workers finds */
  int32_t stop = 0;
  pthread_t rivals[threads + 1];
  for (int32_t at = 0; at < threads; at++) pthread_create(&rivals[at], NULL, spin_until, &stop);
  rivals_hold_cores();
  const int64_t begin = now();
  while (now() - begin < nanoseconds) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  const int32_t held = rivals_hold_cores();
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  for (int32_t at = 0; at < threads; at++) pthread_join(rivals[at], NULL);
  return held;
}
int32_t worker_gets(int32_t policy) { /* within five seconds, as it may begin late */
  for (int32_t wait = 0; wait < 5000; wait++, nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL)) {
    const int32_t thread = __atomic_load_n(&team.members[0].thread, __ATOMIC_RELAXED);
    if (thread && sched_getscheduler(thread) == policy) return 1;
  }
  return 0;
}
int64_t stalled(void) { return __atomic_load_n(&held, __ATOMIC_ACQUIRE); }
void stall(int32_t before_seat, int32_t in_piece) {
  held = 0;
  team.alone = 0; /* whatever calls before have met */
  __atomic_store_n(&hold_in_piece, in_piece, __ATOMIC_RELEASE);
  __atomic_store_n(&hold_before_seat, before_seat, __ATOMIC_RELEASE);
}
"""
LAST = 39
FLAGS = ("-O1", "-g", "-pthread", f"-DLAST={LAST}")


def team(name: str, first: str = "") -> Any:
    """Return a team of the test's own, of which up to four threads run."""
    library = load_source(f"/* {name} */\n#define _GNU_SOURCE\n{first}{HARNESS}", FUNCTIONS, flags=FLAGS)
    library.allow(4)
    return library


def counted(library: Any, threads: int, pieces: int, own: bool = True) -> tuple[list[int], int]:
    """Return how often each piece was done, and how many the caller did."""
    ffi = foreign_interface(FUNCTIONS)
    times, by_caller = ffi.new("int32_t[]", pieces + 1), ffi.new("int64_t *")
    library.count(threads, pieces, own, times, by_caller)
    return list(times)[:pieces], by_caller[0]
