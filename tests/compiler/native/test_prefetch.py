"""``st_prefetch`` of the runtime asks for each cache line of a row, wherever the row begins, and for few others."""

import itertools
import subprocess

import pytest
from sparsetune.compiler.native.library import CSRC

PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define __builtin_prefetch(place, ...) printf("%llu ", (unsigned long long)(uintptr_t)(place) / 64)
#include "st_runtime.h"
int main(int count, char **words) {
  (void)count;
  st_prefetch((const void *)(uintptr_t)atoll(words[1]), 3 * atoll(words[2]), atoll(words[2]), 8, atoi(words[3]));
  return 0;
}
"""
STARTS, COUNTS, CACHES = (1024, 1032, 1056), (1, 4, 5, 7, 8, 12, 32, 64), (1, 2)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefetch")
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run(["cc", "-w", f"-I{CSRC}", folder / "program.c", "-o", folder / "program", "-lm"], check=True)
    return folder / "program"


@pytest.mark.parametrize(("start", "count", "cache"), itertools.product(STARTS, COUNTS, CACHES))
def test_every_line_of_a_row_is_asked_for(program, start, count, cache):
    words = map(str, (start, count, cache))
    asked = [int(line) for line in subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout.split()]
    begin = start + 3 * count * 8
    assert set(asked) == set(range(begin // 64, (begin + count * 8 - 1) // 64 + 1))
    assert len(asked) == -(-count * 8 // 64) + (count > 1)
