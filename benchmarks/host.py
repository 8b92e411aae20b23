"""What a call costs the host: `python benchmarks/host.py NAME.json` beside torch.add, on this machine's GPU.

NAME is an emitted kernel on halves with one output, such as emitted/cuda/sm_90a/gemm_relu.json. Times are of calls one
after the other on small tensors, in batches that end with the GPU idle and take turns with the other calls' batches:
the median, and the least, of the batches' means. `--peer FILE.py` adds the calls that FILE's `host_calls(a, b)` gives.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from peers import outside

from tile2cu_runtime import load_kernel
from tile2cu_runtime.spec import Manifest

CALLS, BATCHES = 200, 100  # fewer calls than the driver queues


def batch(call: Callable[[], object]) -> float:
    """Microseconds a call."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


def small_tensors(manifest: Manifest, size: int) -> list[torch.Tensor]:
    """The kernel's tensors, every size that the text leaves open being `size`."""
    sizes = {each.name: size for each in manifest.sizes}
    shapes = [[extent.evaluate(sizes) for extent in tensor.shape] for tensor in manifest.tensors]
    return [torch.randn(shape, device="cuda").half() for shape in shapes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--size", type=int, default=128, help="of what the text leaves open (default: 128)")
    parser.add_argument("--peer", action="append", type=Path, default=[])
    options = parser.parse_args()
    kernel = load_kernel(options.manifest)
    *inputs, output = small_tensors(kernel.manifest, options.size)
    kernel(*inputs, output)
    assert torch.equal(kernel(*inputs), output)
    a, b, c = (torch.randn(128, 128, device="cuda").half() for _ in range(3))
    calls: dict[str, Callable[[], object]] = {
        "torch.add": lambda: torch.add(a, b),
        "torch.add, out": lambda: torch.add(a, b, out=c),
        "kernel": lambda: kernel(*inputs),
        "kernel, out": lambda: kernel(*inputs, output),
    }
    for peer in options.peer:
        calls |= outside(peer).host_calls(a, b)
    for call in calls.values():
        batch(call)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(BATCHES):
        for name, call in calls.items():
            times[name].append(batch(call))
    for name, each in times.items():
        print(f"{name:24} {statistics.median(each):6.2f} us, at least {min(each):5.2f}", flush=True)


if __name__ == "__main__":
    main()
