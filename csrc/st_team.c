/* The team of threads of a process. See st_team.h.

   A caller puts its job into a slot with seats for workers, calls, and begins. A worker takes a seat, claims pieces until there are
   none, and leaves. Once the caller finds no piece either, it removes the free seats, so that no worker enters any more, and waits
   for those inside: each holds a piece. A worker that has not come by then, because it was not woken yet, has no core, or could not
   be made, is not waited for. Slots live as long as the process, jobs as long as the call: a job is looked at only from a seat.

   A woken worker may run on any core but the caller's: if the system put it into the queue of that core although others are idle, it
   would wait for the next tick, and a thousand short calls would be over by then.

   A thread that waits spins for a while and then sleeps. The time of spinning follows from how long waiting took before. If a
   spinning thread finds that it lost its core, that core has other work, and nobody spins for some time.

   A worker that loses its core while it holds a piece keeps the caller waiting until it gets another turn. If that took longer than
   the caller's own work, the caller alone would have been as fast, and callers work alone for many times as long. They also work
   alone after a short call that spent most of its time waiting for a core itself: then there are no cores for workers, which would
   only disturb it. */
#define _GNU_SOURCE
#include "st_team.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#ifndef ST_TEAM_BEFORE_SEAT /* tests delay workers here */
#define ST_TEAM_BEFORE_SEAT(worker)
#endif

enum {
  SLOTS = 16,        /* jobs with seats at the same time; further callers work alone */
  MOST_WORKERS = 511,
  MASK_BYTES = 1024, /* room for 8192 cores */
  STACK = 2 << 20,   /* bytes */
  WOKEN = 2,         /* sleepers that one thread wakes; these wake others */
  LOOKS = 32,        /* between two looks at the clock while spinning, some microseconds */
  REFUSALS = 256,    /* calls until a thread that could not be made is tried again */
};
enum { /* nanoseconds */
  OFF_CORE = 100000,      /* a longer time between two readings of the clock means that another thread had the core */
  CROWDED = 5000000,      /* for how long nobody spins then */
  JOINING = 200000,       /* how long a caller spins for pieces that others have begun */
  LEAST_PATIENCE = 20000, /* how long an idle worker spins at least, where it spins at all */
  SHORT = 5000000,        /* the work of a call that workers without a core of their own cannot make faster */
};
enum { ALONE = 25 }; /* callers work alone for so many times as long as a call has waited for cores */

/* The word of a slot: who is inside, how many seats are free, whether it is somebody's, whether its caller sleeps. */
enum { INSIDE = 1, INSIDE_MASK = 0x3ff, SEAT = 1 << 10, SEATS_MASK = 0x3ff << 10, TAKEN = 1 << 20, AWAITED = 1 << 21 };

typedef struct {
  st_work *work;
  const void *context;
  st_lane *lanes;
  int64_t begin; /* when the caller began, in nanoseconds */
  int32_t count;
} st_job;

/* A cache line. In that of the first slot lies the count of jobs in all of them, so that an idle worker who sees it change has the job
   of a single caller at hand. */
typedef struct {
  _Alignas(64) uint32_t word;
  uint32_t called;
  st_job job;
} st_slot;

/* A worker: its thread, where the system numbers threads, and the core that is denied to it, counted from 1. */
typedef struct {
  int32_t thread, off;
} st_member;

static struct {
  st_slot slots[SLOTS];
  _Alignas(64) int32_t asleep, callers, workers, making, refusals;
  int64_t crowded, alone;       /* until then nobody spins, and callers work alone */
  int64_t alone_calls;          /* counts calls that worked alone for that reason, and long calls to which not all workers came */
  uint32_t lost;                /* counts workers that have lost their core in a job */
  st_member members[MOST_WORKERS];
} team;

static uint32_t *const called = &team.slots[0].called; /* idle workers look at it, and sleep on it */

static struct {
  int64_t running, patience, bytes;
  uint64_t mask[MASK_BYTES / 8];
} allowed = {.patience = 1000000};

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline void rest(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void sleep_while(uint32_t *word, uint32_t value) {
#ifdef __linux__
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
#else
  if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == value) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
#endif
}

static void wake(uint32_t *word, int32_t count) {
#ifdef __linux__
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
#else
  (void)word, (void)count;
#endif
}

/* Spin while the bits of a word are as they were, for some nanoseconds at most. Returns whether they changed. */
static bool spin(const uint32_t *word, uint32_t bits, uint32_t value, int64_t patience) {
  int64_t begin = 0, before = 0;
  for (;;) {
    for (int32_t look = 0; look < LOOKS; look++, rest())
      if ((__atomic_load_n(word, __ATOMIC_ACQUIRE) & bits) != value) return true;
    const int64_t here = now();
    if (!begin) begin = before = here;
    if (here - before > OFF_CORE) __atomic_store_n(&team.crowded, here + CROWDED, __ATOMIC_RELAXED);
    if (here - begin >= patience || here < __atomic_load_n(&team.crowded, __ATOMIC_RELAXED)) return false;
    before = here;
  }
}

/* Workers. */

/* How often this thread has lost its core to another one. */
static int64_t losses(void) {
#ifdef RUSAGE_THREAD
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
#else
  return 0;
#endif
}

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

/* Where all cores are busy, a thread that is woken may take the core of the one that has woken it, which is the caller; batch
   threads wait for their turn. */
static void take_no_core_away(void) {
#ifdef SCHED_BATCH
  if (sched_getscheduler(0) == SCHED_OTHER) sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
#endif
}

static void *work_for_ever(void *number) {
  const int32_t worker = (int32_t)(intptr_t)number;
  int64_t patience = LEAST_PATIENCE, lost = losses();
  bool woken = false;
  take_no_core_away();
#ifdef __linux__
  __atomic_store_n(&team.members[worker - 1].thread, (int32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
#endif
  for (;;) {
    const uint32_t seen = __atomic_load_n(called, __ATOMIC_SEQ_CST);
    if (serve(worker, &woken, &lost)) continue;
    const int64_t idle = now(), most = __atomic_load_n(&allowed.patience, __ATOMIC_RELAXED);
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

static st_slot *take_slot(void) {
  for (st_slot *slot = team.slots; slot < team.slots + SLOTS; slot++) {
    uint32_t empty = 0;
    if (__atomic_compare_exchange_n(&slot->word, &empty, TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return slot;
  }
  return NULL;
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

/* Let callers work alone for a while where this call, of so many nanoseconds, waited too long for cores. */
static void judge(int64_t nanoseconds, int64_t for_worker, bool lost) {
  const int64_t own = without_core(nanoseconds);
  const bool stalled = lost && for_worker > OFF_CORE && 2 * for_worker > nanoseconds;
  const bool crowded = 2 * own > nanoseconds && nanoseconds - own < SHORT;
  if (stalled || crowded) __atomic_store_n(&team.alone, now() + ALONE * (stalled ? for_worker : own), __ATOMIC_RELAXED);
}

/* Whether this call is to work alone, as callers do for the time being. */
static bool alone(void) {
  const int64_t until = __atomic_load_n(&team.alone, __ATOMIC_RELAXED);
  if (!until || now() >= until) return false;
  __atomic_fetch_add(&team.alone_calls, 1, __ATOMIC_RELAXED);
  return true;
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
    if (free && took > OFF_CORE) __atomic_fetch_add(&team.alone_calls, 1, __ATOMIC_RELAXED);
    judge(took, waited, __atomic_load_n(&team.lost, __ATOMIC_RELAXED) != lost);
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
