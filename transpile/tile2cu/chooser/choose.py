"""The setting of a kernel's tile parameters that the model predicts to be fastest.

All settings are predicted from counts, with schedules assumed as they were decided for a similar tile. The leaders are
traced and decided by the rules, and predicted again with what those state, until the leader of all is among them: what
is chosen is legal, and its resources are those of the emitted kernel.
"""

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from math import inf
from typing import NamedTuple

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_used, buffers_written
from tile2cu.chooser.counts import Work
from tile2cu.chooser.model import Schedule, Times, least_time, most_registers, times_of
from tile2cu.chooser.numbers import Unknown
from tile2cu.chooser.space import OF_BLOCKS, Kind, Space
from tile2cu.chooser.work import moved_bytes
from tile2cu.core.choice import Choice, Setting
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import (
    Copy,
    Fill,
    Gemm,
    If,
    Launch,
    Let,
    Loop,
    LoopKind,
    Parallel,
    Program,
    Reduce,
    Scope,
    Stmt,
    While,
    walk_stmts,
)
from tile2cu.core.record import Record
from tile2cu.targets.costs import Costs

MOST_DECIDED = 40  # settings that the rules decide for one choice
_FITTED_GEMMS = (0, 1, 2)
_SLACK = 0.98
_WORTH = 0.03  # the share of time that a setting must save over the file's own
Decide = Callable[[Mapping[str, int]], "Decision"]


class Decision(Record, frozen=True, kw_only=True):
    """What the rules decide of a setting's launches.

    `counted` counts their work for sizes, from the program traced with the setting; None where that program differs
    from the space's in the values of parameters alone: then the space's counts are its counts.
    """

    schedules: tuple[Schedule, ...]
    counted: Callable[[Mapping[str, int]], tuple[Work, ...]] | None = None


class Ranked(Record, frozen=True, kw_only=True):
    """A setting with its predicted time; `decided` by the rules, not assumed."""

    setting: Setting
    times: tuple[Times, ...]
    works: tuple[Work, ...]
    decided: bool

    @property
    def us(self) -> float:
        return sum(each.total for each in self.times)


class NoModel(Exception):
    """The model does not predict this kernel; the message states why."""


class _OtherWork(Exception):
    """A setting changes more than what is counted by it: Python code of the file depends on it."""


def is_modelled(program: Program) -> str:
    """Why the model does not predict a program; else empty.

    It was fitted on loops that load tiles, compute their elements and multiply them, on blocks that load a tile into
    registers, compute there and store it, and on loops that load tiles and compute their elements, as those of GEMV.
    Other work is not among its terms.
    """
    gemms = [stmt for launch in program.launches for stmt in launch.statements if isinstance(stmt, Gemm)]
    if len(gemms) not in _FITTED_GEMMS:
        return f"it has {len(gemms)} GEMMs, and the model is fitted on kernels with one, and on attention's two"
    for launch in program.launches:
        if not gemms and (why := _why_not_streamed(launch)):
            return why
        for loop in launch.statements:
            if isinstance(loop, Loop) and any(isinstance(stmt, Gemm) for stmt in loop.body):
                others = [stmt for stmt in loop.body if not isinstance(stmt, Gemm | Let) and not _is_counted(stmt)]
                if others:
                    line = others[0].span.line
                    return f"line {line} is other work beside its GEMM, which the model does not count"
    return ""


def _why_not_streamed(launch: Launch) -> str:
    """Why a launch without a GEMM is none whose blocks load tiles, into registers or by stages, and compute there."""
    loops = [stmt for stmt in launch.statements if isinstance(stmt, Loop) and stmt.kind is LoopKind.PIPELINED]
    inside = [stmt for loop in loops for stmt in walk_stmts(loop.body)]
    staged = {stmt.dst.buffer.memory for stmt in inside if isinstance(stmt, Copy)}
    for stmt in launch.statements:
        if stmt in loops and stmt not in inside:
            continue
        shared = {buffer.memory for buffer in buffers_used(stmt) if buffer.scope is Scope.SHARED}
        if isinstance(stmt, Loop | While | If) or not shared <= staged:
            what = "a loop, a branch or a shared tile without a GEMM"
            return f"line {stmt.span.line} is {what}, which the model does not count"
    others = [stmt for loop in loops for stmt in loop.body if not isinstance(stmt, Let) and not _is_counted(stmt)]
    return f"line {others[0].span.line} is other work of a loop, which the model does not count" if others else ""


def _is_counted(stmt: Stmt) -> bool:
    """Whether a statement computes elements of tiles, which are the block's own."""
    if isinstance(stmt, Copy | Fill | Parallel | Reduce):
        return all(buffer.scope is not Scope.GLOBAL for buffer in buffers_written(stmt))
    return all(buffer.scope is Scope.FRAGMENT for buffer in buffers_used(stmt))


class Ranking:
    """All settings of a kernel for given sizes, best first as far as `best` has decided them."""

    def __init__(self, space: Space, sizes: Mapping[str, int], costs: Costs, decide: Decide, limit: int) -> None:
        self._space, self._sizes, self._costs, self._decide, self._limit = space, sizes, costs, decide, limit
        self._assumed: dict[tuple[int, ...], tuple[Schedule, ...]] = {}  # by the tile's rows and threads
        self._statistics = any(isinstance(stmt, Reduce) for each in space.program.launches for stmt in each.statements)
        self._named = {each.kind: each.name for each in space.parameters}
        self._of_class = [each.name for each in space.parameters if each.kind in (Kind.M, Kind.THREADS)]
        self._shares: list[float] = []  # bytes of shared memory that rules add, for a byte of fragments
        self.rejected: dict[Setting, str] = {}
        try:
            values = space.values(space.default, sizes)
            self._tensors = [bytes_of(values) for bytes_of in space.bytes_of]
            self._own = self._decided(space.default)
        except Unknown:
            raise NoModel("its work depends on values in memory, or on sizes that are not given") from None
        except _OtherWork:
            raise NoModel("values that Python computes from its sizes change more than its tiles") from None
        self._open: dict[Setting, Ranked] = {}  # settings that are not decided
        self._tiles = list(self._bounded())  # whose settings are not predicted, as a heap
        heapify(self._tiles)
        self.found: dict[Setting, Ranked] = {}

    @property
    def default(self) -> Ranked:
        """The file's own setting. Raises the error of the rules where that is not possible."""
        return self._own

    def time_of(self, setting: Mapping[str, int]) -> Ranked:
        """A setting as the rules decide it. Raises Tile2CuError where they reject it."""
        try:
            return self.found.get(_key(setting)) or self._decided(setting)
        except _OtherWork:
            raise NoModel("values that Python computes from it change more than its tiles") from None

    def tile(self, ranked: Ranked) -> tuple[int, ...]:
        """The values of a setting that are no threads and stages."""
        own = dict(ranked.setting)
        return tuple(own[each.name] for each in self._space.parameters if each.kind not in OF_BLOCKS)

    def best(self, number: int, *, but: Ranked | None = None, below: float = inf) -> list[Ranked]:
        """So many settings, fastest first; all of them are decided, and no other is predicted to be faster.

        Settings with the tile of `but` are left out. What takes as long as `below` or longer need not be the fastest.
        """
        self.found.setdefault(self._own.setting, self._own)
        while len(self.found) + len(self.rejected) < MOST_DECIDED:
            leaders = sorted(self._others(self.found.values(), but), key=_order)
            assumed = self._least(but, below)
            if assumed is None or assumed.us >= below:
                break
            key = assumed.setting
            if len(leaders) >= number and assumed.us >= leaders[number - 1].us:
                break
            del self._open[key]
            try:
                found = self._decided(dict(key))
            except (Tile2CuError, _OtherWork) as error:
                self.rejected[key] = getattr(error, "message", "it changes more than tiles")
                continue
            self.found[key] = found
            if found.us > assumed.us:
                self._assume_anew(found)
        return sorted(self._others(self.found.values(), but), key=_order)[:number]

    def _others(self, settings: Iterable[Ranked], but: Ranked | None) -> Iterable[Ranked]:
        return settings if but is None else (each for each in settings if self.tile(each) != self.tile(but))

    def _bounded(self) -> Iterable["_Tile"]:
        """The tiles, each with a time that none of its settings falls below."""
        for number, (tile, works) in enumerate(self._space.tiles(self._sizes)):
            if not self._fits(tile, works):
                continue
            bound = sum(least_time(*each, self._costs) for each in self._with_bytes(works))
            yield _Tile(bound, number, False, tile, works)

    def _fits(self, tile: Mapping[str, int], works: tuple[Work, ...]) -> bool:
        """Whether a setting of the tile fits: with the fewest stages, as tiles have static extents, for all sizes."""
        key, known = tuple(tile.values()), self._space.fits
        if key not in known:
            fewest = filter(self._shared_evenly, self._space.of_tile(tile, min))
            of_fewest = ((setting, self._space.with_blocks(works, setting)) for setting in fewest)
            known[key] = any(self._schedules(setting, own, own) is not None for setting, own in of_fewest)
        return known[key]

    def _least(self, but: Ranked | None, below: float) -> Ranked | None:
        """The setting that is predicted to be fastest, of those that are not decided; any, where none is `below`."""
        least = min(self._others(self._open.values(), but), key=_order, default=None)
        while self._tiles and self._tiles[0].bound <= min(below, least.us if least else inf):
            first = heappop(self._tiles)
            if not first.refined:
                refined = first._replace(bound=self._least_of(first), refined=True)
                heappush(self._tiles, refined)
                continue
            new = list(self._candidates(first.tile, first.works))
            self._open.update((each.setting, each) for each in new)
            least = min((*self._others(new, but), *([least] if least else ())), key=_order, default=None)
        return least

    def _least_of(self, tile: "_Tile") -> float:
        """A time that no setting of the tile is predicted below: with the most stages, and the memory of the fewest.

        Waves of fewer blocks may be a little faster: hence the slack.
        """
        fewest = next(self._space.of_tile(tile.tile, min))
        smallest = self._space.with_blocks(tile.works, fewest)
        least = inf
        for setting in filter(self._shared_evenly, self._space.of_tile(tile.tile, max)):
            works = self._space.with_blocks(tile.works, setting)
            schedules = self._schedules(setting, works, smallest)
            if schedules is not None:
                times = times_of(works, schedules, self._tensors, self._costs)
                least = min(least, _SLACK * sum(each.total for each in times))
            if least <= tile.bound:
                return tile.bound
        return least

    def _candidates(self, tile: Mapping[str, int], works: tuple[Work, ...]) -> Iterable[Ranked]:
        """The settings of a tile, as they are predicted."""
        for setting in filter(self._shared_evenly, self._space.of_tile(tile)):
            key = _key(setting)
            if key != self._own.setting:
                ranked = self._predicted(key, self._space.with_blocks(works, setting))
                if ranked is not None:
                    yield ranked

    def _shared_evenly(self, setting: Mapping[str, int]) -> bool:
        """Whether a block has three warpgroups where its tile has three parts of rows, and only there.

        Warpgroups that share rows would exchange their statistics in each iteration: each has 64 rows of its own.
        """
        rows, threads = (setting.get(self._named.get(kind, ""), 1) for kind in (Kind.M, Kind.THREADS))
        if self._statistics and Kind.M in self._named and Kind.THREADS in self._named:
            return threads == 2 * rows
        return (rows % 3 == 0) == (threads % 3 == 0)

    def _predicted(self, key: Setting, works: tuple[Work, ...]) -> Ranked | None:
        """A setting with assumed schedules; None where it cannot fit."""
        schedules = self._schedules(dict(key), works, works)
        return None if schedules is None else self._ranked(key, works, schedules, decided=False)

    def _schedules(
        self, setting: Mapping[str, int], works: tuple[Work, ...], smallest: tuple[Work, ...]
    ) -> tuple[Schedule, ...] | None:
        """The schedules that are assumed of a setting, with the shared memory of `smallest`; None if it cannot fit."""
        found = []
        assumed = self._assumed.get(self._class(setting)) or self._assumed[_OWN]
        for work, least, schedule, share in zip(works, smallest, assumed, self._shares, strict=True):
            bytes_ = least.shared_bytes
            if bytes_ > self._limit or work.fragment_bytes / 4 / work.threads > most_registers(work.threads):
                return None
            shared = min(bytes_ + int(work.fragment_bytes * share), self._limit)  # where less is left, rules add less
            found.append(replace(schedule, shared_bytes=shared))
        return tuple(found)

    def _ranked(
        self, key: Setting, works: tuple[Work, ...], schedules: tuple[Schedule, ...], *, decided: bool
    ) -> Ranked:
        times = times_of(works, schedules, self._tensors, self._costs)
        return Ranked(setting=key, times=times, works=works, decided=decided)

    def _with_bytes(self, works: tuple[Work, ...]) -> Iterable[tuple[Work, int]]:
        """Each launch with the bytes that DRAM moves for it."""
        return ((work, moved_bytes(work, *tensors)) for work, tensors in zip(works, self._tensors, strict=True))

    def _class(self, setting: Mapping[str, int]) -> tuple[int, ...]:
        """What the choice of an instruction and of a producer depends on, beside the kernel: rows and threads."""
        return tuple(setting[name] for name in self._of_class)

    def _decided(self, setting: Mapping[str, int]) -> Ranked:
        """A setting as the rules decide it. Raises Tile2CuError where they reject it, _OtherWork."""
        decision = self._decide(setting)
        schedules, works = decision.schedules, self._space.works(setting, self._sizes)
        if decision.counted is not None and decision.counted(self._sizes) != works:
            raise _OtherWork
        self._assumed.setdefault(_OWN, schedules)
        self._assumed[self._class(setting)] = schedules
        if not self._shares:
            pairs = zip(works, schedules, strict=True)
            self._shares = [
                max(each.shared_bytes - work.shared_bytes, 0) / max(work.fragment_bytes, 1) for work, each in pairs
            ]
        return self._ranked(_key(setting), works, schedules, decided=True)

    def _assume_anew(self, found: Ranked) -> None:
        """Predicts the open settings of a class again, whose schedule was another one than assumed."""
        of_class = self._class(dict(found.setting))
        for key, ranked in list(self._open.items()):
            if self._class(dict(key)) == of_class:
                again = self._predicted(key, ranked.works)
                if again is None:
                    del self._open[key]
                else:
                    self._open[key] = again
        self._tiles = [each._replace(refined=False) for each in self._tiles]


class _Tile(NamedTuple):
    """A tile whose settings are not predicted, with a time that none of them falls below."""

    bound: float
    number: int
    refined: bool
    tile: dict[str, int]
    works: tuple[Work, ...]


_OWN = (-1,)


def leading(ranking: Ranking, below: float = inf) -> Ranked:
    """The setting that is predicted to be fastest; the file's own where that saves less than 3 %.

    Any, where none takes less than `below`.
    """
    (first,) = ranking.best(1, below=below)
    return ranking.default if first.us > (1 - _WORTH) * ranking.default.us else first


def choose(ranking: Ranking, costs: Costs, sizes: Mapping[str, int]) -> Choice:
    """The launch with the values of its tile parameters that make it fastest by a model of the GPU, for given sizes.

    The model (chooser/model.py) predicts the time of a launch from its MMAs, the bytes of its copies, its trip counts
    and waves, and the resources that the rules decide, with constants that were fitted to measured times
    (targets/costs.py, benchmarks/shapes). The file's own values stay where another setting saves less than 3 %, and
    where an iteration does other work than to load tiles and to multiply them, which the model does not count.
    """
    first, default = leading(ranking), ranking.default
    second = next(iter(ranking.best(1, but=first)), None)
    return Choice(
        setting=first.setting,
        us=first.us,
        runner_up=second.setting if second else None,
        runner_up_us=second.us if second else 0.0,
        default=default.setting,
        default_us=default.us,
        because=reasons(first),
        card=costs.card,
        sizes=tuple(sorted(sizes.items())),
    )


def measured(
    card: str, sizes: Setting, times: Mapping[Setting, float], best: Setting, default: Setting, of: int
) -> Choice:
    """The launch with the values of its tile parameters that `tile2cu tune` found to be fastest for these sizes.

    It was the fastest `of` so many, those of other files of its family included; `times` are those of its own file.

    NAME.tune.json beside the kernel's file has the figures, each checked against the file's own values. It holds as
    long as the file is the one that was measured; for other sizes the model chooses.
    """
    others = sorted((us, setting) for setting, us in times.items() if setting != best)
    return Choice(
        setting=best,
        us=times[best],
        runner_up=others[0][1] if others else None,
        runner_up_us=others[0][0] if others else 0.0,
        default=default,
        default_us=times.get(default, 0.0),
        because=f"fastest of {of} settings",
        card=card,
        sizes=sizes,
        how="measured",
    )


def reasons(ranked: Ranked) -> str:
    """What bounds a setting: the longest launch's tensor cores, DRAM, or latency, with its waves."""
    times, work = max(zip(ranked.times, ranked.works, strict=True), key=lambda each: each[0].total)
    bounds = {"the tensor cores": times.mma, "DRAM": times.dram}
    name, most = max(bounds.items(), key=lambda item: item[1])
    bound = f"bound by {name} ({most:.1f} us)" if most > 0.6 * times.total else "bound by latency"
    blocks = f"{work.blocks} blocks, {times.per_sm} per SM: {times.waves:.2f} waves"
    return f"{bound}; {blocks}"


def _key(setting: Mapping[str, int]) -> Setting:
    return tuple(setting.items())


def _order(ranked: Ranked) -> tuple[float, Setting]:
    return round(ranked.us, 6), ranked.setting
