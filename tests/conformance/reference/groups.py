"""Groups of threads that run independently and synchronise at barriers, executed one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.conformance.reference.numbers import CannotInterpret, KernelFault


class Barriers:
    """The barriers of a block: T.alloc_barrier's, whose phases complete with a number of arrivals, and named ones.

    Copies complete when they are issued, so a phase has no bytes to wait for.
    """

    def __init__(self) -> None:
        self._arrived: dict[tuple[str, int], int] = {}
        self._phases: dict[tuple[str, int], int] = {}
        self._turns: Turns | None = None

    def arrive(self, barrier: tuple[str, int], threads: int, needed: int) -> None:
        """So many threads come; the phase is over when as many have come as it takes."""
        arrived = self._arrived.get(barrier, 0) + threads
        while arrived >= needed:
            arrived -= needed
            self._phases[barrier] = self._phases.get(barrier, 0) + 1
        self._arrived[barrier] = arrived

    def wait(self, barrier: tuple[str, int], parity: int) -> None:
        """Until the phase of this parity is over."""
        self._until(lambda: self._phases.get(barrier, 0) % 2 != parity % 2)

    def meet(self, barrier: tuple[str, int], threads: int, needed: int) -> None:
        """Comes, and waits for the others."""
        before = self._phases.get(barrier, 0)
        self.arrive(barrier, threads, needed)
        self._until(lambda: self._phases.get(barrier, 0) > before)

    def side_by_side(self, groups: list[Callable[[], None]]) -> None:
        """Runs the groups; each goes on until it has to wait. Errors: KernelFault where all do, and what they raise."""
        if self._turns is not None:
            raise CannotInterpret("groups of threads in a group")
        self._turns = Turns(groups)
        try:
            self._turns.run()
        finally:
            self._turns = None

    def _until(self, ready: Callable[[], bool]) -> None:
        if ready():
            return
        if self._turns is None:
            raise CannotInterpret("threads that wait for others of a later statement")
        self._turns.pause(ready)


class _Stopped(BaseException):
    """Another group failed."""


class Turns:
    """Functions on separate threads, only one of which runs at a time."""

    def __init__(self, groups: list[Callable[[], None]]) -> None:
        self._control = threading.Semaphore(0)
        self._ready: list[Callable[[], bool]] = [lambda: True] * len(groups)
        self._go = [threading.Semaphore(0) for _ in groups]
        self._done = [False] * len(groups)
        self._now = 0
        self._error: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._work, args=(place, group), daemon=True) for place, group in enumerate(groups)
        ]

    def run(self) -> None:
        """Runs each group in order as soon as its wait is satisfied."""
        for thread in self._threads:
            thread.start()
        while self._error is None and not all(self._done):
            able = [place for place, ready in enumerate(self._ready) if not self._done[place] and ready()]
            if not able:
                self._error = KernelFault("every group of threads waits for another")
            for place in able[:1]:
                self._step(place)
        for place in range(len(self._threads)):
            if not self._done[place]:
                self._step(place)
        if self._error is not None:
            raise self._error

    def pause(self, ready: Callable[[], bool]) -> None:
        """The group that runs waits."""
        place = self._now
        self._ready[place] = ready
        self._control.release()
        self._go[place].acquire()
        if self._error is not None:
            raise _Stopped

    def _step(self, place: int) -> None:
        self._now = place
        self._go[place].release()
        self._control.acquire()

    def _work(self, place: int, group: Callable[[], None]) -> None:
        self._go[place].acquire()
        try:
            if self._error is None:
                group()
        except _Stopped:
            pass
        except BaseException as error:  # the one who runs the groups raises it
            self._error = error
        finally:
            self._done[place] = True
            self._control.release()
