/* Cores that threads of this process hold which are not the team's.

   Threads of an OpenMP runtime spin for some milliseconds after each of its loops. Calls in turn with those of a library that has one
   then find no core for workers: batch threads wait until the spinning thread has had its turn, and a short call is over by then. So
   workers ask for short turns where the process itself holds the cores: a thread that wakes gets the core of one that asks for longer
   turns. From other processes they take none, which would take them back while a worker holds a piece and its caller waits. */
#ifndef ST_TEAM_RIVALS_H
#define ST_TEAM_RIVALS_H

#include "st_team_state.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

enum { /* nanoseconds */
  WORTH_WAKING = 30000, /* shorter calls are over before a worker that sleeps is awake */
  TURN = 100000,        /* the shortest that Linux 6.12 gives; older ones give all threads the same */
  WATCHED = 40000000,   /* many ticks, by which the system counts the time of threads that run */
  LONG_AGO = 400000000, /* what rivals did since then says nothing of now */
};

/* Let a worker take cores away from threads that run, or wait for its turn as batch threads do. Where all cores are busy, one that is
   woken and takes cores may take that of its caller. */
static void take_cores(int32_t thread, bool takes) {
#if defined(SCHED_BATCH) && defined(SYS_sched_setattr)
  const int now_has = sched_getscheduler(thread), policy = takes ? SCHED_OTHER : SCHED_BATCH;
  if (now_has != SCHED_OTHER && now_has != SCHED_BATCH) return; /* somebody has chosen another one */
  const struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t turn, deadline, period;
  } asked = {sizeof asked, (uint32_t)policy, 0, getpriority(PRIO_PROCESS, (id_t)thread), 0, takes ? TURN : 0, 0, 0};
  if (syscall(SYS_sched_setattr, thread, &asked, 0)) sched_setscheduler(thread, policy, &(struct sched_param){0});
#else
  (void)thread, (void)takes;
#endif
}

static void let_workers_take_cores(bool take) {
  if (__atomic_exchange_n(&team.takes, take, __ATOMIC_RELAXED) == take) return;
  for (int32_t at = 0; at < __atomic_load_n(&team.workers, __ATOMIC_RELAXED); at++) {
    const int32_t thread = __atomic_load_n(&team.members[at].thread, __ATOMIC_RELAXED);
    if (thread) take_cores(thread, take);
  }
}

static int64_t spent(clockid_t clock) {
  struct timespec time;
  return clock_gettime(clock, &time) ? 0 : (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Processor time, in nanoseconds, of all threads of the process but the caller and the workers. */
static int64_t spent_by_rivals(void) {
  int64_t time = -spent(CLOCK_THREAD_CPUTIME_ID);
  for (int32_t at = 0; at < __atomic_load_n(&team.workers, __ATOMIC_RELAXED); at++) {
    const uint32_t thread = (uint32_t)__atomic_load_n(&team.members[at].thread, __ATOMIC_RELAXED);
    if (thread) time -= spent((clockid_t)(~thread << 3 | 6)); /* Linux's clock of a thread */
  }
  return time + spent(CLOCK_PROCESS_CPUTIME_ID); /* last: it has of the others what they had at their last tick, or when they were asked */
}

/* A call missed workers: return whether rivals held a core, for a quarter of the time since a call of this thread missed some before, and
   let workers take cores then, and only then. Several threads may be here at once, which may lose a reading. */
static bool rivals_hold_cores(void) {
  static __thread char caller; /* its place tells callers apart: the time of another one would count as that of a rival */
  const int64_t at = now(), since = at - __atomic_load_n(&team.missed, __ATOMIC_RELAXED);
  if (since < WATCHED) return __atomic_load_n(&team.takes, __ATOMIC_RELAXED);
  const int64_t spent = spent_by_rivals(), before = __atomic_exchange_n(&team.rivals, spent, __ATOMIC_RELAXED);
  __atomic_store_n(&team.missed, at, __ATOMIC_RELAXED);
  const bool same = __atomic_exchange_n(&team.reader, &caller, __ATOMIC_RELAXED) == &caller;
  if (same && since < LONG_AGO) let_workers_take_cores(4 * (spent - before) > since);
  return __atomic_load_n(&team.takes, __ATOMIC_RELAXED);
}

#endif
