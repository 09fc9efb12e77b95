/* How threads of the team wait.

   A thread that waits spins for a while and then sleeps. The time of spinning follows from how long waiting took before. If a
   spinning thread finds that it lost its core, that core has other work, and nobody spins for some time. */
#ifndef ST_TEAM_WAITING_H
#define ST_TEAM_WAITING_H

#include "st_team_state.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

enum { LOOKS = 32 /* between two looks at the clock while spinning, some microseconds */ };
enum { CROWDED = 5000000 /* for how many nanoseconds nobody spins once a thread has lost its core */ };

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

#endif
