"""Hopper: products that the user begins with T.wgmma_gemm, and what runs until T.wait_wgmma."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tile2cu.analysis.accesses import buffers_read, buffers_written, read_by_itself
from tile2cu.core.decisions import AWAITED_AT, EXPLICIT_WGMMA, NOT_IN_FLIGHT, RETIRED, WARP_SPECIALISED
from tile2cu.core.expr import static_value
from tile2cu.core.facts import rejected
from tile2cu.core.program import (
    Await,
    Break,
    Buffer,
    Continue,
    Gemm,
    If,
    Launch,
    Loop,
    Scope,
    Stmt,
    While,
    group_of,
    walk_stmts,
)
from tile2cu.core.schedule import Landing
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.hopper import is_specialised, multiplies_on_wgmma

_BEGUN = """\
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
D_local = T.alloc_fragment((64, 64), "float32")
T.copy(Z[0, 0], A_shared)
T.wgmma_gemm(A_shared, A_shared, C_local, clear_accum=True)
T.clear(D_local)
T.wait_wgmma(0)"""
_TURNS = 16  # of a loop that are followed one by one; what is counted in them holds for more


@rule(
    "pipeline.gemm.awaited",
    phase=Phase.PIPELINE,
    on=Launch,
    reads=(EXPLICIT_WGMMA, WARP_SPECIALISED),
    writes=(AWAITED_AT, NOT_IN_FLIGHT, RETIRED),
    source="PTX ISA, 'wgmma.wait_group': until it, neither accumulators nor operands may be touched",
    examples=(Example(_BEGUN, 7, "landing", "C_local", target="cuda:sm_90a"),),
)
def awaited(launch: Launch, context: Context) -> Iterator[Decision]:
    """A product of T.wgmma_gemm is in flight until the T.wait_wgmma that ends it.

    That needs statements between them, on every way through them, that touch neither its result nor its operands;
    other groups' are the user's to order. Else it is waited for where it begins.

    Gives: which products stay in flight, which fragments are there after which wait, and why others wait at once.
    """
    if is_specialised(context):
        return
    begun = [op for op in context.statements if isinstance(op, Gemm) and op.begun and multiplies_on_wgmma(op, context)]
    if not begun:
        return
    sky = _Sky(context)
    sky.settle()
    for op in begun:
        if id(op) in sky.grounded:
            yield rejected(op, NOT_IN_FLIGHT, sky.grounded[id(op)], "move T.wait_wgmma before that")
        else:
            yield op, AWAITED_AT, f"until T.wait_wgmma in line {', '.join(map(str, sky.lines_of(op)))}"
    for stmt, landing in sky.landings.values():
        yield stmt, RETIRED, landing


@dataclass(frozen=True)
class _Flight:
    """A product in flight: of which group of threads, and how many were begun after it, at least."""

    product: Gemm
    group: int | None
    after: int = 0


_Flights = dict[tuple[int, int], _Flight]  # by the product's id, and how often it was begun again since


@dataclass
class _Sky:
    """Follows a launch's statements in order, with the products that are in flight at each."""

    context: Context
    grounded: dict[int, str] = field(default_factory=dict)  # products that wait at once, and why
    landings: dict[int, tuple[Stmt, Landing]] = field(default_factory=dict)

    def settle(self) -> None:
        """Grounds products until no other must be."""
        while True:
            before = len(self.grounded)
            self.landings = {}
            for flight in self.body(self.context.launch.body, {}, None).values():
                self.ground(flight, "no T.wait_wgmma that ends it follows")
            if len(self.grounded) == before:
                return

    def lines_of(self, product: Gemm) -> list[int]:
        """Where a product ends."""
        ends = (stmt for stmt, landing in self.landings.values() if any(op is product for op in landing.products))
        return sorted({stmt.span.line for stmt in ends})

    def ground(self, flight: _Flight, why: str) -> None:
        self.grounded.setdefault(id(flight.product), why)

    def body(self, body: tuple[Stmt, ...], flights: _Flights, group: int | None) -> _Flights:
        for stmt in body:
            flights = self.statement(stmt, flights, group)
        return flights

    def statement(self, stmt: Stmt, flights: _Flights, group: int | None) -> _Flights:
        match stmt:
            case If():
                own = group_of(stmt)
                inside = group if own is None else own
                flights = flights if own is not None else self.plain(stmt, flights, group, nested=False)
                return _joined(self.body(stmt.then, flights, inside), self.body(stmt.orelse, flights, inside))
            case Loop() | While():
                return self.loop(stmt, self.plain(stmt, flights, group, nested=False), group)
            case Await():
                return self.wait(stmt, stmt.pending, flights, group)
            case Gemm() if multiplies_on_wgmma(stmt, self.context):
                return self.product(stmt, flights, group)
            case _:
                return self.plain(stmt, flights, group)

    def loop(self, stmt: Loop | While, flights: _Flights, group: int | None) -> _Flights:
        """The turns of a loop, which meet what those before left behind: so many, or until they leave nothing new."""
        turns = _turns(stmt)
        if any(isinstance(part, Break | Continue) for part in walk_stmts(stmt.body)):
            for part in walk_stmts(stmt.body):
                if isinstance(part, Gemm):
                    self.ground(_Flight(part, group), f"turns of the loop in line {stmt.span.line} may end early")
        before = flights
        for _ in range(min(turns or _TURNS, _TURNS)):
            after = self.body(stmt.body, flights, group)
            if not turns:
                after = _joined(before, after)
                if _counts(after) == _counts(flights):
                    break
            flights = after
        return flights

    def wait(self, stmt: Stmt, pending: int, flights: _Flights, group: int | None) -> _Flights:
        """What is in flight after a wait for all but the last `pending` products."""
        done = {key: each for key, each in flights.items() if each.group == group and each.after >= pending}
        left = {key: each for key, each in flights.items() if key not in done}
        if done:
            self.land(stmt, [each.product for each in done.values()], [each.product for each in left.values()])
        return left

    def land(self, stmt: Stmt, done: list[Gemm], left: list[Gemm]) -> None:
        """Notes what is there after a statement; on several ways to it, what is there on some."""
        _, known = self.landings.get(id(stmt), (stmt, Landing(())))
        products = (*known.products, *(op for op in done if not any(op is other for other in known.products)))
        flying = tuple(op.c.buffer for op in left)
        self.landings[id(stmt)] = (stmt, replace(known, products=products, flying=(*known.flying, *flying)))

    def product(self, op: Gemm, flights: _Flights, group: int | None) -> _Flights:
        """Another product of the group: what was begun before it ends before it."""
        for flight in _of(group, flights):
            first = flight.product
            if _meets(op.c.buffer, _registers(first)):
                self.ground(flight, f"line {op.span.line} writes its operand `{op.c.buffer.name}`")
            if any(_meets(tile, {id(first.c.buffer.memory)}) for tile in (op.a.buffer, op.b.buffer)):
                self.ground(flight, f"line {op.span.line} reads its result `{first.c.buffer.name}`")
        later = {key: replace(flight, after=flight.after + (flight.group == group)) for key, flight in flights.items()}
        if op.begun and id(op) not in self.grounded:
            return _begun_again(op, later) | {(id(op), 0): _Flight(op, group)}
        return self.wait(op, 0, later, group)

    def plain(self, stmt: Stmt, flights: _Flights, group: int | None, *, nested: bool = True) -> _Flights:
        """Any other statement; of a loop or branch, its own expressions."""
        if nested:
            read, written = buffers_read(stmt), buffers_written(stmt)
        else:
            read, written = read_by_itself(stmt), frozenset()
        for flight in _of(group, flights):
            result = flight.product.c.buffer
            operands = {id(region.buffer.memory) for region in (flight.product.a, flight.product.b)}
            changed = next((tile for tile in written if _meets(tile, operands)), None)
            if any(_meets(tile, {id(result.memory)}) for tile in read | written):
                self.ground(flight, f"line {stmt.span.line} uses its result `{result.name}`")
            elif changed is not None:
                self.ground(flight, f"line {stmt.span.line} writes its operand `{changed.name}`")
        return flights


def _of(group: int | None, flights: _Flights) -> list[_Flight]:
    """The products in flight that a statement of a group may meet; one of all groups may meet all."""
    return [flight for flight in flights.values() if group is None or flight.group in (None, group)]


def _counts(flights: _Flights) -> dict[tuple[int, int], int]:
    """What is in flight, without the statements."""
    return {key: flight.after for key, flight in flights.items()}


def _begun_again(op: Gemm, flights: _Flights) -> _Flights:
    """What is in flight where a product begins anew, as in a loop's next turn: what it began before is another's."""
    found: _Flights = {}
    for (product, times), flight in sorted(flights.items(), key=lambda item: item[0][1]):
        key = (product, min(times + 1, _TURNS) if product == id(op) else times)
        found.setdefault(key, flight)
    return found


def _meets(tile: Buffer, memories: set[int]) -> bool:
    return id(tile.memory) in memories


def _registers(product: Gemm) -> set[int]:
    """The operands of a product that lie in registers."""
    return {id(each.buffer.memory) for each in (product.a, product.b) if each.buffer.scope is Scope.FRAGMENT}


def _joined(one: _Flights, other: _Flights) -> _Flights:
    """What may be in flight where two ways meet, with as many products after each as on the way with fewer."""
    both = one | other
    return {
        key: replace(flight, after=min(way[key].after for way in (one, other) if key in way))
        for key, flight in both.items()
    }


def _turns(stmt: Loop | While) -> int:
    """How many turns a loop has; 0 where that is not known, or there is none."""
    if isinstance(stmt, While):
        return 0
    start, stop, step = (static_value(part) for part in (stmt.start, stmt.stop, stmt.step))
    if start is None or stop is None or not step:
        return 0
    return len(range(int(start), int(stop), int(step)))
