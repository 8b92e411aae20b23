"""Decisions that are more than a layout: pipelines, barriers and the ledger of storage."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from math import lcm, prod

from tile2cu.core.dtype import DType
from tile2cu.core.expr import Binary, Const, Expr, Var, static_value
from tile2cu.core.layout import SharedLayout
from tile2cu.core.program import Buffer, Copy, Gemm, If, Let, Parallel, Reduce, Stmt, Store


class Action(Enum):
    """What happens to a statement at a place of a schedule."""

    RUN = "run"
    START = "start"  # of an asynchronous operation: from here on it reads and writes, until it is awaited
    WAIT = "wait"


@dataclass(frozen=True)
class Step:
    """A statement's place in an iteration of a scheduled loop; in iteration k it is that of iteration k - `shift`."""

    stmt: Stmt
    shift: int = 0
    action: Action = Action.RUN

    @classmethod
    def each(cls, *stmts: Stmt, shift: int = 0, action: Action = Action.RUN) -> tuple["Step", ...]:
        """Several statements, one after another."""
        return tuple(cls(stmt, shift, action) for stmt in stmts)


@dataclass(frozen=True)
class Pipeline:
    """Of a loop: `loads` run ahead into `stages` slots; `body` is the rest, in order.

    Without a `producer` all threads load, `stages - 1` turns ahead; with one, a warp of its own loads by
    TMA, as far ahead as slots are free. `staged` tiles wait in registers before they get a slot, one more
    than there are slots. `direct`: tiles go to their slots past the registers by so many loads a thread at least, which
    are counted; None where groups are.
    """

    stages: int
    loads: tuple[Stmt, ...]
    body: tuple[Stmt, ...]
    producer: bool = False
    staged: bool = False
    direct: int | None = None

    @property
    def copies(self) -> tuple[Copy, ...]:
        """The copies among what runs ahead."""
        return tuple(load for load in self.loads if isinstance(load, Copy))

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The tiles that have a slot for each stage."""
        return tuple(load.dst.buffer for load in self.copies)

    def __str__(self) -> str:
        tiles = ", ".join(buffer.name for buffer in self.buffers)
        if self.staged:
            return f"{self.stages} slot{'s' * (self.stages > 1)} of {tiles}, one tile more in registers"
        return f"{self.stages} stages of {tiles}"


@dataclass(frozen=True)
class Specialised:
    """Whether a launch has a producer of its own, a warp or a warpgroup; `because` says why not."""

    producer: bool
    because: str = ""

    def __str__(self) -> str:
        return "yes" if self.producer else f"no: {self.because}"


@dataclass(frozen=True)
class RowFactor:
    """`op` computes a factor of each row, in `tile`, which is 1 where `before` and `after` are equal, and finite.

    `scaled` are loops that do nothing but multiply by it.
    """

    op: Stmt
    tile: Buffer
    before: Buffer
    after: Buffer
    scaled: tuple[Stmt, ...]


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Turns of two products that overlap: the second of one turn is in flight beside the first of the next.

    A turn consists of `before`, `first`, `between`, `late`, `second`. `between` runs while the second product of the
    turn before is in flight; `late` waits for it. The `factor` of the rows is computed by the last of `between`; where
    it is 1 in all rows of a warp, that is left out, and of `late` what only multiplies by it, which comes first there.
    `lets` name values of the iteration's number alone: each part that uses one has it.
    """

    before: tuple[Stmt, ...]
    first: Gemm
    between: tuple[Stmt, ...]
    late: tuple[Stmt, ...]
    second: Gemm
    factor: RowFactor | None = None
    lets: tuple[Let, ...] = ()

    @property
    def products(self) -> tuple[Gemm, Gemm]:
        return self.first, self.second

    @property
    def steps(self) -> tuple[Step, ...]:
        """The order in which an iteration runs: the second MMA is that of the iteration before."""
        return (
            *Step.each(*self.before),
            Step(self.first, action=Action.START),
            Step(self.second, 1, Action.START),
            Step(self.first, action=Action.WAIT),
            *Step.each(*self.between),
            Step(self.second, 1, Action.WAIT),
            *Step.each(*self.late),
        )

    def __str__(self) -> str:
        return f"{self.first.c.buffer.name} of a turn beside {self.second.c.buffer.name} of the turn before"


@dataclass(frozen=True)
class PlainTurns:
    """Overlapping turns that do not take a branch, a mask, have a loop of their own, without it.

    `mask` changes `tile`, the first product's result, before anything else reads it; its condition is known before the
    turn.
    """

    tile: Buffer
    mask: If

    def __str__(self) -> str:
        return f"turns that mask nothing of {self.tile.name}"


@dataclass(frozen=True)
class OwnTurns:
    """Overlapping turns that end, in each warpgroup, with the last one that its own rows need.

    Rows of a block start at `start`, and are stored below `end`. The first one's last unmasked column is `last`, each
    other's one more than that of the row above; a turn has `columns`. Where it is not known that `last` is 0 or more,
    rows `may_see_none`: a warpgroup with such a row has the block's turns.
    """

    start: Expr
    end: Expr
    last: Expr
    columns: Expr
    may_see_none: bool

    def __str__(self) -> str:
        return "to the last with an unmasked element of its rows"


@dataclass(frozen=True)
class RunningSum:
    """A sum of rows over all turns: in them each thread adds its own elements, after them lanes meet.

    `reduce` has a turn's, `update` adds it to the total.
    """

    reduce: Reduce
    update: Parallel
    total: Buffer

    def __str__(self) -> str:
        return f"{self.total.name} over lanes after the turns"


@dataclass(frozen=True)
class LinesAhead:
    """Copies of tiles of one dimension that all threads load to registers in the turn before, and values they need."""

    copies: tuple[Copy, ...]
    lets: tuple[Let, ...] = ()

    def __str__(self) -> str:
        return ", ".join(copy.dst.buffer.name for copy in self.copies)


@dataclass(frozen=True)
class Landing:
    """A wait for products that the user began: those that end there, and the results of others that do not."""

    products: tuple[Gemm, ...]
    flying: tuple[Buffer, ...] = ()

    @property
    def results(self) -> tuple[Buffer, ...]:
        """The fragments that may be used from there on."""
        found = {id(op.c.buffer): op.c.buffer for op in self.products}
        return tuple(tile for tile in found.values() if not any(tile is other for other in self.flying))

    def __str__(self) -> str:
        return ", ".join(tile.name for tile in self.results)


@dataclass(frozen=True)
class FirstTiles:
    """What a producer loads before its turns: the copies, and the statement before which all others wait for them."""

    loads: tuple[Copy, ...]
    reader: Stmt

    def __str__(self) -> str:
        return ", ".join(load.dst.buffer.name for load in self.loads)


@dataclass(frozen=True, kw_only=True)
class InFlight:
    """Turns whose product is in flight while the next turn runs what comes before its own: `before`, `product`.

    Products `beside` it end the turn as well, and are in flight with it. The shared tiles that `before` writes for them
    are `written`; each has two slots. Where the operand that it writes is a fragment, the product has a copy of it,
    which `copied` makes.
    """

    before: tuple[Stmt, ...]
    product: Gemm
    written: tuple[Buffer, ...] = ()
    copied: Copy | None = None
    beside: tuple[Gemm, ...] = ()

    @property
    def products(self) -> tuple[Gemm, ...]:
        """All that are in flight."""
        return (self.product, *self.beside)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The order in which an iteration runs: the MMAs of the iteration before are awaited behind `before`."""
        return (
            *Step.each(*self.before),
            *Step.each(*self.products, shift=1, action=Action.WAIT),
            *Step.each(*((self.copied,) if self.copied is not None else ())),
            *Step.each(*self.products, action=Action.START),
        )

    def __str__(self) -> str:
        tiles = self.written if self.copied is None else (self.copied.src.buffer,)
        names = ", ".join(tile.name for tile in tiles)
        results = ", ".join(product.c.buffer.name for product in self.products)
        return f"{results} of the turn before, while {names} is written"


@dataclass(frozen=True, kw_only=True)
class Dealt:
    """Turns that two warpgroups take in alternation, but for the last product, whose columns they share.

    A turn consists of `products`, `between` and `store`, a copy of their result to a shared tile, which one warpgroup
    does, and `late` and `second`, a product of that tile, which both do. `handed` are values a row that go from one
    warpgroup to the other with the tile. Of the `running` sum each thread keeps a part; its update is one of `late`.
    What `again` are of `between`, computing values a row from those that are handed, both do. The `factor` of the rows
    is computed by the first of `late`; where it is 1 in all rows of a warp, that and what only multiplies by it is left
    out.
    """

    products: tuple[Gemm, ...]
    between: tuple[Stmt, ...]
    store: Copy
    late: tuple[Stmt, ...]
    second: Gemm
    handed: tuple[Buffer, ...]
    running: RunningSum | None = None
    again: tuple[Stmt, ...] = ()
    factor: RowFactor | None = None

    @property
    def exchanged(self) -> tuple[Buffer, ...]:
        """What goes through shared memory as values a row, in the turns or after them."""
        return (*self.handed, *((self.running.total,) if self.running is not None else ()))

    @property
    def tile(self) -> Buffer:
        """The shared tile through which the operand of `second` is handed over."""
        return self.store.dst.buffer

    def __str__(self) -> str:
        return f"{self.store.src.buffer.name} by one warpgroup a turn, {self.second.c.buffer.name} by both"


@dataclass(frozen=True)
class LongestFirst:
    """Blocks start from the last of the grid's first index, `least` of the other indices' at a time, or a wave's."""

    least: int

    def __str__(self) -> str:
        return f"longest first, in groups of {self.least} or more"


BARRIER_BYTES = 8  # PTX ISA, 'Size and alignment of mbarrier object'


def round_up(value: int, step: int) -> int:
    """The next multiple of a step."""
    return -(-value // step) * step


@dataclass(frozen=True)
class Persistent:
    """Blocks stay and take tile after tile: from a `queue`, or each at its turn.

    `work`: the values that say where a tile lies, and what follows for its turns; a producer that draws a tile hands
    them to the others. It passes over tiles that write nothing, which are known by `idle`. Where turns are skipped,
    `turn` are the values that tell one that is taken, which it hands on with the turn's tile.
    """

    queue: bool
    work: tuple[Var, ...] = ()
    idle: Expr | None = None
    turn: tuple[Var, ...] = ()

    @property
    def drawn_bytes(self) -> int:
        """The bytes of the `tl::ScheduledTiles` or `tl::ScheduledNonEmptyTiles` of this work (tile_scheduler.h)."""
        barriers = 4 if self.idle is None else 6
        return _with_flags(self.work, 2) + barriers * BARRIER_BYTES

    def taken_bytes(self, stages: int) -> int:
        """The bytes of the `tl::ActiveIterations` of a pipeline of so many stages (tile_scheduler.h)."""
        return _with_flags(self.turn, stages)

    def __str__(self) -> str:
        passes = ", but for those that write nothing" if self.idle is not None else ""
        told = ", with the turns that are taken" if self.turn else ""
        return f"from a queue{passes}{told}" if self.queue else "in turns"


def _with_flags(values: tuple[Var, ...], count: int) -> int:
    """The bytes of so many structs of these values, and of as many flags, before a barrier."""
    end, widest = 0, 1
    for size in (var.dtype.bytes for var in values):
        end, widest = round_up(end, size) + size, max(widest, size)
    return round_up(count * (max(1, round_up(end, widest)) + 1), BARRIER_BYTES)


@dataclass(frozen=True)
class Idle:
    """Blocks that would write nothing end at once: they are known by `condition`, after what is computed `before`."""

    before: tuple[Stmt, ...]
    condition: Expr

    def __str__(self) -> str:
        return "ends at once"


@dataclass(frozen=True)
class RegisterShares:
    """How many registers a thread of the producer's warpgroup, and of the others, has."""

    producer: int
    consumer: int

    def __str__(self) -> str:
        return f"{self.producer} in the producer's warpgroup, {self.consumer} in the others"


@dataclass(frozen=True)
class Staging:
    """A shared tile through which a fragment, or its transpose, leaves by TMA. Shape in elements.

    It may share the memory of another tile, `where`, that nobody needs any more.
    """

    name: str
    like: Buffer
    dtype: DType
    layout: SharedLayout
    where: Buffer | None = None
    transposed: bool = False


@dataclass(frozen=True, kw_only=True)
class DotOfFour:
    """What a loop adds to `sum`: four numbers of 2 bits of `packed`, less a number, times four int8 of `tile`.

    `in_total`: of the sums of a row only the total is read, so that products may go to any of them.
    """

    sum: Store
    packed: Buffer
    less: int
    tile: Buffer
    in_total: bool

    def __str__(self) -> str:
        return f"four of `{self.packed.name}` with four of `{self.tile.name}`"


@dataclass(frozen=True)
class Hazard:
    """Why a barrier stands: other threads have `kind` ("written" or "read") the tile `buffer`.

    Its memory is then `taken_over` by another tile, or it is used again itself.
    """

    buffer: str
    kind: str
    taken_over: bool = field(default=False, repr=False)


@dataclass(frozen=True)
class Multiple:
    """A condition that only a run can tell: `value` is a multiple of `of`."""

    value: Expr
    of: int

    def __str__(self) -> str:
        return f"{_shown(self.value)} % {self.of} == 0"


def _shown(extent: Expr) -> str:
    """An extent as Python writes it, where it is a size, a number, or a quotient of such."""
    value = static_value(extent)
    if value is not None:
        return str(int(value))
    if isinstance(extent, Binary) and extent.op == "//":
        return f"{_shown(extent.lhs)} // {_shown(extent.rhs)}"
    return extent.name if isinstance(extent, Var) else "extent"


def strictest(conditions: Iterable[Multiple]) -> tuple[Multiple, ...]:
    """The same conditions, one of each value. That of a quotient by a number is said of what is divided, where that
    has to be a multiple of the number anyway: K % 8 == 0 and K // 2 % 16 == 0 is K % 32 == 0.
    """
    found: dict[Expr, int] = {}
    for condition in conditions:
        found[condition.value] = lcm(found.get(condition.value, 1), condition.of)
    for value in list(found):
        if isinstance(value, Binary) and value.op == "//" and isinstance(value.rhs, Const) and value.lhs in found:
            by = int(value.rhs.value)
            if found[value.lhs] % by == 0:
                found[value.lhs] = lcm(found[value.lhs], by * found.pop(value))
    return tuple(Multiple(value, of) for value, of in found.items())


@dataclass(frozen=True)
class Workspace:
    """Shared memory in which warps exchange parts of a reduction or a scan.

    `extents` is the shape of the exchanged values of `dtype`; a reduction has one set from each of
    `warps` warps, a scan (`warps` 0) holds its tile once. What is `handed` over holds a fragment's values.
    """

    name: str
    dtype: DType
    extents: tuple[int, ...]
    warps: int
    handed: Buffer | None = None

    @property
    def bytes(self) -> int:
        return prod(self.extents) * max(1, self.warps) * self.dtype.bytes


@dataclass(frozen=True)
class Part:
    """Shared tiles that are in use between two lines of the user's file."""

    tiles: tuple[str, ...]
    first_line: int
    last_line: int


@dataclass(frozen=True)
class Overlay:
    """Parts of shared memory that are in use one after the other, and so lie in one place.

    No tile of one part is in use while one of another is. The workspaces of reductions, each of which begins with a
    barrier, lie in one place then, too, or alone where there are no parts.
    """

    parts: tuple[Part, ...]
    workspaces: bool = False

    @property
    def joins_workspaces(self) -> bool:
        return bool(self.parts) or self.workspaces

    def mates(self, name: str) -> tuple[str, ...]:
        """The tiles of other parts, which lie where this one does."""
        if not any(name in part.tiles for part in self.parts):
            return ()
        return tuple(other for part in self.parts if name not in part.tiles for other in part.tiles)

    def __str__(self) -> str:
        if not self.parts:
            return "workspaces of reductions"
        return ", then ".join(" and ".join(part.tiles) for part in self.parts)


DRAWN = "drawn_tiles"  # the ledger's row for them
TAKEN = "active_iterations"  # the same for the turns that a producer hands on
BARRIERS = "barriers"  # the ledger's row for the barriers of a producer's pipeline


@dataclass(frozen=True)
class Ledger:
    """Shared memory of a block, in bytes: what each tile takes with all its slots, and the whole."""

    tiles: tuple[tuple[str, int], ...]
    total: int
    limit: int
