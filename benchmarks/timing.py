"""How calls on a GPU are timed: README.md says what the times can be compared with."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch

L2_FLUSH_BYTES = 256 << 20  # over four times an H200's 60 MB of L2
SLEEP_CYCLES = 700_000  # some 400 us, in which the host enqueues the call that is timed
BURST_GAP_S = 0.03
BURST_CALLS = 12

Call = Callable[[], None]


class Timer:
    """Times single calls with CUDA events, the L2 flushed before each and the launch hidden behind a device sleep.

    The flush leaves lines that were written: a call that needs their place waits until they are in memory. With `clean`
    they were read.
    """

    def __init__(self, burst: bool, clean: bool = False) -> None:
        self.burst = burst
        self.flush = torch.zeros(L2_FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        self.read = torch.zeros_like(self.flush) if clean else None

    def median_ms(self, call: Call, budget_ms: float = 60.0) -> float:
        """The median of 8 to 200 calls, as many as fit the budget after as long a warm-up; 12 in burst mode."""
        once = max(self.measure(call, 3), 1e-3)
        for _ in range(max(1, min(100, int(budget_ms / 4 / once)))):
            call()
        return self.measure(call, BURST_CALLS if self.burst else max(8, min(200, int(budget_ms / once))))

    def measure(self, call: Call, calls: int) -> float:
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(calls)]
        for start, end in events:
            if self.burst:
                torch.cuda.synchronize()
                time.sleep(BURST_GAP_S)
            self.flush.zero_()
            if self.read is not None:
                self.read.max()
            torch.cuda._sleep(SLEEP_CYCLES)
            start.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(end) for start, end in events)


def interleaved(calls: Mapping[str, Call], timer: Timer, rounds: int) -> dict[str, list[float]]:
    """Times of every call in every round; each round starts with another call, so that neighbours change."""
    times: dict[str, list[float]] = {label: [] for label in calls}
    labels = list(calls)
    for turn in range(rounds):
        first = turn * len(labels) // rounds
        for label in labels[first:] + labels[:first]:
            times[label].append(timer.median_ms(calls[label]))
    return times
