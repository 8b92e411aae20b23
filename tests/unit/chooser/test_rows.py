"""The model's choices for rows in registers and for decoded operands, beside settings that were timed on a GPU."""

import csv
import math
import statistics
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import pytest

from tests.unit.chooser.kernels import EXAMPLES, example
from tile2cu.chooser.space import Kind
from tile2cu.choosing import Tunable
from tile2cu.targets import SM90A

TIMES = Path(__file__).resolve().parents[3] / "benchmarks/settings/h100_2026-11-27.csv"
PRODUCTS = {"M0": (4096, 1024, 8192), "M1": (4096, 8192, 8192), "M4": (8192, 1024, 8192), "4096": (4096, 4096, 4096)}
GEMMS = {"dequant_gemm": ("dequant", "dequant_gemm"), "linear_fp4": ("linear_int4_prefill", "linear_int4_prefill")}


@lru_cache(maxsize=1)
def timed() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Microseconds of each setting, by the kernel and the workload; what is chosen there now is left out."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in csv.DictReader(TIMES.open(encoding="utf-8")):
        if row["setting"] != "choice":
            found.setdefault(row["suite"], {}).setdefault(row["workload"], {})[row["setting"]] = float(row["us"])
    return found


def label(setting: Mapping[str, int], names: str) -> str:
    return " ".join(f"{name}={setting[name]}" for name in names.split())


@pytest.mark.parametrize(("name", "columns"), [("layernorm", "dim"), ("row_softmax", "N")])
def test_rows_that_blocks_have_in_registers(name: str, columns: str) -> None:
    """Choices among what was timed have 0.97 of the best one's speed in the geometric mean, 0.94 at least."""
    ratios = []
    for workload, times in timed()[name].items():
        rows, width = map(int, workload.split("_")[1].split("x"))
        kernel = example(name, **{columns: width})
        choice = kernel.choice({"M": rows})
        own = choice.setting == choice.default
        us = times["default"] if own else times[label(dict(choice.setting), "block_M threads")]
        ratios.append(min(times.values()) / us)
    assert math.exp(statistics.fmean(map(math.log, ratios))) >= 0.97
    assert min(ratios) >= 0.94


def test_a_row_that_does_not_fit_registers_is_shared_by_more_threads() -> None:
    """The file's 4 rows of 8192 columns are 256 elements of each of 128 threads, which spill."""
    kernel = example("layernorm", dim=8192)
    assert {each.name: each.kind for each in kernel.space.parameters} == {
        "block_M": Kind.ROWS,
        "threads": Kind.ROW_THREADS,
    }
    chosen = dict(kernel.choice({"M": 8192}).setting)
    assert chosen["block_M"] * 8192 / chosen["threads"] <= 64


@pytest.mark.parametrize("suite", GEMMS)
def test_decoded_operands(suite: str) -> None:
    """Of large products the predicted leader among what was timed has 0.97 of the best one's speed."""
    file, name = GEMMS[suite]
    path = EXAMPLES / f"{file}.py"
    kernel = Tunable(path=path, text=path.read_text("utf-8"), kernel=name, target=SM90A, bindings=(("weights", "fp4"),))
    for workload, sizes in PRODUCTS.items():
        times = timed()[suite][workload]
        ranking = kernel.ranking(dict(zip("MNK", sizes, strict=True)))
        names = "block_M block_N block_K threads num_stages"
        best = [label(dict(each.setting), names) for each in ranking.best(6)]
        first = next(times[each] for each in best if each in times)
        assert min(times.values()) / first >= 0.97


def test_two_stages_of_which_an_mma_holds_one_are_slower() -> None:
    """dequant_gemm's MMAs are in flight while the next weights are decoded: with two stages no load is ahead."""
    path = EXAMPLES / "dequant.py"
    kernel = Tunable(
        path=path, text=path.read_text("utf-8"), kernel="dequant_gemm", target=SM90A, bindings=(("weights", "fp4"),)
    )
    tile = {"block_M": 256, "block_N": 128, "block_K": 64, "threads": 256}
    settings = [{each.name: {**tile, "num_stages": n}[each.name] for each in kernel.space.parameters} for n in (2, 3)]
    assert [kernel.decide(each).schedules[0].held for each in settings] == [1, 1]
    two, three = (kernel.ranking({"M": 4096, "N": 8192, "K": 8192}).time_of(each).us for each in settings)
    assert two > 1.3 * three
