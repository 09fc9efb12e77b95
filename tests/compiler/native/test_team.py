"""The team of threads: every piece is done once, whatever becomes of the workers, and nobody waits for one that has not begun."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from sparsetune.compiler.native.library import CSRC, foreign_interface, load_source

pytestmark = pytest.mark.cc

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


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 3, 17, 5000])
def test_every_piece_is_done_once(threads: int, own: bool) -> None:
    library = team("once")
    for pieces in (0, 1, 2, 3, 5, 64, 1001, 4096):
        times, by_caller = counted(library, threads, pieces, own)
        assert times == [1] * pieces
        assert by_caller <= pieces
        assert threads > 1 or by_caller == pieces
    assert library.workers() <= 3


def test_nobody_waits_for_a_worker_that_has_not_begun() -> None:
    library = team("before the seat")
    library.stall(1, 0)
    try:
        for _ in range(5):
            assert counted(library, 4, 40) == ([1] * 40, 40)
    finally:
        library.stall(0, 0)
    assert counted(library, 4, 40)[0] == [1] * 40


def test_the_caller_does_all_that_a_stalled_worker_does_not_hold() -> None:
    library = team("in a piece")
    for own in (True, False):
        for _ in range(5):
            library.stall(0, 1)
            times, by_caller = counted(library, 2, LAST + 1, own)
            assert times == [1] * (LAST + 1)
            assert by_caller == LAST
            assert library.stalled() == 1


def test_threads_that_cannot_be_made_cost_nothing_but_speed() -> None:
    library = team("refused", "#include <pthread.h>\n#define pthread_create(thread, attributes, function, argument) (11)\n")
    for _ in range(600):  # more than between two attempts
        assert counted(library, 4, 40) == ([1] * 40, 40)
    assert library.workers() == 0


def test_one_running_thread_is_the_caller() -> None:
    library = team("one")
    library.allow(1)
    assert counted(library, 8, 100) == ([1] * 100, 100)
    assert library.workers() == 0


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or not {0, 1} <= os.sched_getaffinity(0), reason="two cores to run on are needed")
def test_woken_workers_stay_off_the_core_of_the_caller() -> None:
    library = team("core")
    assert library.woken_from(0) == 0b10
    assert library.woken_from(1) == 0b01


def test_callers_work_alone_for_a_while_after_workers_without_a_core() -> None:
    library = team("alone")
    second = 10**9
    assert not library.alone_after(20 * second, 15 * second, False)  # it had more to do than the caller
    assert not library.alone_after(20 * second, 5 * second, True)  # still faster than the caller alone
    before = library.alone_calls()
    assert library.alone_after(20 * second, 15 * second, True)
    assert library.alone_calls() == before + 1
    assert counted(library, 4, 40) == ([1] * 40, 40)
    assert library.alone_calls() == before + 2
    library.gather()  # what is measured next has its threads again
    assert counted(library, 4, 40)[0] == [1] * 40
    assert library.alone_calls() == before + 2


def test_callers_work_alone_for_longer_while_waits_come_soon_one_after_the_other() -> None:
    library = team("longer")
    tick, now_and_then = 4 * 10**6, 10**9
    library.gather()
    assert [library.times_alone(tick, tick) for _ in range(6)] == [3, 6, 12, 24, 25, 25]
    assert [library.times_alone(tick, now_and_then) for _ in range(2)] == [3, 3]
    assert library.times_alone(tick, tick) == 6
    library.gather()
    assert library.times_alone(tick, tick) == 3


def test_several_callers_at_once() -> None:
    """Jobs of several threads of the user are independent, also where there are more than the team has slots for."""
    library = team("callers")
    library.allow(64)
    wrong: list[object] = []

    def call(seed: int) -> None:
        for pieces in range(seed, 400, 7):
            times, _ = counted(library, 2 + seed % 5, pieces)
            if times != [1] * pieces:
                wrong.append((seed, pieces, times))

    callers = [threading.Thread(target=call, args=(seed,)) for seed in range(20)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


PROGRAM = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "st_team.c"

enum { PIECES = 200, CALLS = 300, CALLERS = 3 };
typedef struct { double *values; int64_t calls; } job;

static void update(const void *context, st_claims *claims, int64_t piece) { /* plain stores, as kernels make them */
  const job *in = context;
  for (; piece >= 0; piece = st_next(claims)) in->values[piece] += (double)piece;
}

static void *caller(void *given) {
  double values[PIECES] = {0};
  for (int64_t call = 0; call < CALLS; call++) {
    const job in = {values, call};
    st_run(2 + call % 3, PIECES, call % 2, update, &in);
    for (int piece = 0; piece < PIECES; piece++)
      if (values[piece] != (double)(call + 1) * piece) *(int *)given = 1;
  }
  return NULL;
}

static int all(int callers) {
  int wrong[CALLERS] = {0}, sum = 0;
  pthread_t threads[CALLERS];
  for (int n = 1; n < callers; n++) pthread_create(&threads[n], NULL, caller, &wrong[n]);
  caller(&wrong[0]);
  for (int n = 1; n < callers; n++) pthread_join(threads[n], NULL);
  for (int n = 0; n < CALLERS; n++) sum += wrong[n];
  return sum;
}

int main(void) {
  st_team = st_team_run;
  st_team_allow(4, NULL, 0, 1000000);
  int wrong = all(CALLERS);
  if (FORKS) {
    const pid_t child = fork();
    int status = 0;
    if (child == 0) _exit(st_team_workers() != 0 || all(2) || st_team_workers() == 0);
    waitpid(child, &status, 0);
    wrong += status != 0;
  }
  return wrong + all(2);
}
"""


@pytest.mark.parametrize("sanitized", [False, True])
def test_callers_and_forks_in_a_program(sanitized: bool, tmp_path: Path) -> None:
    """A child has workers of its own; ThreadSanitizer, which knows no forks of processes with threads, sees no race."""
    source, program = tmp_path / "team.c", tmp_path / "team"
    source.write_text(PROGRAM)
    flags = ["-fsanitize=thread", "-DFORKS=0"] if sanitized else ["-DFORKS=1"]
    command = ["gcc", "-std=gnu11", "-O1", "-g", "-w", "-pthread", *flags, "-I", str(CSRC), str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[:3000]
