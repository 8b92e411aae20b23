"""`tile2cu tune` on shapes of chosen.py: what it gives over the model's choice, its time, and the same once more.

    python benchmarks/tuned.py OUT RESULTS.csv      # on a machine with a GPU, torch, nvcc and tile2cu
    python benchmarks/tuned.py RESULTS.csv          # the table

Every fourteenth shape is tuned, with gemm_relu.py and the other files of its family. All tunings start without entries;
the first shape's also without builds, of the others the builds of what is measured first are made beforehand, side by
side. The second tuning, if $TUNINGS is 2, finds the first one's builds in the cache. Winners, choices and cuBLAS are
then timed in turns, as in chosen.py.
"""

from __future__ import annotations

import csv
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from chosen import TARGET, Shape, all_shapes, every_kernel, label_of, timed, written
from shapes import launcher

STRIDE, OFFSET = 14, 7
TUNINGS = int(os.environ.get("TUNINGS", "2"))
FIELDS = ("M", "N", "K", "kernel", "first", "second", "by", "measured", "s", "s_again", "us", "us_again", "us_choice")
TIMED = ("cublas", "choice", "tuned")  # microseconds, alternately


def tune(folder: Path, out: Path) -> None:
    """Tunes each shape, then times the winners. Raises RuntimeError for a wrong result."""
    import torch

    family = tuple(every_kernel().values())
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow((*FIELDS, *TIMED))
        shapes = [shape for shape, _ in all_shapes()[OFFSET::STRIDE]]
        for number, shape in enumerate(shapes):
            sizes = dict(zip("MNK", shape, strict=True))
            found = [_tuned(family, sizes, folder / f"{each}") for each in range(TUNINGS)]
            if number == 0:
                _build(family, shapes[1:])
            (first, s), *others = found
            second, again = others[0] if others else (None, None)
            choice = _choice(family, sizes)
            us = _in_turns(torch, folder, {"choice": choice, "tuned": first.best.candidate}, shape)
            row = (
                *shape, first.best.file, _label(first.best.candidate), second and _label(second.best.candidate),
                first.by, len(first.figures), f"{s:.1f}", again and f"{again:.1f}", f"{first.best.us:.2f}",
                second and f"{second.us_of(first.best.candidate) or 0:.2f}", f"{first.us_of(choice) or 0:.2f}",
                *(f"{us[each]:.2f}" for each in TIMED),
            )  # fmt: skip
            writer.writerow(row)
            file.flush()
            print(*row, flush=True)


def _choice(family: Sequence[Any], sizes: Mapping[str, int]) -> Any:
    """The model's choice."""
    from tile2cu.tuning.run import candidates_of

    return candidates_of(family, sizes).chosen


def _build(family: Sequence[Any], shapes: Sequence[Shape]) -> None:
    """Puts the builds of what is measured first for these shapes into the cache, on all cores."""
    from tile2cu.loading import load
    from tile2cu.tuning.run import candidates_of
    from tile2cu.tuning.search import MOST

    start = time.monotonic()
    wanted = [candidates_of(family, dict(zip("MNK", shape, strict=True))).first(MOST - 4) for shape in shapes]
    each = list(dict.fromkeys(candidate for own in wanted for candidate in own))

    def build(candidate: Any) -> None:
        path = family[0].path.parent / candidate.file
        load(path, None, target=TARGET, device="cuda", tiles="default", **dict(candidate.setting))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(build, each))
    print(f"{len(each)} builds in {time.monotonic() - start:.0f} s", flush=True)


def _tuned(family: Sequence[Any], sizes: Mapping[str, int], folder: Path) -> tuple[Any, float]:
    """The entry of a tuning from nothing, and its seconds."""
    from tile2cu.tuning.on_gpu import Gpu
    from tile2cu.tuning.run import tune_shapes

    place = folder / f"{family[0].program.name}_{'x'.join(map(str, sizes.values()))}.tune.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    start = time.monotonic()
    (entry,) = tune_shapes(family, [sizes], Gpu(), place=place).entries
    return entry, time.monotonic() - start


def _label(candidate: Any) -> str:
    return label_of(candidate.file.removesuffix(".py"), dict(candidate.setting))


def _in_turns(torch: Any, folder: Path, candidates: Mapping[str, Any], shape: Shape) -> dict[str, float]:
    """Microseconds of cuBLAS and of each candidate."""
    labels = {_label(each): each.file.removesuffix(".py") for each in candidates.values()}
    for each in candidates.values():
        written(folder, _label(each), labels[_label(each)], dict(each.setting))
    with ThreadPoolExecutor() as pool:
        functions = pool.map(lambda label: launcher(folder, label, labels[label]), labels)
        us = timed(torch, dict(zip(labels, functions, strict=True)), shape)
    return {"cublas": us["cublas"], **{what: us[_label(each)] for what, each in candidates.items()}}


def table(path: Path) -> None:
    """Prints the geometric means, and how often both tunings gave the same."""
    rows = list(csv.DictReader(path.open(encoding="utf-8")))
    for what in ("choice", "tuned"):
        ratios = [float(row["cublas"]) / float(row[what]) for row in rows]
        print(f"| {len(rows)} shapes, {what} | {statistics.geometric_mean(ratios):.3f} | {min(ratios):.2f} |")
    twice = [row for row in rows if row["second"]]
    equal = sum(row["first"] == row["second"] for row in twice)
    apart = [float(row["us_again"]) / float(row["us"]) for row in twice if row["first"] != row["second"]]
    print(f"| equal in two tunings | {equal} of {len(twice)} | the others' first, again: {apart} |")
    seconds = [float(row["s"]) for row in rows]
    print(f"| seconds a shape | {statistics.fmean(seconds):.0f} | {max(seconds):.0f} at most |")


def main(first: str, *rest: str) -> None:
    if rest:
        tune(Path(first), Path(*rest))
    else:
        table(Path(first))


if __name__ == "__main__":
    main(*sys.argv[1:])
