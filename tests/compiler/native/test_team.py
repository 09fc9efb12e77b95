"""The team of threads: every piece is done once, whatever becomes of the workers, and nobody waits for one that has not begun."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest
from sparsetune.compiler.native.library import CSRC
from team_harness import LAST, counted, team

pytestmark = pytest.mark.cc

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


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="other systems have no batch threads")
def test_workers_take_cores_from_spinning_threads_of_the_process_alone() -> None:
    """OpenMP's threads spin for milliseconds after each loop; cores that other processes hold would be taken back."""
    library = team("rivals")
    watched, long_ago = 60 * 10**6, 500 * 10**6
    assert counted(library, 2, 40)[0] == [1] * 40
    assert not library.rivals_hold(0, watched)
    assert library.worker_gets(os.SCHED_BATCH)
    assert not library.rivals_hold(2, 0)  # too soon to tell
    assert not library.rivals_hold(2, long_ago)
    assert any(library.rivals_hold(2, watched) for _ in range(30))  # other processes may have the cores now and then
    assert library.worker_gets(os.SCHED_OTHER)
    assert counted(library, 2, 40)[0] == [1] * 40
    assert not library.rivals_hold(0, watched)
    assert library.worker_gets(os.SCHED_BATCH)


def test_the_time_of_another_caller_is_not_that_of_a_rival() -> None:
    library = team("callers")
    watched, held = 60 * 10**6, []
    assert counted(library, 2, 40)[0] == [1] * 40
    assert not library.rivals_hold(0, watched)
    other = threading.Thread(target=lambda: held.append(library.rivals_hold(0, watched)))
    other.start()
    other.join()
    assert held == [0]  # this thread has computed for longer than was watched
    assert not library.rivals_hold(0, watched)


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
