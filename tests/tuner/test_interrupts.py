"""An interrupt ends what it was meant for, also where Python drops the exception."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from sparsetune.tuner.alarm import AGAIN
from sparsetune.tuner.interrupts import heard_interrupts


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Finalized:
    """Is interrupted while Python finalizes it."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def work(seconds: float, first: Callable[[], object] = bool) -> None:
    """Do something first, then work on in Python."""
    first()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)


def test_an_interrupt_that_a_finalizer_drops_comes_again(capfd: pytest.CaptureFixture[str]) -> None:
    begun, told = time.monotonic(), sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), heard_interrupts():
        work(20, Finalized)
    assert time.monotonic() < begun + 10
    assert "Traceback" not in capfd.readouterr().err
    time.sleep(3 * AGAIN)  # nothing comes any more
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert sys.unraisablehook is told


def test_an_interrupt_that_is_heard_disturbs_no_cleaning_up() -> None:
    cleaned: list[bool] = []

    def interrupted() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            work(4 * AGAIN)
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt), heard_interrupts():
        interrupted()
    assert cleaned


def test_interrupts_that_somebody_ignores_stay_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with heard_interrupts():
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
