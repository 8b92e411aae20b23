"""Loops whose iterations two warpgroups take in alternation: what each does in which iteration."""

from collections.abc import Iterator

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_written
from tile2cu.analysis.effects import effects_of
from tile2cu.analysis.uses import read_in, without, written_in
from tile2cu.core import schedule
from tile2cu.core.program import Buffer, Copy, Loop, Region, Stmt
from tile2cu.core.record import Record
from tile2cu.core.schedule import handed_name
from tile2cu.plan import ops
from tile2cu.plan.claims import Executes
from tile2cu.plan.copy_ops import Copy as CopyOp
from tile2cu.plan.operands import Tile
from tile2cu.plan.ping_pong_ops import (
    AddUp,
    AwaitSignal,
    ClearPartial,
    CopyRegisters,
    Event,
    FenceGathered,
    HandOver,
    IfNext,
    MmaOfSlabs,
    Perform,
    PingPong,
    PingPongKind,
    PingPongPart,
    RunPingPong,
    Signal,
    TakeOver,
    WarpgroupSteps,
)
from tile2cu.plan.producer_ops import AwaitMmas, Do, Iterations, ReleaseStage, Rescale
from tile2cu.plan.slabs import Slabs
from tile2cu.plan.structure import Block, Lower, Statement, Where, mapped


def operands_of(found: schedule.PingPong) -> tuple[Buffer, Buffer]:
    """The fragments of the last MMA's operand: of a warpgroup's own iteration, and of the one that it is at."""
    base = found.tile.name.removesuffix("_shared")
    like = replace(found.store.src.buffer, dtype=found.tile.dtype)
    return replace(like, name=_unlike_users(f"{base}_own")), now_of(replace(like, name=base))


def values_kept(found: schedule.PingPong) -> tuple[Buffer, ...]:
    """What the end of an iteration reads and the next, which begins before, computes anew."""
    sums = (found.running.reduce,) if found.running is not None else ()
    written = written_in((*found.between, *sums))
    wanted = read_in(found.late)
    return tuple(sorted(wanted & written, key=lambda tile: tile.name))


def ping_pong(
    op: Loop,
    found: schedule.PingPong,
    slabs: tuple[Slabs, ...],
    iterations: Iterations,
    lower: Lower,
    where: Where,
    rule: str,
) -> PingPong:
    """The loop of a schedule, whose stages have these slabs."""
    lowering = Alternation(op, found, slabs, lower, where, rule)
    start, send, receive = lowering.products(), lowering.sent(), lowering.received()
    keep, prepare, second = lowering.kept(), lowering.prepared(), lowering.shared()
    own, now = operands_of(found)
    first, last = found.own_mmas[0].c.buffer, found.second.c.buffer

    def run(part: PingPongPart | None, shift: int = 0, values: tuple[Buffer, ...] = ()) -> tuple[Do, ...]:
        return () if part is None else (RunPingPong(shift=shift, part=part, values=values),)

    def both(values: tuple[Buffer, ...]) -> tuple[Do, ...]:
        done = AwaitMmas(shift=0, results=(last,), pending=())
        release = ReleaseStage(shift=0, ring=None, waits_for_loads=False)
        return (*run(prepare, values=values), *run(second), done, release)

    hold = Perform(shift=0, op=CopyRegisters(source=found.second, src=own, dst=now))
    began, begin = (
        Perform(shift=0, op=kind(source=found.second, event=Event.MMAS_ISSUED)) for kind in (AwaitSignal, Signal)
    )
    awaited = [AwaitMmas(shift=shift, results=(first,), pending=()) for shift in (0, 1)]
    taken = (*run(receive), *run(keep))
    early = (*run(start, 1), awaited[1], *taken, *run(send, 1))
    return PingPong(
        source=op,
        iterations=iterations,
        parts=tuple(part for part in (start, send, receive, prepare, second) if part is not None),
        steps=(
            WarpgroupSteps(
                own=(*run(start), begin, awaited[0], *run(send), hold),
                other=run(receive),
                both=both(values_kept(found)),
                early=False,
            ),
            WarpgroupSteps(
                own=(hold, *run(keep)),
                other=(began, IfNext(shift=0, followed=early, last=taken)),
                both=both(tuple(map(now_of, values_kept(found)))),
                early=True,
                parts=() if keep is None else (keep,),
            ),
        ),
        slabs=slabs,
        add_up=lowering.added_up(),
        first=first,
        second=last,
        tile=found.tile,
        handed=found.row_values,
        own=own,
        now=now,
        rule=rule,
    )


class Alternation(Record, frozen=True):
    """Lowers the parts of an iteration."""

    op: Loop
    found: schedule.PingPong
    slabs: tuple[Slabs, ...]
    lower: Lower
    where: Where
    rule: str

    def asks(self, *body: Stmt) -> bool:
        """Whether statements depend on which iteration it is."""
        return self.op.var in effects_of(body).scalars_read

    def products(self) -> PingPongPart:
        """The first MMAs, each of which waits for the slabs of its tile, behind what runs meanwhile."""
        mmas = self.found.own_mmas
        block = _started(self.lower((*self.found.before, *mmas), self.where), mmas, self.slabs)
        return PingPongPart(kind=PingPongKind.START_OWN, tile=mmas[0].c.buffer, contents=(block,), asks=True)

    def sent(self) -> PingPongPart:
        """What follows the MMAs, up to the tile that goes to the other warpgroup; nobody waits for what is behind."""
        found, (own, _) = self.found, operands_of(self.found)
        block = _to_registers(self.lower((*found.between, found.store), self.where), found.store, own)
        handed = [*((tile, handed_name(tile)) for tile in found.row_values), (own, found.tile.name)]
        stores = (HandOver(source=found.store, fragment=tile, through=place) for tile, place in handed)
        stored = Signal(source=found.store, event=Event.STORED)
        summed = () if found.running is None else (self.lower((found.running.reduce,), self.where),)
        return PingPongPart(
            kind=PingPongKind.SEND, tile=found.tile, contents=(block, *stores, stored, *summed), asks=True
        )

    def received(self) -> PingPongPart:
        """What an iteration of the other warpgroup leaves; values per row that follow from it are computed."""
        found, (_, now) = self.found, operands_of(self.found)
        body: list[Block | ops.Op] = [AwaitSignal(source=found.store, event=Event.STORED)]
        if self.slabs[0].gathered:
            body.append(FenceGathered(source=found.store))
        body += self._taken()
        body.append(TakeOver(source=found.store, fragment=now, through=found.tile.name))
        if found.running is not None:
            body.append(ClearPartial(source=found.store, tile=found.running.reduce.dst))
        return PingPongPart(
            kind=PingPongKind.RECEIVE, tile=found.tile, contents=tuple(body), asks=self.asks(*found.recomputed)
        )

    def _taken(self) -> Iterator[Block | ops.Op]:
        """What a warpgroup takes over of an iteration of the other: values, and what it computes of them, in order."""
        found = self.found
        for place, op in enumerate(found.between):
            if any(op is each for each in found.recomputed):
                yield self.lower((op,), self.where)
            later = written_in(found.between[place + 1 :])
            for tile in found.row_values:
                if tile in buffers_written(op) - later:
                    yield TakeOver(source=found.store, fragment=tile, through=handed_name(tile))

    def kept(self) -> PingPongPart | None:
        """What sets aside the values that both need of an iteration while the next one's are computed."""
        values = values_kept(self.found)
        copies = tuple(CopyRegisters(source=self.found.second, src=tile, dst=now_of(tile)) for tile in values)
        return (
            PingPongPart(kind=PingPongKind.KEEP, tile=self.found.tile, contents=copies, asks=False) if copies else None
        )

    def prepared(self) -> PingPongPart | None:
        """What both do to the last MMA's result before it, with the values of an iteration of either."""
        found, late = self.found, self.found.late
        if not late:
            return None
        rescale: tuple[Rescale, ...] = ()
        if found.factor is not None:
            branch = (found.factor.op, *found.factor.scaled)
            late = without(late, branch)
            compute = self.lower(branch, self.where)
            rescale = (Rescale(factor=found.factor, compute=compute, apply=(), rule=self.rule),)
        return PingPongPart(
            kind=PingPongKind.PREPARE,
            tile=found.second.c.buffer,
            contents=(*rescale, self.lower(late, self.where)),
            asks=self.asks(*found.late),
            values=values_kept(found),
        )

    def shared(self) -> PingPongPart:
        """The last MMA, of whose columns each warpgroup computes its own."""
        found, (_, now) = self.found, operands_of(self.found)
        block = _from_registers(self.lower((found.second,), self.where), now)
        return PingPongPart(
            kind=PingPongKind.START_BOTH, tile=found.second.c.buffer, contents=(block,), asks=self.asks(found.second)
        )

    def added_up(self) -> AddUp | None:
        """What follows the loop: the threads' parts of a running sum come together."""
        running = self.found.running
        if running is None:
            return None
        return AddUp(source=self.op, total=running.total, through=handed_name(running.total))


def now_of(tile: Buffer) -> Buffer:
    """The fragment with a tile's elements of the iteration whose last MMA is next."""
    return replace(tile, name=_unlike_users(f"{tile.name}_now"))


def _unlike_users(name: str) -> str:
    """A name that C++ reserves, so that no fragment of the user's keeps it: printing gives one that nothing has."""
    return f"__{name}"


def _started(block: Block, mmas: tuple[Stmt, ...], slabs: tuple[Slabs, ...]) -> Block:
    """A block whose MMAs are only started, slab by slab."""

    def start(each: Statement) -> Statement:
        if not isinstance(each.op, ops.Mma) or all(each.source is not mma for mma in mmas):
            return each
        own = [part for part in slabs if part.tile is each.op.b.buffer]
        waits = range(own[0].first, own[-1].last + 1)
        mma = replace(each.op, starts=True)
        return replace(each, op=MmaOfSlabs(source=each.source, mma=mma, slabs=waits, gathered=own[0].gathered))

    return mapped(block, start)


def _to_registers(block: Block, store: Copy, fragment: Buffer) -> Block:
    """A block whose copy to shared memory goes to registers."""

    def change(each: Statement) -> Statement:
        if each.source is not store:
            return each
        assert isinstance(each.op, CopyOp)
        return replace(each, op=replace(each.op, dst=Tile(region=Region.all_of(fragment, store.span)), threads=None))

    return mapped(block, change)


def _from_registers(block: Block, fragment: Buffer) -> Block:
    """A block of one MMA, which starts and reads its first operand from registers."""

    def change(each: Statement) -> Statement:
        assert isinstance(each.op, ops.Mma)
        claims = (replace(c, a_in_registers=fragment) if isinstance(c, Executes) else c for c in each.op.claims)
        a = Tile(region=Region.all_of(fragment, each.source.span))
        return replace(each, op=replace(each.op, a=a, starts=True, claims=tuple(claims)))

    return mapped(block, change)
