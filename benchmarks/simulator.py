"""Speed of the AMD simulator, in wave instructions a second: `python benchmarks/simulator.py [--beside FOLDER]`.

Each code object runs --rounds times; medians. FOLDER holds another simulator of the same code objects, amdgcn_sim.py,
which steps through one wave after the other: both then run in turns on the same bytes and must give the same result.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tile2cu
from tile2cu_runtime.amdgcn import CodeObject, simulate
from tile2cu_runtime.hip import CODE_OBJECT

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
TARGET = "hip:gfx942"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel of a code object with a launch; `output` is the place of what it writes among the arguments."""

    name: str
    file: Path
    bindings: dict[str, int]
    grid: tuple[int, int, int]
    arguments: Callable[[], list[Any]]
    output: int


def gemm_arguments() -> list[Any]:
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, (512, 512)).astype(np.float16) for _ in range(2))
    return [a, b, np.zeros((512, 512), np.float16), 512, 512, 512]


def attention_arguments() -> list[Any]:
    random = np.random.default_rng(0)
    inputs = [random.standard_normal((1, 512, 2, 128)).astype(np.float16) for _ in range(3)]
    return [*inputs, np.zeros_like(inputs[0]), 1, 512, 2]


def softmax_arguments() -> list[Any]:
    x = np.random.default_rng(0).standard_normal((1024, 1000)).astype(np.float32)
    return [x, np.zeros_like(x), 1024]


CASES = (
    Case(
        name="GEMM 512 x 512 x 512",
        file=HERE / "kernels" / "gemm_nt.py",
        bindings={"block_M": 128, "block_N": 128, "block_K": 32},
        grid=(4, 4, 1),
        arguments=gemm_arguments,
        output=2,
    ),
    Case(
        name="attention 1 x 512 x 2 x 128",
        file=EXAMPLES / "attention.py",
        bindings={"dim": 128, "block_M": 128, "block_N": 64, "threads": 256},
        grid=(4, 2, 1),
        arguments=attention_arguments,
        output=3,
    ),
    Case(
        name="row softmax 1024 x 1000",
        file=EXAMPLES / "row_softmax.py",
        bindings={"N": 1000},
        grid=(256, 1, 1),
        arguments=softmax_arguments,
        output=1,
    ),
)


def kernel_name(code: CodeObject) -> str:
    """The kernel; of two, the one for aligned rows."""
    return max(code.kernel_names, key=lambda name: "Alignment" in name and "AnyAlignment" not in name)


def ours(code: CodeObject, case: Case, threads: int, shared: int) -> tuple[int, np.ndarray]:
    arguments = case.arguments()
    result = simulate(code, kernel_name(code), case.grid, threads, arguments, dynamic_lds=shared)
    assert result.is_clean
    return result.cost.wave_instructions, arguments[case.output]


def beside(module: Any, code: CodeObject, case: Case, threads: int, shared: int) -> tuple[int, np.ndarray]:
    simulator = module.Sim(module.Memory(64 << 20))
    loaded = simulator.load(str(code.path))
    arguments = [simulator.mem.put(each) if isinstance(each, np.ndarray) else each for each in case.arguments()]
    executed, _ = loaded.launch(kernel_name(code), case.grid, (threads, 1, 1), arguments, dyn_lds=shared)
    return executed, arguments[case.output].get()


def measured(case: Case, module: Any, rounds: int) -> None:
    kernel = tile2cu.load(case.file, target=TARGET, device="sim", **case.bindings)
    launch = kernel.manifest.launch
    runs: dict[str, Callable[..., tuple[int, np.ndarray]]] = {"this one": ours}
    if module:
        runs["the other"] = lambda *arguments: beside(module, *arguments)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    results, executed = {}, 0
    for turn in range(rounds):
        for name in list(runs) if turn % 2 else reversed(runs):
            code = CodeObject.load(kernel.library.parent / CODE_OBJECT)  # decoded anew, as the first launch is
            start = time.perf_counter()
            executed, results[name] = runs[name](code, case, launch.threads, launch.shared_bytes)
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    rates = ", ".join(f"{name} {each:.2f} s, {executed / each:,.0f}/s" for name, each in medians.items())
    line = f"{case.name:<30}{executed:>9} wave instructions: {rates}"
    if module:
        first, second = results.values()
        np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-3)
        line += f"; ratio {medians['the other'] / medians['this one']:.1f}"
    print(line, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    module = None
    if options.beside:
        sys.path.insert(0, str(options.beside))
        module = importlib.import_module("amdgcn_sim")
    for case in CASES:
        measured(case, module, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
