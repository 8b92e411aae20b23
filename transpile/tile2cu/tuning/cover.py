"""A dispatch of few settings that serves all measured shapes: which settings, and for which sizes each."""

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from tile2cu.core.choice import Candidate, named
from tile2cu.core.dispatch import Entry
from tile2cu.core.record import Record
from tile2cu.tuning.record import Sizes, Tuned

MOST = 8  # settings, and kernels of the dispatch
_NEAR = 1.05  # of the fastest setting's time on a shape
# The predicted microseconds of a setting for sizes, None where it has none.
Predict = Callable[[Candidate, Mapping[str, int]], float | None]


class Cover(Record, frozen=True, kw_only=True):
    """`settings`, the fallback last, and the one `of` each shape."""

    settings: tuple[Candidate, ...]
    of: Mapping[Sizes, Candidate]


def cover(entries: Sequence[Tuned], most: int = MOST) -> Cover:
    """At most so many settings, of which each shape has one that is near its best, as long as they suffice.

    Greedy: the setting that is near the best of most shapes still uncovered, first; then each shape takes the fastest
    of those chosen. The last is the fallback for other sizes: the one with the least time in the geometric mean.
    """
    times = {entry.sizes: {figure.candidate: figure.us for figure in entry.figures} for entry in entries}
    chosen: list[Candidate] = []
    open_ = set(times)
    candidates = sorted({setting for row in times.values() for setting in row})
    while open_ and len(chosen) < most:
        served = {each: [sizes for sizes in open_ if _near(times[sizes], each)] for each in candidates}
        best = max(candidates, key=lambda each: (len(served[each]), -_mean(times, each)))
        if not served[best]:
            break
        chosen.append(best)
        open_ -= set(served[best])
    of = {sizes: min(chosen, key=lambda each: (row.get(each, math.inf), each)) for sizes, row in times.items()}
    used = [setting for setting in chosen if setting in of.values()]
    fallback = min(used, key=lambda each: _mean(times, each))
    return Cover(settings=(*(each for each in used if each != fallback), fallback), of=of)


def _near(row: Mapping[Candidate, float], setting: Candidate) -> bool:
    return row.get(setting, math.inf) <= _NEAR * min(row.values())


def _mean(times: Mapping[Sizes, Mapping[Candidate, float]], setting: Candidate) -> float:
    """The mean logarithm of a setting's time over the best one's; where it was not measured, as thrice as long."""
    return statistics.fmean(
        math.log(row.get(setting, 3 * min(row.values())) / min(row.values())) for row in times.values()
    )


def entries_of(
    found: Cover, tuned: Sequence[Tuned], target: str, along: str, predict: Predict, kernels: Mapping[str, str]
) -> tuple[Entry, ...]:
    """The entries of a dispatch, with guards and what was measured. `kernels` are those of the files, in order.

    All that was `tuned` has the same other arguments.

    Shapes that differ in `along` alone are a group. Between two measured values the predicted times decide up to where
    a setting holds; without a prediction, up to the larger one. Sizes outside of all groups are the fallback's; what
    its target does not support, as pitches that TMA cannot take, is the file's own kernel's for the oldest target.
    """
    guards, others = _guards(found, along, predict), dict(tuned[0].bindings)
    tiles = tuple(
        Entry(
            name=f"tile_{number}" if setting != found.settings[-1] else "other",
            target=target,
            bindings={**others, **dict(setting.setting)},
            when=" or ".join(f"({each})" for each in guards.get(setting, ())) if setting != found.settings[-1] else "",
            measured=_measured(setting, found, tuned),
            file=setting.file if setting.file != next(iter(kernels)) else "",
            kernel=kernels[setting.file] if setting.file != next(iter(kernels)) else "",
        )
        for number, setting in enumerate(found.settings, 1)
    )
    older = (
        (Entry(name="any", bindings=others),)
        if target.startswith("cuda:") and target != Entry(name="any").target
        else ()
    )
    return tiles + older


def _guards(found: Cover, along: str, predict: Predict) -> dict[Candidate, list[str]]:
    """The conditions of each setting: a range of `along` for each group of other sizes."""
    groups: dict[Sizes, list[tuple[int, Candidate]]] = {}
    for sizes, setting in sorted(found.of.items()):
        others = tuple((name, value) for name, value in sizes if name != along)
        groups.setdefault(others, []).append((dict(sizes)[along], setting))
    guards: dict[Candidate, list[str]] = {}
    for others, row in groups.items():
        fixed = [f"{name} == {value}" for name, value in others]
        for low, high, setting in _ranges(sorted(row), dict(others), along, predict):
            bounds = [f"{along} > {low}"] * (low > 0) + [f"{along} <= {high}"] * (high is not None)
            guards.setdefault(setting, []).append(" and ".join([*fixed, *bounds]) or f"{along} >= 0")
    return guards


def _ranges(
    row: Sequence[tuple[int, Candidate]], others: Mapping[str, int], along: str, predict: Predict
) -> Iterable[tuple[int, int | None, Candidate]]:
    """(exclusive lower bound, inclusive upper bound or None, setting) along a group's values, in their order."""
    low = 0
    for place, (value, setting) in enumerate(row):
        following = row[place + 1] if place + 1 < len(row) else None
        if following is None:
            yield low, None, setting
        elif following[1] != setting:
            high = _border(value, following[0], setting, following[1], others, along, predict)
            yield low, high, setting
            low = high


def _border(
    low: int, high: int, first: Candidate, second: Candidate, others: Mapping[str, int], along: str, predict: Predict
) -> int:
    """The last value between two measured ones for which the first setting is predicted not to be slower."""

    def keeps(value: int) -> bool:
        times = [predict(setting, {**others, along: value}) for setting in (first, second)]
        return times[0] is None or times[1] is None or times[0] <= times[1]

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _measured(setting: Candidate, found: Cover, tuned: Sequence[Tuned]) -> str:
    """On how many shapes and cards an entry was measured, and how it does against the file's own values."""
    own = [entry for entry in tuned if found.of[entry.sizes] == setting]
    ratios = [entry.default_us / us for entry in own if (us := entry.us_of(setting)) is not None]
    cards = ", ".join(sorted({entry.card for entry in own}))
    if not ratios:
        return ""
    shapes = "1 shape" if len(ratios) == 1 else f"{len(ratios)} shapes"
    return (
        f"{named(setting.setting)}: {statistics.geometric_mean(ratios):.2f} x the file's own speed on {shapes}, {cards}"
    )


def as_toml(name: str, file: str, kernel: str, entries: Sequence[Entry]) -> str:
    """The table of a dispatch for pyproject.toml."""
    lines = ["[[tool.tile2cu.dispatch]]", f'name = "{name}"', f'file = "{file}"', f'kernel = "{kernel}"', "entries = ["]
    for entry in entries:
        bindings = ", ".join(f"{key} = {json.dumps(value)}" for key, value in entry.bindings.items())
        fields = [f'name = "{entry.name}"', f'target = "{entry.target}"']
        fields += [f'file = "{entry.file}"', f'kernel = "{entry.kernel}"'] * bool(entry.file)
        fields += [f"bindings = {{{bindings}}}"] + [f'when = "{entry.when}"'] * bool(entry.when)
        fields += [f'measured = "{entry.measured}"'] * bool(entry.measured)
        lines.append(f"    {{{', '.join(fields)}}},")
    return "\n".join([*lines, "]"]) + "\n"
