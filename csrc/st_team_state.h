/* What the team of threads knows (st_team.c): jobs in slots, workers, and on which cores they may run. */
#ifndef ST_TEAM_STATE_H
#define ST_TEAM_STATE_H

#include "st_team.h"

#include <stdint.h>
#include <time.h>

enum {
  SLOTS = 16,        /* jobs with seats at the same time; further callers work alone */
  MOST_WORKERS = 511,
  MASK_BYTES = 1024, /* room for 8192 cores */
  STACK = 2 << 20,   /* bytes */
  WOKEN = 2,         /* sleepers that one thread wakes; these wake others */
  REFUSALS = 256,    /* calls until a thread that could not be made is tried again */
};
enum { /* nanoseconds */
  OFF_CORE = 100000,      /* a longer time between two readings of the clock means that another thread had the core */
  JOINING = 200000,       /* how long a caller spins for pieces that others have begun */
  LEAST_PATIENCE = 20000, /* how long an idle worker spins at least, where it spins at all */
};

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
  int64_t alone_for, alone_times; /* how long that was to be when it began, and how many times as long as a call had waited */
  int64_t alone_calls;          /* counts calls that worked alone for that reason, and long calls to which not all workers came */
  uint32_t lost;                /* counts workers that have lost their core in a job */
  int64_t missed, rivals;       /* when a call missed workers, and what time rivals had spent by then (st_team_rivals.h) */
  const void *reader;           /* the caller that found that out */
  bool takes;                   /* whether workers take cores away */
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

#endif
