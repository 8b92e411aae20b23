"""Time of `tile2cu.load`, cold and warm, of the compilers, and of the CPU engine: `python benchmarks/load.py`.

Times whole processes where the user waits for one, medians of --runs. The CPU engine is timed on one small problem a
kernel, unchecked and checked; a tile is one thread block.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import ml_dtypes
import numpy as np

from tile2cu_runtime import CompileError, load_kernel
from tile2cu_runtime.compilers import find_gxx, find_nvcc

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from prebuilt import Text, texts  # noqa: E402

# Small problems for the CPU engine, by the kernels' names for their sizes.
SIZES = {"M": 256, "N": 256, "K": 512, "batch": 1, "seq_len": 256, "heads": 2}
EMITTED = ROOT / "emitted" / "cuda"

ENGINE = "from tile2cu_runtime.engine import build_engine; build_engine()"
LOAD = """
import time
start = time.perf_counter()
import tile2cu
imported = time.perf_counter()
tile2cu.load({kernel!r}, target="cuda:sm_80", device="cpu")
print(imported - start, time.perf_counter() - imported)
"""


def timed(action: Callable[[], object], runs: int) -> float:
    """Median seconds of `action`."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def compiler_seconds(command: list[str], runs: int, environment: Mapping[str, str] | None = None) -> float:
    return timed(lambda: subprocess.run(command, check=True, capture_output=True, env=environment), runs)


def print_compile_times(runs: int) -> None:
    print("compile time of each text, one file, -c")
    try:
        nvcc = find_nvcc().path
    except CompileError:
        nvcc = None
    with tempfile.TemporaryDirectory() as scratch:
        for text in sorted(EMITTED.rglob("*.cu")):
            common = ["-std=c++17", f"-I{ROOT / 'headers'}", "-c", str(text), "-o", f"{scratch}/kernel.o"]
            arch = text.relative_to(EMITTED).parts[0].removeprefix("sm_")
            gxx = [find_gxx().path, "-x", "c++", "-O2"]
            seconds = [("g++ -O2", compiler_seconds([*gxx, *common], runs))]
            if nvcc is not None:
                gencode = f"-gencode=arch=compute_{arch},code=sm_{arch}"
                seconds.append((f"nvcc sm_{arch}", compiler_seconds([nvcc, gencode, *common], runs)))
            row = "  ".join(f"{name} {value:5.2f} s" for name, value in seconds)
            print(f"  {text.relative_to(EMITTED).with_suffix('')!s:32} {row}", flush=True)


def print_load_times(kernels: list[Path], runs: int) -> None:
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TILE2CU_CACHE": cache}
        engine = compiler_seconds([sys.executable, "-c", ENGINE], 1, environment)
        print(f"building the CPU engine, once for each version of tile2cu and g++: {engine:.1f} s")
        print("tile2cu.load for the CPU, a fresh process each: import, then load")
        for kernel in kernels:
            program = [sys.executable, "-c", LOAD.format(kernel=str(kernel))]

            def once(program: list[str] = program, environment: dict[str, str] = environment) -> list[float]:
                done = subprocess.run(program, check=True, capture_output=True, text=True, env=environment)
                return [float(number) for number in done.stdout.split()]

            cold = once()
            warm = [statistics.median(column) for column in zip(*(once() for _ in range(runs)), strict=True)]
            print(f"  {kernel.stem:24} import {warm[0]:5.2f} s  cold load {cold[1]:5.2f} s  warm load {warm[1]:5.2f} s")


def blocks(text: Text, sizes: Mapping[str, int]) -> int:
    """Thread blocks of a launch; the manifest gives the grid as C expressions over sizes."""
    names = {"ceildiv": lambda a, b: -(-a // b), **text.manifest["bindings"], **sizes}
    extents = [expression.replace("tl::", "") for expression in text.manifest["launch"]["grid"]]
    return int(np.prod([eval(extent, {"__builtins__": {}}, names) for extent in extents]))


def print_engine_times(runs: int) -> None:
    print("CPU engine, milliseconds for a thread block, one core: unchecked, checked")
    for text in texts(ROOT / "emitted"):
        if not text.sizes:
            continue
        sizes = {name: SIZES[name] for name in text.sizes}
        dtypes = [getattr(ml_dtypes, tensor["dtype"], tensor["dtype"]) for tensor in text.tensors]
        arrays = [np.zeros(shape, dtype) for shape, dtype in zip(text.shapes(sizes), dtypes, strict=True)]
        row = []
        for check in (False, True):
            kernel = load_kernel(text.path, device="cpu", check=check)
            kernel(*arrays)
            row.append(timed(lambda kernel=kernel, arrays=arrays: kernel(*arrays), runs) / blocks(text, sizes) * 1e3)
        print(f"  {text.label:32} {row[0]:9.2f} {row[1]:9.2f}   {sizes}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print_compile_times(options.runs)
    print_load_times([ROOT / "examples" / f"{name}.py" for name in ("vector_add", "gemm_relu")], options.runs)
    print_engine_times(options.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
