"""The names of headers/tl that the tl style writes: the only Python with them, besides templates."""

ACCUMULATE = "tl::accumulate"
ADD_UP = "tl::add_up"
ALL = "tl::all"
ANNOUNCE = "tl::announce"
ANY_ROW_START = "tl::AnyRowStart"
AT = "tl::at"
ATOMIC_ADD = "tl::atomic_add"
ATOMIC_STORE = "tl::atomic_store"
AWAIT = "tl::await"
BARRIER = "tl::Barrier"
BARRIER_SYNC = "tl::barrier_sync"
BITS_AS = "tl::bits_as"
BLOCKS = "tl::blocks"
CAST = "tl::cast"
CEILDIV = "tl::ceildiv"
CLEAR = "tl::clear"
COPY = "tl::copy"
DATA_AT = "tl::data_at"
DEALT_TILES = "tl::DealtTiles"
DEVICE_ASSERT = "tl::device_assert"
DIFFER = "tl::differ"
DIMS = "tl::Dims"
DOT_4 = "tl::dot_4"
DOT_4_IN_TOTAL = "tl::dot_4_in_total"
DRAWN_TILES = "tl::DrawnTiles"
EVICT = {"evict_first": "tl::evict_first", "evict_last": "tl::evict_last"}
FENCE_ASYNC_PROXY = "tl::fence_async_proxy"
FILL = "tl::fill"
FRAGMENT = "tl::Fragment"
GEMM_WAIT = "tl::gemm_wait"
GIVE_REGISTERS = "tl::give_registers"
GROUP = "tl::group"
HAND_OVER = "tl::hand_over"
INSIDE = "tl::inside"
LINE_AHEAD = "tl::LineAhead"
MBARRIER_START = "tl::mbarrier_start"
MIN = "tl::min"
NAMESPACE = "tl::"
NO_SWIZZLE = "tl::NoSwizzle"
OVERWRITE = "tl::overwrite"
OVERWRITE_IF = "tl::overwrite_if"
OWNS = "tl::owns"
PADDED = "tl::Padded"
PANELS = "tl::Panels"
PHILOX = "tl::Philox"
PRINT = "tl::print"
QUADS = "tl::quads"
QUARTERS = "tl::quarters"
RAGGED = "tl::ragged"
REDUCE_WORKSPACE = "tl::ReduceWorkspace"
ROW_START = "tl::RowStart"
SCAN_WORKSPACE = "tl::ScanWorkspace"
SETTLE = "tl::settle"
SHARED = "tl::shared"
SHARED_TILE = "tl::SharedTile"
SHARED_TILE_1D = "tl::SharedTile1D"
SPLIT_COLUMNS = "tl::split_columns"
STAGED = "tl::Staged"
STAGED_1D = "tl::Staged1D"
STAGING_IS_FREE = "tl::staging_is_free"
STAGING_TILE = "tl::StagingTile"
STORE = "tl::store"
STRIDED_TENSOR = "tl::strided_tensor"
STRIDES = "tl::strides"
SUM_LANES = "tl::sum_lanes"
SYNC_BLOCK = "tl::sync_block"
SYNC_CLUSTER = "tl::sync_cluster"
SYNC_CONSUMERS = "tl::sync_consumers"
SYNC_READERS = "tl::sync_readers"
SYNC_THREADS = "tl::sync_threads"
TAKEN_TURNS = "tl::TakenTurns"
TAKE_OVER = "tl::take_over"
TAKE_REGISTERS = "tl::take_registers"
TENSOR = "tl::tensor"
THREAD = "tl::thread"
TMA_BARRIERS = "tl::TmaBarriers"
TMA_PANEL_BARRIERS = "tl::TmaPanelBarriers"
TMA_REACHES = "tl::tma_reaches"
TRANSPOSED = "tl::transposed"
TURN_HANDED_OVER = "tl::turn_handed_over"
UP_TO = "tl::up_to"
VIEW_AS = "tl::view_as"
WARPGROUP = "tl::warpgroup"
SLICE = {"rows": "tl::rows", "cols": "tl::cols"}
SWIZZLES = {128: "tl::Swizzle128B", 64: "tl::Swizzle64B", 32: "tl::Swizzle32B"}
ATOMIC = {f"atomic_{name}": f"tl::atomic_{name}" for name in ("add", "max", "min", "and", "or", "xor")}
MEMORY_ORDER = {name: f"tl::{name}" for name in ("acquire", "release", "acq_rel", "seq_cst")}

# Of names in an elementwise loop that do not speak for themselves.
SAID_OF_NAMES = {
    "tl::packet<": "tl::packet<n>(j): j and the n - 1 behind it, added by one instruction where the chip has one",
    "tl::quotient<": "tl::quotient<n>(j): what lies at j / n, one element for n of a packet or for all of it",
    "tl::remainder<": "tl::remainder<n>(j): j % n, whose packets follow one another as j's do",
    "tl::first_index(": "tl::first_index(j): what holds for a packet's first element holds for all",
    "tl::nibbles(": "tl::nibbles(bytes): the 4 bits that each element of the packet has of them",
    "tl::nibbles_apart(": (
        "tl::nibbles_apart(bytes): the 4 bits that each element has of them, numbers i and i + 4 of eight side by "
        "side; tl::apart(x): x in that order"
    ),
    "tl::dot_4(": (
        "tl::dot_4(tl::quarters(bytes), tl::quads(x, j), sum): the four numbers of 2 bits of each byte times x(4 j) to "
        "x(4 j + 3), added to sum"
    ),
    "tl::dot_4_in_total(": (
        "tl::dot_4_in_total(tl::quarters(bytes), tl::quads(x, j), sum): the four numbers of 2 bits of each byte times "
        "x(4 j) to x(4 j + 3), added to the first of the packet's sums: only their total is read"
    ),
    "tl::cast_small<": "tl::cast_small: integers from -512 to 511, exactly, without the conversion unit",
}
