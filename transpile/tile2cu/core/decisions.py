"""The catalogue of decisions about a kernel: each key with its subject, its type and its meaning."""

from types import NoneType

from tile2cu.core.choice import Choice, Unchosen
from tile2cu.core.expr import Expr
from tile2cu.core.facts import Key, Rejected, candidate
from tile2cu.core.instruction import MmaInstruction
from tile2cu.core.layout import FragmentLayout, SharedLayout, Warps
from tile2cu.core.program import (
    AtomicTile,
    Buffer,
    CallStmt,
    Copy,
    Fill,
    Gemm,
    Launch,
    Loop,
    Parallel,
    Reduce,
    SetRegisters,
    Stmt,
    Sync,
    WgmmaWait,
)
from tile2cu.core.schedule import (
    EarlyExit,
    Hazard,
    LptOrder,
    Multiple,
    PackedDot,
    PartBarrier,
    Persistent,
    Pipeline,
    PrologueLoads,
    RegisterShares,
    Retirement,
    Schedule,
    VotedRescale,
    WarpSpecialised,
)
from tile2cu.core.shared_memory import Aliasing, BlockVote, SharedBudget, Staging, Workspace

LAYOUT: Key[FragmentLayout] = Key(
    "layout",
    "which thread holds which element of a fragment, or runs which iteration of an elementwise loop",
    (Buffer, Parallel),
    FragmentLayout,
)
SHARED_LAYOUT: Key[SharedLayout] = Key(
    "layout", "how a shared tile is stored: its swizzle and padding", Buffer, SharedLayout
)
WARPS: Key[Warps] = Key("warps", "how the warps partition a GEMM along M and N", Gemm, Warps)
BLOCK_WARPS: Key[int] = Key("warps", "warps of a block", Launch, int)
INSTRUCTION: Key[MmaInstruction] = Key(
    "instruction", "the MMA instruction, with its shape and types, or `fma`", Gemm, MmaInstruction
)
ON_WGMMA: Key[bool] = Key("on_wgmma", "the GEMM runs on wgmma", Gemm, bool)
WAVE_PRIORITY: Key[int] = Key("priority", "the priority of a wave on its SIMD during the GEMM", Gemm, int)
GEMM_SLICES: Key[str] = Key("slices", "the operands of which the GEMM reads a slice", Gemm, str)
CALL: Key[str] = Key("call", "the library function that does a copy or a tile atomic", (Copy, AtomicTile), str)
STAGED_BECAUSE: Key[str] = Key("reason", "why a copy through shared memory was added", Copy, str)
SLICE_ALIGNMENT: Key[int] = Key(
    "slice_alignment", "bytes that the start of a slice of a shared tile is a multiple of", (Copy, Fill), int
)
PACKED_GROUP: Key[int] = Key(
    "packed_group", "elements of 4 bits that one thread stores together", (Copy, Parallel), int
)
PACKED_BUFFERS: Key[tuple[str, ...]] = Key("packed", "names of the buffers of 4-bit elements", Launch, tuple)
STREAMING: Key[tuple[Expr, ...]] = Key(
    "streaming", "the copy is a streaming access where these extents are 1", Copy, tuple
)
VECTOR: Key[int] = Key("vector", "elements per vectorised access", Parallel, int)
DOT_OF_FOUR: Key[PackedDot] = Key(
    "dot_of_four", "the loop accumulates a packed dot product of four elements", Parallel, PackedDot
)
STORE_LAST: Key[bool] = Key("store_last", "all vectors are computed before the first is stored", Parallel, bool)
IN_REGISTERS: Key[bool] = Key("in_registers", "the loop reads and writes fragments by register number", Parallel, bool)
TRANSPOSED: Key[bool] = Key(
    "transposed", "the loop is a transposing copy that movmatrix or stmatrix does", Parallel, bool
)
PERMUTATION_INVARIANT: Key[bool] = Key(
    "permutation_invariant", "the partial sums of a row may be assigned to its elements in any order", Parallel, bool
)
ELECTED_WRITERS: Key[str] = Key(
    "elected_writers", "which of the threads that hold the same element store it", Parallel, str
)
ONE_THREAD_PER_ELEMENT: Key[bool] = Key(
    "one_thread_per_element",
    "one thread runs an iteration, as it updates memory in place; decided again",
    Parallel,
    bool,
)
ATOMIC_VECTOR: Key[int] = Key("atomic_vector", "adjacent atomics that one vectorised atomic does", Loop, int)
REDUCTION_WARPS: Key[int] = Key("reduction_warps", "warps that exchange partial results of a reduction", Reduce, int)
WORKSPACES: Key[tuple[Workspace, ...]] = Key(
    "workspaces", "shared memory for the exchange of partial results", Launch, tuple
)
SHARED_BUDGET: Key[SharedBudget] = Key("shared_budget", "the shared-memory budget", Launch, SharedBudget)
ALIASING: Key[Aliasing] = Key(
    "aliasing", "shared tiles whose lifetimes are disjoint and that share their memory", Launch, Aliasing
)
BOUNDS_CHECKED: Key[tuple[bool, ...]] = Key(
    "bounds_checked", "which dimensions of a tensor need predicates", Buffer, tuple
)
ROW_ALIGNMENT: Key[int] = Key(
    "row_alignment", "alignment in bytes of each row; 0 where it is checked at launch", Buffer, int
)
ROW_ALIGNMENT_IF: Key[Multiple] = Key(
    "row_alignment_if", "the condition under which rows are aligned to 16 bytes", Buffer, Multiple
)
TMA_IF: Key[Multiple] = Key("tma_if", "the condition under which TMA can address the tensor", (Buffer, Copy), Multiple)
TMA_COLUMNS_IF: Key[tuple[Multiple, ...]] = Key(
    "tma_columns_if", "the conditions under which TMA's boxes start at multiples of 16 bytes of a row", Launch, tuple
)
WARP_SPECIALISED: Key[WarpSpecialised] = Key(
    "warp_specialised", "whether the launch has producer warps, and why not", Launch, WarpSpecialised
)
PIPELINE: Key[Pipeline] = Key("pipeline", "the software pipeline of a loop", Loop, Pipeline)
STAGES: Key[int] = Key("stages", "stages of a multi-buffered shared tile", Buffer, int)
PROLOGUE_LOADS: Key[PrologueLoads] = Key(
    "prologue_loads", "tiles that the producer loads once, before its iterations", Launch, PrologueLoads
)
SCHEDULE: Key[Schedule] = Key(
    "schedule", "how those that compute run the iterations of a producer's loop, where not in sequence", Loop, Schedule
)
VOTED_RESCALE: Key[VotedRescale] = Key(
    "voted_rescale", "a loop multiplies by a factor that warps vote to skip", Parallel, VotedRescale
)
AWAITED_AT: Key[str] = Key("awaited_at", "where the result of an asynchronous MMA is awaited", Gemm, str)
RETIRED: Key[Retirement] = Key(
    "retired", "MMAs of the user's that have retired after it", (Gemm, WgmmaWait), Retirement
)
REGISTER_OPERAND: Key[str] = Key(
    "register_operand", "the A operand that is loaded to registers before the loop; decided again", Gemm, str
)
LOADED_OPERAND: Key[str] = Key(
    "loaded_operand",
    "the tensor from which the A operand is loaded to registers, not to shared memory; decided again",
    Gemm,
    str,
)
COPIED_OPERAND: Key[str] = Key(
    "copied_operand", "the A operand of which an MMA in flight needs a copy; decided again", Gemm, str
)
REGISTER_SHARES: Key[RegisterShares | None] = Key(
    "registers", "setmaxnreg of the producer and of the consumers", Launch, (RegisterShares, NoneType)
)
SETMAXNREG: Key[int] = Key(
    "setmaxnreg", "registers per thread before the kernel's own setmaxnreg", (Launch, SetRegisters), int
)
WAVES_PER_SIMD: Key[int | None] = Key(
    "waves_per_simd", "the least waves per SIMD, for the compiler", Launch, (int, NoneType)
)
PERSISTENT: Key[Persistent] = Key(
    "persistent", "the kernel is persistent, with this tile scheduler", Launch, Persistent
)
EARLY_EXIT: Key[EarlyExit] = Key("early_exit", "blocks that would write nothing exit immediately", Launch, EarlyExit)
RASTER_GROUP: Key[int | None] = Key(
    "raster_group", "rows of blocks per group of a grouped rasterisation", Launch, (int, NoneType)
)
TILE_ORDER: Key[LptOrder] = Key("tile_order", "longest-processing-time-first order of the blocks", Launch, LptOrder)
XCD_ORDER: Key[int | None] = Key(
    "xcd_order", "XCDs of which each takes a contiguous range of the blocks", Launch, (int, NoneType)
)
BARRIER: Key[tuple[Hazard, ...]] = Key("barrier", "hazards that a barrier before the statement ends", Stmt, tuple)
ITERATION_HAZARDS: Key[tuple[Hazard, ...]] = Key(
    "iteration_hazards", "hazards with the iteration before that a pipeline's barrier ends", Loop, tuple
)
WAR_ONLY: Key[bool] = Key(
    "war_only", "the barrier before the statement ends reads alone, and publishes no writes", Stmt, bool
)
PART_BARRIER: Key[PartBarrier] = Key(
    "part_barrier", "barrier before the statement of the threads that take the branch around it", Stmt, PartBarrier
)
PROXY_FENCE: Key[str] = Key(
    "proxy_fence", "tiles whose generic-proxy stores are fenced for the async proxy before the statement", Stmt, str
)
CLUSTER_SYNC: Key[str] = Key("cluster_sync", "the kernel has barriers of its cluster", Launch, str)
BLOCK_VOTE: Key[BlockVote] = Key("block_vote", "how the threads of the block vote", Stmt, BlockVote)
BLOCK_BARRIER: Key[bool] = Key("block_barrier", "T.sync_threads() in divergent code is the block's barrier", Sync, bool)
EXPLICIT_SYNC: Key[bool] = Key(
    "explicit_sync", "the kernel has barriers of its own that order groups of threads", Launch, bool
)
MULTICAST_MASK: Key[int] = Key(
    "multicast_mask", "blocks of the cluster that receive a multicast load, as a bit mask", Copy, int
)
MULTICAST_BLOCKS: Key[int] = Key("multicast_blocks", "blocks of the cluster that share the pipeline's loads", Loop, int)
EXIT_BARRIER: Key[bool] = Key(
    "exit_barrier", "a cluster barrier ends the kernel, as other blocks access its shared memory", Launch, bool
)
CLUSTER_CALL: Key[str] = Key("cluster_call", "the mbarrier function of a call in a cluster", CallStmt, str)
PTX_VERSION: Key[tuple[int, ...]] = Key("ptx_since", "the least PTX ISA version of the inline PTX", Launch, tuple)
STORE_STAGING: Key[tuple[Staging, ...]] = Key(
    "staging", "shared tiles through which fragments are stored by TMA", Launch, tuple
)
STAGING_TILE: Key[str] = Key(
    "staging", "the shared tile through which a result is stored by TMA", (Copy, AtomicTile), str
)
STORE_OUTSTANDING: Key[bool] = Key(
    "store_outstanding", "the block continues while TMA reads the staging tile", (Copy, AtomicTile), bool
)
STORE_COMPLETED: Key[bool] = Key(
    "store_completed", "its previous store has completed before: both may write the same elements", Copy, bool
)
UNSTAGED: Key[Launch] = Key(
    "unstaged", "the launch with results stored directly from fragments; decided again", Launch, Launch
)
TILES: Key[Choice | Unchosen] = Key(
    "tiles", "how the values of the tile parameters were chosen", Launch, (Choice, Unchosen)
)
INSTEAD: Key[Stmt] = Key("instead", "the copy that a loop is; decided again with it", Stmt, Stmt)

# Rejected candidates.
NO_SWIZZLE: Key[Rejected] = candidate("128-byte swizzle", "why a shared operand has no 128-byte swizzle", Buffer)
NO_TENSOR_CORES: Key[Rejected] = candidate("tensor cores", "why a GEMM does not run on tensor cores", Gemm)
NO_WGMMA: Key[Rejected] = candidate(
    "wgmma", "why a GEMM that the kernel starts asynchronously does not run on wgmma", Gemm
)
NO_TMA: Key[Rejected] = candidate("TMA", "why a load of a producer's loop is not by TMA", Copy)
NO_CP_ASYNC: Key[Rejected] = candidate("cp.async", "why a prefetch is not by cp.async", Copy)
NO_PRODUCER: Key[Rejected] = candidate("producer warp", "why the launch has no producer warp", Launch)
NOT_PIPELINED: Key[Rejected] = candidate("pipeline", "why a loop has no software pipeline", Loop)
FEWER_STAGES: Key[Rejected] = candidate("stages", "why a loop has fewer stages than asked for", Loop)
NOT_PREFETCHED: Key[Rejected] = candidate("prefetched", "why a load of a pipelined loop is not prefetched", Stmt)
NOT_VECTORISED: Key[Rejected] = candidate(
    "vectorised", "why the accesses of an elementwise loop are not vectorised", Parallel
)
NO_PING_PONG: Key[Rejected] = candidate(
    "alternating warpgroups", "why warpgroups do not take iterations alternately", Loop
)
NO_MMA_IN_FLIGHT: Key[Rejected] = candidate("MMAs in flight", "why the MMAs of a loop are awaited immediately", Loop)
NOT_IN_FLIGHT: Key[Rejected] = candidate("in flight", "why an MMA that the kernel starts is awaited immediately", Gemm)
NO_SETMAXNREG: Key[Rejected] = candidate("setmaxnreg", "why the kernel's setmaxnreg is left out", SetRegisters)
