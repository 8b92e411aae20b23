"""Tuning a kernel and its family for shapes: candidates, measurements, results in its file and in the user's cache."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from tile2cu.chooser.choose import NoModel
from tile2cu.choosing import Tunable, family_of
from tile2cu.core.choice import Candidate
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.record import Record
from tile2cu.files import relative_to
from tile2cu.frontend import listed_settings
from tile2cu.targets import find
from tile2cu.tool import this_tool
from tile2cu.tuning import record
from tile2cu.tuning.record import Sizes, Tuned, TuneFile
from tile2cu.tuning.search import LEADERS, MOST, Candidates, Identity, Measurer, neighbours, tune
from tile2cu.tuning.store import Store, key_of
from tile2cu.tuning.workers import Here, Worker, Workers, spread

_WORTH_A_TRY = 2.0  # of the chosen setting's predicted time, up to which another file's best one is measured
_NEAR = 1.15  # likewise, up to which a file's further settings are ranked
Family = Sequence[Tunable]


class Limits(Record, frozen=True, kw_only=True):
    """Measurements and seconds for each shape. `again` measures shapes that have a result."""

    measurements: int = MOST
    seconds: float = 60.0
    again: bool = False


class Task(Record, frozen=True, kw_only=True):
    """A kernel, its family and a shape that it is tuned for: all that a worker needs, wherever it runs.

    `files` are the kernel's and those of its family, which have the same content there: `sha256`. Each worker may run
    so many `builds` side by side.
    """

    device: "Device"
    files: tuple[Path, ...]
    sha256: tuple[str, ...]
    kernel: str | None
    target: str
    style: str
    bindings: tuple[tuple[str, object], ...]
    shape: tuple[tuple[str, int], ...]
    limits: Limits
    builds: int | None

    def family(self) -> tuple[Tunable, ...]:
        """The kernels. Errors: T2C-C024 where a file has another content than for those who made the task."""
        first, *others = self.files
        names = [relative_to(each, first) for each in others]
        found = family_of(first, self.kernel, find(self.target), dict(self.bindings), names)
        for member, sha256 in zip(found, self.sha256, strict=True):
            if member.program.source.sha256 != sha256:
                help = "workers on other hosts read the files at the same paths, as from a shared folder"
                raise Tile2CuError("T2C-C024", f"`{member.path}` has another content for a worker", help=help)
        return found


class Device(Protocol):
    """What workers measure on. It is sent to them with each task."""

    def identity(self) -> Identity:
        """The card, its clocks and the tools, where a worker runs."""

    def measurer(self, task: Task, default: Candidate) -> Measurer:
        """A measurer for the task's shape, which compares results with those of `default`."""


def names_of(family: Family) -> dict[str, Tunable]:
    """The kernels by their files' paths from the first one's folder."""
    return {relative_to(each.path, family[0].path): each for each in family}


def candidates_of(family: Family, shape: Mapping[str, int]) -> Candidates:
    """What may be measured for these sizes. Errors: T2C-C022 for a kernel without tile parameters."""
    kernel, files = family[0], names_of(family)
    space = kernel.space
    if not space.parameters:
        help = "a parameter counts that divides a grid or a loop, and reaches tiles, threads or stages alone"
        raise Tile2CuError(
            "T2C-C022", f"`{kernel.program.name}` has no tile parameters", kernel.program.span, help=help
        )
    own = kernel.path.name
    names = [parameter.name for parameter in space.parameters]
    given = listed_settings(kernel.path, kernel.text, kernel.program.alias_of or kernel.program.name)
    listed = tuple(
        Candidate(own, tuple((name, each.get(name, space.default[name])) for name in names)) for each in given
    )
    chosen: list[tuple[float, Candidate]] = []
    unknown: list[Candidate] = []
    for file, member in files.items():
        try:
            choice = member.predicted_choice(shape)
            chosen.append((choice.us, Candidate(file, choice.setting)))
        except NoModel:
            unknown.append(Candidate(file, tuple(member.space.default.items())))
    best = sorted(chosen)
    near = [each.file for us, each in best if us <= _NEAR * best[0][0]]
    leaders = [
        (each.us, Candidate(file, each.setting)) for file in near for each in files[file].ranking(shape).best(LEADERS)
    ]
    others = [each for us, each in best if us <= _WORTH_A_TRY * best[0][0] and each.file != best[0][1].file]
    return Candidates(
        leaders=tuple(dict.fromkeys(each for _, each in (*best[:1], *sorted(leaders)))),
        listed=listed,
        default=Candidate(own, tuple(space.default.items())),
        others=(*others, *unknown),
    )


def legal_neighbours(family: Family, candidate: Candidate) -> list[Candidate]:
    """The settings one step away that the rules accept."""
    member, found = names_of(family)[candidate.file], []
    for each in neighbours(member.space, candidate.setting):
        with suppress(Tile2CuError):
            member.decide(dict(each))
            found.append(Candidate(candidate.file, each))
    return found


def tuned(task: Task) -> Tuned:
    """Tunes a shape on this process's device."""
    family = task.family()
    end = time.monotonic() + task.limits.seconds
    candidates = candidates_of(family, dict(task.shape))
    found = tune(
        record.sorted_sizes({**family[0].bound, **dict(task.shape)}),
        partial(legal_neighbours, family),
        candidates,
        task.device.measurer(task, candidates.default),
        most=task.limits.measurements,
        out_of_time=lambda: time.monotonic() > end,
    )
    return replace(found, family=_others_of(family), bindings=family[0].others)


def _others_of(family: Family) -> tuple[tuple[str, str], ...]:
    """The SHA-256 of all files but the first."""
    return tuple((file, each.program.source.sha256) for file, each in names_of(family).items())[1:]


def tune_shapes(
    family: Family,
    shapes: Sequence[Mapping[str, int]],
    device: Device,
    *,
    place: Path,
    style: str = "tl",
    workers: Workers = Workers(each=(Here(),)),  # noqa: B008
    store: Store | None = None,
    limits: Limits = Limits(),  # noqa: B008
    step: Callable[[Sizes, Tuned | None, str], None] = lambda sizes, done, what: None,
) -> TuneFile:
    """Tunes a kernel, the family's first, for each of the shapes, which name its run-time sizes.

    `place` is written after each of them. Each shape is measured on one worker of each kind of card. A shape that has a
    result for this card in `place` or in the store is not measured again. Killed at any time, all shapes that were
    finished are in `place`.
    """
    kernel = family[0]
    file = TuneFile(kernel=kernel.program.name, target=kernel.target.name, sha256=kernel.program.source.sha256)
    own = spread(
        [device.identity] * len(workers.each),
        workers.each,
        suits=lambda number, worker: worker is workers.each[number],
    )
    identities = dict(zip(workers.each, own, strict=True))
    open_: list[tuple[Task, Identity, str]] = []
    for identity in dict.fromkeys(identities.values()):
        for shape in shapes:
            sizes = record.sorted_sizes({**kernel.bound, **shape})
            key = key_of(file, identity, sizes, (kernel.others, _others_of(family), style, this_tool().sha256))
            entry = None if limits.again else _known(place, file, family, identity, sizes)
            if entry is None and store is not None and not limits.again and (entry := store.get(key)) is not None:
                record.add(place, file, entry)
            if entry is not None:
                step(sizes, entry, "known")
                continue
            open_.append((_task(family, shape, device, style, limits, workers.builds), identity, key))

    def started(number: int, worker: Worker) -> None:
        step(_sizes(kernel, open_[number][0]), None, f"on {worker.name}")

    def done(number: int, entry: Tuned) -> None:
        task, _, key = open_[number]
        if store is not None:
            store.put(key, entry)
        record.add(place, file, entry)
        step(_sizes(kernel, task), entry, "measured")

    calls = [partial(tuned, task) for task, _, _ in open_]
    spread(
        calls,
        workers.each,
        suits=lambda number, worker: identities[worker] == open_[number][1],
        started=started,
        done=done,
    )
    return record.read(place) or file


def _task(
    family: Family, shape: Mapping[str, int], device: Device, style: str, limits: Limits, builds: int | None
) -> Task:
    first = family[0]
    return Task(
        device=device,
        files=tuple(each.path.absolute() for each in family),
        sha256=tuple(each.program.source.sha256 for each in family),
        kernel=first.kernel,
        target=first.target.name,
        style=style,
        bindings=first.bindings,
        shape=tuple(shape.items()),
        limits=limits,
        builds=builds,
    )


def _sizes(kernel: Tunable, task: Task) -> Sizes:
    return record.sorted_sizes({**kernel.bound, **dict(task.shape)})


def _known(place: Path, file: TuneFile, family: Family, identity: Identity, sizes: Sizes) -> Tuned | None:
    """The result of this card in `place`, if it is about the files as they are."""
    there = record.read(place)
    if there is None or (there.target, there.sha256) != (file.target, file.sha256):
        return None
    entry = there.find(sizes, family[0].others, identity.card)
    current = entry is not None and entry.card == identity.card and entry.family == _others_of(family)
    return entry if current else None
