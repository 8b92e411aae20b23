"""The model's choices for attention, beside the settings that were timed on an H200."""

import csv
import math
import re
import statistics
from pathlib import Path

import pytest

from tests.unit.chooser.kernels import example

ROOT = Path(__file__).resolve().parents[3]
TIMES = ROOT / "benchmarks/attention/h200_2026-11-27.csv"
SHAPE = re.compile(r"dim (\d+), (\d+) x (\d+) x (\d+)(, causal)?")
MOST_STAGES = 3  # of those that were timed


def timed() -> dict[str, dict[str, float]]:
    """Microseconds of each setting, by the shape."""
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(TIMES.open(encoding="utf-8")):
        found.setdefault(row["workload"], {})[row["setting"]] = float(row["us"])
    return found


def chosen_us(shape: str, times: dict[str, float]) -> float:
    """The measured time of the choice; where it has more stages than were timed, that of the most."""
    match = SHAPE.match(shape)
    assert match is not None
    dim, batch, heads, seq_len = map(int, match.groups()[:4])
    kernel = example("attention", dim=dim, is_causal=bool(match[5]))
    setting = dict(kernel.choice({"batch": batch, "heads": heads, "seq_len": seq_len}).setting)
    names = ("block_M", "threads", "block_N")
    tile = " ".join(f"{name}={setting[name]}" for name in names)
    stages = min(setting["num_stages"], MOST_STAGES)
    return next(us for n in range(stages, 1, -1) if (us := times.get(f"{tile} num_stages={n}")) is not None)


@pytest.mark.nightly
def test_choices_are_within_three_percent_of_the_best_settings() -> None:
    """In the geometric mean of the 24 shapes; none is below 0.85."""
    ratios = [min(times.values()) / chosen_us(shape, times) for shape, times in timed().items()]
    assert len(ratios) == 24
    assert math.exp(statistics.fmean(map(math.log, ratios))) > 0.97
    assert min(ratios) > 0.85
