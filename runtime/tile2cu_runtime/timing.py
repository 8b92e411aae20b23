"""How calls on a GPU are timed: cold L2, launches hidden, medians over interleaved rounds. docs/measuring.md.

Imports nothing but the standard library: benchmarks/gpu.py runs it where tile2cu is not installed. All that touches a
GPU is in TorchGpu; the protocol is tested on a device with a clock of its own.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

L2_FLUSH_BYTES = 256 << 20  # over four times the 60 MB of L2 of an H200
SLEEP_CYCLES = 700_000  # 400 us at 1.75 GHz, in which the host enqueues the call that is timed
BURST_GAP_S = 0.03
BURST_CALLS = 12
LEAST_CALLS, MOST_CALLS = 8, 200

Call = Callable[[], Any]


class Gpu(Protocol):
    """What the timer asks of a GPU. Everything is in the order of one stream, but `rest`, which waits for it."""

    def flush(self) -> None:
        """Replaces what is in the L2."""

    def hide_launch(self) -> None:
        """Occupies the GPU while the host enqueues what follows."""

    def rest(self, seconds: float) -> None:
        """Waits until the GPU is idle, and then as long again as given."""

    def record(self) -> Any:
        """An event of this moment in the stream."""

    def elapsed_ms(self, pairs: list[tuple[Any, Any]]) -> list[float]:
        """Milliseconds between the events of each pair, once all have happened."""

    def graph(self, call: Call) -> Call:
        """The call as a replay of the CUDA graph of its launches."""


class TorchGpu:
    """torch's current CUDA device and stream. With `clean` the L2 holds lines that were read, else written ones."""

    def __init__(self, *, clean: bool = False) -> None:
        import torch

        self._torch: Any = torch
        self._flushed = torch.zeros(L2_FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        self._read = torch.zeros_like(self._flushed) if clean else None

    def flush(self) -> None:
        self._flushed.zero_()
        if self._read is not None:
            self._read.max()

    def hide_launch(self) -> None:
        self._torch.cuda._sleep(SLEEP_CYCLES)

    def rest(self, seconds: float) -> None:
        self._torch.cuda.synchronize()
        time.sleep(seconds)

    def record(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ms(self, pairs: list[tuple[Any, Any]]) -> list[float]:
        self._torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]

    def graph(self, call: Call) -> Call:
        """The call is made once on a side stream before it is captured, as torch asks."""
        cuda = self._torch.cuda
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            call()
        cuda.current_stream().wait_stream(side)
        captured = cuda.CUDAGraph()
        with cuda.graph(captured):
            call()
        replay: Call = captured.replay
        return replay


class Timer:
    """Times single calls between two events, the L2 flushed before each and the launch hidden.

    With `burst` the GPU is idle for 30 ms before each call, so that no power limit is reached; else it is steady.
    """

    def __init__(self, gpu: Gpu, *, burst: bool = False) -> None:
        self.gpu = gpu
        self.burst = burst

    def median_ms(self, call: Call, budget_ms: float = 60.0) -> float:
        """The median of 8 to 200 calls, as many as fit the budget after a quarter of it as warm-up; 12 in a burst."""
        once = max(self.measure(call, 3), 1e-3)
        for _ in range(max(1, min(100, int(budget_ms / 4 / once)))):
            call()
        calls = max(LEAST_CALLS, min(MOST_CALLS, int(budget_ms / once)))
        return self.measure(call, BURST_CALLS if self.burst else calls)

    def measure(self, call: Call, calls: int) -> float:
        """The median of that many calls, in milliseconds."""
        pairs = []
        for _ in range(calls):
            if self.burst:
                self.gpu.rest(BURST_GAP_S)
            self.gpu.flush()
            self.gpu.hide_launch()
            start = self.gpu.record()
            call()
            pairs.append((start, self.gpu.record()))
        return statistics.median(self.gpu.elapsed_ms(pairs))


def interleaved(calls: Mapping[str, Call], timer: Timer, rounds: int) -> dict[str, list[float]]:
    """Times of every call in every round; each round starts with another call, so that neighbours change."""
    times: dict[str, list[float]] = {label: [] for label in calls}
    labels = list(calls)
    for index in range(rounds):
        first = index * len(labels) // rounds
        for label in labels[first:] + labels[:first]:
            times[label].append(timer.median_ms(calls[label]))
    return times
