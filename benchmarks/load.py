"""Time of `tile2cu.load`, cold and warm, of the compilers, and of the CPU engine: `python benchmarks/load.py`.

Times whole processes where the user waits for one, medians of --runs. The CPU engine is timed on one small problem a
kernel, unchecked and checked; a tile is one thread block.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXTS = sorted((ROOT / "emitted").glob("cuda/*/*.cu"))

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


def compiler_seconds(command: list[str], runs: int) -> float:
    return timed(lambda: subprocess.run(command, check=True, capture_output=True), runs)


def print_compile_times(runs: int) -> None:
    print("compile time of each text, one file, -c")
    with tempfile.TemporaryDirectory() as scratch:
        for text in TEXTS:
            common = ["-std=c++17", f"-I{ROOT / 'headers'}", "-c", str(text), "-o", f"{scratch}/kernel.o"]
            arch = text.parent.name.removeprefix("sm_")
            seconds = [("g++ -O2", compiler_seconds(["g++", "-x", "c++", "-O2", *common], runs))]
            if shutil.which("nvcc"):
                gencode = f"-gencode=arch=compute_{arch},code=sm_{arch}"
                seconds.append((f"nvcc sm_{arch}", compiler_seconds(["nvcc", gencode, *common], runs)))
            row = "  ".join(f"{name} {value:5.2f} s" for name, value in seconds)
            print(f"  {text.parent.name + '/' + text.stem:32} {row}", flush=True)


def print_load_times(kernels: list[Path], runs: int) -> None:
    print("tile2cu.load for the CPU, a fresh process each: import, then load")
    for kernel in kernels:
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"TILE2CU_CACHE": cache}
            program = [sys.executable, "-c", LOAD.format(kernel=str(kernel))]

            def once(program: list[str] = program, environment: dict[str, str] = environment) -> list[float]:
                done = subprocess.run(program, check=True, capture_output=True, text=True, env=environment)
                return [float(number) for number in done.stdout.split()]

            cold = once()
            warm = [statistics.median(column) for column in zip(*(once() for _ in range(runs)), strict=True)]
        print(f"  {kernel.stem:24} import {warm[0]:5.2f} s  cold load {cold[1]:5.2f} s  warm load {warm[1]:5.2f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print_compile_times(options.runs)
    print_load_times([ROOT / "examples" / f"{name}.py" for name in ("vector_add", "gemm_relu")], options.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
