"""Emitted kernels beside torch on this machine's GPU: `python benchmarks/gpu.py FOLDER`.

FOLDER holds emitted texts at any depth (benchmarks/README.md says how to make it); needs torch, NumPy and nvcc, and
nothing of tile2cu but this checkout. Each text runs every workload that its fixed sizes allow. See README.md for how
the times are taken and what they can be compared with.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("tools", "runtime")]

import peers  # noqa: E402
from workloads import SUITES, Workload, relative_error  # noqa: E402

from prebuilt import LaunchError, Prebuilt, build, device_arch, texts  # noqa: E402
from tile2cu_runtime.timing import Call, Timer, TorchGpu, interleaved  # noqa: E402


@dataclass(frozen=True, kw_only=True)
class Result:
    """One implementation on one workload. `spread` is (max - min) / median over the rounds."""

    suite: str
    workload: str
    implementation: str
    ms: float
    spread: float
    error: float  # a peer without our epilogue has one
    rate: str


OutsidePeersOf = Callable[[Workload], peers.OutsidePeers]


def sizes_for(kernel: Prebuilt, work: Workload) -> dict[str, int] | None:
    """The run-time sizes with which the kernel does this work, or None if its fixed sizes, types or mask differ."""
    tensors = work.tensors
    if work.suite not in kernel.manifest["kernel"] or len(tensors) != len(kernel.tensors):
        return None
    bindings = kernel.manifest["bindings"]
    if "causal" in work.bindings and bool(bindings.get("is_causal", bindings.get("causal"))) != work.bindings["causal"]:
        return None
    weights = work.bindings.get("weights")
    if weights is not None and bindings.get("weights", weights) != weights:
        return None
    sizes: dict[str, int] = {}
    for spec, tensor in zip(kernel.tensors, tensors, strict=True):
        if str(tensor.dtype) != f"torch.{spec['dtype']}" or len(spec["shape"]) != tensor.dim():
            return None
        sizes |= {entry: have for entry, have in zip(spec["shape"], tensor.shape, strict=True) if entry in kernel.sizes}
    return sizes if kernel.shapes(sizes) == [tuple(tensor.shape) for tensor in tensors] else None


def ours(kernels: list[Prebuilt], work: Workload) -> dict[str, Call]:
    """The emitted kernels that do this work."""
    stream = torch.cuda.current_stream().cuda_stream
    found: dict[str, Call] = {}
    for kernel in kernels:
        if (sizes := sizes_for(kernel, work)) is None:
            continue
        found[f"tile2cu/{kernel.label}"] = kernel.bind(work.tensors, sizes, stream)
    return found


def error_of(call: Call, work: Workload) -> float:
    """Of one call on outputs that held something else before; infinite where the launcher refuses it."""
    for output in (work.output, *(output for output, _ in work.others)):
        output.fill_(77)
    try:
        call()
    except LaunchError:
        return float("inf")
    return work.error()


def theirs(work: Workload, modules: Mapping[str, OutsidePeersOf]) -> tuple[dict[str, Call], dict[str, float]]:
    """The outside peers that do this work, and the error of each; one that raises is reported and left out."""
    calls: dict[str, Call] = {}
    errors: dict[str, float] = {}
    for module, peers_of in modules.items():
        try:
            for label, peer in peers_of(work).items():
                call, reference = peer if isinstance(peer, tuple) else (peer, work.reference)
                errors[label] = relative_error(call().reshape(reference.shape), reference)
                calls[label] = call
        except Exception as error:  # whatever another project's code raises, the others are still measured
            print(f"{work.name:20} {module}: {type(error).__name__}: {error}"[:300], flush=True)
    return calls, errors


def compared(
    work: Workload, kernels: list[Prebuilt], timer: Timer, rounds: int, modules: Mapping[str, OutsidePeersOf]
) -> list[Result]:
    """Checks every implementation, then times those that are right, beside one another."""
    calls = ours(kernels, work)
    if not calls:
        return []
    errors = {label: error_of(call, work) for label, call in calls.items()}
    outside, outside_errors = theirs(work, modules)
    calls, errors = calls | outside, errors | outside_errors
    for label in [label for label, error in errors.items() if not error <= work.tolerance]:
        print(f"{work.name:20} {label}: WRONG, relative error {errors[label]:g}", flush=True)
        del calls[label]
    calls |= dict(work.peers) if calls else {}
    errors |= {label: relative_error(peer(), work.reference) for label, peer in work.peers.items()}
    times = interleaved(calls, timer, rounds)
    results = []
    for label, each in times.items():
        ms = statistics.median(each)
        results.append(
            Result(
                suite=work.suite,
                workload=work.name,
                implementation=label,
                ms=ms,
                spread=(max(each) - min(each)) / ms,
                error=errors[label],
                rate=work.rate(ms).strip(),
            )
        )
    return results


def report(results: list[Result]) -> None:
    """One line an implementation; the ratio is the best peer's time over ours, above 1 where we are faster."""
    peers = [result.ms for result in results if not result.implementation.startswith("tile2cu/")]
    for result in results:
        beside = f"{min(peers) / result.ms:5.2f} of best peer" if peers else "no peer here"
        print(
            f"{result.workload:20} {result.implementation:44} {result.ms * 1e3:9.1f} us  {result.rate:>12}  "
            f"{beside}  spread {result.spread:5.1%}  error {result.error:.1e}",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--suite", action="append", choices=sorted(SUITES), help="default: all")
    parser.add_argument("--workload", action="append", help="default: all of the suites")
    parser.add_argument("--burst", action="store_true", help="30 ms idle before each call: no power cap is reached")
    parser.add_argument("--clean", action="store_true", help="an L2 of lines that were read, not written")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peer", action="append", type=Path, default=[], help="a module with peers(work): README.md")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--nvcc", default="nvcc")
    options = parser.parse_args()
    # The references are exact float32; the peers' float16 products accumulate in float32, as ours do.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    for backend in ("flash", "mem_efficient", "math"):  # leaves cuDNN's attention
        getattr(torch.backends.cuda, f"enable_{backend}_sdp")(False)
    timer, results = Timer(TorchGpu(clean=options.clean), burst=options.burst), []
    modules = {file.stem: peers.outside(file).peers for file in options.peer}
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {'burst' if options.burst else 'steady'}")
    with tempfile.TemporaryDirectory() as scratch:
        found = texts(options.folder)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            compiled = partial(build, arch=device_arch(), out=Path(scratch), nvcc=options.nvcc)
            kernels = list(pool.map(compiled, found))
        for suite in options.suite or SUITES:
            for work in SUITES[suite]():
                if options.workload and work.name not in options.workload:
                    continue
                rows = compared(work, kernels, timer, options.rounds, modules)
                if rows:
                    report(rows)
                results += rows
    options.out.mkdir(parents=True, exist_ok=True)
    name = f"gpu_{'burst' if options.burst else 'steady'}.json"
    (options.out / name).write_text(
        json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
