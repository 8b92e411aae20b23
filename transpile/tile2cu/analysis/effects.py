"""What each statement does to memory, to scalars and to the order of threads: the only table of it.

`effects` is total: a statement kind without a case is a type error. A loop or a branch has the union of what is below
it, conditions and bounds included, with regions widened over its variables, so that nothing hides in a body. Effects
are upper bounds: an access may not happen, but every access that happens is listed.
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import cast

from msgspec.structs import replace

from tile2cu.analysis.regions import Box, Extent, over, without
from tile2cu.analysis.sync_calls import (
    START_KERNELS,
    SYNC_CLUSTER,
    SYNC_GRID,
    TMA_STORE_COMMIT,
    TMA_STORE_WAIT,
    TMA_STORE_WAIT_READ,
    WAIT_FOR_KERNELS,
)
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import (
    OF_THREAD,
    Address,
    Call,
    Expansion,
    Expr,
    Load,
    Role,
    Var,
    binary,
    int_const,
    static_value,
    walk,
)
from tile2cu.core.memo import kept
from tile2cu.core.never import no_case
from tile2cu.core.program import (
    AnyStmt,
    Assert,
    Assign,
    Atomic,
    AtomicTile,
    BindTensor,
    Break,
    Buffer,
    CallStmt,
    Continue,
    Copy,
    Declare,
    Fill,
    Gemm,
    If,
    Let,
    Loop,
    Parallel,
    Print,
    Reduce,
    Reduction,
    Region,
    Scan,
    SetRegisters,
    Stmt,
    Store,
    Swizzle,
    Sync,
    WgmmaWait,
    While,
)
from tile2cu.core.record import Record


class By(Enum):
    """Who makes an access."""

    THREAD = "thread"  # each thread that executes it
    TEAM = "team"  # the threads that share the operation: each element by the thread that it is mapped to
    ASYNC = "async"  # the asynchronous proxy or a copy engine, at any time until it is awaited


class Access(Record, frozen=True, kw_only=True):
    """Elements of a buffer that may be read or written: a box, in the shape of the buffer that it is named by.

    `combines` is the kind of a read-modify-write that no other thread can interrupt; `single` is whether it is one
    indivisible step, as an atomic load or store is, too.
    """

    buffer: Buffer
    box: Box
    by: By = By.THREAD
    single: bool = False
    combines: Reduction | None = None

    @property
    def root(self) -> Buffer:
        """The storage that the buffer names: of a view, what it is a view of."""
        return self.buffer.memory


class Mechanism(Enum):
    """What completes an asynchronous operation."""

    CP_ASYNC = "cp.async group"
    MBARRIER = "mbarrier transaction"
    WGMMA = "wgmma group"
    BULK_STORE = "bulk async group"


class Token(Record, frozen=True):
    """An asynchronous operation that is outstanding; `on` is the barrier that counts it, where there is one."""

    mechanism: Mechanism
    on: Buffer | None = None


class Order(Enum):
    """Among whom a statement orders memory accesses, or synchronises."""

    WARP = "warp"
    BARRIER = "barrier"  # an mbarrier or a named barrier
    BLOCK = "block"
    CLUSTER = "cluster"
    GRID = "grid"
    KERNELS = "kernels"  # programmatic dependent launch
    MEMORY = "memory"  # acquire and release operations, and fences
    GROUP = "group"  # instructions that all threads of a warpgroup execute together


class Effects(Record, frozen=True, kw_only=True):
    """All that a statement may do."""

    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    scalars_read: frozenset[Var] = frozenset()
    scalars_written: frozenset[Var] = frozenset()
    starts: frozenset[Token] = frozenset()
    awaits: frozenset[Token] = frozenset()
    orders: frozenset[Order] = frozenset()
    may_leave: bool = False  # a loop around it, or its iteration: break, continue
    may_not_terminate: bool = False

    def __or__(self, other: "Effects") -> "Effects":
        if self is NOTHING or other is NOTHING:
            return other if self is NOTHING else self
        return Effects(
            reads=self.reads + other.reads,
            writes=self.writes + other.writes,
            scalars_read=self.scalars_read | other.scalars_read,
            scalars_written=self.scalars_written | other.scalars_written,
            starts=self.starts | other.starts,
            awaits=self.awaits | other.awaits,
            orders=self.orders | other.orders,
            may_leave=self.may_leave or other.may_leave,
            may_not_terminate=self.may_not_terminate or other.may_not_terminate,
        )

    @property
    def accesses(self) -> tuple[Access, ...]:
        return self.reads + self.writes


NOTHING = Effects()

# State outside of memory, as scalars that calls read and write: two such calls keep their order.
GENERATOR = Var(INT32, "the thread's random generator", Role.MUTABLE)
OUTPUT = Var(INT32, "the kernel's printed output", Role.MUTABLE)
USER_STATE = Var(INT32, "the state of user code", Role.MUTABLE)
REGISTERS = Var(INT32, "the thread's register count", Role.MUTABLE)

_ORDERS: dict[str, Order] = {
    "sync_warp": Order.WARP,
    "barrier_sync": Order.BARRIER,
    "barrier_arrive": Order.BARRIER,
    "mbarrier_wait": Order.BARRIER,
    "mbarrier_wait_cluster": Order.CLUSTER,
    "mbarrier_arrive": Order.BARRIER,
    "mbarrier_arrive_as_reader": Order.BARRIER,
    "mbarrier_expect": Order.BARRIER,
    "mbarrier_arrive_expect": Order.BARRIER,
    "cp_async_arrive": Order.BARRIER,
    "fence_async_proxy": Order.MEMORY,
    "count_of_block": Order.BLOCK,
    "any_of_block": Order.BLOCK,
    "all_of_block": Order.BLOCK,
    SYNC_CLUSTER: Order.CLUSTER,
    "cluster_arrive": Order.CLUSTER,
    "cluster_arrive_relaxed": Order.CLUSTER,
    "cluster_wait": Order.CLUSTER,
    SYNC_GRID: Order.GRID,
    WAIT_FOR_KERNELS: Order.KERNELS,
    START_KERNELS: Order.KERNELS,
    "atomic_load_acquire": Order.MEMORY,
    "atomic_load_seq_cst": Order.MEMORY,
}
_COLLECTIVE = frozenset(
    name for name in OF_THREAD if not name.startswith(("atomic_load", "random.")) and name not in ("thread", "lane")
)
_AWAITS = {
    "cp_async_wait": Mechanism.CP_ASYNC,
    "cp_async_arrive": Mechanism.CP_ASYNC,
    "mbarrier_wait": Mechanism.MBARRIER,
    "mbarrier_wait_cluster": Mechanism.MBARRIER,
    "barrier_sync": Mechanism.CP_ASYNC,
    TMA_STORE_WAIT_READ: Mechanism.BULK_STORE,
    TMA_STORE_WAIT: Mechanism.BULK_STORE,
}
_STARTS = {
    "cp_async": Mechanism.CP_ASYNC,
    "cp_async_commit": Mechanism.CP_ASYNC,
    "mbarrier_expect": Mechanism.MBARRIER,
    "mbarrier_arrive_expect": Mechanism.MBARRIER,
    TMA_STORE_COMMIT: Mechanism.BULK_STORE,
}


def effects(stmt: Stmt) -> Effects:
    """All effects of a statement and those below it; cached in the statement, which is immutable."""
    kept = vars(stmt)
    if "effects" not in kept:
        kept["effects"] = _effects(cast(AnyStmt, stmt))
    found: Effects = kept["effects"]
    return found


@kept
def own_effects(stmt: Stmt) -> Effects:
    """The effects of a statement itself; for a loop or a branch, those of its bounds or its condition."""
    match stmt:
        case If() | While():
            return evaluated(stmt.condition)
        case Loop():
            return evaluated(stmt.start, stmt.stop, stmt.step)
        case _:
            return effects(stmt)


def effects_of(body: Iterable[Stmt]) -> Effects:
    """What a sequence of statements may do, as it is known where it begins."""
    stmts = tuple(body)
    return _outside(_union(map(effects, stmts)), stmts)


def _effects(stmt: AnyStmt) -> Effects:
    match stmt:
        case Let() | Declare() | Assign() | Store() | Atomic() | BindTensor():
            return _scalar(stmt)
        case Copy() | Gemm() | Reduce() | Fill() | AtomicTile() | Scan():
            return _operation(stmt)
        case Loop() | Parallel() | While() | If():
            return _compound(stmt)
        case Break() | Continue():
            return Effects(may_leave=True)
        case Assert() | Print() | CallStmt():
            return _observable(stmt)
        case Swizzle():
            return NOTHING
        case _:
            return _ordering(stmt)


def _ordering(stmt: Sync | WgmmaWait | SetRegisters) -> Effects:
    match stmt:
        case Sync():
            return Effects(orders=frozenset((Order.BLOCK,)))
        case WgmmaWait():
            return Effects(awaits=frozenset((Token(Mechanism.WGMMA),)), orders=frozenset((Order.GROUP,)))
        case SetRegisters():
            state = frozenset((REGISTERS,))
            return Effects(scalars_read=state, scalars_written=state, orders=frozenset((Order.GROUP,)))
        case _:
            raise no_case(stmt)


def _observable(stmt: Assert | Print | CallStmt) -> Effects:
    match stmt:
        case Assert():
            return evaluated(stmt.condition) | _touching(OUTPUT)
        case Print():
            shown = _whole(stmt.what) if isinstance(stmt.what, Buffer) else evaluated(stmt.what)
            return shown | _touching(OUTPUT)
        case CallStmt():
            return evaluated(stmt.call) | (NOTHING if _is_known(stmt.call) else _touching(USER_STATE))
        case _:
            raise no_case(stmt)


# ---- expressions ---------------------------------------------------------------------------------------------


def evaluated(*exprs: Expr | None) -> Effects:
    """What evaluating expressions does: loads, calls that work among threads, the user's own functions."""
    found = NOTHING
    names: set[Var] = set()
    for expr in exprs:
        parts = tuple(walk(expr)) if expr is not None else ()
        loads = (part for part in parts if isinstance(part, Call) and part.function.startswith("atomic_load"))
        atomic = {id(arg) for load in loads for arg in load.args}
        for part in parts:
            match part:
                case Var():
                    names.add(part)
                case Load(buffer=Buffer() as buffer):
                    found |= Effects(reads=(replace(_element(buffer, part.indices), single=id(part) in atomic),))
                case Address(buffer=Buffer() as buffer):
                    found |= _addressed(part, buffer)
                case Call():
                    found |= _called(part)
                case _:
                    pass
    return found | Effects(scalars_read=frozenset(names)) if names else found


def _element(buffer: Buffer, indices: tuple[Expr, ...]) -> Access:
    return Access(buffer=buffer, box=tuple((index, int_const(1)) for index in indices))


def _addressed(part: Address, buffer: Buffer) -> Effects:
    """The accesses of a function through an address argument: reads or writes from there on."""
    box: Box = (None,) * len(part.indices)
    if part.extent == 1:
        box = _element(buffer, part.indices).box
    elif len(part.indices) == 1:
        box = ((part.indices[0], int_const(part.extent)),)
    access = (Access(buffer=buffer, box=box),)
    return Effects(reads=access if "r" in part.access else (), writes=access if "w" in part.access else ())


def _name(call: Call) -> str:
    return call.function.partition("<")[0]


def _is_known(call: Call) -> bool:
    """Whether the table has the effects of a call statement."""
    name = _name(call)
    return name in _ORDERS or name in _AWAITS or name in _STARTS or name.startswith(("random.", "::"))


def _called(call: Call) -> Effects:
    """What a call does besides giving a value."""
    name = _name(call)
    found = NOTHING
    if name.startswith("random."):
        found |= _touching(GENERATOR)
    if name.startswith("::"):
        found |= _touching(USER_STATE)
    if name in _ORDERS:
        found |= Effects(orders=frozenset((_ORDERS[name],)))
    if name in _COLLECTIVE:
        found |= Effects(orders=frozenset((Order.WARP,)))
    barrier = next((arg.buffer for arg in call.args if isinstance(arg, Load)), None)
    on = barrier if isinstance(barrier, Buffer) else None
    if name in _AWAITS:
        found |= Effects(awaits=frozenset((Token(_AWAITS[name], on),)))
    if name in _STARTS:
        found |= Effects(starts=frozenset((Token(_STARTS[name], on),)))
    return found


def _touching(state: Var) -> Effects:
    """An effect that reads and changes a state outside of memory."""
    return Effects(scalars_read=frozenset((state,)), scalars_written=frozenset((state,)))


# ---- scalars and elements ------------------------------------------------------------------------------------


def _scalar(stmt: Let | Declare | Assign | Store | Atomic | BindTensor) -> Effects:
    match stmt:
        case Let():
            return evaluated(stmt.value) | Effects(scalars_written=frozenset((stmt.var,)))
        case Declare():
            return evaluated(stmt.init) | Effects(scalars_written=frozenset((stmt.var,)))
        case Assign():
            kept = evaluated(stmt.var) if stmt.op else NOTHING
            return evaluated(stmt.value) | kept | Effects(scalars_written=frozenset((stmt.var,)))
        case Store():
            access = (_element(stmt.buffer, stmt.indices),)
            kept = Effects(reads=access) if stmt.op else NOTHING
            return evaluated(*stmt.indices, stmt.value) | kept | Effects(writes=access)
        case Atomic():
            return _atomic(stmt)
        case BindTensor():
            tensor = stmt.tensor
            return evaluated(tensor.address, *tensor.shape, *(tensor.strides or ()))
        case _:
            raise no_case(stmt)


def _atomic(stmt: Atomic) -> Effects:
    free = stmt.kind if stmt.previous is None else None  # the returned value depends on the order of updates
    access = (replace(_element(stmt.buffer, stmt.indices), single=True, combines=free),)
    found = evaluated(*stmt.indices, stmt.value) | Effects(writes=access)
    if stmt.kind is not None:
        found |= Effects(reads=access)
    if stmt.previous is not None:
        found |= Effects(scalars_written=frozenset((stmt.previous,)))
    return found | (Effects(orders=frozenset((Order.MEMORY,))) if stmt.order else NOTHING)


# ---- operations on tiles -------------------------------------------------------------------------------------


def _operation(stmt: Copy | Gemm | Reduce | Fill | AtomicTile | Scan) -> Effects:
    match stmt:
        case Copy():
            return _copy(stmt)
        case Gemm():
            return _gemm(stmt)
        case Fill():
            return evaluated(stmt.value) | _starting(stmt.dst) | Effects(writes=(_box(stmt.dst),))
        case Reduce():
            kept = NOTHING if stmt.clear else _whole(stmt.dst)
            return _whole(stmt.src) | kept | Effects(writes=_whole(stmt.dst).reads)
        case Scan():
            return _whole(stmt.src) | Effects(writes=_whole(stmt.dst).reads)
        case AtomicTile():
            access = (replace(_box(stmt.dst), single=True, combines=stmt.kind),)
            starts = _starting(stmt.src, stmt.dst)
            return starts | Effects(reads=(_box(stmt.src), *access), writes=access)
        case _:
            raise no_case(stmt)


def _box(region: Region, by: By = By.TEAM) -> Access:
    box: Box = tuple((part.start, part.extent) for part in region.ranges)
    return Access(buffer=region.buffer, box=(None,) * len(box) if region.whole else box, by=by)


def _starting(*regions: Region) -> Effects:
    """What evaluating the places of regions reads."""
    return evaluated(*(end for region in regions for part in region.ranges for end in (part.start, part.extent)))


def _whole(buffer: Buffer) -> Effects:
    return Effects(reads=(Access(buffer=buffer, box=(None,) * buffer.rank, by=By.TEAM),))


def _copy(stmt: Copy) -> Effects:
    """A copy; one that only begins has a token, and one that waits for other blocks orders the cluster."""
    barriers = tuple(each for each in (stmt.barrier, stmt.remote) if each is not None)
    by = By.ASYNC if barriers or stmt.begun else By.TEAM
    indices = (index for each in barriers for index in each.indices)
    read, written = _box(stmt.src, by), _box(stmt.dst, by)
    found = _starting(stmt.src, stmt.dst) | evaluated(*indices, *stmt.ends, stmt.when, stmt.block)
    found |= Effects(reads=(read,), writes=(written,))
    if stmt.row is not None:
        rows = (stmt.row,)
        found = _over_variables(found, rows, (int_const(0),), (stmt.dst.buffer.shape[0],))
    tokens = {Token(Mechanism.MBARRIER, each.buffer if isinstance(each.buffer, Buffer) else None) for each in barriers}
    tokens |= {Token(Mechanism.BULK_STORE)} if stmt.begun else set()
    orders = frozenset((Order.CLUSTER,)) if stmt.awaited else frozenset[Order]()
    return found | Effects(starts=frozenset(tokens), orders=orders)


def _gemm(stmt: Gemm) -> Effects:
    by = By.ASYNC if stmt.begun else By.TEAM
    kept = () if stmt.clear else (_box(stmt.c, by),)
    operands = tuple(_box(region, by) for region in stmt.regions if region is not stmt.c)
    token = frozenset((Token(Mechanism.WGMMA),)) if stmt.begun else frozenset[Token]()
    orders = frozenset((Order.GROUP,)) if stmt.begun else frozenset[Order]()
    moved = _starting(*stmt.regions) | evaluated(stmt.clear_if)
    return moved | Effects(reads=(*operands, *kept), writes=(_box(stmt.c, by),), starts=token, orders=orders)


# ---- loops and branches --------------------------------------------------------------------------------------


def _compound(stmt: Loop | Parallel | While | If) -> Effects:
    match stmt:
        case If():
            arms = effects_of(stmt.then) | effects_of(stmt.orelse)
            return evaluated(stmt.condition) | arms
        case While():
            body = _outside(_union((evaluated(stmt.condition), *map(effects, stmt.body))), stmt.body)
            return replace(body, may_leave=False, may_not_terminate=True)
        case Loop():
            span = binary("-", stmt.stop, stmt.start)
            count = span if static_value(stmt.step) == 1 else None
            body = _over_variables(effects_of(stmt.body), (stmt.var,), (stmt.start,), (count,))
            return evaluated(stmt.start, stmt.stop, stmt.step) | replace(body, may_leave=False)
        case Parallel():
            zeros = tuple(int_const(0) for _ in stmt.vars)
            body = _over_variables(effects_of(stmt.body), stmt.vars, zeros, stmt.extents)
            return evaluated(*stmt.extents) | _by_team(replace(body, may_leave=False))
        case _:
            raise no_case(stmt)


def may_leave(body: tuple[Stmt, ...]) -> bool:
    """Whether a statement of a body may leave the loop around it, or its iteration."""
    return any(effects(stmt).may_leave for stmt in body)


def _union(parts: Iterable[Effects]) -> Effects:
    found = list(parts)
    if len(found) == 1:
        return found[0]
    return Effects(
        reads=tuple(dict.fromkeys(access for part in found for access in part.reads)),
        writes=tuple(dict.fromkeys(access for part in found for access in part.writes)),
        scalars_read=frozenset().union(*(part.scalars_read for part in found)),
        scalars_written=frozenset().union(*(part.scalars_written for part in found)),
        starts=frozenset().union(*(part.starts for part in found)),
        awaits=frozenset().union(*(part.awaits for part in found)),
        orders=frozenset().union(*(part.orders for part in found)),
        may_leave=any(part.may_leave for part in found),
        may_not_terminate=any(part.may_not_terminate for part in found),
    )


def _outside(found: Effects, body: tuple[Stmt, ...]) -> Effects:
    """The same as it is known above a body: boxes in terms of values known there, without the body's names."""
    lets = {stmt.var: stmt.value for stmt in body if isinstance(stmt, Let)}
    own = {stmt.var for stmt in body if isinstance(stmt, Let | Declare)}
    own |= {stmt.previous for stmt in body if isinstance(stmt, Atomic) and stmt.previous is not None}
    expanded = Expansion(lets)

    def known(extent: Extent) -> Extent:
        return extent and without((expanded(extent[0]), expanded(extent[1])), found.scalars_written)

    found = _boxes(found, known)
    return replace(found, scalars_read=found.scalars_read - own, scalars_written=found.scalars_written - own)


def _over_variables(
    found: Effects, loop_vars: tuple[Var, ...], starts: tuple[Expr, ...], counts: tuple[Expr | None, ...]
) -> Effects:
    """The same for all values of variables that are unknown outside."""

    def widened(extent: Extent) -> Extent:
        for var, start, count in zip(loop_vars, starts, counts, strict=True):
            extent = over(extent, var, start, count) if count is not None else extent
        return without(extent, frozenset(loop_vars) | found.scalars_written)

    found = _boxes(found, widened)
    return replace(found, scalars_read=found.scalars_read - set(loop_vars))


def _boxes(found: Effects, change: Callable[[Extent], Extent]) -> Effects:
    def of(accesses: tuple[Access, ...]) -> Iterator[Access]:
        for access in accesses:
            box = tuple(map(change, access.box))
            yield access if all(map(operator.is_, box, access.box)) else replace(access, box=box)

    return replace(found, reads=tuple(of(found.reads)), writes=tuple(of(found.writes)))


def _by_team(found: Effects) -> Effects:
    """Accesses of a loop whose elements are distributed over the threads."""

    def of(accesses: tuple[Access, ...]) -> tuple[Access, ...]:
        return tuple(replace(each, by=By.TEAM) if each.by is By.THREAD else each for each in accesses)

    return replace(found, reads=of(found.reads), writes=of(found.writes))
