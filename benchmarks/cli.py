"""Whole-process time of the command line: `python benchmarks/cli.py`. Goal: an emission in under 0.45 s."""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
IMPORT = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|( *)(\S+)")


def process_ms(command: Sequence[str], runs: int) -> list[float]:
    """Wall time of each run, start to end, after one run that warms the file cache and Python's bytecode."""
    subprocess.run(command, check=True, capture_output=True)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def imports_ms(command: Sequence[str]) -> dict[str, float]:
    """Time in each top-level package's own modules while `command` ran, from Python's -X importtime."""
    done = subprocess.run([command[0], "-X", "importtime", *command[1:]], check=True, capture_output=True, text=True)
    spent: dict[str, float] = {}
    for own_us, _, _, module in IMPORT.findall(done.stderr):
        package = module.partition(".")[0]
        spent[package] = spent.get(package, 0.0) + int(own_us) / 1e3
    return spent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--kernel", type=Path, default=EXAMPLES / "gemm_relu.py")
    parser.add_argument("arguments", nargs="*", help="further arguments of tile2cu, such as -D M=1024; after a --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        emit = [sys.executable, "-m", "tile2cu.cli", str(options.kernel), *options.arguments, "-o", out]
        rows = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import tile2cu": [sys.executable, "-c", "import tile2cu"],
            f"tile2cu {options.kernel.name}": emit,
        }
        for name, command in rows.items():
            times = process_ms(command, options.runs)
            print(f"{name:32} {statistics.median(times):7.0f} ms  (fastest {min(times):.0f}, slowest {max(times):.0f})")
        print(f"\nimports of tile2cu {options.kernel.name}, by package:")
        spent = sorted(imports_ms(emit).items(), key=lambda item: -item[1])
        for package, ms in spent[:12]:
            print(f"  {package:30} {ms:7.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
