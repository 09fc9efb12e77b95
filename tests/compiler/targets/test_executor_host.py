"""The host's part of CUDA kernels, run by the executor: sums that are carried over slots, prefix sums, keys in order."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from sparsetune.compiler.native.library import CSRC

pytestmark = [pytest.mark.cc, pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")]


def lines_of(program: str, folder: Path) -> list[str]:
    """Return what a program that uses the executor prints."""
    (folder / "program.cpp").write_text(program)
    flags = ["-O0", "-std=gnu++17", "-DST_EXECUTOR", "-w", "-fsanitize=bounds", "-I", str(CSRC)]
    subprocess.run(["g++", *flags, str(folder / "program.cpp"), "-o", str(folder / "program")], check=True)
    return subprocess.run([str(folder / "program")], capture_output=True, text=True, check=True).stdout.splitlines()


CARRY = """
#include "st_cuda.h"
#include <random>
int main() {
  const int64_t width = 2;
  std::mt19937 random(7);
  for (int64_t slots : {0, 1, 256, 257, 3000}) {
    st_host host;
    const int64_t most = 40;
    std::vector<int64_t> to(slots * width + 1, -1), wanted(most * width, 0), found(most * width), kept(slots * width + 1, 0);
    for (int64_t beside = 0; beside < width; beside++)
      for (int64_t slot = 0, place = 0; slot < slots; slot++) {
        if (random() % (slots / 20 + 2) == 0 && place + 1 < most) place++;
        if (beside && (slots == 3000 ? slot % 700 > 3 : random() % 3)) continue;
        to[slot * width + beside] = place * width + beside;
        wanted[place * width + beside] += kept[slot * width + beside] = random() % 9;
      }
    int64_t *a = host.allocate<int64_t>(slots * width, true), *b = host.allocate<int64_t>(slots * width, true);
    int64_t *y = host.allocate<int64_t>(most * width, true);
    st_upload(a, to.data(), slots * width * 8);
    st_upload(b, kept.data(), slots * width * 8);
    host.carry(a, b, y, slots, width, 0);
    st_download(found.data(), y, most * width * 8);
    if (host.status() || found != wanted) printf("%d slots: %s\\n", (int)slots, st_trouble());
  }
}
"""


def test_what_is_kept_in_slots_is_added_over_several_levels_and_over_slots_without_anything(tmp_path: Path) -> None:
    assert lines_of(CARRY, tmp_path) == []


ORDER = """
#include "st_cuda.h"
#include <algorithm>
#include <numeric>
#include <random>
int main() {
  std::mt19937 random(3);
  for (int64_t count : {0, 1, 2, 3, 7, 64, 300, 1000, 2048, 2049, 9000}) {
    st_host host;
    std::vector<int64_t> given(count + 2), sums, sorted, found(count + 2);
    for (int64_t &each : given) each = random() % 50;
    sums = sorted = given;
    std::partial_sum(sums.begin(), sums.begin() + count, sums.begin());
    std::sort(sorted.begin() + 1, sorted.begin() + 1 + count);
    int64_t *a = host.allocate<int64_t>(count + 2, true);
    const auto run = [&](const char *what, const std::vector<int64_t> &wanted, auto order) {
      st_upload(a, given.data(), (count + 2) * 8);
      order();
      st_download(found.data(), a, (count + 2) * 8);
      if (host.status() || found != wanted) printf("%s of %d: %s\\n", what, (int)count, st_trouble());
    };
    run("sums", sums, [&] { host.scan(a, count); });
    if (count <= 1000) run("order", sorted, [&] { host.sort_range(a, 1, count + 1); });
  }
}
"""


def test_prefix_sums_and_sorted_keys_of_any_number(tmp_path: Path) -> None:
    assert lines_of(ORDER, tmp_path) == []


GIVEN = """
#include "st_cuda.h"
ST_KERNEL(64) copied(ST_ARRAY(double) a, ST_ARRAY(double) y) { y[st_thread_of_block()] = a[st_thread_of_block()]; }
int main() {
  for (int64_t written : {64, 40, 0}) {
    st_host host;
    double *a = host.allocate<double>(64, false), *y = host.allocate<double>(64, false);
    printf("%d ", a[63] == 0);
    if (written) st_zero(a, written * 8);
    host.launch(1, 64, copied, a, y);
    printf("%d %s\\n", host.status(), st_trouble());
  }
}
"""


def test_memory_holds_what_the_host_wrote_and_nothing_else(tmp_path: Path) -> None:
    all_written, some, none = lines_of(GIVEN, tmp_path)
    assert all_written == "0 0 "
    assert re.fullmatch(r"0 2 .*: reads element [456]\d before anything was written there", some)
    assert re.fullmatch(r"0 2 .*: reads element \d+ before anything was written there", none)
