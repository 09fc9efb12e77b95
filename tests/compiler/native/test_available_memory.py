"""How much memory can be had: the machine's, that of control groups of both versions, and the process's own limits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import sparsetune as st
from sparsetune.compiler.errors import ResourceError
from sparsetune.compiler.native import memory
from sparsetune.compiler.native.memory import FLOOR, available, claim, readable_bytes

GIB = 2**30


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like /proc, of a machine with 64 GiB at hand, without groups."""
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text(f"MemTotal: {128 * 2**20} kB\nMemFree: 5 kB\nMemAvailable:   {64 * 2**20} kB\nHugePages_Total:  0\n")
    monkeypatch.setattr(memory, "PROC", folder)
    return folder


def group(folder: Path, **numbers: object) -> Path:
    """Write the files of a control group; double underscores stand for dots."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, number in numbers.items():
        (folder / name.replace("__", ".")).write_text(f"{number}\n")
    return folder


def mounted(proc: Path, cgroup: str, *mounts: str) -> None:
    (proc / "self" / "cgroup").write_text(cgroup)
    (proc / "self" / "mountinfo").write_text("".join(f"{mount}\n" for mount in ("22 1 0:5 / /proc rw - proc proc rw", *mounts)))


def test_the_machine_alone(proc: Path) -> None:
    assert available() == memory.Room(64 * GIB, "what the machine has at hand")


def test_groups_of_version_2_count_with_all_above_them(proc: Path, tmp_path: Path) -> None:
    top = group(tmp_path / "unified mount")
    outer = group(top / "user.slice", memory__max=8 * GIB, memory__current=7 * GIB, memory__stat="anon 1\ninactive_file 1073741824\nfile 3")
    inner = group(outer / "run.scope", memory__max="max", memory__high=6 * GIB, memory__current=GIB)
    line = f"30 22 0:26 / {str(top).replace(' ', chr(92) + '040')} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
    mounted(proc, "0::/user.slice/run.scope\n", line)
    assert available() == memory.Room(2 * GIB, f"the limit of the control group {outer}")
    (outer / "memory.max").write_text("max\n")
    assert available() == memory.Room(5 * GIB, f"the limit of the control group {inner}")
    (inner / "memory.high").write_text("max\n")
    assert available().bytes == 64 * GIB


def test_groups_of_version_1(proc: Path, tmp_path: Path) -> None:
    top = group(tmp_path / "memory", memory__limit_in_bytes=9223372036854771712, memory__usage_in_bytes=3 * GIB)
    outer = group(top / "docker", memory__limit_in_bytes=4 * GIB, memory__usage_in_bytes=3 * GIB)
    group(outer / "abc", memory__limit_in_bytes=9 * GIB, memory__usage_in_bytes=GIB, memory__stat="total_active_file 7")
    controllers = "5:cpu,cpuacct:/elsewhere\n4:memory:/docker/abc\n0::/\n"
    mounted(proc, controllers, f"34 31 0:32 / {top} rw,relatime - cgroup cgroup rw,memory", "35 31 0:33 / /x rw - cgroup cgroup rw,cpu")
    assert available() == memory.Room(GIB, f"the limit of the control group {outer}")


@pytest.mark.parametrize("path", ["/docker/abc", "/docker/abc/inside", "/docker/other", "/../outside", "/"])
def test_a_container_sees_its_own_group_as_the_whole(proc: Path, tmp_path: Path, path: str) -> None:
    top = group(tmp_path / "cgroup", memory__limit_in_bytes=2 * GIB, memory__usage_in_bytes=0)
    group(top / "inside", memory__limit_in_bytes=GIB, memory__usage_in_bytes=0)
    mounted(proc, f"4:memory:{path}\n", f"34 31 0:32 /docker/abc {top} rw - cgroup cgroup rw,memory")
    assert available().bytes == (GIB if path.endswith("/inside") else 2 * GIB)


def test_a_group_that_is_full_leaves_nothing(proc: Path, tmp_path: Path) -> None:
    top = group(tmp_path / "full", memory__max=GIB, memory__current=2 * GIB)
    mounted(proc, "0::/\n", f"30 22 0:26 / {top} rw - cgroup2 cgroup2 rw")
    assert available().bytes == 0
    with pytest.raises(ResourceError, match=r"^the result does not fit into memory: 1.0 GiB where 0 B can be had .*; use less$"):
        claim(GIB, "the result", "use less")
    claim(FLOOR, "what is small is left to the allocator")


def test_broken_files_are_no_limits(proc: Path) -> None:
    mounted(proc, "nonsense\n4:memory\n:::\n", "30", "30 22 0:26 / - cgroup", "31 22 0:26 / /nowhere rw - cgroup cgroup rw,memory")
    assert available().bytes == 64 * GIB
    (proc / "meminfo").unlink()
    assert available().bytes > 0


@pytest.mark.skipif(sys.platform != "linux", reason="limits on address space are read from /proc")
@pytest.mark.parametrize(("limit", "option"), [("RLIMIT_AS", "ulimit -v"), ("RLIMIT_DATA", "ulimit -d")])
def test_own_limits(limit: str, option: str) -> None:
    code = (
        "import resource, sparsetune as st\n"
        "from sparsetune.compiler.native.memory import available\n"
        f"resource.setrlimit(resource.{limit}, (4 << 30, resource.RLIM_INFINITY))\n"
        "print(available().bytes <= 4 << 30)\n"
        "try: st.evaluate('y(i,j) = a() * 2', {'a': 1.0}, shape={'i': 1 << 14, 'j': 1 << 15})\n"
        "except MemoryError as error: print(type(error).__name__, error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0] == "True"
    assert said[1].startswith("ResourceError the result 'y' of 'y(i,j) = a() * 2' does not fit into memory: 4.0 GiB where 3.")
    assert option in said[1]


def test_resource_errors_are_memory_errors() -> None:
    assert issubclass(st.ResourceError, (st.SparsetuneError, MemoryError))
    assert issubclass(st.ResourceError, MemoryError)


def test_sizes_for_people() -> None:
    assert [readable_bytes(size) for size in (0, 1023, 1536, 2**40, 2**63 * 8)] == ["0 B", "1023 B", "1.5 KiB", "1.0 TiB", "64.0 EiB"]
