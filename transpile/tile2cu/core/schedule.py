"""Decisions with structure: pipelines, barriers and schedules."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from enum import Enum
from math import lcm

from tile2cu.core.expr import Binary, Expr, Var, static_value
from tile2cu.core.program import Buffer, Copy, Gemm, If, Let, Parallel, Reduce, Stmt, Store
from tile2cu.core.record import Abstract, Record


class Action(Enum):
    """What happens to a statement at a step of a schedule."""

    RUN = "run"
    START = "start"  # of an asynchronous operation: from here on it reads and writes, until it is awaited
    WAIT = "wait"


class By(Enum):
    """Who runs a step: all warps that compute, or the warpgroup whose iteration it is, of two that alternate."""

    ALL = "all"
    OWNER = "owner"


class Step(Record, frozen=True):
    """A statement's step in an iteration of a scheduled loop; in iteration k it is that of iteration k - `shift`."""

    stmt: Stmt
    shift: int = 0
    action: Action = Action.RUN
    by: By = By.ALL

    @classmethod
    def each(cls, *stmts: Stmt, shift: int = 0, action: Action = Action.RUN, by: By = By.ALL) -> tuple["Step", ...]:
        """Several statements, one after another."""
        return tuple(cls(stmt, shift, action, by) for stmt in stmts)


class Schedule(Record, frozen=True, metaclass=Abstract):
    """How those that compute run the iterations of a producer's loop: one of the strategies that are its subclasses.

    Everything else follows from the `steps` of an iteration: legality (analysis/legality.py), the loop's prologue and
    epilogue, waits and releases (plan/overlapped.py), and the chart of the review page.
    """

    @property
    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """The order in which an iteration runs."""

    @property
    def mmas(self) -> tuple[Gemm, ...]:
        """The MMAs that are in flight during other steps, in the order in which an iteration of them starts."""
        started = [step for step in self.steps if step.action is Action.START and isinstance(step.stmt, Gemm)]
        return tuple(step.stmt for step in sorted(started, key=lambda step: step.shift) if isinstance(step.stmt, Gemm))

    @property
    def doubled(self) -> tuple[Buffer, ...]:
        """The tiles with two versions, of which iterations use one in alternation."""
        return ()

    @property
    def waits(self) -> "tuple[WaitForMmas, ...]":
        """The waits for MMAs that iterations in order leave in flight."""
        return ()

    @property
    def running(self) -> "DeferredReduction | None":
        """The sum over all iterations of which each thread keeps a partial sum until the loop has ended."""
        return None


class Pipeline(Record, frozen=True):
    """The software pipeline of a loop: `loads` are prefetched into `stages` stages; `body` is the rest, in order.

    Without a `producer` all threads load, `stages - 1` iterations earlier; with one, a warp of its own loads by TMA, as
    early as stages are free. `staged` tiles are held in registers before they are stored to a stage, one more than
    there are stages. `direct`: tiles are loaded to their stages without registers, by at least so many loads per
    thread, which are counted; None where cp.async groups are.
    """

    stages: int
    loads: tuple[Stmt, ...]
    body: tuple[Stmt, ...]
    producer: bool = False
    staged: bool = False
    direct: int | None = None

    @property
    def depth(self) -> int:
        """The tiles that are used, stored and loaded at the same time: `num_stages` of the loop, where as many fit."""
        return self.stages + self.staged

    @property
    def copies(self) -> tuple[Copy, ...]:
        """The copies among the prefetched loads."""
        return tuple(load for load in self.loads if isinstance(load, Copy))

    @property
    def gathers(self) -> tuple[Copy, ...]:
        """The loads that gather rows."""
        return tuple(load for load in self.copies if load.row is not None)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The multi-buffered tiles."""
        return tuple(load.dst.buffer for load in self.copies)

    def __str__(self) -> str:
        tiles = ", ".join(buffer.name for buffer in self.buffers)
        if self.staged:
            return f"{self.stages} stage{'s' * (self.stages > 1)} of {tiles}, one more tile in registers"
        return f"{self.stages} stages of {tiles}"


class WarpSpecialised(Record, frozen=True):
    """Whether a launch has a producer, a warp or a warpgroup; `because` is why it has none."""

    producer: bool
    because: str = ""

    def __str__(self) -> str:
        return "yes" if self.producer else f"no: {self.because}"


class RowFactor(Record, frozen=True):
    """`op` computes a factor of each row, in `tile`, which is 1 where `before` and `after` are equal, and finite.

    `scaled` are loops that only multiply by it.
    """

    op: Stmt
    tile: Buffer
    before: Buffer
    after: Buffer
    scaled: tuple[Stmt, ...]


class WarpgroupTripCount(Record, frozen=True):
    """A trip count per warpgroup of a software-pipelined loop, up to the last iteration that its own rows need.

    Rows of a block start at `start`, and are stored below `end`. The first row's last unmasked column is `last`, each
    other row's one more than that of the row above; an iteration has `columns`. Where `last` may be negative, rows
    `may_see_none`: a warpgroup with such a row has the block's trip count.
    """

    start: Expr
    end: Expr
    last: Expr
    columns: Expr
    may_see_none: bool


class DeferredReduction(Record, frozen=True):
    """A row sum over all iterations: per-thread partial sums, with the warp reduction deferred past the loop.

    `reduce` computes an iteration's sum, `update` adds it to the total.
    """

    reduce: Reduce
    update: Parallel
    total: Buffer


class VotedRescale(Record, frozen=True):
    """A loop multiplies by a factor that is 1 in rows of which `before` and `after` are equal, and finite."""

    before: Buffer
    after: Buffer

    def __str__(self) -> str:
        return f"where {self.after.name} changes"


class MmaOverlap(Schedule, frozen=True, kw_only=True):
    """Software pipelining of two groups of MMAs: the second of one iteration runs concurrently with the next's first.

    An iteration consists of `before`, the MMAs `first`, `parts`, `late`, and the MMAs `second`. Each MMA of `first` is
    awaited before its part, while the following ones are in flight, and the `second` MMAs of the previous iteration are
    too; `late` waits for these. The `factor` of the rows is computed by the last of `parts`; where it is 1 in all rows
    of a warp, the rescale is skipped: those of `late` that only multiply by it, which come first there. `lets` name
    values of the iteration's number alone: each part that uses one computes it.
    Iterations that do not run the branch `mask` have a loop of their own, without it. Of the `running` sum each thread
    keeps a partial sum. Each warpgroup ends with the last of its own `trips`.
    """

    before: tuple[Stmt, ...]
    first: tuple[Gemm, ...]
    parts: tuple[tuple[Stmt, ...], ...]
    late: tuple[Stmt, ...]
    second: tuple[Gemm, ...]
    factor: RowFactor | None = None
    lets: tuple[Let, ...] = ()
    mask: If | None = None
    running: DeferredReduction | None = None
    trips: WarpgroupTripCount | None = None

    @property
    def between(self) -> tuple[Stmt, ...]:
        """The statements that run while the second MMAs of the previous iteration are in flight."""
        return tuple(stmt for part in self.parts for stmt in part)

    @property
    def steps(self) -> tuple[Step, ...]:
        awaited = (
            (Step(mma, action=Action.WAIT), *Step.each(*part)) for mma, part in zip(self.first, self.parts, strict=True)
        )
        return (
            *Step.each(*self.before),
            *Step.each(*self.first, action=Action.START),
            *Step.each(*self.second, shift=1, action=Action.START),
            *(step for steps in awaited for step in steps),
            *Step.each(*self.second, shift=1, action=Action.WAIT),
            *Step.each(*self.late),
        )

    def __str__(self) -> str:
        first, second = (", ".join(mma.c.buffer.name for mma in mmas) for mmas in (self.first, self.second))
        parts = (
            f"{first} concurrent with {second} of the previous iteration",
            "unmasked iterations in a loop of their own" if self.mask is not None else "",
            f"warp reduction of {self.running.total.name} after the loop" if self.running is not None else "",
            "each warpgroup up to the last iteration with an unmasked element of its rows" if self.trips else "",
        )
        return "; ".join(filter(None, parts))


class Retirement(Record, frozen=True):
    """A wait for the user's asynchronous MMAs: those that retire there, and the results of others still in flight."""

    mmas: tuple[Gemm, ...]
    in_flight: tuple[Buffer, ...] = ()

    @property
    def results(self) -> tuple[Buffer, ...]:
        """The fragments that are ready from there on."""
        found = {id(op.c.buffer): op.c.buffer for op in self.mmas}
        return tuple(tile for tile in found.values() if not any(tile is other for other in self.in_flight))

    def __str__(self) -> str:
        return ", ".join(tile.name for tile in self.results)


class WaitForMmas(Record, frozen=True):
    """A wait for MMAs in flight, before a statement; directly `behind` it, where that is the last of these MMAs."""

    at: Stmt
    retirement: Retirement
    behind: bool = False


class InOrder(Schedule, frozen=True):
    """Iterations in order, but for vectors that are prefetched, and MMAs that are in flight until they are needed.

    All threads prefetch the one-dimensional tiles of `copies`, and values they need: the next iteration's loads start,
    into registers, after this one's last copy from there to its tile. MMAs are in flight until the `waits`.
    """

    body: tuple[Stmt, ...]
    copies: tuple[Copy, ...] = ()
    lets: tuple[Let, ...] = ()
    waits: tuple[WaitForMmas, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        copies, shift = {id(copy) for copy in self.copies}, int(bool(self.copies))
        last = max((place for place, stmt in enumerate(self.body) if id(stmt) in copies), default=-1)
        own = [tuple(self._steps(stmt, shift, awaited=id(stmt) in copies)) for stmt in self.body]
        now, later = ((step for of in part for step in of) for part in (own[: last + 1], own[last + 1 :]))
        return (*now, *Step.each(*self.copies, action=Action.START), *later)

    def _steps(self, stmt: Stmt, shift: int, *, awaited: bool) -> Iterator[Step]:
        """The steps of a statement, with the waits before and behind it."""
        started = any(stmt is mma for wait in self.waits for mma in wait.retirement.mmas)
        yield from self._awaited(stmt, shift, behind=False)
        yield Step(stmt, shift, Action.WAIT if awaited else Action.START if started else Action.RUN)
        yield from self._awaited(stmt, shift, behind=True)

    def _awaited(self, stmt: Stmt, shift: int, *, behind: bool) -> Iterator[Step]:
        for wait in self.waits:
            if wait.at is stmt and wait.behind == behind:
                yield from Step.each(*wait.retirement.mmas, shift=shift, action=Action.WAIT)

    @property
    def in_flight(self) -> tuple[Gemm, ...]:
        """The MMAs that are not awaited directly."""
        return tuple(mma for wait in self.waits for mma in wait.retirement.mmas if mma is not wait.at)

    @property
    def doubled(self) -> tuple[Buffer, ...]:
        return tuple(copy.dst.buffer for copy in self.copies)  # one version in registers, one in the tile

    def __str__(self) -> str:
        vectors = ", ".join(copy.dst.buffer.name for copy in self.copies)
        mmas = ", ".join(mma.c.buffer.name for mma in self.in_flight)
        parts = (f"{vectors} loaded one iteration earlier", f"{mmas} in flight until needed")
        return "; ".join(part for part, named in zip(parts, (vectors, mmas), strict=True) if named)


class PrologueLoads(Record, frozen=True):
    """Prologue loads of a producer: the copies, and the statement before which all consumers wait for them."""

    loads: tuple[Copy, ...]
    reader: Stmt

    def __str__(self) -> str:
        return ", ".join(load.dst.buffer.name for load in self.loads)


class MmaInFlight(Schedule, frozen=True, kw_only=True):
    """Iterations whose last MMAs, `last`, are in flight during `before` of the next one.

    The shared tiles that `before` writes for them are `written`; each has two stages. Where the operand that it writes
    is a fragment, the MMA reads a copy of it, which `copied` makes.
    """

    before: tuple[Stmt, ...]
    last: tuple[Gemm, ...]
    written: tuple[Buffer, ...] = ()
    copied: Copy | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The MMA that reads a copy starts after `before`, on which it does not depend: the compiler interleaves both.

        Tensor cores execute the MMAs of one accumulator in order, so that one may start while another is in flight.
        """
        before, awaited = Step.each(*self.before), Step.each(*self.last, shift=1, action=Action.WAIT)
        if self.copied is None:
            return (*before, *Step.each(*self.last, action=Action.START), *awaited)
        return (Step(self.copied, 1), *before, *Step.each(*self.last, shift=1, action=Action.START), *awaited)

    @property
    def doubled(self) -> tuple[Buffer, ...]:
        return self.written

    def __str__(self) -> str:
        tiles = self.written if self.copied is None else (self.copied.src.buffer,)
        names = ", ".join(tile.name for tile in tiles)
        results = ", ".join(mma.c.buffer.name for mma in self.last)
        return f"{results} of the previous iteration in flight, while {names} is written"


class PingPong(Schedule, frozen=True, kw_only=True):
    """Iterations that two warpgroups take alternately (ping-pong), except for the last GEMM, whose columns they share.

    An iteration consists of `before`, `own_mmas`, `between` and `store`, a copy of their result to a shared tile, which
    one warpgroup runs, and `late` and `second`, a GEMM of that tile, which both run. What is `before` the MMAs runs
    while their tiles are loaded. The warpgroups exchange `row_values` with the tile. Of the `running` sum each thread
    keeps a partial sum; its update is one of `late`. Both run the statements `recomputed` of `between`, which compute
    values per row from exchanged ones. The `factor` of the rows is computed by the first of `late`; where it is 1 in
    all rows of a warp, it is skipped.
    """

    own_mmas: tuple[Gemm, ...]
    between: tuple[Stmt, ...]
    store: Copy
    late: tuple[Stmt, ...]
    second: Gemm
    row_values: tuple[Buffer, ...]
    running: DeferredReduction | None = None
    recomputed: tuple[Stmt, ...] = ()
    factor: RowFactor | None = None
    before: tuple[Stmt, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        summed = (self.running.reduce,) if self.running is not None else ()
        own = (*self.before, *self.own_mmas, *self.between, self.store, *summed)
        return (*Step.each(*own, by=By.OWNER), *Step.each(*self.late, self.second))

    @property
    def exchanged(self) -> tuple[Buffer, ...]:
        """The values per row that are exchanged through shared memory, in the iterations or after them."""
        return (*self.row_values, *((self.running.total,) if self.running is not None else ()))

    @property
    def tile(self) -> Buffer:
        """The shared tile through which the operand of `second` is exchanged."""
        return self.store.dst.buffer

    def __str__(self) -> str:
        return f"{self.store.src.buffer.name} by one warpgroup per iteration, {self.second.c.buffer.name} by both"


class LptOrder(Record, frozen=True):
    """Blocks start from the last of the grid's first index, in groups of `least` of the other indices, or of a wave."""

    least: int

    def __str__(self) -> str:
        return f"longest first, in groups of {self.least} or more"


BARRIER_BYTES = 8  # PTX ISA, 'Size and alignment of mbarrier object'


def log2_of(value: int) -> int | None:
    """The binary logarithm of a power of two; None of other numbers."""
    return value.bit_length() - 1 if value > 0 and value & -value == value else None


def round_up(value: int, step: int) -> int:
    """The next multiple of a step."""
    return -(-value // step) * step


class Persistent(Record, frozen=True):
    """A persistent kernel: blocks loop over tiles, from a `queue` or statically assigned.

    `work`: the values that select a tile, and that its iterations need; a producer that fetches a tile publishes them.
    It skips tiles that write nothing, which satisfy `idle`. Where iterations are skipped, `iteration` are the values of
    an active one, which the producer publishes with the iteration's tile.
    """

    queue: bool
    work: tuple[Var, ...] = ()
    idle: Expr | None = None
    iteration: tuple[Var, ...] = ()

    @property
    def scheduled_tiles_bytes(self) -> int:
        """The bytes of the `tl::ScheduledTiles` or `tl::ScheduledNonEmptyTiles` of this work (tile_scheduler.h)."""
        barriers = 4 if self.idle is None else 6
        return _with_flags(self.work, 2) + barriers * BARRIER_BYTES

    def active_iterations_bytes(self, stages: int) -> int:
        """The bytes of the `tl::ActiveIterations` of a pipeline of so many stages (tile_scheduler.h)."""
        return _with_flags(self.iteration, stages)

    def __str__(self) -> str:
        passes = ", without those that write nothing" if self.idle is not None else ""
        told = ", with their active iterations" if self.iteration else ""
        return f"tiles from a queue{passes}{told}" if self.queue else "statically assigned tiles"


def _with_flags(values: tuple[Var, ...], count: int) -> int:
    """The bytes of so many structs of these values, and of as many flags, before a barrier."""
    end, widest = 0, 1
    for size in (var.dtype.bytes for var in values):
        end, widest = round_up(end, size) + size, max(widest, size)
    return round_up(count * (max(1, round_up(end, widest)) + 1), BARRIER_BYTES)


class EarlyExit(Record, frozen=True):
    """Early exit of blocks that would write nothing: where `condition` holds, after the statements `before`."""

    before: tuple[Stmt, ...]
    condition: Expr

    def __str__(self) -> str:
        return "exits immediately"


class RegisterShares(Record, frozen=True):
    """The registers per thread of the producer's warpgroup, and of the consumers'."""

    producer: int
    consumer: int

    def __str__(self) -> str:
        return f"{self.producer} in the producer's warpgroup, {self.consumer} in the others"


class PackedDot(Record, frozen=True, kw_only=True):
    """A packed dot product that a loop adds to `sum`: four 2-bit numbers of `packed` times four int8 of `tile`.

    `less` is subtracted from each 2-bit number. `in_total`: only the total of a row's elements is read, so that terms
    may be added to any of them.
    """

    sum: Store
    packed: Buffer
    less: int
    tile: Buffer
    in_total: bool

    def __str__(self) -> str:
        return f"four of `{self.packed.name}` with four of `{self.tile.name}`"


class Hazard(Record, frozen=True, repr_omit_defaults=True):
    """The reason of a barrier: other threads have accessed the tile `buffer`; `kind` is "written" or "read".

    Its memory is then `taken_over` by another tile, or the tile itself is used again: `overwritten`, if it was written
    and nothing reads it before.
    """

    buffer: str
    kind: str
    taken_over: bool = False
    overwritten: bool = False

    @property
    def raw(self) -> bool:
        """Whether what was written is read."""
        return self.kind == "written" and not (self.overwritten or self.taken_over)

    @property
    def order(self) -> str:
        """RAW, WAR or WAW."""
        return "WAR" if self.kind == "read" else "RAW" if self.raw else "WAW"


class PartBarrier(Record, frozen=True):
    """A barrier of the threads that take a branch, which ends `hazards` among them.

    They are whole warps, `threads` in all, which synchronise at named barrier `number`; or, where that is 0, the
    `lanes` of one warp, as a bit mask.
    """

    hazards: tuple[Hazard, ...]
    threads: int
    number: int = 0
    lanes: int = 0


class Multiple(Record, frozen=True):
    """A run-time condition: `value` is a multiple of `of`."""

    value: Expr
    of: int

    def __str__(self) -> str:
        return f"{_divided(self.value)} % {self.of} == 0"


def _shown(extent: Expr) -> str:
    """An extent in Python's notation, where sizes and numbers make it up."""
    value = static_value(extent)
    if value is not None:
        return str(int(value))
    if isinstance(extent, Binary):
        rhs = _shown(extent.rhs)
        return f"{_divided(extent.lhs)} {extent.op} {f'({rhs})' if ' ' in rhs else rhs}"
    return extent.name if isinstance(extent, Var) else "extent"


def _divided(extent: Expr) -> str:
    """The same in front of `//` or `%`, which bind more tightly than sums."""
    is_sum = isinstance(extent, Binary) and extent.op in ("+", "-")
    return f"({_shown(extent)})" if is_sum else _shown(extent)


def strictest(conditions: Iterable[Multiple]) -> tuple[Multiple, ...]:
    """The same conditions, one for each value.

    A condition on a quotient becomes one on the dividend, where that has to be a multiple of the divisor anyway: K % 8
    == 0 and K // 2 % 16 == 0 is K % 32 == 0.
    """
    found: dict[Expr, int] = {}
    for condition in conditions:
        found[condition.value] = lcm(found.get(condition.value, 1), condition.of)
    for value in list(found):
        if isinstance(value, Binary) and value.op == "//" and value.lhs in found:
            by = static_value(value.rhs)
            if isinstance(by, int) and found[value.lhs] % by == 0:
                found[value.lhs] = lcm(found[value.lhs], by * found.pop(value))
    return tuple(Multiple(value, of) for value, of in found.items())


def implied(condition: Multiple, by: tuple[Multiple, ...]) -> bool:
    """Whether a condition holds wherever others do."""
    return set(strictest((*by, condition))) == set(strictest(by))


def handed_name(tile: Buffer) -> str:
    """The name of the shared memory through which values of a fragment go from one warpgroup to another."""
    return f"__{tile.name}_handed"
