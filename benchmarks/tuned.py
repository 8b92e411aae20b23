"""`tile2cu tune` on shapes of chosen.py: what it gives over the model's choice, its time, and the same once more.

    python benchmarks/tuned.py OUT RESULTS.csv      # on a machine with a GPU, torch, nvcc and tile2cu
    python benchmarks/tuned.py RESULTS.csv          # the table

Every fourteenth shape is tuned: of the family the kernel that the model chooses. Both tunings start without entries;
the second finds the first one's builds in the cache. Winners, choices and cuBLAS are then timed in turns, as in
chosen.py.
"""

from __future__ import annotations

import csv
import statistics
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from chosen import TARGET, Shape, all_shapes, every_kernel, label_of, timed, written
from shapes import launcher

STRIDE, OFFSET = 14, 7
FIELDS = ("M", "N", "K", "kernel", "first", "second", "by", "measured", "s", "s_again", "us", "us_again", "us_choice")
TIMED = ("cublas", "choice", "tuned")  # microseconds, alternately


def tune(folder: Path, out: Path) -> None:
    """Tunes each shape twice, then times the winners. Raises RuntimeError for a wrong result."""
    import torch

    kernels = every_kernel()
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow((*FIELDS, *TIMED))
        for shape, _ in all_shapes()[OFFSET::STRIDE]:
            sizes = dict(zip("MNK", shape, strict=True))
            choices = {name: choice for name, kernel in kernels.items() if (choice := _choice(kernel, sizes))}
            name = min(choices, key=lambda each: choices[each].us)
            found = [_tuned(kernels[name], sizes, folder / f"{number}") for number in (1, 2)]
            (first, s), (second, again) = found
            choice = choices[name].setting
            settings = {"choice": choice, "tuned": first.best.setting}
            labels = {what: label_of(name, dict(each)) for what, each in settings.items()}
            us = _in_turns(torch, folder, name, settings, shape)
            row = (
                *shape, name, label_of(name, dict(first.best.setting)), label_of(name, dict(second.best.setting)),
                first.by, len(first.figures), f"{s:.1f}", f"{again:.1f}", f"{first.best.us:.2f}",
                f"{second.us_of(first.best.setting) or 0:.2f}", f"{first.us_of(choice) or 0:.2f}",
                *(f"{us[labels.get(each, each)]:.2f}" for each in TIMED),
            )  # fmt: skip
            writer.writerow(row)
            file.flush()
            print(*row, flush=True)


def _choice(kernel: Any, sizes: Mapping[str, int]) -> Any:
    from tile2cu.chooser.choose import NoModel

    try:
        return kernel.choice(sizes)
    except NoModel:
        return None


def _tuned(kernel: Any, sizes: Mapping[str, int], folder: Path) -> tuple[Any, float]:
    """The entry of a tuning from nothing, and its seconds."""
    from tile2cu.loading import load
    from tile2cu.tuning.on_gpu import OnGpu
    from tile2cu.tuning.run import tune_shapes

    def measurer(default: Any, shape: Mapping[str, int]) -> Any:
        def built(setting: Mapping[str, int]) -> Any:
            given: dict[str, Any] = dict(setting)
            return load(kernel.path, kernel.kernel, target=TARGET, device="cuda", tiles="default", **given)

        return OnGpu(built, default, shape)

    place = folder / f"{kernel.program.name}_{'x'.join(map(str, sizes.values()))}.tune.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    start = time.monotonic()
    (entry,) = tune_shapes(kernel, [sizes], measurer, place=place).entries
    return entry, time.monotonic() - start


def _in_turns(torch: Any, folder: Path, name: str, settings: Mapping[str, Any], shape: Shape) -> dict[str, float]:
    labels = list(dict.fromkeys(label_of(name, dict(setting)) for setting in settings.values()))
    for setting in settings.values():
        written(folder, label_of(name, dict(setting)), name, dict(setting))
    with ThreadPoolExecutor() as pool:
        functions = pool.map(lambda label: launcher(folder, label, name), labels)
        return timed(torch, dict(zip(labels, functions, strict=True)), shape)


def table(path: Path) -> None:
    """Prints the geometric means, and how often both tunings gave the same."""
    rows = list(csv.DictReader(path.open(encoding="utf-8")))
    for what in ("choice", "tuned"):
        ratios = [float(row["cublas"]) / float(row[what]) for row in rows]
        print(f"| {len(rows)} shapes, {what} | {statistics.geometric_mean(ratios):.3f} | {min(ratios):.2f} |")
    equal = sum(row["first"] == row["second"] for row in rows)
    apart = [float(row["us_again"]) / float(row["us"]) for row in rows if row["first"] != row["second"]]
    print(f"| equal in two tunings | {equal} of {len(rows)} | the others' first, again: {apart} |")
    seconds = [float(row["s"]) for row in rows]
    print(f"| seconds a shape | {statistics.fmean(seconds):.0f} | {max(seconds):.0f} at most |")


def main(first: str, *rest: str) -> None:
    if rest:
        tune(Path(first), Path(*rest))
    else:
        table(Path(first))


if __name__ == "__main__":
    main(*sys.argv[1:])
