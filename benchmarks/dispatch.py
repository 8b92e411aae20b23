"""A dispatch of at most 8 kernels for the 100 shapes of LLM layers: its speed beside cuBLAS, and what its choice costs.

    python benchmarks/dispatch.py OUT RESULTS.csv DISPATCH.csv   # with a GPU, torch, nvcc and tile2cu, after chosen.py
    python benchmarks/dispatch.py DISPATCH.csv                   # the table

RESULTS.csv is chosen.py's, and OUT has its sources. Those that are the choice of most shapes are timed on all of them;
tuning/cover.py takes 8, and the dispatch is emitted, built and timed like one kernel.
"""

from __future__ import annotations

import csv
import ctypes
import json
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from chosen import KERNELS, TARGET, Shape, timed
from msgspec.structs import replace
from shapes import ROOT, ROWS, WEIGHTS, launcher

CANDIDATES = 28
NAME = "gemm_tuned"
CALLS = 2_000_000
TIMER = """
#include <chrono>
extern "C" const char* {name}_choice(int, int, int, int);
extern "C" double {name}_ns(const int* sizes, int shapes, int calls) {{
  volatile char used = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {{
    const int* each = sizes + 3 * (i % shapes);
    used = {name}_choice(each[0], each[1], each[2], 0)[0];
  }}
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
}}
"""


def layers() -> list[Shape]:
    return [(m, n, k) for n, k in WEIGHTS for m in ROWS]


def measure(folder: Path, results: Path, out: Path) -> None:
    """Times candidates, covers the shapes, and times the dispatch. Raises RuntimeError for a wrong result."""
    import torch

    sources = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["sources"]
    rows = [row for row in csv.DictReader(results.open(encoding="utf-8")) if row["other"] == "0"]
    wins = Counter(_best(rows, shape) for shape in layers()) + Counter(
        row["source"] for row in rows if row["role"] == "choice"
    )
    labels = [label for label, _ in wins.most_common(CANDIDATES)]
    functions = {label: launcher(folder, label, sources[label]["kernel"]) for label in labels}
    times = {shape: timed(torch, _that_suit(functions, sources, shape[0]), shape) for shape in layers()}
    entries, kernels = covered(times, sources)
    function, ns = built(folder / NAME, entries)
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("M", "N", "K", "cublas", "dispatch", "choice_ns", "kernels"))
        for shape in layers():
            us = timed(torch, {NAME: function}, shape)
            writer.writerow((*shape, f"{us['cublas']:.2f}", f"{us[NAME]:.2f}", f"{ns:.1f}", kernels))


def _best(rows: list[dict[str, str]], shape: Shape) -> str:
    own = [row for row in rows if (int(row["M"]), int(row["N"]), int(row["K"])) == shape and row["source"] != "cublas"]
    return min(own, key=lambda row: float(row["us"]))["source"]


def _that_suit(functions: Mapping[str, Any], sources: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """Without tiles of few rows for many, and of many rows for few."""
    return {
        label: function
        for label, function in functions.items()
        if sources[label]["block_M"] <= max(64, 2 * rows) and rows <= 32 * sources[label]["block_M"] ** 2 / 64
    }


def covered(times: Mapping[Shape, Mapping[str, float]], sources: Mapping[str, Any]) -> tuple[tuple[Any, ...], int]:
    """The entries of a dispatch over at most 8 settings of the family, and how many these are."""
    from tile2cu.tuning.cover import cover, entries_of
    from tile2cu.tuning.record import Figure, Tuned

    tuned = []
    for shape, row in times.items():
        found = [
            Figure(file=f"{sources[label]['kernel']}.py", setting=_tiles(sources[label]), us=us, spread=0.0, rounds=5)
            for label, us in row.items()
            if label != "cublas"
        ]
        found.sort(key=lambda each: each.us)
        sizes = tuple(sorted(zip("MNK", shape, strict=True)))
        best, slowest = found[0], found[-1].us
        tuned.append(
            Tuned(
                sizes=sizes,
                card="",
                best=best,
                by="measured",
                default_us=slowest,
                figures=tuple(found),
                rejected=(),
                clocks="",
                tools="",
            )  # fmt: skip
        )
    chosen = cover(tuned)
    kernels = {f"{name}.py": name for name in KERNELS}
    entries = entries_of(chosen, tuned, TARGET, "M", lambda candidate, sizes: None, kernels)
    return tuple(replace(entry, measured="") for entry in entries), len(chosen.settings)


def _tiles(source: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple((name, value) for name, value in source.items() if name != "kernel")


def built(folder: Path, entries: Iterable[Any]) -> tuple[Any, float]:
    """The dispatch as a C function, and nanoseconds of its choice."""
    import tile2cu
    from tile2cu.core.dispatch import Dispatch

    folder.mkdir(parents=True, exist_ok=True)
    files = tile2cu.dispatch(
        Dispatch(name=NAME, file="gemm_relu.py", kernel="gemm_relu", entries=tuple(entries)), ROOT / "examples"
    )
    for name, content in {**files, "timer.cpp": TIMER.format(name=NAME)}.items():
        (folder / name).write_text(content, encoding="utf-8")
    objects = []
    for path in sorted(folder.glob("*.c*")):
        arch = "sm_80" if "_any" in path.name else "sm_90a"
        code = f"-gencode=arch=compute_{arch[3:]},code={arch}"
        objects.append((path.with_suffix(".o"), [code, "-c", "-o", str(path.with_suffix(".o")), str(path)]))
    flags = ["nvcc", "-std=c++17", "-O3", "-Xcompiler", "-fPIC", "-I", str(ROOT / "headers"), "-I", str(folder)]
    running = [subprocess.Popen([*flags, *own]) for _, own in objects]
    if any(each.wait() for each in running):
        raise RuntimeError("nvcc failed")
    library = folder / "dispatch.so"
    subprocess.run([*flags, "-shared", "-o", str(library), *(str(path) for path, _ in objects), "-lcuda"], check=True)
    loaded = ctypes.CDLL(str(library))
    function, timer = getattr(loaded, NAME), getattr(loaded, f"{NAME}_ns")
    pointer = ctypes.c_void_p
    function.argtypes = [pointer] * 3 + [ctypes.c_int] * 3 + [pointer, ctypes.c_size_t, pointer]
    timer.restype, timer.argtypes = ctypes.c_double, [pointer, ctypes.c_int, ctypes.c_int]
    sizes = (ctypes.c_int * (3 * len(layers())))(*(size for shape in layers() for size in shape))
    timer(sizes, len(layers()), CALLS // 10)
    return function, timer(sizes, len(layers()), CALLS)


def table(path: Path) -> None:
    """Prints the geometric mean of cuBLAS' time over the dispatch's, the least, and the cost of a choice."""
    rows = list(csv.DictReader(path.open(encoding="utf-8")))
    ratios = {tuple(row[size] for size in "MNK"): float(row["cublas"]) / float(row["dispatch"]) for row in rows}
    least = min(ratios, key=lambda shape: ratios[shape])
    mean = statistics.geometric_mean(ratios.values())
    print(
        f"| {rows[0]['kernels']} kernels, {len(rows)} shapes | {mean:.3f} | {ratios[least]:.2f} ({', '.join(least)}) |"
    )
    print(f"| choice | {rows[0]['choice_ns']} ns |")


def main(*paths: str) -> None:
    if len(paths) == 1:
        table(Path(paths[0]))
    else:
        measure(*map(Path, paths))


if __name__ == "__main__":
    main(*sys.argv[1:])
