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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from tile2cu.chooser.counts import Work
from tile2cu.chooser.model import Schedule, times_of
from tile2cu.chooser.numbers import Unknown
from tile2cu.chooser.space import VALUES, Kind
from tile2cu.choosing import Tunable, tunable
from tile2cu.core.errors import Tile2CuError
from tile2cu.targets import SM90A
from tile2cu.targets.costs import H200, Costs

Shape = tuple[int, int, int]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
GIVEN = (
    "card",
    "source",
    "sms",
    "mma_flops",
    "load_cycles",
    "elementwise",
    "iteration",
    "unstaged",
    "row_ns",
    "row_element_ns",
    "row_registers",
    "spilled",
    "stream_ns",
    "stream_elementwise",
    "stream_registers",
)  # not fitted
FORMS = {
    "gemm_relu": r"g_(?P<block_M>\d+)x(?P<block_N>\d+)x(?P<block_K>\d+)s(?P<num_stages>\d+)t(?P<threads>\d+)",
    "gemm_few_rows": r"f_(?P<block_M>\d+)x(?P<block_N>\d+)x(?P<block_K>\d+)p(?P<splits>\d+)"
    r"(?:s(?P<num_stages>\d+)t(?P<threads>\d+))?",
    "gemm_hybrid": r"h_(?P<block_M>\d+)x(?P<block_N>\d+)x(?P<block_K>\d+)s(?P<num_stages>\d+)t(?P<threads>\d+)",
    "gemm_clusters": r"c_(?P<block_M>\d+)x(?P<block_N>\d+)x(?P<block_K>\d+)p(?P<splits>\d+)"
    r"s(?P<num_stages>\d+)t(?P<threads>\d+)",
}


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A measured time, in microseconds, of a setting on a shape, with what the model predicts it from."""

    shape: Shape
    label: str
    us: float
    works: tuple[Work, ...]
    schedules: tuple[Schedule, ...]
    tensors: list[tuple[int, int]]

    def predicted(self, costs: Costs) -> float:
        return sum(each.total for each in times_of(self.works, self.schedules, self.tensors, costs))


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """A file of benchmarks/shapes.py: cuBLAS' time for each shape, and the times of all settings."""

    cublas: dict[Shape, float]
    timed: dict[Shape, list[Timed]]

    @property
    def train(self) -> list[Shape]:
        """The shapes with every other pair of N and K."""
        pairs = list(dict.fromkeys((n, k) for _, n, k in self.cublas))
        return [shape for shape in self.cublas if pairs.index(shape[1:]) % 2 == 0]

    @property
    def held_out(self) -> list[Shape]:
        train = set(self.train)
        return [shape for shape in self.cublas if shape not in train]

    def best(self, shape: Shape) -> Timed:
        return min(self.timed[shape], key=lambda each: each.us)


def read(paths: Sequence[Path]) -> Shapes:
    """The measured times of benchmarks/shapes.py and chosen.py, each with the work and the schedule of its setting."""
    measured: dict[Shape, dict[str, float]] = {}
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for shape, label, us in _times(csv.DictReader(file)):
                measured.setdefault(shape, {}).setdefault(label, us)
    examples = {name: EXAMPLES / f"{name}.py" for name in FORMS}
    kernels = {
        name: tunable(file, file.read_text(encoding="utf-8"), None, SM90A, {}) for name, file in examples.items()
    }
    decided: dict[str, tuple[Tunable, dict[str, int], tuple[Schedule, ...]]] = {}
    timed: dict[Shape, list[Timed]] = {}
    for shape, times in measured.items():
        sizes = dict(zip("MNK", shape, strict=True))
        for label, us in times.items():
            if label == "cublas" or not _in_space(_setting(label)[1]):
                continue
            if label not in decided:
                name, setting = _setting(label)
                decided[label] = kernels[name], setting, _schedules(kernels[name], setting)
            kernel, setting, schedules = decided[label]
            values = kernel.space.values(kernel.space.default, sizes)
            tensors = [bytes_of(values) for bytes_of in kernel.space.bytes_of]
            with suppress(Unknown):
                works = kernel.space.works({**kernel.space.default, **setting}, sizes)
                each = Timed(shape=shape, label=label, us=us, works=works, schedules=schedules, tensors=tensors)
                timed.setdefault(shape, []).append(each)
    return Shapes(cublas={shape: measured[shape]["cublas"] for shape in timed}, timed=timed)


def _times(rows: Iterable[dict[str, str]]) -> Iterator[tuple[Shape, str, float]]:
    """Shape, label and microseconds: a column for each label, or a row for each time."""
    for row in rows:
        shape = int(row["M"]), int(row["N"]), int(row["K"])
        if "source" in row:
            yield shape, row["source"], float(row["us"])
        else:
            yield from ((shape, label, float(us)) for label, us in row.items() if label not in ("M", "N", "K") and us)


def _in_space(setting: dict[str, int]) -> bool:
    """Whether the chooser would try a tile of so many columns."""
    return setting["block_N"] in VALUES[Kind.N]


def _schedules(kernel: Tunable, setting: dict[str, int]) -> tuple[Schedule, ...]:
    """What the rules decide; as `emit`, with fewer stages where only those fit, which the setting then has."""
    while True:
        try:
            return kernel.decide(setting).schedules
        except Tile2CuError as error:  # TooLarge, of which decisions that were saved before keep the code
            if error.code != "T2C-L020" or setting["num_stages"] < 2:
                raise
            setting["num_stages"] -= 1


def _setting(label: str) -> tuple[str, dict[str, int]]:
    """The kernel and the setting of a label: g_128x256x64s3t256, f_16x64x128p2."""
    for kernel, form in FORMS.items():
        if found := re.fullmatch(form, label):
            setting = {name: int(value) for name, value in found.groupdict().items() if value}
            if "num_stages" not in setting:
                setting["num_stages"] = 4 if setting["block_M"] == 16 or setting["block_K"] == 64 else 3
            return kernel, setting
    raise ValueError(f"no setting is called {label}")


def loss(costs: Costs, shapes: Shapes, chosen: Sequence[Shape]) -> float:
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
    steps = {name: 0.2 for name in costs.__struct_fields__ if name not in GIVEN}
    least = loss(costs, shapes, shapes.train)
    for number in range(rounds):
        for name, step in steps.items():
            for factor in (1 + step, max(1 - step, 0.1)):
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


def pick(costs: Costs, shapes: Shapes, shape: Shape) -> Timed:
    """The setting that is predicted to be fastest, of those that were measured."""
    return min(shapes.timed[shape], key=lambda each: each.predicted(costs))


def ratio(costs: Costs, shapes: Shapes, shape: Shape) -> float:
    """The best measured time over the pick's."""
    return shapes.best(shape).us / pick(costs, shapes, shape).us


def card(costs: Costs, shapes: Shapes, chosen: Sequence[Shape]) -> Card:
    picks = {shape: pick(costs, shapes, shape) for shape in chosen}
    return Card(
        over_best=[shapes.best(shape).us / each.us for shape, each in picks.items()],
        over_cublas=[shapes.cublas[shape] / each.us for shape, each in picks.items()],
        best_over_cublas=[shapes.cublas[shape] / shapes.best(shape).us for shape in chosen],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("csv", type=Path, nargs="+")
    parser.add_argument("--fit", type=int, default=0, metavar="ROUNDS")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="list so many shapes with the worst picks")
    options = parser.parse_args()
    shapes = read(options.csv)
    costs = H200
    if options.fit:
        costs = fitted(costs, shapes, options.fit)
        print(
            "\n".join(
                f"    {name}={getattr(costs, name):.4g}," for name in costs.__struct_fields__ if name not in GIVEN
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
