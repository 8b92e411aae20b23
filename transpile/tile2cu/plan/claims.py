"""What a plan's operations state about themselves: each claim holds the data it was computed from, and its rule."""

from tile2cu.core.dtype import DType
from tile2cu.core.instruction import MmaInstruction
from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.core.schedule import Hazard
from tile2cu.plan.exchanges import Reuse


class Claim(Record, frozen=True, kw_only=True):
    """A statement about an operation, and the rule that decided it; no rule where it follows from the user's file."""

    rule: str = ""


class Exchanged(Claim, frozen=True, kw_only=True):
    """`parts` partial results of a reduction are exchanged in shared memory: of warps, or of groups of `lanes`.

    `waves`: AMD's words for warps and shared memory. `reuse`: what orders one exchange after the last.
    """

    parts: int
    lanes: int | None
    waves: bool
    reuse: Reuse


class StoredByLanes(Claim, frozen=True, kw_only=True):
    """A lane stores `columns` neighbours of a row by accesses of up to `bytes` bytes; `rounded`: to this type.

    `if_aligned`: where rows start at multiples of that, which no size of the call is known to give.
    """

    columns: int
    count: int
    bytes: int
    rounded: str
    if_aligned: bool


class StoredByWarps(Claim, frozen=True, kw_only=True):
    """An accumulator of a tensor core leaves for a tensor by `count` stores of `bytes` bytes per lane.

    `lanes` neighbours store `lanes` x `bytes` consecutive bytes in each of `rows` rows at a time. `if_aligned`: where
    rows start at multiples of `bytes`; elsewhere elements are stored one at a time.
    """

    count: int
    bytes: int
    lanes: int
    rows: int
    if_aligned: bool


class AddedByTma(Claim, frozen=True, kw_only=True):
    """TMA adds the staged rows to the tensor while the block continues."""


class Executes(Claim, frozen=True, kw_only=True):
    """An MMA is `counts` of each of these instructions, of each warp, wave or warpgroup.

    `a_in_registers` is the tile that holds A there. `lds_reads`, of an MFMA: the bytes that a lane reads at a time of A
    (0: A is in registers) and of B; None where that is not known. `lds_ways` are the conflict degrees of these reads of
    an LDS of `banks`, 1 for none, 0 where unknown; `transposing`, whether they transpose; `permuted`, whether lanes
    read rows of K, whose elements v_perm_b32 then pairs along K. What a lane has read takes `registers`, for `steps`
    steps of `step` along K at a time, or for all of K (0 steps); `k_of_mfma` are the k of the `each` values, by i, that
    it gives MFMA s, and `columns` interleave. `ldmatrix`, of mma.sync: what loads A (none: A is in registers) and B;
    None where these are others. `k_major`, of wgmma: whether the shared tiles of A and B have K along their rows, and
    of how many `warpgroups` of all of the consumers' compute it.
    """

    counts: tuple[tuple[MmaInstruction, int], ...]
    a_in_registers: Buffer | None
    lds_reads: tuple[int, int] | None = None
    lds_ways: tuple[int, int] = (0, 0)
    banks: int = 32
    transposing: tuple[bool, bool] = (False, False)
    permuted: tuple[bool, bool] = (False, False)
    registers: int = 0
    steps: int = 0
    step: int = 0
    k_of_mfma: str = ""
    each: int = 0
    columns: int = 1
    ldmatrix: tuple[str, str] | None = None
    k_major: tuple[bool, bool] = (True, True)
    warpgroups: tuple[int, int] = (0, 0)


class Prioritised(Claim, frozen=True, kw_only=True):
    """Waves at the MMA are scheduled before the others of their SIMD."""


class AwaitedAtOnce(Claim, frozen=True, kw_only=True):
    """An asynchronous MMA of the user's is awaited immediately; `because` is empty where no rule rejected more."""

    because: str


class NoTensorCore(Claim, frozen=True, kw_only=True):
    """No tensor core of `arch` multiplies operands of these types: a, b and the accumulator."""

    arch: str
    types: tuple[DType, DType, DType]


class Widened(Claim, frozen=True, kw_only=True):
    """`arch` multiplies the operands as values of the type `through`, which holds theirs exactly."""

    arch: str
    types: tuple[DType, DType, DType]
    through: str


class Ends(Claim, frozen=True, kw_only=True):
    """A barrier ends these hazards: of the `threads` that take a branch, or, where that is 0, of all participants.

    `fenced`: the threads execute a proxy fence before it (headers/tl/common/sm90/tma_pipeline.h, sync_consumers).
    """

    hazards: tuple[Hazard, ...]
    threads: int = 0
    fenced: bool = False


class Reuses(Claim, frozen=True, kw_only=True):
    """A barrier is before the staging tile `staging` is written over the tile `where`, whose memory it has."""

    staging: str
    where: Buffer


class OutlivesUse(Claim, frozen=True, kw_only=True):
    """A block exits after the last use of its shared memory by other blocks of the cluster."""


class ReachedElsewhere(Claim, frozen=True, kw_only=True):
    """Threads of the block arrive at a barrier from several statements."""


class LeftOut(Claim, frozen=True, kw_only=True):
    """An instruction of the user's is left out."""

    because: str


class MadeVisible(Claim, frozen=True, kw_only=True):
    """A fence makes what threads stored visible to an asynchronous reader."""


class Staged(Claim, frozen=True, kw_only=True):
    """A copy through shared memory that the user did not write; `because` states why it was added."""

    because: str


class Streams(Claim, frozen=True, kw_only=True):
    """L2 evicts first what the copies of these tensors read, where no other block reads it.

    `by`: the accesses that have the hint, where a copy may have others; empty where all have it.
    """

    tensors: tuple[Buffer, ...]
    by: str = ""


class StoredByTma(Claim, frozen=True, kw_only=True):
    """How a fragment leaves by TMA: `transposed` by the whole block, else by each warp; `outstanding`: not awaited.

    A warp stores boxes of `rows` x `columns`; `reused`: the staging tile has fewer columns than the fragment.
    """

    transposed: bool
    outstanding: bool
    rows: int
    columns: int
    reused: bool


class Aligned(Claim, frozen=True, kw_only=True):
    """A slice starts at a known multiple of bytes, and is copied in accesses of that size."""


class Evicts(Claim, frozen=True, kw_only=True):
    """The cache policy that the user asks for: `evict_first` or `evict_last`."""

    policy: str


class AddressableByTma(Claim, frozen=True, kw_only=True):
    """TMA can address the tensor in one instance of the kernel, and threads store it in the other."""


class ElementsTogether(Claim, frozen=True, kw_only=True):
    """A thread takes so many `elements` at a time: neighbours, or what it holds of that many `columns` of a row."""

    elements: int
    columns: int


class IdleLanesCompute(Claim, frozen=True, kw_only=True):
    """Lanes without elements of their own compute, too: nobody branches."""


class TotalsOnly(Claim, frozen=True, kw_only=True):
    """Elements are in the order in which numbers of 4 bits come apart: only totals of them are read."""


class HalfBytes(Claim, frozen=True, kw_only=True):
    """Two threads may write halves of one byte: each does by an atomic operation."""


class StoredLast(Claim, frozen=True, kw_only=True):
    """All vectors are computed before the first is stored to `tile`."""

    tile: Buffer


class ReadsGlobal(Claim, frozen=True, kw_only=True):
    """Each iteration of a pipelined loop reads elements of these tensors itself: they are not prefetched."""

    tensors: tuple[Buffer, ...]


class ByLdmatrix(Claim, frozen=True, kw_only=True):
    """ldmatrix transposes a tile between shared memory and registers."""


class ArrivesAsReader(Claim, frozen=True, kw_only=True):
    """An arrival at another block's barrier states that tiles were read: it publishes nothing that threads wrote."""


class TmaBoxes(Claim, frozen=True, kw_only=True):
    """TMA loads a tile as `boxes` of rows x columns elements of a tensor of `rank` dimensions; `swizzle` in bytes."""

    rank: int
    boxes: int
    rows: int
    columns: int
    swizzle: int


class CpAsyncs(Claim, frozen=True, kw_only=True):
    """A tile arrives by `chunks` cp.async of `bytes` each, by so many `threads`; 0 where groups of them differ.

    `if_aligned`: in instances, or calls, whose rows start at multiples of these bytes; `by_instance`: in the former
    alone, in which the rows of all tensors do.
    """

    bytes: int
    chunks: int
    threads: int
    if_aligned: bool
    by_instance: bool = False
