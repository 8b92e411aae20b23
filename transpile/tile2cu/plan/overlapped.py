"""Loops that interleave two iterations: their parts, and what each phase does, from the steps of a schedule."""

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from tile2cu.analysis.accesses import lets_for
from tile2cu.analysis.effects import effects_of
from tile2cu.core.expr import Var
from tile2cu.core.program import Buffer, Copy, Gemm, If, Let, Stmt
from tile2cu.core.record import Record
from tile2cu.core.schedule import Action, Schedule, Step
from tile2cu.plan import ops
from tile2cu.plan.producer_ops import (
    AwaitLoads,
    AwaitMmas,
    AwaitStage,
    Do,
    Mask,
    Part,
    PartKind,
    Phases,
    ReleaseStage,
    Ring,
    RunPart,
    RunStatement,
)
from tile2cu.plan.structure import Block, Lower, Statement, Where, mapped

_Group = tuple[Step, ...]  # neighbouring steps of one iteration: those of a part, or waits


class Lowering(Record, frozen=True):
    """Lowers the parts of a loop's iterations, each with the `lets` that it names.

    Each of the `rings` is a pipeline of one tile; without any, all loads are of one. `iteration` are the variables that
    select one. A `mask` and the statements of a `rescale` depend on conditions that the style prints; `copied` is
    no part of its own.
    """

    lower: Lower
    single: Callable[[Stmt, Where], Statement]
    where: Where
    rings: tuple[Ring, ...] = ()
    lets: tuple[Let, ...] = ()
    iteration: tuple[Var, ...] = ()
    mask: If | None = None
    rescale: tuple[Stmt, ...] = ()
    copied: Copy | None = None

    def phases(self, schedule: Schedule) -> Phases:
        """The phases of a schedule.

        Iteration 0 does the steps of its own; after the last iteration the steps of the iteration before remain.
        """
        groups = tuple(_groups(schedule.steps))
        runs: dict[int, RunPart | RunStatement] = {}
        for place, group in enumerate(groups):
            if self.copied is not None and group[0].stmt is self.copied:
                runs[id(group)] = RunStatement(shift=_shift(group), statement=self.single(self.copied, self.where))
            elif not _waits(group):
                part = self._part(group, groups[:place], schedule.steps)
                runs[id(group)] = RunPart(shift=_shift(group), part=part)
        flying: list[tuple[Gemm, int]] = []
        prologue = self._done(groups, 0, runs, flying, schedule.steps)
        steady = self._done(groups, None, runs, flying, schedule.steps)
        epilogue = self._done(groups, 1, runs, flying, schedule.steps)
        ordered = sorted(runs.values(), key=lambda run: -run.shift)  # an iteration's own order
        parts = tuple(run.part for run in ordered if isinstance(run, RunPart))
        return Phases(parts=parts, prologue=prologue, steady=steady, epilogue=epilogue)

    def part(self, kind: PartKind, tile: Buffer, body: tuple[Stmt, ...], *others: Stmt) -> Part:
        """Statements behind the values that they, or `others` in their part, name."""
        named = self._with_names(body, *others)
        return Part(kind=kind, tile=tile, block=self.lower(named, self.where), asks=self._asks(named))

    def masked(self) -> Mask | None:
        """The mask, and what it names."""
        if self.mask is None:
            return None
        *lets, branch = self.lower(self._with_names((self.mask,)), self.where)
        return Mask(lets=tuple(lets), condition=self.mask.condition, branch=(branch,))

    def _part(self, group: _Group, before: tuple[_Group, ...], steps: tuple[Step, ...]) -> Part:
        """The part of a group of steps; `before` are those of the same loop that precede it."""
        started = [step.stmt for step in group if step.action is Action.START and isinstance(step.stmt, Gemm)]
        body = tuple(step.stmt for step in group)
        if started:
            part = self.part(PartKind.START, started[0].c.buffer, body)
            return replace(part, block=_starting(part.block, started, self._rings_of(started, steps)))
        own = tuple(stmt for stmt in body if stmt is not self.mask and not _is_one(stmt, self.rescale))
        others = tuple(stmt for stmt in body if _is_one(stmt, self.rescale))
        waits = [each[-1] for each in before if _waits(each)]
        if not waits:
            assert self.copied is not None, "an iteration begins with an MMA, or prepares a copied operand"
            return self.part(PartKind.PREPARE, self.copied.src.buffer, own, *others)
        of = waits[-1].stmt
        assert isinstance(of, Gemm), "only MMAs are awaited"
        return self.part(PartKind.PREPARE if waits[-1].shift else PartKind.PROCESS, of.c.buffer, own, *others)

    def _rings_of(self, started: list[Gemm], steps: tuple[Step, ...]) -> Iterator[Ring]:
        """The rings of which these MMAs are the first readers; one that publishes the iteration has been awaited."""
        for ring in self.rings:
            readers = ((step.shift, at, step.stmt) for at, step in _readers(ring, steps, Action.START))
            _, _, first = min(readers, key=lambda reader: reader[:2])
            if not ring.publishes and _is_one(first, started):
                yield ring

    def _done(
        self,
        groups: tuple[_Group, ...],
        shift: int | None,
        runs: dict[int, RunPart | RunStatement],
        flying: list[tuple[Gemm, int]],
        steps: tuple[Step, ...],
    ) -> tuple[Do, ...]:
        """What a phase does: the groups of a `shift`, or all; `flying` are the MMAs in flight, by their iterations."""
        found: list[Do] = [AwaitLoads(shift=0)] if not self.rings and shift != 1 else []
        flying[:] = [(mma, before + 1) for mma, before in flying]
        for group in (group for group in groups if shift is None or group[0].shift == shift):
            if id(group) in runs:
                found.append(runs[id(group)])
                begun = (step for step in group if step.action is Action.START)
                flying += [(step.stmt, step.shift) for step in begun if isinstance(step.stmt, Gemm)]
                continue
            awaited = {(id(step.stmt), step.shift) for step in group}
            last = max(at for at, (mma, before) in enumerate(flying) if (id(mma), before) in awaited)
            results = tuple(step.stmt.c.buffer for step in group if isinstance(step.stmt, Gemm))
            del flying[: last + 1]
            found.append(
                AwaitMmas(shift=_shift(group), results=results, pending=tuple(mma.c.buffer for mma, _ in flying))
            )
            found += (
                ReleaseStage(shift=_shift(group), ring=ring, waits_for_loads=ring is not None and ring.loaded)
                for ring in self._released(group, steps)
            )
        return tuple(found)

    def _released(self, group: _Group, steps: tuple[Step, ...]) -> Iterator[Ring | None]:
        """The rings whose last reader has retired after a group of waits; None for the one pipeline."""
        for ring in self.rings or (None,):
            readers = _readers(ring, steps, Action.WAIT)
            _, _, last = max(((step.shift, at, step.stmt) for at, step in readers), key=lambda reader: reader[:2])
            if any(step.stmt is last for step in group):
                yield ring

    def _with_names(self, body: tuple[Stmt, ...], *others: Stmt) -> tuple[Stmt, ...]:
        return (*lets_for(set(effects_of((*body, *others)).scalars_read), self.lets), *body)

    def _asks(self, body: tuple[Stmt, ...]) -> bool:
        return any(var in self.iteration for var in effects_of(body).scalars_read)


def _groups(steps: tuple[Step, ...]) -> Iterator[_Group]:
    """Neighbouring steps of one iteration: waits; or a part, which ends with the start of an MMA if it has one."""
    rolled = not any(step.shift and step.action is not Action.WAIT for step in steps)
    found: list[Step] = []
    for step in steps:
        if found and not _continues(found[-1], step, rolled):
            yield tuple(found)
            found = []
        found.append(step)
    yield tuple(found)


def _continues(last: Step, step: Step, rolled: bool) -> bool:
    """Whether a step is of the same group as the one before it; in a loop without prologue all runs are one part."""
    if last.shift != step.shift or (last.action is Action.WAIT) != (step.action is Action.WAIT):
        return False
    return rolled or last.action is not Action.START


def _waits(group: _Group) -> bool:
    return group[0].action is Action.WAIT


def _shift(group: _Group) -> int:
    return -1 if group[0].shift > 0 else 0


def _is_one(stmt: Stmt, of: Iterable[Stmt]) -> bool:
    return any(stmt is other for other in of)


def _readers(ring: Ring | None, steps: tuple[Step, ...], action: Action) -> Iterator[tuple[int, Step]]:
    """The steps at which MMAs that read a ring's tile start or are awaited, with their places."""
    for at, step in enumerate(steps):
        if step.action is action and isinstance(step.stmt, Gemm) and (ring is None or _reads(step.stmt, ring.tile)):
            yield at, step


def _reads(mma: Gemm, tile: Buffer) -> bool:
    return any(operand.buffer is tile for operand in (mma.a, mma.b))


def _starting(block: Block, started: list[Gemm], rings: Iterable[Ring]) -> Block:
    """A block whose MMAs are only started, the first as soon as the tiles of `rings` have arrived."""
    rings = tuple(rings)

    def start(each: Statement) -> Statement:
        if not isinstance(each.op, ops.Mma) or not _is_one(each.source, started):
            return each
        if not rings:
            return replace(each, op=replace(each.op, starts=True))
        claims = (each.op.claims, *(() for _ in rings[1:]))
        waits = (AwaitStage(source=each.source, ring=ring, claims=of) for ring, of in zip(rings, claims, strict=True))
        return replace(each, op=replace(each.op, starts=True, claims=()), first=(*waits,))

    return mapped(block, start)
