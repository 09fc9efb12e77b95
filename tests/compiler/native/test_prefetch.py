"""``st_prefetch`` of the runtime asks for each cache line of a row, wherever the row begins, and for few others."""

from __future__ import annotations

import itertools
import subprocess
from functools import cache
from pathlib import Path

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
  st_prefetch((const void *)(uintptr_t)atoll(words[1]), atoll(words[2]) * COUNT, COUNT, SIZE, CACHE);
  return 0;
}
"""
STARTS, COUNTS = (1024, 1032, 1056), (1, 4, 5, 7, 8, 12, 16, 20, 32, 64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prefetch")


@cache
def program(folder: Path, flag: str, *meanings: str) -> Path:
    """Return the program, compiled with constants as kernels are."""
    source, made = folder / "program.c", folder / "_".join((flag, *meanings))
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-w", flag, f"-I{CSRC}", *(f"-D{one}" for one in meanings), source, "-o", made, "-lm"], check=True)
    return made


def lines_asked_for(made: Path, start: int, row: int) -> list[int]:
    return [int(line) for line in subprocess.run([made, str(start), str(row)], capture_output=True, text=True, check=True).stdout.split()]


def lines_of(start: int, row: int, count: int) -> range:
    begin = start + row * count * 8
    return range(begin // 64, (begin + count * 8 - 1) // 64 + 1)


@pytest.mark.parametrize("cached", [1, 2])
@pytest.mark.parametrize("flag", ["-O0", "-O2"])
@pytest.mark.parametrize("count", COUNTS)
def test_every_line_of_a_row_is_asked_for(folder: Path, count: int, flag: str, cached: int) -> None:
    made = program(folder, flag, f"COUNT={count}", "SIZE=8", f"CACHE={cached}")
    for start, row in itertools.product(STARTS, (3, 4)):
        asked = lines_asked_for(made, start, row)
        assert set(asked) == set(lines_of(start, row, count))
        assert len(asked) <= -(-count * 8 // 64) + (count > 1)


@pytest.mark.parametrize(("count", "start"), [(4, 1024), (8, 1024), (12, 1056), (16, 1024), (20, 1024), (20, 1056), (32, 1024)])
def test_no_line_is_asked_for_twice_where_no_row_of_the_array_ends_in_one_more(folder: Path, count: int, start: int) -> None:
    """To ask for a line again takes a tenth of the time of short rows in caches."""
    made = program(folder, "-O2", f"COUNT={count}", "SIZE=8", "CACHE=1")
    for row in range(8):
        asked = lines_asked_for(made, start, row)
        assert len(asked) == len(set(asked)) == -(-count * 8 // 64)
