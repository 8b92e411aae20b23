"""Workers that tune shapes, one at a time each: in this process, in a process for each GPU of the host, or by Ray.

A worker runs calls and may die; `spread` gives every call to a worker that is free, and once more to another one where
its worker died. What a call returns depends on the call alone, so that neither the number of workers nor their order
changes the results.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing import get_context
from types import TracebackType
from typing import Protocol, TypeVar

from tile2cu.core.errors import Tile2CuError

VISIBLE = "CUDA_VISIBLE_DEVICES"  # ROCm reads it as well
_TRIES = 3  # of a call whose worker dies
Result = TypeVar("Result")


class Worker(Protocol):
    """Runs one call at a time. `name` is for progress and errors."""

    name: str

    def submit(self, call: Callable[[], Result]) -> "Future[Result]":
        """Starts a call, which is sent to where the worker runs."""

    def died(self, error: BaseException) -> bool:
        """Whether an error of a call is that its worker ended, rather than one that the call raised."""

    def renew(self) -> None:
        """Replaces a worker that died."""

    def close(self) -> None:
        """Ends the worker."""


@dataclass(frozen=True, kw_only=True)
class Workers(AbstractContextManager["Workers"]):
    """The workers of a tuning, of which each may run so many `builds` side by side; None for one per core."""

    each: tuple[Worker, ...]
    builds: int | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.each:
            worker.close()


class Here:
    """A worker that is this process: calls run when they are submitted."""

    name = "this process"

    def submit(self, call: Callable[[], Result]) -> "Future[Result]":
        done: Future[Result] = Future()
        try:
            done.set_result(call())
        except Exception as error:
            done.set_exception(error)
        return done

    def died(self, error: BaseException) -> bool:
        return False

    def renew(self) -> None: ...

    def close(self) -> None: ...


class Process:
    """A worker in a process of its own, with these variables of the environment: which GPU it sees."""

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self.name = name
        self._environment = dict(environment)
        self._pool = self._started()

    def submit(self, call: Callable[[], Result]) -> "Future[Result]":
        try:
            return self._pool.submit(call)
        except BrokenProcessPool as error:  # it died while it was idle
            failed: Future[Result] = Future()
            failed.set_exception(error)
            return failed

    def died(self, error: BaseException) -> bool:
        return isinstance(error, BrokenProcessPool)

    def renew(self) -> None:
        self._pool.shutdown(wait=False)
        self._pool = self._started()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        # A forked process would share the CUDA context of its parent.
        context = get_context("spawn")
        return ProcessPoolExecutor(max_workers=1, mp_context=context, initializer=_set, initargs=(self._environment,))


def _set(environment: Mapping[str, str]) -> None:
    os.environ.update(environment)


def on_this_host(gpus: int | None) -> Workers:
    """So many GPUs of this host, None for all: a process for each, or this process for one.

    Errors: T2C-C024 where there are fewer.
    """
    if gpus == 1:
        return Workers(each=(Here(),))
    there = _visible()
    if not there or (gpus is not None and gpus > len(there)):
        help = f"{VISIBLE} is {os.environ[VISIBLE]!r}" if VISIBLE in os.environ else "nvidia-smi -L lists them"
        raise Tile2CuError("T2C-C024", f"torch finds {len(there)} GPUs here", help=help)
    chosen = there[:gpus]
    processes = tuple(Process(f"GPU {each}", {VISIBLE: each}) for each in chosen)
    return Workers(each=processes, builds=max((os.cpu_count() or 1) // len(chosen), 1))


def _visible() -> list[str]:
    """The GPUs that this process may use, as the variable names them."""
    import torch

    count = torch.cuda.device_count()
    given = [each.strip() for each in os.environ.get(VISIBLE, "").split(",") if each.strip()]
    return given[:count] if given else [str(number) for number in range(count)]


def spread(
    calls: Sequence[Callable[[], Result]],
    workers: Sequence[Worker],
    *,
    suits: Callable[[int, Worker], bool] = lambda number, worker: True,
    started: Callable[[int, Worker], None] = lambda number, worker: None,
    done: Callable[[int, Result], None] = lambda number, result: None,
) -> list[Result]:
    """The results of the calls, in their order; `done` is told each when it is there.

    Every call must suit a worker. A call whose worker dies is made again on one that suits it. Errors: the first that a
    call raises, once those that run have ended; T2C-C024 for a call that three workers did not survive.
    """
    waiting, free = list(range(len(calls))), list(workers)
    running: dict[Future[Result], tuple[int, Worker]] = {}
    found: dict[int, Result] = {}
    deaths: Counter[int] = Counter()
    failure: BaseException | None = None
    while running or (waiting and failure is None):
        for worker in [] if failure else list(free):
            number = next((each for each in waiting if suits(each, worker)), None)
            if number is not None:
                waiting.remove(number)
                free.remove(worker)
                started(number, worker)
                running[worker.submit(calls[number])] = number, worker
        ended, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in sorted(ended, key=lambda each: running[each][0]):
            number, worker = running.pop(future)
            free.append(worker)
            error = future.exception()
            if error is None:
                found[number] = future.result()
                done(number, found[number])
            elif not worker.died(error):
                failure = failure or error
            else:
                worker.renew()
                waiting.insert(0, number)
                deaths[number] += 1
                if deaths[number] == _TRIES:
                    failure = failure or _never_survived(worker, error)
    if failure is not None:
        raise failure
    return [found[number] for number in range(len(calls))]


def _never_survived(worker: Worker, error: BaseException) -> Tile2CuError:
    return Tile2CuError(
        "T2C-C024",
        f"a worker ended {_TRIES} times while it measured one shape, last on {worker.name}: {error}",
        help="measure that shape alone: tile2cu tune with one value for each --size",
    )
