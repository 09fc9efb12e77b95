"""What control groups say of processor time: both versions, groups in groups, and whatever else may stand there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sparsetune.compiler.native import machine
from sparsetune.compiler.native.groups import text_of
from sparsetune.compiler.native.quota import processor_quota

V1 = "30 23 0:26 / {mount} rw,relatime - cgroup cgroup rw,{controllers}"
V2 = "42 32 0:39 {top} {mount} rw,relatime - cgroup2 cgroup2 rw"


def process(folder: Path, groups: str, mounts: str, quotas: dict[str, str]) -> Path:
    """Return a folder like /proc in which a process reads of its groups, beside files of quotas."""
    for name, text in quotas.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n")
    (folder / "self").mkdir()
    (folder / "self" / "cgroup").write_text(groups)
    (folder / "self" / "mountinfo").write_text("1 1 8:1 / / rw - ext4 /dev/sda rw\n" + mounts)
    return folder


@pytest.mark.parametrize(
    ("top", "group", "quotas", "expected"),
    [
        ("/", "/", {}, None),
        ("/", "/", {"v2/cpu.max": "50000 100000"}, 0.5),
        ("/", "/job/step", {"v2/job/cpu.max": "200000 100000", "v2/job/step/cpu.max": "max 100000"}, 2.0),
        ("/", "/job/step", {"v2/job/cpu.max": "400000 100000", "v2/job/step/cpu.max": "150000 100000"}, 1.5),
        ("/docker/abc", "/docker/abc/x", {"v2/cpu.max": "300000 100000", "v2/x/cpu.max": "max"}, 3.0),
        ("/docker/abc", "/elsewhere", {"v2/cpu.max": "300000 100000"}, 3.0),
        ("/", "/job", {"v2/job/cpu.max": "some text"}, None),
    ],
)
def test_version_2(tmp_path: Path, top: str, group: str, quotas: dict[str, str], expected: float | None) -> None:
    mounts = V2.format(mount=tmp_path / "v2", top=top)
    assert processor_quota(process(tmp_path, f"0::{group}\n", mounts, quotas)) == expected


@pytest.mark.parametrize(("quota", "expected"), [("-1", None), ("100000", 1.0), ("250000", 2.5), ("", None)])
@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct"])
def test_version_1(tmp_path: Path, controllers: str, quota: str, expected: float | None) -> None:
    quotas = {"v1/job/cpu.cfs_quota_us": quota, "v1/job/cpu.cfs_period_us": "100000", "sets/job/cpu.cfs_quota_us": "1"}
    mounts = "\n".join((
        V1.format(mount=tmp_path / "sets", controllers="cpuset"),
        V1.format(mount=tmp_path / "v1", controllers=controllers),
        V2.format(mount=tmp_path / "v2", top="/"),
    ))  # fmt: skip
    groups = f"12:cpuset:/job\n3:{controllers}:/job\n0::/\n"
    assert processor_quota(process(tmp_path, groups, mounts, quotas)) == expected


def test_a_system_without_groups(tmp_path: Path) -> None:
    assert processor_quota(tmp_path / "nothing") is None


def test_threads_respect_quota_and_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    for quota, cores in ((None, 8), (0.5, 1), (1.0, 1), (2.7, 2), (100.0, 8)):
        machine._quota.cache_clear()
        monkeypatch.setattr(machine, "processor_quota", lambda quota=quota: quota)
        monkeypatch.setattr(machine, "usable_cores", lambda: frozenset(range(8)))
        assert machine.available_cores() == cores
    machine._quota.cache_clear()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_affinity_counts_as_it_is_now_unless_a_runtime_binds_threads() -> None:
    code = (
        "import os, sys\n"
        "from sparsetune.compiler.native.machine import allowed_cores, available_cores, usable_cores\n"
        "before = allowed_cores()\n"
        "os.sched_setaffinity(0, {min(before)})\n"
        "assert allowed_cores() == before\n"
        "assert usable_cores() == (before if sys.argv[1] else {min(before)}), usable_cores()\n"
        "assert sys.argv[1] or available_cores() == 1\n"
    )
    for bound in ("", "true"):
        environment = {**os.environ, "OMP_PROC_BIND": bound}
        subprocess.run([sys.executable, "-c", code, bound], check=True, env=environment, cwd=Path(__file__).parent)


def test_small_files_of_the_system_are_read_whole(tmp_path: Path) -> None:
    """Lists of mounts are longer than what is read at once; what is no text, or is not there, has none."""
    text = "a mount - cgroup2\n" * 3000
    (tmp_path / "mountinfo").write_text(text)
    assert text_of(tmp_path / "mountinfo") == text_of(str(tmp_path / "mountinfo")) == text
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert text_of(tmp_path / "bytes") == text_of(tmp_path / "nowhere") == text_of(tmp_path) == ""
