"""The operations of a plan. Typed, without text of any style: expressions are core's, tiles are operands."""

from enum import Enum

from tile2cu.core.expr import Expr
from tile2cu.core.instruction import MmaInstruction
from tile2cu.core.program import Buffer, Reduction, Stmt
from tile2cu.core.record import Record
from tile2cu.core.schedule import PartBarrier
from tile2cu.plan.claims import Claim
from tile2cu.plan.operands import Threads, Tile


class Op(Record, frozen=True, kw_only=True, eq=False):
    """Base of all operations. `source` is the statement that it comes from: its line, and the user's comments."""

    source: Stmt
    claims: tuple[Claim, ...] = ()


class Fill(Op, frozen=True, kw_only=True, eq=False):
    """Each element of `tile` becomes `value`; `clears` where that is zero by the user's word."""

    tile: Tile
    value: Expr
    clears: bool
    threads: Threads


class FillLocal(Op, frozen=True, kw_only=True, eq=False):
    """The same of a private array, by each thread."""

    buffer: Buffer
    value: Expr


class Reduce(Op, frozen=True, kw_only=True, eq=False):
    """`dst` = reduction of `src` along `dim`, on top of dst's values where it `accumulates`.

    `parts`: how many partial results, of other warps or lanes, are exchanged through a workspace; 1 where none are.
    `ordered`: no barrier has to order their stores after earlier loads. A `thread_local` reduction combines a thread's
    own elements only. With `keeps_nan`, a NaN is the maximum and minimum.
    """

    kind: Reduction
    src: Buffer
    dst: Buffer
    dim: int
    accumulates: bool
    keeps_nan: bool
    parts: int
    ordered: bool
    thread_local: bool
    threads: Threads


class Scan(Op, frozen=True, kw_only=True, eq=False):
    """The inclusive scan of `src` along `dim`: from its end where `reverse`."""

    kind: Reduction
    src: Buffer
    dst: Buffer
    dim: int
    reverse: bool
    threads: Threads


class Mma(Op, frozen=True, kw_only=True, eq=False):
    """`c` += a @ b, or `c` = a @ b where it `overwrites`, or where `overwrites_if` holds.

    `instruction` has its shape and types; `metadata` states which elements a sparse `a` holds. With `starts` it is only
    issued, and an MmaWait retires it. `priority` is that of a wave on its SIMD during it.
    """

    a: Tile
    b: Tile
    c: Tile
    metadata: Tile | None
    instruction: MmaInstruction
    starts: bool
    overwrites: bool
    overwrites_if: Expr | None
    priority: int


class ClearIf(Op, frozen=True, kw_only=True, eq=False):
    """Zeros `tile` where `condition` holds: before an MMA whose instruction only accumulates."""

    tile: Tile
    condition: Expr


class WaitPoint(Enum):
    """Why MMAs are awaited somewhere: the user's statement, the MMA itself, or a statement that needs the results."""

    ASKED = "asked"
    ISSUED = "issued"
    NEEDED = "needed"


class MmaWait(Op, frozen=True, kw_only=True, eq=False):
    """Until at most `pending` of the MMAs issued last are in flight; `results` may be used from there on.

    `in_flight` are the accumulators of those that are known to remain in flight.
    """

    pending: int
    results: tuple[Buffer, ...]
    in_flight: tuple[Buffer, ...]
    point: WaitPoint


class Proxy(Enum):
    """An asynchronous reader of shared memory."""

    WGMMA = "wgmma"
    TMA = "TMA"


class ProxyFence(Op, frozen=True, kw_only=True, eq=False):
    """Generic-proxy stores to the shared `tiles` are made visible to an asynchronous reader."""

    tiles: tuple[str, ...]
    reader: Proxy


class BarrierScope(Enum):
    """Who synchronises at a barrier.

    PARTICIPANTS: the threads that run the statement, of a block or of its group. CONSUMERS: all threads but a
    producer's. BLOCK: all groups of the block. MEETING: all threads of the block, at whichever barrier they are.
    CLUSTER: all of the cluster's blocks. PART: the threads that take the branch around the statement.
    """

    PARTICIPANTS = "participants"
    CONSUMERS = "consumers"
    BLOCK = "block"
    MEETING = "meeting"
    CLUSTER = "cluster"
    PART = "part"


class Barrier(Op, frozen=True, kw_only=True, eq=False):
    """A barrier; where it is `fenced` it publishes writes to wgmma and TMA as well. Its claims have the hazards.

    `part` has the threads of a PART barrier.
    """

    scope: BarrierScope
    fenced: bool = False
    part: PartBarrier | None = None


class SetRegisters(Op, frozen=True, kw_only=True, eq=False):
    """From here on a thread has `count` registers, `more` than before or fewer. Only claimed where it is `left_out`."""

    count: int
    more: bool
    left_out: bool


class Leave(Op, frozen=True, kw_only=True, eq=False):
    """Leaves the innermost serial loop, or with `continues` its iteration."""

    continues: bool


class Assert(Op, frozen=True, kw_only=True, eq=False):
    """Stops the kernel with `message` where `condition` does not hold; without a message with the condition itself."""

    condition: Expr
    message: str


class Print(Op, frozen=True, kw_only=True, eq=False):
    """Prints a value of each thread, or each element of a tile once."""

    what: Expr | Buffer
    message: str
