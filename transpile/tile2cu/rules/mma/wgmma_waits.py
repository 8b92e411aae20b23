"""Hopper: MMAs that the user starts with T.wgmma_gemm, and their retirement at T.wait_wgmma."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_read, buffers_written, read_by_itself
from tile2cu.analysis.control import arms
from tile2cu.analysis.groups import group_of
from tile2cu.analysis.uses import has, statements
from tile2cu.core.decisions import AWAITED_AT, NOT_IN_FLIGHT, ON_WGMMA, RETIRED, WARP_SPECIALISED
from tile2cu.core.expr import static_value
from tile2cu.core.facts import rejected
from tile2cu.core.program import Break, Buffer, Continue, Gemm, If, Launch, Loop, Scope, Stmt, WgmmaWait, While
from tile2cu.core.record import Record
from tile2cu.core.schedule import Retirement
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.mma.hopper import is_specialised
from tile2cu.rules.mma.warps import runs_on_wgmma

_STARTED = """\
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
D_local = T.alloc_fragment((64, 64), "float32")
T.copy(Z[0, 0], A_shared)
T.wgmma_gemm(A_shared, A_shared, C_local, clear_accum=True)
T.clear(D_local)
T.wait_wgmma(0)"""
_ITERATIONS = 16  # iterations of a loop that are followed one by one; the counts found in them hold for more


@rule(
    "pipeline.gemm.awaited",
    phase=Phase.PIPELINE,
    on=Launch,
    reads=(ON_WGMMA, WARP_SPECIALISED),
    writes=(AWAITED_AT, NOT_IN_FLIGHT, RETIRED),
    source="PTX ISA, 'wgmma.wait_group': until it, neither accumulators nor operands may be touched",
    examples=(Example(_STARTED, 7, "retired", "C_local", target="cuda:sm_90a"),),
)
def wgmma_wait(launch: Launch, context: Context) -> Iterator[Decision]:
    """An MMA of T.wgmma_gemm is in flight until the T.wait_wgmma that retires it.

    The statements between the two, on every path, must touch neither its result nor its operands; accesses by other
    groups are the user's to order. Otherwise the MMA is awaited where it starts.

    Gives: which MMAs are in flight, which fragments are ready after which wait, and why other MMAs are awaited
    immediately.
    """
    if is_specialised(context):
        return
    begun = [op for op in context.statements if isinstance(op, Gemm) and op.begun and runs_on_wgmma(op, context)]
    if not begun:
        return
    tracker = _Tracker(context)
    tracker.add()
    for op in begun:
        if id(op) in tracker.awaited_immediately:
            yield rejected(op, NOT_IN_FLIGHT, tracker.awaited_immediately[id(op)], "move T.wait_wgmma before that")
        else:
            yield op, AWAITED_AT, f"until T.wait_wgmma in line {', '.join(map(str, tracker.lines_of(op)))}"
    for stmt, retirement in tracker.retirements.values():
        yield stmt, RETIRED, retirement


class _Flying(Record, frozen=True):
    """An MMA in flight: the group of threads that started it, and the fewest MMAs that the group started after it."""

    mma: Gemm
    group: int | None
    after: int = 0


_InFlight = dict[tuple[int, int], _Flying]  # by the MMA's id, and how often it was started again since


@dataclass
class _Tracker:
    """Follows a launch's statements in order, with the MMAs that are in flight at each."""

    context: Context
    awaited_immediately: dict[int, str] = field(default_factory=dict)  # MMAs that are awaited immediately, and why
    retirements: dict[int, tuple[Stmt, Retirement]] = field(default_factory=dict)

    def add(self) -> None:
        """Awaits further MMAs immediately until those in flight conflict with no statement."""
        while True:
            before = len(self.awaited_immediately)
            self.retirements = {}
            left = self.body(self.context.launch.body, {}, None)
            for flight in left.values():
                self.await_immediately(flight, "no T.wait_wgmma that ends it follows")
            if len(self.awaited_immediately) == before:
                return

    def lines_of(self, mma: Gemm) -> list[int]:
        """The lines of the waits that retire an MMA."""
        ends = (stmt for stmt, retirement in self.retirements.values() if any(op is mma for op in retirement.mmas))
        return sorted({stmt.span.line for stmt in ends})

    def await_immediately(self, flight: _Flying, why: str) -> None:
        self.awaited_immediately.setdefault(id(flight.mma), why)

    def body(self, body: tuple[Stmt, ...], flights: _InFlight, group: int | None) -> _InFlight:
        for stmt in body:
            flights = self.statement(stmt, flights, group)
        return flights

    def statement(self, stmt: Stmt, flights: _InFlight, group: int | None) -> _InFlight:
        match stmt:
            case If():
                own = group_of(stmt)
                inside = group if own is None else own
                flights = flights if own is not None else self.plain(stmt, flights, group, nested=False)
                return _joined(*(self.body(arm, flights, inside) for arm, _ in arms(stmt)))
            case Loop() | While():
                return self.loop(stmt, self.plain(stmt, flights, group, nested=False), group)
            case WgmmaWait():
                return self.wait(stmt, stmt.pending, flights, group)
            case Gemm() if runs_on_wgmma(stmt, self.context):
                return self.mma(stmt, flights, group)
            case _:
                return self.plain(stmt, flights, group)

    def loop(self, stmt: Loop | While, flights: _InFlight, group: int | None) -> _InFlight:
        """The iterations of a loop: as many as it has, or until one leaves nothing new to the next."""
        iterations = _trip_count(stmt)
        if has(stmt.body, Break, Continue):
            for part in statements(stmt.body, Gemm):
                early = f"iterations of the loop in line {stmt.span.line} may end early"
                self.await_immediately(_Flying(part, group), early)
        before = flights
        for _ in range(min(iterations or _ITERATIONS, _ITERATIONS)):
            after = self.body(stmt.body, flights, group)
            if not iterations:
                after = _joined(before, after)
                if _counts(after) == _counts(flights):
                    break
            flights = after
        return flights

    def wait(self, stmt: Stmt, pending: int, flights: _InFlight, group: int | None) -> _InFlight:
        """The MMAs in flight after a wait for all but the last `pending` ones."""
        done = {key: each for key, each in flights.items() if each.group == group and each.after >= pending}
        left = {key: each for key, each in flights.items() if key not in done}
        if done:
            self.land(stmt, [each.mma for each in done.values()], [each.mma for each in left.values()])
        return left

    def land(self, stmt: Stmt, done: list[Gemm], left: list[Gemm]) -> None:
        """Records the MMAs that retire at a statement; those of any path where several reach it."""
        _, known = self.retirements.get(id(stmt), (stmt, Retirement(())))
        mmas = (*known.mmas, *(op for op in done if not any(op is other for other in known.mmas)))
        in_flight = tuple(op.c.buffer for op in left)
        self.retirements[id(stmt)] = (stmt, replace(known, mmas=mmas, in_flight=(*known.in_flight, *in_flight)))

    def mma(self, op: Gemm, flights: _InFlight, group: int | None) -> _InFlight:
        """Another MMA of the group: MMAs that the group started earlier retire earlier."""
        for flight in _of(group, flights):
            first = flight.mma
            if _overlaps(op.c.buffer, _registers(first)):
                self.await_immediately(flight, f"line {op.span.line} writes its operand `{op.c.buffer.name}`")
            if any(_overlaps(tile, {id(first.c.buffer.memory)}) for tile in (op.a.buffer, op.b.buffer)):
                self.await_immediately(flight, f"line {op.span.line} reads its result `{first.c.buffer.name}`")
        later = {key: replace(flight, after=flight.after + (flight.group == group)) for key, flight in flights.items()}
        if op.begun and id(op) not in self.awaited_immediately:
            return _started_again(op, later) | {(id(op), 0): _Flying(op, group)}
        return self.wait(op, 0, later, group)

    def plain(self, stmt: Stmt, flights: _InFlight, group: int | None, *, nested: bool = True) -> _InFlight:
        """Any other statement; of a loop or branch only the expressions in its head."""
        if nested:
            read, written = buffers_read(stmt), buffers_written(stmt)
        else:
            read, written = read_by_itself(stmt), frozenset()
        for flight in _of(group, flights):
            result = flight.mma.c.buffer
            operands = {id(region.buffer.memory) for region in (flight.mma.a, flight.mma.b)}
            changed = next((tile for tile in written if _overlaps(tile, operands)), None)
            if any(_overlaps(tile, {id(result.memory)}) for tile in read | written):
                self.await_immediately(flight, f"line {stmt.span.line} uses its result `{result.name}`")
            elif changed is not None:
                self.await_immediately(flight, f"line {stmt.span.line} writes its operand `{changed.name}`")
        return flights


def _of(group: int | None, flights: _InFlight) -> list[_Flying]:
    """The MMAs in flight that conflict with accesses of a group; outside of groups, all."""
    return [flight for flight in flights.values() if group is None or flight.group in (None, group)]


def _counts(flights: _InFlight) -> dict[tuple[int, int], int]:
    """The state without the statements, to compare."""
    return {key: flight.after for key, flight in flights.items()}


def _started_again(op: Gemm, flights: _InFlight) -> _InFlight:
    """The MMAs in flight where a statement starts its MMA again: the one of the earlier iteration is kept apart."""
    found: _InFlight = {}
    for (mma, times), flight in sorted(flights.items(), key=lambda item: item[0][1]):
        key = (mma, min(times + 1, _ITERATIONS) if mma == id(op) else times)
        found.setdefault(key, flight)
    return found


def _overlaps(tile: Buffer, memories: set[int]) -> bool:
    return id(tile.memory) in memories


def _registers(mma: Gemm) -> set[int]:
    """The operands of an MMA that are in registers."""
    return {id(each.buffer.memory) for each in (mma.a, mma.b) if each.buffer.scope is Scope.FRAGMENT}


def _joined(one: _InFlight, other: _InFlight) -> _InFlight:
    """The MMAs that may be in flight where two paths join, each with the smaller count of MMAs after it."""
    both = one | other
    return {
        key: replace(flight, after=min(way[key].after for way in (one, other) if key in way))
        for key, flight in both.items()
    }


def _trip_count(stmt: Loop | While) -> int:
    """The trip count of a loop; 0 where it is unknown, or there is no iteration."""
    if isinstance(stmt, While):
        return 0
    start, stop, step = (static_value(part) for part in (stmt.start, stmt.stop, stmt.step))
    if start is None or stop is None or not step:
        return 0
    return len(range(int(start), int(stop), int(step)))
