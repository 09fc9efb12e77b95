/* The team of threads of a process. See st_team.h.

   A caller puts its job into a slot with seats for workers, calls, and begins. A worker takes a seat, claims pieces until there are
   none, and leaves. Once the caller finds no piece either, it removes the free seats, so that no worker enters any more, and waits
   for those inside: each holds a piece. A worker that has not come by then, because it was not woken yet, has no core, or could not
   be made, is not waited for. Slots live as long as the process, jobs as long as the call: a job is looked at only from a seat.

   How threads wait is in st_team_waiting.h, which cores they have in st_team_cores.h and st_team_rivals.h. */
#define _GNU_SOURCE
#include "st_team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "st_team_cores.h"
#include "st_team_rivals.h"
#include "st_team_state.h"
#include "st_team_waiting.h"

#ifndef ST_TEAM_BEFORE_SEAT /* tests delay workers here */
#define ST_TEAM_BEFORE_SEAT(worker)
#endif

/* Workers. */

static bool take_seat(st_slot *slot) {
  uint32_t word = __atomic_load_n(&slot->word, __ATOMIC_RELAXED);
  while (word & SEATS_MASK)
    if (__atomic_compare_exchange_n(&slot->word, &word, word - SEAT + INSIDE, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return true;
  return false;
}

static void leave(st_slot *slot) {
  const uint32_t word = __atomic_fetch_sub(&slot->word, INSIDE, __ATOMIC_RELEASE);
  if ((word & AWAITED) && (word & INSIDE_MASK) == INSIDE) wake(&slot->word, 1);
}

/* Take part in a job that has a seat. Returns whether there was one. */
static bool serve(int32_t worker, bool *woken, int64_t *lost) {
  bool served = false;
  for (st_slot *slot = team.slots; slot < team.slots + SLOTS; slot++) {
    if (!(__atomic_load_n(&slot->word, __ATOMIC_RELAXED) & SEATS_MASK)) continue;
    ST_TEAM_BEFORE_SEAT(worker)
    if (!take_seat(slot)) continue;
    served = true;
    if (*woken && (__atomic_load_n(&slot->word, __ATOMIC_RELAXED) & SEATS_MASK)) wake(called, WOKEN);
    *woken = false;
    const st_job *job = &slot->job;
    st_claims claims = {job->lanes, job->count, worker % job->count, job->count, false};
    __builtin_prefetch(job->context); /* while the first claim is on its way */
    st_lane *own = &claims.lanes[claims.at];
    int64_t piece = __atomic_fetch_add(&own->next, 1, __ATOMIC_RELAXED);
    if (piece >= own->end) piece = st_next(&claims);
    if (piece >= 0) job->work(job->context, &claims, piece);
    const int64_t before = *lost;
    if (now() - job->begin > OFF_CORE && (*lost = losses()) != before) __atomic_fetch_add(&team.lost, 1, __ATOMIC_RELAXED);
    leave(slot);
  }
  return served;
}

static void *work_for_ever(void *number) {
  const int32_t worker = (int32_t)(intptr_t)number;
  int64_t patience = LEAST_PATIENCE, lost = losses();
  bool woken = false;
#ifdef __linux__
  __atomic_store_n(&team.members[worker - 1].thread, (int32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
#endif
  take_cores(0, __atomic_load_n(&team.takes, __ATOMIC_RELAXED));
  for (;;) {
    const uint32_t seen = __atomic_load_n(called, __ATOMIC_SEQ_CST);
    if (serve(worker, &woken, &lost)) continue;
    /* who has slept gets a core the sooner */
    const bool takes = __atomic_load_n(&team.takes, __ATOMIC_RELAXED);
    const int64_t idle = now(), most = takes ? LEAST_PATIENCE : __atomic_load_n(&allowed.patience, __ATOMIC_RELAXED);
    if (spin(called, UINT32_MAX, seen, patience < most ? patience : most)) continue;
    __atomic_fetch_add(&team.asleep, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(called, __ATOMIC_SEQ_CST) == seen) sleep_while(called, seen);
    __atomic_fetch_sub(&team.asleep, 1, __ATOMIC_SEQ_CST);
    woken = true;
    /* jobs that come often enough are worth spinning for, somewhat longer than the time between them */
    const int64_t idled = now() - idle;
    patience = 2 * idled <= most ? 2 * idled : patience / 2;
    if (patience < LEAST_PATIENCE) patience = LEAST_PATIENCE;
  }
  return NULL;
}

/* A thread whose signals go to others, and which the end of the process does not wait for. */
static bool make_worker(int32_t number) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes)) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK);
#ifdef __linux__
  if (allowed.bytes) pthread_attr_setaffinity_np(&attributes, (size_t)allowed.bytes, (const cpu_set_t *)allowed.mask);
#endif
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool made = !pthread_create(&thread, &attributes, work_for_ever, (void *)(intptr_t)number);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return made;
}

/* Make `wanted` workers, if threads can be made and nobody else is making them. Returns how many there are. */
static int32_t recruit(int32_t wanted) {
  const int32_t workers = __atomic_load_n(&team.workers, __ATOMIC_RELAXED);
  if (workers >= wanted || __atomic_exchange_n(&team.making, 1, __ATOMIC_ACQUIRE)) return workers;
  if (team.refusals > 0) team.refusals--;
  while (team.workers < wanted && !team.refusals)
    if (make_worker(team.workers + 1))
      __atomic_fetch_add(&team.workers, 1, __ATOMIC_RELAXED);
    else
      team.refusals = REFUSALS;
  const int32_t made = team.workers;
  __atomic_store_n(&team.making, 0, __ATOMIC_RELEASE);
  return made;
}

/* Callers. */

static st_slot *take_slot(void) {
  for (st_slot *slot = team.slots; slot < team.slots + SLOTS; slot++) {
    uint32_t empty = 0;
    if (__atomic_compare_exchange_n(&slot->word, &empty, TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return slot;
  }
  return NULL;
}

static void call(st_slot *slot, st_job job, int32_t seats) {
  slot->job = job;
  __atomic_store_n(&slot->word, TAKEN | (uint32_t)seats * SEAT, __ATOMIC_RELEASE);
  __atomic_fetch_add(called, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&team.asleep, __ATOMIC_SEQ_CST)) return;
  keep_core();
  wake(called, seats < WOKEN ? seats : WOKEN);
}

/* Let no worker in any more, and wait for those inside. Returns for how long, if that was long enough to read the clock, and whether
   seats were still `free`. */
static int64_t join(st_slot *slot, bool *free) {
  int64_t begin = 0;
  uint32_t word = __atomic_fetch_and(&slot->word, ~(uint32_t)SEATS_MASK, __ATOMIC_ACQUIRE);
  *free = word & SEATS_MASK;
  word &= ~(uint32_t)SEATS_MASK;
  for (; word & INSIDE_MASK; word = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE)) {
    if (!begin) begin = now();
    if (spin(&slot->word, UINT32_MAX, word, JOINING)) continue;
    word = __atomic_or_fetch(&slot->word, AWAITED, __ATOMIC_ACQUIRE);
    if (word & INSIDE_MASK) sleep_while(&slot->word, word);
  }
  __atomic_store_n(&slot->word, 0, __ATOMIC_RELEASE);
  return begin ? now() - begin : 0;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

void st_team_run(int64_t threads, int64_t pieces, bool own, st_work *work, const void *context) {
  const int64_t others = __atomic_fetch_add(&team.callers, 1, __ATOMIC_RELAXED); /* have a core each */
  const int64_t wanted = least(least(threads, pieces), most_running() - others) - 1;
  const int32_t seats = wanted > 0 && !alone() ? (int32_t)least(recruit((int32_t)least(wanted, MOST_WORKERS)), wanted) : 0;
  const int64_t begin = seats > 0 ? now() : 0;
  st_slot *slot = seats > 0 ? take_slot() : NULL;
  const int32_t count = own && slot ? seats + 1 : 1;
  st_lane lanes[count];
  for (int32_t lane = 0; lane < count; lane++) {
    lanes[lane].next = pieces / count * lane + pieces % count * lane / count;
    lanes[lane].end = pieces / count * (lane + 1) + pieces % count * (lane + 1) / count;
  }
  st_claims claims = {lanes, count, 0, count, !slot};
  const uint32_t lost = __atomic_load_n(&team.lost, __ATOMIC_RELAXED);
  if (slot) call(slot, (st_job){work, context, lanes, begin, count}, seats);
  const int64_t piece = st_next(&claims);
  if (piece >= 0) work(context, &claims, piece);
  if (slot) {
    bool free;
    const int64_t waited = join(slot, &free), took = now() - begin;
    const bool stopped = __atomic_load_n(&team.lost, __ATOMIC_RELAXED) != lost;
    if (free && took > OFF_CORE) __atomic_fetch_add(&team.alone_calls, 1, __ATOMIC_RELAXED);
    const bool missed = (free && took > WORTH_WAKING) || (stopped && waited > OFF_CORE);
    if (!missed || !rivals_hold_cores()) judge(took, waited, stopped);
  }
  __atomic_fetch_sub(&team.callers, 1, __ATOMIC_RELAXED);
}

void st_team_allow(int64_t running, const uint64_t *mask, int64_t bytes, int64_t patience) {
  __atomic_store_n(&allowed.running, running < 1 ? 1 : running, __ATOMIC_RELAXED);
  __atomic_store_n(&allowed.patience, patience, __ATOMIC_RELAXED);
  if (bytes < 0 || bytes > MASK_BYTES) return;
  memcpy(allowed.mask, mask, (size_t)bytes);
  allowed.bytes = bytes;
  for (int32_t at = 0; at < MOST_WORKERS; at++) __atomic_store_n(&team.members[at].off, 0, __ATOMIC_RELAXED);
}

int64_t st_team_workers(void) { return __atomic_load_n(&team.workers, __ATOMIC_RELAXED); }

int64_t st_team_alone_calls(void) { return __atomic_load_n(&team.alone_calls, __ATOMIC_RELAXED); }

void st_team_gather(void) { __atomic_store_n(&team.alone, 0, __ATOMIC_RELAXED); }

/* A child has none of its parent's workers, nor the other callers. */
static void begin_anew(void) { memset(&team, 0, sizeof team); }

__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(NULL, NULL, begin_anew); }
