"""What a call costs the host: `python benchmarks/host.py NAME.json` beside torch.add, on this machine's GPU.

NAME is an emitted product of halves, such as emitted/cuda/sm_90a/gemm_relu.json. Times are of calls one after the other
on small tensors, in batches that end with the GPU idle: the median, and the least, of the batches' means.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch

from tile2cu_runtime import load_kernel

CALLS, BATCHES = 200, 60  # fewer calls than the driver queues


def microseconds(call: Callable[[], object]) -> tuple[float, float]:
    """Median and least of the batches."""
    times = []
    for _ in range(BATCHES):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(times), min(times)


def main(path: str) -> None:
    kernel = load_kernel(path)
    a, b, c = (torch.randn(128, 128, device="cuda").half() for _ in range(3))
    assert torch.allclose(kernel(a, b).float(), torch.relu(a.float() @ b.float()), atol=1e-1)
    calls: dict[str, Callable[[], object]] = {
        "torch.add": lambda: torch.add(a, b),
        "torch.add, out": lambda: torch.add(a, b, out=c),
        "kernel": lambda: kernel(a, b),
        "kernel, out": lambda: kernel(a, b, c),
    }
    for call in calls.values():
        for _ in range(CALLS):
            call()
    for _ in range(2):
        for name, call in calls.items():
            median, least = microseconds(call)
            print(f"{name:16} {median:6.2f} us, at least {least:5.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
