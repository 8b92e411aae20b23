"""Which settings are measured for a shape, and which of them is believed.

The model's leaders, the file's own values, the best setting of each other file of the family and those that the file
lists are timed first, then settings one step around the fastest. What is within 5 % of the fastest is timed again, more
often. The model's choice stays unless another setting is faster by 1 % in the median of paired rounds; of those within
1 % of the fastest the first measured one wins. Else two tunings would differ by chance.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tile2cu.chooser.space import Space
from tile2cu.core.choice import Candidate, Setting
from tile2cu.core.record import Record
from tile2cu.tuning.record import Figure, Sizes, Tuned

LEADERS = 8  # of the model
MOST = 16  # settings that are measured for a shape
_FIRST_ROUNDS, _FINAL_ROUNDS = 3, 11
_FINALISTS = 1.05  # of the fastest one's time
_MARGIN = 0.99  # of the time of the setting that a challenger replaces
_NEIGHBOURS = 4  # measurements that are kept for settings around the fastest


class Identity(NamedTuple):
    """What entries name of the machine: its GPU, that one's clocks, and what builds the kernels."""

    card: str
    clocks: str
    tools: str


class Measurer(Protocol):
    """Builds, checks and times settings for one shape. `identity` is that of its entries."""

    identity: Identity

    def prepare(self, candidates: Sequence[Candidate]) -> Mapping[Candidate, str]:
        """Builds settings and compares their results with the file's own; the reason for each that is rejected."""

    def race(self, candidates: Sequence[Candidate], rounds: int) -> Mapping[Candidate, Sequence[float]]:
        """Microseconds of each setting in each round; all are timed in each round, one after the other."""


class Candidates(Record, frozen=True, kw_only=True):
    """What may be measured: `leaders` of all files by the model's prediction, its choice first, if it has one.

    `others` are the best setting of each other file of the family, or its own values where the model has none; `listed`
    are settings that the file itself lists (@autotune), `default` is its own.
    """

    leaders: tuple[Candidate, ...]
    listed: tuple[Candidate, ...]
    default: Candidate
    others: tuple[Candidate, ...] = ()

    @property
    def chosen(self) -> Candidate:
        """What stays where nothing is faster by the margin."""
        return self.leaders[0] if self.leaders else self.default

    def first(self, most: int) -> list[Candidate]:
        """What is measured first: the chosen one and the default whatever the number."""
        wanted = (self.chosen, self.default, *self.others, *self.leaders[:LEADERS], *self.listed)
        return list(dict.fromkeys(wanted))[: max(most, 2)]


def neighbours(space: Space, setting: Setting) -> list[Setting]:
    """The settings one step of one parameter away."""
    found = []
    for parameter in space.parameters:
        values = parameter.values
        own = dict(setting)
        place = values.index(own[parameter.name]) if own[parameter.name] in values else None
        for step in (1, -1):
            if place is not None and 0 <= place + step < len(values):
                found.append(tuple({**own, parameter.name: values[place + step]}.items()))
    return found


def tune(
    sizes: Sizes,
    around: Callable[[Candidate], Sequence[Candidate]],
    candidates: Candidates,
    measurer: Measurer,
    *,
    most: int = MOST,
    out_of_time: Callable[[], bool] = lambda: False,
    step: Callable[[str], None] = lambda what: None,
) -> Tuned:
    """Measures at most so many settings for a shape.

    `around` gives settings near another; `out_of_time` ends the search with what has been measured.

    The file's own setting is always measured: an error of it is raised by the measurer.
    """
    rejected: dict[Candidate, str] = {}
    times: dict[Candidate, list[float]] = {}

    def measure(wanted: Sequence[Candidate], rounds: int) -> None:
        new = [each for each in wanted if each not in times and each not in rejected]
        rejected.update(measurer.prepare(new))
        running = [each for each in wanted if each not in rejected]
        for each, found in measurer.race(running, rounds).items():
            times[each] = list(found)
        step(f"{len(times)} settings")

    first = candidates.first(most - _NEIGHBOURS)
    measure(first, _FIRST_ROUNDS)
    if not out_of_time():
        least = min(_median(times, each) for each in times)
        fastest = next(each for each in times if _median(times, each) * _MARGIN <= least)
        left = most - len(times) - len(rejected)
        near = [each for each in around(fastest) if each not in times and each not in rejected][: max(left, 0)]
        if near:
            measure([fastest, *near], _FIRST_ROUNDS)
    least = min(_median(times, each) for each in times)
    champion = candidates.chosen if candidates.chosen in times else candidates.default
    finalists = [each for each in times if _median(times, each) <= _FINALISTS * least]
    finalists = list(dict.fromkeys((champion, candidates.default, *finalists)))
    raced = finalists
    if len(finalists) > 1 and not out_of_time():
        measure(finalists, _FINAL_ROUNDS)
    best = _winner(champion, raced, times)
    figures = sorted(
        (_figure(each, found) for each, found in times.items()), key=lambda each: (each.us, each.candidate)
    )
    return Tuned(
        sizes=sizes,
        **measurer.identity._asdict(),
        best=next(each for each in figures if each.candidate == best),
        by="measured" if best != candidates.chosen else "model" if candidates.leaders else "default",
        default_us=_figure(candidates.default, times[candidates.default]).us,
        figures=tuple(figures),
        rejected=tuple(sorted(rejected.items())),
    )


def _winner(
    champion: Candidate, finalists: Sequence[Candidate], times: Mapping[Candidate, Sequence[float]]
) -> Candidate:
    """The champion, or the first finalist near the one that is faster by the margin in the median of paired rounds."""

    def over(each: Candidate, other: Candidate) -> float:
        return statistics.median(a / b for a, b in zip(times[each], times[other], strict=False))

    fastest = min(finalists, key=lambda each: (over(each, champion), each))
    if over(fastest, champion) >= _MARGIN:
        return champion
    return next(each for each in finalists if over(each, fastest) * _MARGIN <= 1)


def _median(times: Mapping[Candidate, Sequence[float]], candidate: Candidate) -> float:
    return statistics.median(times[candidate])


def _figure(candidate: Candidate, times: Sequence[float]) -> Figure:
    middle = statistics.median(times)
    spread = (max(times) - min(times)) / middle
    return Figure(**candidate._asdict(), us=round(middle, 3), spread=round(spread, 4), rounds=len(times))
