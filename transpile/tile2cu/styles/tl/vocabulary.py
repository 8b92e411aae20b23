"""The names of headers/tl that the tl style writes: the only Python with them, besides templates."""

from tile2cu.styles.base.vocabulary import (
    CAST_EXACT,
    FIRST_OF_VECTOR,
    FLOORDIV,
    FLOORMOD,
    UNPACK_UINT4,
    UNPACK_UINT4_INTERLEAVED,
)

ACCUMULATE = "tl::accumulate"
ACTIVE_ITERATIONS = "tl::ActiveIterations"
ACTIVE_ITERATION_PIPELINE = "tl::ActiveIterationPipeline"
ALIGNED = "tl::Aligned"
ALL = "tl::all"
ALLREDUCE_SUM = "tl::allreduce_sum"
ANY_CHANGED = "tl::any_changed"
ARRAY = "tl::Array"
AT = "tl::at"
ATOMIC_ADD = "tl::atomic_add"
ATOMIC_STORE = "tl::atomic_store"
BARRIER = "tl::Barrier"
BARRIER_SYNC = "tl::barrier_sync"
BITS_AS = "tl::bits_as"
BLOCKED = "tl::Blocked"
BLOCKS = "tl::blocks"
BYTES = "tl::bytes"
CAST = "tl::cast"
CLEAR = "tl::clear"
CLUSTER_SYNC_RELAXED = "tl::cluster_sync_relaxed"
COPY = "tl::copy"
DATA_AT = "tl::data_at"
DEVICE_ASSERT = "tl::device_assert"
DP4A = "tl::dp4a"
DP4A_TOTAL = "tl::dp4a_total"
DYNAMIC_TILE_SCHEDULER = "tl::DynamicTileScheduler"
FENCE_ASYNC_PROXY = "tl::fence_async_proxy"
FILL = "tl::fill"
FRAGMENT = "tl::Fragment"
FRAGMENT_STORED = "tl::fragment_stored"
GATHERED_ROWS = "tl::gathered_rows"
GATHER_SLAB = "tl::gather_slab"
GEMM_START_SLAB = "tl::gemm_start_slab"
GEMM_WAIT = "tl::gemm_wait"
GROUP = "tl::group"
GROUPS_OF_4 = "tl::groups_of_4"
INSIDE = "tl::inside"
INTERLEAVE = "tl::Interleave"
INTERLEAVED_ROWS = "tl::InterleavedRows"
IS_WRITER = "tl::is_writer"
LOAD = "tl::load"
LOAD_BUFFER = "tl::load_buffer"
LOAD_FRAGMENT = "tl::load_fragment"
MAKE_TENSOR_MAP = "tl::tensor_map"
MAKE_TENSOR_MAP_IF_ALIGNED = "tl::tensor_map_if_aligned"
MBARRIER_ARRIVE_EXPECT = "tl::mbarrier_arrive_expect"
MBARRIER_INIT = "tl::mbarrier_init"
MBARRIER_INIT_ALL = "tl::mbarrier_init_all"
MBARRIER_INIT_FENCE = "tl::mbarrier_init_fence"
MBARRIER_WAIT = "tl::mbarrier_wait"
MFMA16X16_DOUBLE = "tl::Mfma16x16Double"
MIN = "tl::min"
MMA_STARTED = "tl::mma_started"
NAMED_BARRIER_ARRIVE = "tl::named_barrier_arrive"
NAMED_BARRIER_SYNC = "tl::named_barrier_sync"
NON_EMPTY_TILE_SCHEDULER = "tl::NonEmptyTileScheduler"
NO_SWIZZLE = "tl::NoSwizzle"
NUM_TILES = "tl::num_tiles"
OVERWRITE = "tl::overwrite"
OVERWRITE_IF = "tl::overwrite_if"
PADDED = "tl::Padded"
PHILOX = "tl::Philox"
PIPELINE_STATE = "tl::PipelineState"
PREDICATED = "tl::predicated"
PREFETCHED_VECTOR = "tl::PrefetchedVector"
PRINT = "tl::print"
PRINT_OWN = "tl::print_own"
PRODUCER_WARPGROUP = "tl::producer_warpgroup"
REDUCE_WORKSPACE = "tl::ReduceWorkspace"
ALL_THREADS = "tl::all_threads"
MAX = "tl::max"
ORDERED = "tl::ordered"
REPLICATED = "tl::Replicated"
SCALE_ROWS_IF = "tl::scale_rows_if"
SCAN_WORKSPACE = "tl::ScanWorkspace"
SCHEDULED_NON_EMPTY_TILES = "tl::ScheduledNonEmptyTiles"
SCHEDULED_TILES = "tl::ScheduledTiles"
SHAPE = "tl::Shape"
SHARED = "tl::shared"
SHARED_TILE = "tl::SharedTile"
SHARED_TILE_1D = "tl::SharedTile1D"
SLICE = "tl::Slice"
SPLIT_COLUMNS = "tl::split_columns"
SPLIT_COLUMNS_LAYOUT = "tl::SplitColumns"
STAGED = "tl::Staged"
STAGED_1D = "tl::Staged1D"
STAGED_ROWS = "tl::StagedRows"
STAGING_TILE = "tl::StagingTile"
STORE = "tl::store"
STORE_FRAGMENT = "tl::store_fragment"
STRIDED_TENSOR = "tl::strided_tensor"
STRIDES = "tl::strides"
SYNC_BLOCK = "tl::sync_block"
SYNC_CLUSTER = "tl::sync_cluster"
SYNC_CONSUMERS = "tl::sync_consumers"
SYNC_READERS = "tl::sync_readers"
SYNC_THREADS = "tl::sync_threads"
SYNC_WARP = "tl::sync_warp"
TENSOR = "tl::tensor"
TENSOR_MAP = "tl::TensorMap"
THREAD = "tl::thread"
TMA_BARRIERS = "tl::TmaBarriers"
TMA_CAN_ADDRESS = "tl::tma_can_address"
TMA_LOAD_SLAB = "tl::tma_load_slab"
TMA_PIPELINE = "tl::TmaPipeline"
TMA_SLAB_BARRIERS = "tl::TmaSlabBarriers"
TMA_SLAB_PIPELINE = "tl::TmaSlabPipeline"
TMA_STORE_WAIT = "tl::tma_store_wait"
TMA_STORE_WAIT_READ = "tl::tma_store_wait_read"
TRANSPOSED = "tl::transposed"
UNPACK_UINT2 = "tl::unpack_uint2"
UP_TO = "tl::up_to"
VEC = "tl::vec"
VIEW_AS = "tl::view_as"
WARPGROUP = "tl::warpgroup"
WARPGROUP_FENCE_OPERAND = "tl::warpgroup_fence_operand"
WARPGROUP_REG_ALLOC = "tl::warpgroup_reg_alloc"
WARPGROUP_REG_DEALLOC = "tl::warpgroup_reg_dealloc"
WARPS = "tl::Warps"
WARP_ALLREDUCE_SUM = "tl::warp_allreduce_sum"
WGMMA_ACCUMULATOR = "tl::WgmmaAccumulator"
EVICT = {"evict_first": "tl::evict_first", "evict_last": "tl::evict_last"}
SUB_TILE = {"rows": "tl::rows", "cols": "tl::cols"}
SWIZZLES = {128: "tl::Swizzle128B", 64: "tl::Swizzle64B", 32: "tl::Swizzle32B"}
ATOMIC = {f"atomic_{name}": f"tl::atomic_{name}" for name in ("add", "max", "min", "and", "or", "xor")}
MEMORY_ORDER = {name: f"tl::{name}" for name in ("acquire", "release", "acq_rel", "seq_cst")}

# What the names of an elementwise loop that a reader may not know compute.
SAID_OF_NAMES = {
    VEC: "tl::vec<n>(j): elements j to j + n - 1, one vectorised atomic instruction where the target has one",
    FLOORDIV: "tl::floordiv<n>(j): j / n for each element of a vector that starts at j",
    FLOORMOD: "tl::floormod<n>(j): j % n for each element of a vector that starts at j; these are consecutive",
    FIRST_OF_VECTOR: "tl::first_of_vector(j): the condition on a vector's first element holds for all of them",
    UNPACK_UINT4: ("tl::unpack_uint4(bytes): elements 2 i and 2 i + 1 are the lower and the upper 4 bits of byte i"),
    UNPACK_UINT4_INTERLEAVED: (
        "tl::unpack_uint4_interleaved(bytes): the same, elements i and i + 4 of each eight adjacent; "
        "tl::interleaved(x): x in that order"
    ),
    DP4A: (
        "tl::dp4a(tl::unpack_uint2(bytes), tl::groups_of_4(x, j), sum): sum + the four 2-bit numbers of each byte "
        "times x(4 j) to x(4 j + 3)"
    ),
    DP4A_TOTAL: (
        "tl::dp4a_total(tl::unpack_uint2(bytes), tl::groups_of_4(x, j), sum): the four 2-bit numbers of each byte "
        "times x(4 j) to x(4 j + 3), all added to the vector's first sum: only the total is read"
    ),
    CAST_EXACT: "tl::cast_exact: integers from -512 to 511, exact, without the conversion unit",
}
