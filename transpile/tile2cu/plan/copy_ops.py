"""The operations of a plan that move tiles: between memories, by threads or by TMA."""

from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Copy(Op):
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


@dataclass(frozen=True, kw_only=True, eq=False)
class GatherRows(Op):
    """Row `row` of `dst` = the row of `tensor` from `coordinates` on by cp.async; zeros where `when` does not hold."""

    tensor: Buffer
    coordinates: tuple[Expr, ...]
    row: Var
    when: Expr | None
    dst: Tile
    threads: Threads


@dataclass(frozen=True, kw_only=True, eq=False)
class CopyToBlock(Op):
    """A copy into the shared memory of the cluster's block `block`; it arrives at the barrier `arrives_at`, if any."""

    src: Operand
    dst: Operand
    block: Expr
    arrives_at: Load | None
    threads: Threads


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadRegisters(Op):
    """The first half of a copy that is staged in registers: loads `src`, by `buffer` where its rows are aligned."""

    src: Operand
    buffer: BufferLoads


@dataclass(frozen=True, kw_only=True, eq=False)
class StoreRegisters(Op):
    """The second half of such a copy: stores to `dst`.

    A thread has `rows` neighbouring rows, and of more than one it stores the columns. `aligned`: the tensor's rows
    start at multiples of 16 bytes. `buffer` is how it is loaded from such rows.
    """

    dst: Tile
    aligned: bool
    buffer: BufferLoads
    rows: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class TmaLoad(Op):
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


@dataclass(frozen=True, kw_only=True, eq=False)
class TmaCopy(Op):
    """The user's own load by TMA: its bytes arrive at `barrier`. `blocks` is the mask of the blocks that receive it.

    With `awaited` all of those wait for it.
    """

    src: Region
    dst: Tile
    barrier: Load
    blocks: int
    awaited: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class TmaStoreShared(Op):
    """The user's own store by TMA from shared memory, which a wait of the user's completes."""

    src: Tile
    dst: Region


@dataclass(frozen=True, kw_only=True, eq=False)
class TmaStore(Op):
    """A fragment, or its transpose, leaves through the shared tile `staging`; with `outstanding` it is not awaited."""

    src: Buffer
    staging: str
    transposed: bool
    outstanding: bool
    dst: Region


@dataclass(frozen=True, kw_only=True, eq=False)
class StoreByInstance(Op):
    """A store by TMA in the kernel's instance for tensors that TMA can address, by threads in the other."""

    by_tma: TmaStore
    by_threads: Copy


@dataclass(frozen=True, kw_only=True, eq=False)
class AtomicUpdate(Op):
    """Each element of `dst` is combined with src's, atomically; by `threads` as for Copy."""

    kind: Reduction
    src: Operand
    dst: Operand
    threads: Threads | None


@dataclass(frozen=True, kw_only=True, eq=False)
class TmaReduceAdd(Op):
    """TMA adds a fragment, through the shared tile `staging`, to a region of a tensor; it is not awaited."""

    src: Buffer
    staging: str
    dst: Region
