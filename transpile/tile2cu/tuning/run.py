"""Tuning a kernel for shapes: candidates, measurements, results in its file and in the user's cache."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tile2cu.chooser.choose import NoModel, choose
from tile2cu.choosing import Tunable
from tile2cu.core.choice import Setting
from tile2cu.core.errors import Tile2CuError
from tile2cu.frontend import listed_settings
from tile2cu.tuning import record
from tile2cu.tuning.record import Sizes, Tuned, TuneFile
from tile2cu.tuning.search import LEADERS, MOST, Candidates, Measurer, neighbours, tune
from tile2cu.tuning.store import Store, key_of

MeasurerOf = Callable[[Setting, Mapping[str, int]], Measurer]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Measurements and seconds for each shape. `again` measures shapes that have a result."""

    measurements: int = MOST
    seconds: float = 60.0
    again: bool = False


def candidates_of(kernel: Tunable, sizes: Mapping[str, int]) -> Candidates:
    """What may be measured for these sizes. Errors: T2C-C022 for a kernel without tile parameters."""
    space = kernel.space
    if not space.parameters:
        help = "a parameter counts that divides a grid or a loop, and reaches tiles, threads or stages alone"
        raise Tile2CuError(
            "T2C-C022", f"`{kernel.program.name}` has no tile parameters", kernel.program.span, help=help
        )
    names = [parameter.name for parameter in space.parameters]
    given = listed_settings(kernel.path, kernel.text, kernel.program.alias_of or kernel.program.name)
    listed = tuple(tuple((name, each.get(name, space.default[name])) for name in names) for each in given)
    default = tuple(space.default.items())
    try:
        ranking = kernel.ranking(sizes)
        chosen = choose(ranking, kernel.costs, sizes).setting
        leaders = tuple(dict.fromkeys((chosen, *(each.setting for each in ranking.best(LEADERS)))))
    except NoModel:
        leaders = ()
    return Candidates(leaders=leaders, listed=listed, default=default)


def legal_neighbours(kernel: Tunable, setting: Setting) -> list[Setting]:
    """The settings one step away that the rules accept."""
    found = []
    for each in neighbours(kernel.space, setting):
        with suppress(Tile2CuError):
            kernel.decide(dict(each))
            found.append(each)
    return found


def tune_shapes(
    kernel: Tunable,
    shapes: Sequence[Mapping[str, int]],
    measurer_of: MeasurerOf,
    *,
    place: Path,
    store: Store | None = None,
    limits: Limits = Limits(),  # noqa: B008
    step: Callable[[Sizes, Tuned | None, str], None] = lambda sizes, done, what: None,
) -> TuneFile:
    """Tunes a kernel for each of the shapes, which name its run-time sizes, and writes `place` after each of them.

    A shape that has a result for this card in `place` or in the store is not measured again. Killed at any time, all
    shapes that were finished are in `place`.
    """
    program = kernel.program
    file = TuneFile(kernel=program.name, target=kernel.target.name, sha256=program.source.sha256)
    for shape in shapes:
        sizes = record.sorted_sizes({**kernel.bound, **shape})
        candidates = candidates_of(kernel, shape)
        measurer = measurer_of(candidates.default, shape)
        there = record.read(place)
        current = there is not None and (there.target, there.sha256) == (file.target, file.sha256)
        known = there.find(sizes, measurer.card) if there is not None and current else None
        if known is not None and known.card == measurer.card and not limits.again:
            step(sizes, known, "known")
            continue
        key = key_of(file, measurer.card, measurer.tools, sizes)
        entry = store.get(key) if store is not None and not limits.again else None
        if entry is None:
            end = time.monotonic() + limits.seconds
            entry = tune(
                sizes,
                partial(legal_neighbours, kernel),
                candidates,
                measurer,
                most=limits.measurements,
                out_of_time=lambda end=end: time.monotonic() > end,  # type: ignore[misc]
                step=lambda what, sizes=sizes: step(sizes, None, what),  # type: ignore[misc]
            )
            if store is not None:
                store.put(key, entry)
        record.add(place, file, entry)
        step(sizes, entry, "measured")
    return record.read(place) or file
