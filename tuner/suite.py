"""Suites: every kernel on every input of its order, for every extent and number of threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..compiler.errors import DatabaseError, DataError, NetworkError, SparsetuneError
from ..compiler.frozen import frozen
from ..compiler.native.machine import available_cores
from ..compiler.storage.tensor import Tensor
from ..compiler.units import PROCESSOR
from .alarm import TooLong, limited
from .config import Suite, SuiteInput, SuiteKernel
from .database import Database
from .measure.helpers import Helpers
from .measure.policy import Policy
from .measure.worker_process import Worker
from .operands import load_operands, load_tensor
from .problem import Problem
from .progress import Report
from .resolve import make_problem
from .session import tune_problem
from .settings import Budget
from .suite_run import Run
from .tune_result import TuneResult


@frozen
class Item:
    """One kernel on one input.

    Attributes:
        label: the kernel's name with extents and threads, where the suite has several of them.
    """

    label: str
    kernel: SuiteKernel
    input: SuiteInput
    dims: tuple[tuple[str, int], ...]
    threads: int
    target: str = PROCESSOR.target


@frozen
class Outcome:
    """The outcome of an item.

    Attributes:
        result: None where it failed or was skipped.
        message: why it failed or was skipped.
        skipped: whether nothing was tried, because its input is not on this machine and cannot be fetched.
    """

    item: Item
    result: TuneResult | None
    message: str = ""
    skipped: bool = False


def suite_items(suite: Suite) -> list[Item]:
    """Return the items of a suite, input by input, so that each input is loaded once.

    Raises:
        DataError: a kernel has no input.
    """
    threads = (1,) if suite.is_on_device else suite.threads or (available_cores(),)
    found = [item for entry in suite.inputs for kernel in suite.kernels for item in _items(kernel, entry, threads, suite.target)]
    for kernel in suite.kernels:
        if not any(item.kernel is kernel for item in found):
            raise DataError(f"kernel '{kernel.name}' of suite '{suite.name}' has no input of order {kernel.order}")
    return found


def open_items(suite: Suite) -> Iterator[tuple[Item, Callable[[], Problem], Worker]]:
    """Yield every item with a function that returns its problem, and a worker with its number of threads.

    One input at a time is in memory, and nothing of a problem once the caller has let go of it; workers end with the iteration.
    The function raises ``SparsetuneError`` where kernel and input do not fit.
    """
    with _Workers() as workers, _Inputs() as inputs:
        for item in suite_items(suite):
            yield item, partial(_open_item, item, inputs), workers.get(item.threads)


def tune_suite(
    suite: Suite,
    store: Database,
    budget: Budget,
    seed: int,
    report: Callable[[Item, int, int], Report],
    helpers: Callable[[Item, Policy], Helpers] | None = None,
    last: Run | None = None,
) -> Iterator[Outcome]:
    """Tune item by item; an item that fails does not stop the others.

    The result of an outcome holds its operands; callers that keep many outcomes should keep only what they need.

    Args:
        budget: of each item.
        report: called with an item, its number from 1 and the number of items; returns where its progress goes.
        helpers: called with an item and how its candidates are timed; returns the helpers that measure for it.
        last: the run that this one continues: items that ended in it are not measured again, and what was measured before it does not
            count.
    """
    count, since = len(suite_items(suite)), "" if last is None else last.begun
    ended = last is not None and last.gave(budget)
    for number, (item, problem, worker) in enumerate(open_items(suite), 1):
        try:
            with limited(suite.item_seconds, f"it was not done within item_seconds = {suite.item_seconds} s"):
                given = None if helpers is None else helpers(item, suite.settings.policy)
                progress = report(item, number, count)
                result = tune_problem(
                    problem(), store, worker, budget, suite.settings, seed, progress, helpers=given, since=since, ended=ended
                )
            yield Outcome(item, result)
            del result  # its operands, before the next ones are loaded
        except DatabaseError:
            raise
        except TooLong as error:
            worker.stop()  # it may be in the middle of an answer; it starts again with the next request
            yield Outcome(item, None, first_line(error))
        except NetworkError as error:
            yield Outcome(item, None, first_line(error), skipped=True)
        except (SparsetuneError, MemoryError) as error:
            yield Outcome(item, None, first_line(error))
        except Exception as error:  # a defect of ours must not lose hours of other items
            worker.stop()
            yield Outcome(item, None, f"a defect of sparsetune, please report it: {type(error).__name__}: {first_line(error)}")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its kind where it has none."""
    return (str(error) or type(error).__name__).splitlines()[0]


def make_item(item: Item, tensor: Tensor) -> Problem:
    """Return the problem of an item on its loaded input. Raises ``SparsetuneError``: they do not fit."""
    kernel = item.kernel
    stored = tensor if kernel.format is None else tensor.convert(kernel.format)
    operands: dict[str, Any] = load_operands(
        kernel.expression, {}, dict(item.dims), {}, given={kernel.operand: stored}, output_format=kernel.output_format
    )
    return make_problem(
        kernel.expression, operands, kernel.output_format, item.target, item.threads, item.input.name, dict(item.dims),
        semiring=kernel.semiring,
    )  # fmt: skip


def _open_item(item: Item, inputs: _Inputs) -> Problem:
    return make_item(item, inputs.load(item.input))


def _items(kernel: SuiteKernel, entry: SuiteInput, threads: tuple[int, ...], target: str) -> Iterator[Item]:
    if kernel.order != entry.order or (kernel.inputs and entry.name not in kernel.inputs):
        return
    for extents in itertools.product(*kernel.dims.values()):
        dims = tuple(zip(kernel.dims, extents, strict=True))
        for count in threads:
            varied = [f"{index}={extent}" for index, extent in dims if len(kernel.dims[index]) > 1]
            varied += [f"{count} thread{'s' if count > 1 else ''}"] if len(threads) > 1 else []
            yield Item(" ".join([kernel.name, *varied]), kernel, entry, dims, count, target)


class _Workers:
    """One measuring process for each number of threads, kept while the suite runs."""

    def __init__(self) -> None:
        self._workers: dict[int, Worker] = {}

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_details: object) -> None:
        for worker in self._workers.values():
            worker.stop()

    def get(self, threads: int) -> Worker:
        if threads not in self._workers:
            self._workers[threads] = Worker(threads)
        return self._workers[threads]


class _Inputs:
    """The input that was loaded last, and the errors of others, so that a server that does not answer is not asked for every kernel."""

    def __enter__(self) -> _Inputs:
        self._last: tuple[str, Tensor] | None = None
        self._failed: dict[str, SparsetuneError] = {}
        return self

    def __exit__(self, *_details: object) -> None:
        self._last, self._failed = None, {}

    def load(self, entry: SuiteInput) -> Tensor:
        if entry.source in self._failed:
            raise self._failed[entry.source]
        if self._last is None or self._last[0] != entry.source:
            self._last = None  # free the old one first
            try:
                self._last = entry.source, load_tensor(entry.source)
            except SparsetuneError as error:
                self._failed[entry.source] = error
                raise
        return self._last[1]
