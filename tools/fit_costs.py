"""Fits the constants of a GPU (transpile/tile2cu/targets/costs.py) to measured times of benchmarks/shapes.py.

    python tools/fit_costs.py benchmarks/shapes/h200_2026-11-24.csv             # the report card of the constants
    python tools/fit_costs.py benchmarks/shapes/h200_2026-11-24.csv --fit 15    # fit them, in so many rounds

Constants are fitted on every other pair of N and K, and reported on the rest. A round moves one constant after the
other; the loss is the squared logarithm of predicted over measured time, with settings far from the best weighing less.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from tile2cu.chooser.model import Schedule, time_of
from tile2cu.chooser.work import Work
from tile2cu.choosing import Tunable, tunable
from tile2cu.core.errors import Tile2CuError
from tile2cu.fit import TOO_LARGE
from tile2cu.targets import SM90A
from tile2cu.targets.costs import H200, Costs

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
GIVEN = ("card", "source", "sms", "mma_flops", "load_cycles")  # not fitted
FORMS = {
    "gemm_relu": r"g_(?P<block_M>\d+)x(?P<block_N>\d+)x(?P<block_K>\d+)s(?P<num_stages>\d+)t(?P<threads>\d+)",
    "gemm_few_rows": r"f_(?P<block_M>\d+)x(?P<block_N>\d+)x(?P<block_K>\d+)p(?P<splits>\d+)",
}


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A measured time, in microseconds, of a setting on a shape, with what the model predicts it from."""

    shape: tuple[int, int, int]
    label: str
    us: float
    work: Work
    schedule: Schedule
    bytes_: int

    def predicted(self, costs: Costs) -> float:
        return time_of(self.work, self.schedule, self.bytes_, costs).total


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """A file of benchmarks/shapes.py: cuBLAS' time for each shape, and the times of all settings."""

    cublas: dict[tuple[int, int, int], float]
    timed: dict[tuple[int, int, int], list[Timed]]

    @property
    def train(self) -> list[tuple[int, int, int]]:
        """The shapes with every other pair of N and K."""
        pairs = list(dict.fromkeys((n, k) for _, n, k in self.cublas))
        return [shape for shape in self.cublas if pairs.index(shape[1:]) % 2 == 0]

    @property
    def held_out(self) -> list[tuple[int, int, int]]:
        train = set(self.train)
        return [shape for shape in self.cublas if shape not in train]

    def best(self, shape: tuple[int, int, int]) -> Timed:
        return min(self.timed[shape], key=lambda each: each.us)


def read(path: Path) -> Shapes:
    """The measured times, each with the work and the schedule of its setting."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    labels = [label for label in rows[0] if label not in ("M", "N", "K", "cublas")]
    settings = {label: _setting(label) for label in labels}
    schedules: dict[str, Schedule] = {}
    kernels = {
        name: tunable(path, path.read_text(encoding="utf-8"), None, SM90A, {})
        for name in FORMS
        if (path := EXAMPLES / f"{name}.py")
    }
    cublas, timed = {}, {}
    for row in rows:
        m, n, k = shape = int(row["M"]), int(row["N"]), int(row["K"])
        cublas[shape], timed[shape] = float(row["cublas"]), []
        for label in labels:
            if row[label]:
                name, setting = settings[label]
                kernel, sizes = kernels[name], {"M": m, "N": n, "K": k}
                if label not in schedules:
                    schedules[label] = _schedule(kernel, setting)
                (work,) = kernel.space.works({**kernel.space.default, **setting}, sizes)
                bytes_ = sum(kernel.space.bytes_of(kernel.space.values(kernel.space.default, sizes)))
                each = Timed(
                    shape=shape, label=label, us=float(row[label]), work=work, schedule=schedules[label], bytes_=bytes_
                )
                timed[shape].append(each)
    return Shapes(cublas=cublas, timed=timed)


def _schedule(kernel: Tunable, setting: dict[str, int]) -> Schedule:
    """What the rules decide; as `emit`, with fewer stages where only those fit, which the setting then has."""
    while True:
        try:
            (found,) = kernel.decide(setting)[1]
            return found
        except Tile2CuError as error:
            if error.code != TOO_LARGE or setting["num_stages"] < 2:
                raise
            setting["num_stages"] -= 1


def _setting(label: str) -> tuple[str, dict[str, int]]:
    """The kernel and the setting of a label: g_128x256x64s3t256, f_16x64x128p2."""
    for kernel, form in FORMS.items():
        if found := re.fullmatch(form, label):
            setting = {name: int(value) for name, value in found.groupdict().items()}
            if kernel == "gemm_few_rows":
                setting["num_stages"] = 4 if setting["block_M"] == 16 or setting["block_K"] == 64 else 3
            return kernel, setting
    raise ValueError(f"no setting is called {label}")


def loss(costs: Costs, shapes: Shapes, chosen: Sequence[tuple[int, int, int]]) -> float:
    """Least squares of logarithms; a setting that takes over 1.3 (2) times the best one's time weighs 0.4 (0.1)."""
    total = 0.0
    for shape in chosen:
        best = shapes.best(shape).us
        for each in shapes.timed[shape]:
            weight = 1.0 if each.us < 1.3 * best else 0.4 if each.us < 2 * best else 0.1
            total += weight * math.log(each.predicted(costs) / each.us) ** 2
    return total


def fitted(costs: Costs, shapes: Shapes, rounds: int) -> Costs:
    """Constants that reduce the loss on the shapes to train on; a step that helps grows, another one shrinks."""
    steps = {field.name: 0.2 for field in fields(costs) if field.name not in GIVEN}
    least = loss(costs, shapes, shapes.train)
    for number in range(rounds):
        for name, step in steps.items():
            for factor in (1 + step, 1 - step):
                moved = replace(costs, **{name: getattr(costs, name) * factor})
                found = loss(moved, shapes, shapes.train)
                if found < least:
                    costs, least = moved, found
                    steps[name] *= 1.3
                    break
            else:
                steps[name] *= 0.5
        print(f"round {number + 1}: {least:.3f}", flush=True)
    return costs


@dataclass(frozen=True, kw_only=True)
class Card:
    """How well the predicted best settings do: measured times of the best ones, and of cuBLAS, over theirs."""

    over_best: list[float]
    over_cublas: list[float]
    best_over_cublas: list[float]

    def __str__(self) -> str:
        return (
            f"{len(self.over_best)} shapes: of the best {statistics.fmean(self.over_best):.3f} (least "
            f"{min(self.over_best):.3f}); of cuBLAS {statistics.geometric_mean(self.over_cublas):.3f} (least "
            f"{min(self.over_cublas):.3f}; the best {statistics.geometric_mean(self.best_over_cublas):.3f}, "
            f"{min(self.best_over_cublas):.3f})"
        )


def pick(costs: Costs, shapes: Shapes, shape: tuple[int, int, int]) -> Timed:
    """The setting that is predicted to be fastest, of those that were measured."""
    return min(shapes.timed[shape], key=lambda each: each.predicted(costs))


def ratio(costs: Costs, shapes: Shapes, shape: tuple[int, int, int]) -> float:
    """The best measured time over the pick's."""
    return shapes.best(shape).us / pick(costs, shapes, shape).us


def card(costs: Costs, shapes: Shapes, chosen: Sequence[tuple[int, int, int]]) -> Card:
    picks = {shape: pick(costs, shapes, shape) for shape in chosen}
    return Card(
        over_best=[shapes.best(shape).us / each.us for shape, each in picks.items()],
        over_cublas=[shapes.cublas[shape] / each.us for shape, each in picks.items()],
        best_over_cublas=[shapes.cublas[shape] / shapes.best(shape).us for shape in chosen],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("csv", type=Path)
    parser.add_argument("--fit", type=int, default=0, metavar="ROUNDS")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="list so many shapes with the worst picks")
    options = parser.parse_args()
    shapes = read(options.csv)
    costs = H200
    if options.fit:
        costs = fitted(costs, shapes, options.fit)
        print(
            "\n".join(
                f"    {each.name}={getattr(costs, each.name):.4g}," for each in fields(costs) if each.name not in GIVEN
            )
        )
    if options.worst:
        for shape in sorted(shapes.cublas, key=lambda each: ratio(costs, shapes, each))[: options.worst]:
            print(
                *shape,
                f"{ratio(costs, shapes, shape):.2f}",
                *(
                    f"{each.label} {each.us:.1f} ({each.predicted(costs):.1f})"
                    for each in (pick(costs, shapes, shape), shapes.best(shape))
                ),
            )
    print("fitted   ", card(costs, shapes, shapes.train))
    print("held out ", card(costs, shapes, shapes.held_out))
    print("all      ", card(costs, shapes, list(shapes.cublas)))


if __name__ == "__main__":
    main()
