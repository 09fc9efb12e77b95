"""Run by each of several processes that compile the same source at the same moment."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from sparsetune.compiler.native.library import load_source


def main() -> None:
    source, go = sys.argv[1], Path(sys.argv[2])
    while not go.exists():
        time.sleep(0.001)
    print(load_source(source, "int answer(void);").answer())


if __name__ == "__main__":
    main()
