"""The operations of a plan that move tiles: between memories, by threads or by TMA."""

from enum import Enum

from tile2cu.core.expr import Expr, Load, Var
from tile2cu.core.program import Buffer, Reduction, Region
from tile2cu.plan.buffer_loads import BufferLoads
from tile2cu.plan.operands import Operand, Threads, Tile
from tile2cu.plan.ops import Op


class CopyMechanism(Enum):
    """Loads and stores of threads, or cp.async, which has arrived after its group's wait."""

    THREADS = "threads"
    CP_ASYNC = "cp.async"


class Copy(Op, frozen=True, kw_only=True, eq=False):
    """`dst` = `src`, by `threads`; None where a fragment's layout states which thread holds what.

    `evict` is the user's cache policy, empty where there is none. A `streaming` copy is evicted first where all of
    these extents are 1; None where it is none.
    """

    src: Operand
    dst: Operand
    mechanism: CopyMechanism
    threads: Threads | None
    evict: str = ""
    streaming: tuple[Expr, ...] | None = None


class GatherRows(Op, frozen=True, kw_only=True, eq=False):
    """Row `row` of `dst` = the row of `tensor` from `coordinates` on by cp.async; zeros where `when` does not hold."""

    tensor: Buffer
    coordinates: tuple[Expr, ...]
    row: Var
    when: Expr | None
    dst: Tile
    threads: Threads


class CopyToBlock(Op, frozen=True, kw_only=True, eq=False):
    """A copy into the shared memory of the cluster's block `block`; it arrives at the barrier `arrives_at`, if any."""

    src: Operand
    dst: Operand
    block: Expr
    arrives_at: Load | None
    threads: Threads


class LoadRegisters(Op, frozen=True, kw_only=True, eq=False):
    """The first half of a copy that is staged in registers: loads `src`, by `buffer` where its rows are aligned."""

    src: Operand
    buffer: BufferLoads


class StoreRegisters(Op, frozen=True, kw_only=True, eq=False):
    """The second half of such a copy: stores to `dst`.

    A thread has `rows` neighbouring rows, and of more than one it stores the columns. `aligned`: the tensor's rows
    start at multiples of 16 bytes. `buffer` is how it is loaded from such rows.
    """

    dst: Tile
    aligned: bool
    buffer: BufferLoads
    rows: int = 1


class TmaLoad(Op, frozen=True, kw_only=True, eq=False):
    """TMA loads a box of a tensor into a pipeline's stage of `dst`, at whose barrier its bytes arrive.

    With `own_ring` the tile has barriers of its own, and so have the tiles of the `prologue`; with `publishes` its
    arrival gives consumers the number of its iteration. `multicast` is the mask of the cluster's blocks that receive
    it; 0 where only this one does.
    """

    src: Region
    dst: Buffer
    own_ring: bool
    prologue: bool
    publishes: bool
    multicast: int


class TmaCopy(Op, frozen=True, kw_only=True, eq=False):
    """The user's own load by TMA: its bytes arrive at `barrier`. `blocks` is the mask of the blocks that receive it.

    With `awaited` all of those wait for it.
    """

    src: Region
    dst: Tile
    barrier: Load
    blocks: int
    awaited: bool


class TmaStoreShared(Op, frozen=True, kw_only=True, eq=False):
    """The user's own store by TMA from shared memory, which a wait of the user's completes."""

    src: Tile
    dst: Region


class TmaStore(Op, frozen=True, kw_only=True, eq=False):
    """A fragment, or its transpose, leaves through the shared tile `staging`; with `outstanding` it is not awaited."""

    src: Buffer
    staging: str
    transposed: bool
    outstanding: bool
    dst: Region


class StoreByInstance(Op, frozen=True, kw_only=True, eq=False):
    """A store by TMA in the kernel's instance for tensors that TMA can address, by threads in the other."""

    by_tma: TmaStore
    by_threads: Copy


class AtomicUpdate(Op, frozen=True, kw_only=True, eq=False):
    """Each element of `dst` is combined with src's, atomically; by `threads` as for Copy."""

    kind: Reduction
    src: Operand
    dst: Operand
    threads: Threads | None


class TmaReduceAdd(Op, frozen=True, kw_only=True, eq=False):
    """TMA adds a fragment, through the shared tile `staging`, to a region of a tensor; it is not awaited."""

    src: Buffer
    staging: str
    dst: Region
