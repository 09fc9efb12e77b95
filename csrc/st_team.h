/* Work for several threads: numbered pieces, which the caller and the workers of the team (st_team.c) claim one after another.

   The caller begins at once and claims whatever nobody has claimed; it waits only for pieces that a worker has begun. A piece depends
   only on its number, so it does not matter which thread gets it or how many threads there are. */
#ifndef ST_TEAM_H
#define ST_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pieces `next` to `end` are claimed in order; a cache line of its own, as all threads count it up. */
typedef struct {
  _Alignas(64) int64_t next;
  int64_t end;
} st_lane;

/* Where one thread claims: first from the lane where it begins, then from the others, of which some are `left`. */
typedef struct {
  st_lane *lanes;
  int32_t count, at, left;
  bool alone;
} st_claims;

/* Works on pieces: on the first one, which is claimed already, and on all that `st_next` returns until that is negative. */
typedef void st_work(const void *context, st_claims *claims, int64_t piece);

/* cdef */
/* Let at most `running` threads work at once, on the cores in `mask` (bits, `bytes` of them; none: on those of their creator), and let
   idle ones spin for at most so many nanoseconds. */
void st_team_allow(int64_t running, const uint64_t *mask, int64_t bytes, int64_t patience);

/* How many workers there are. */
int64_t st_team_workers(void);

/* How many calls with work for several threads ran without some of them: because workers had no core before, or had none by the end. */
int64_t st_team_alone_calls(void);

/* Call workers again from the next call on, though they had no core a moment before. */
void st_team_gather(void);
/* end */

typedef void st_team_function(int64_t threads, int64_t pieces, bool own, st_work *work, const void *context);

/* See st_run. */
st_team_function st_team_run;

/* The team of this process, one for all objects: the loader of an object points this to it; without it the caller works alone. */
__attribute__((weak)) st_team_function *st_team = NULL;

static inline int64_t st_next(st_claims *claims) {
  for (; claims->left > 0; claims->left--) {
    st_lane *lane = &claims->lanes[claims->at];
    if (claims->alone) {
      if (lane->next < lane->end) return lane->next++;
    } else if (__atomic_load_n(&lane->next, __ATOMIC_RELAXED) < lane->end) {
      const int64_t piece = __atomic_fetch_add(&lane->next, 1, __ATOMIC_RELAXED);
      if (piece < lane->end) return piece;
    }
    claims->at = claims->at + 1 == claims->count ? 0 : claims->at + 1;
  }
  return -1;
}

/* Work on pieces 0 to `pieces` with at most so many threads. `own`: each begins with a part of the pieces that is the same in every
   call, which its caches may hold; else all take the next one. */
static inline void st_run(int64_t threads, int64_t pieces, bool own, st_work *work, const void *context) {
  if (pieces <= 0) return;
  if (threads > 1 && pieces > 1 && st_team) {
    st_team(threads, pieces, own, work, context);
    return;
  }
  st_lane lane = {1, pieces};
  st_claims claims = {&lane, 1, 0, 1, true};
  work(context, &claims, 0);
}

#endif
