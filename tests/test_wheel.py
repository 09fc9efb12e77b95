"""The tests pass against an installed wheel, outside the project's tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HIDDEN = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__")


def not_source(folder: str, names: list[str]) -> set[str]:
    """Return what is left behind: hidden and made files, and the folder that a build leaves at the root; compiler/build is source."""
    return HIDDEN(folder, names) | ({"build"} if Path(folder) == ROOT else set())


def called(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.nightly
@pytest.mark.tree
def test_the_tests_pass_against_a_wheel(tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    shutil.copytree(ROOT, source, ignore=not_source)
    called(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, source, folder=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    packages = Path(called(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=tmp_path).strip())
    # What the package depends on is that of this environment; files that lead to the project's tree are not followed from there.
    (packages / "dependencies.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    called(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel, folder=tmp_path)
    shutil.copytree(ROOT / "tests", place / "tests", ignore=not_source)
    assert str(packages) in called(python, "-c", "import sparsetune; print(sparsetune.__file__)", folder=place)
    called(python, "-m", "pytest", "tests", "-q", "-n", "auto", "-p", "no:cacheprovider", folder=place)
