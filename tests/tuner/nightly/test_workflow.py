"""``.github/workflows/nightly.yml``: its steps, run one after the other as the runner would, on two nights."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from sparsetune.compiler.native.toolchain import available_compilers

ROOT = Path(__file__).resolve().parents[3]
WORKFLOW = ROOT / ".github" / "workflows" / "nightly.yml"
ACTIONS = {
    "actions/checkout@v4", "actions/setup-python@v5", "actions/cache/restore@v4", "actions/cache/save@v4", "actions/upload-artifact@v4",
}  # fmt: skip
SUITE = """
[suite]
search = "quick"
threads = 1
probes = ["bound call"]

[[kernel]]
name = "spmv"
expression = "y(i) = A(i,j) * x(j)"
operand = "A"
order = 2
format = "csr"

[[input]]
name = "small"
source = "random:uniform:2000x2000:nnz=20000"
order = 2
"""

pytestmark = [
    pytest.mark.tree,
    pytest.mark.skipif(not available_compilers() or shutil.which("git") is None, reason="needs a C compiler and git"),
]


class Machine:
    """A runner: a clone of the project with an environment of its own, whose packages are those of this environment."""

    def __init__(self, place: Path) -> None:
        self.place, self.folder = place, place / "work"
        shutil.copytree(ROOT, self.folder, ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis", "__pycache__", "*.egg-info"))
        for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "all"]):
            subprocess.run(["git", *command], cwd=self.folder, check=True)
        venv.create(place / "venv", symlinks=True, with_pip=False)
        packages = [path for path in sys.path if path.endswith("-packages") and Path(path) != Path(sysconfig.get_path("purelib"))]
        packages.append(sysconfig.get_path("purelib"))
        (site,) = (place / "venv" / "lib").glob("python*/site-packages")
        (site / "dependencies.pth").write_text("\n".join(packages))
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PATH": f"{place / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PIP_NO_DEPS": "1", "PIP_QUIET": "1", "PIP_IGNORE_INSTALLED": "1", **builder(),
            "GITHUB_ENV": str(place / "env"), "GITHUB_STEP_SUMMARY": str(place / "summary"), "SUITE": str(place / "suite.toml"),
            "SPARSETUNE_DATABASE": "nights/schedules.sqlite", "SPARSETUNE_CACHE": str(place / "cache"),
        }  # fmt: skip
        (place / "suite.toml").write_text(SUITE)

    def run(self, step: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        """Run the commands of a step, as the runner does: a shell that ends at the first failure."""
        given = (self.place / "env").read_text() if (self.place / "env").exists() else ""
        added = dict(line.partition("=")[::2] for line in given.splitlines())
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(command, cwd=self.folder, env={**self.environment, **added}, capture_output=True, text=True, check=False)


def builder() -> dict[str, str]:
    """Return pip's settings for building with the setuptools at hand; none where it is too old, and pip has to fetch another."""
    try:
        recent = int(metadata.version("setuptools").partition(".")[0]) >= 77
    except metadata.PackageNotFoundError:
        recent = False
    return {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1"} if recent else {}  # 0: pip reads the absence of isolation as a no


def steps() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    return job["steps"]


def test_steps_are_commands_or_known_actions() -> None:
    assert {step["uses"] for step in steps() if "uses" in step} <= ACTIONS
    assert all(("run" in step) != ("uses" in step) for step in steps())


def test_every_step_runs_on_two_nights(tmp_path: Path) -> None:
    pytest.importorskip("pip", reason="needs pip")
    machine = Machine(tmp_path)
    for night in range(2):
        for step in steps():
            if "run" in step:
                done = machine.run(step)
                assert done.returncode == 0, (night, step, done.stdout, done.stderr)
        found = json.loads((machine.folder / "night.json").read_text())
        assert [(item["kernel"], item["against"]) for item in found["items"]] == [("spmv", "base"), ("bound call", "base")]
        assert found["regressions"] == []
        assert "<svg" in (machine.folder / "night.html").read_text()
        # What the runner keeps is the folder "nights" alone.
        subprocess.run(["git", "worktree", "remove", "--force", "base"], cwd=machine.folder, check=True)
        (machine.folder / "night.json").unlink()
        (tmp_path / "env").unlink()
    assert len((tmp_path / "summary").read_text().splitlines()) == 2
    assert (machine.folder / "nights" / "passed").exists()
