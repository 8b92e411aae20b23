"""The names of headers/tl/cute.h, and those of the launcher's side that kernels in CuTe's style use."""

from pathlib import Path

ACCUMULATE_ROWS = "tl::accumulate_rows"
ACTIVE_ITERATIONS = "tl::ActiveIterations"
ADD_TILE = "tl::add_tile"
ADD_TILE_BY_ROWS = "tl::add_tile_by_rows"
ARRAY_AT = "tl::array_at"
ALLREDUCE_ROWS = "tl::allreduce_rows"
AS_OPERAND_A = "tl::as_operand_A"
BY_LAYOUT = "tl::by_layout"
COLROW = "tl::colrow"
CONVERT = "tl::convert"
CONVERTED = "tl::converted"
COORDINATES = "tl::coordinates"
COPY_TILE = "tl::copy_tile"
COPY_TO_BLOCK = "tl::copy_to_block"
DP4A = "tl::dp4a"
DP4A_TOTAL = "tl::dp4a_total"
ELEMENTS_AT = "tl::elements_at"
EXACT_HALF = "tl::exact_half"
FILL_TILE = "tl::fill_tile"
FULL_EMPTY_BARRIERS = "tl::FullEmptyBarriers"
GEMM = "tl::gemm"
GEMM_AS_HALF = "tl::gemm_as_half"
GROUP = "tl::group"
INSIDE = "tl::inside"
INTERLEAVED = "tl::interleaved"
IS_PRODUCER = "tl::is_producer"
LOAD_OPERAND_A = "tl::load_operand_A"
LOAD_TILE = "tl::load_tile"
LOAD_VALUES = "tl::load_values"
LOAD_VECTOR = "tl::load_vector"
MAKE_TMA_MAP = "tl::make_tma_map"
MIN = "tl::min"
NON_EMPTY_SCHEDULER = "tl::NonEmptyTileScheduler"
NUM_TILES = "tl::num_tiles"
ONE_ROW = "tl::one_row"
OR_NAN = "tl::OrNan"
PARTITION_FRAGMENT = "tl::partition_fragment"
REDUCE_ROWS = "tl::reduce_rows"
REDUCE_WORKSPACE = "tl::ReduceWorkspace"
ROWCOL = "tl::rowcol"
SHARED = "tl::shared<Shared>"
SCHEDULED_NON_EMPTY_TILES = "tl::ScheduledNonEmptyTiles"
SCHEDULED_TILES = "tl::ScheduledTiles"
SCHEDULER = "tl::DynamicTileScheduler"
SHARING = "tl::Sharing"
SLICE_OR_EMPTY = "tl::slice_or_empty"
SET_COLUMNS = "tl::set_columns"
STAGE_BYTES = "tl::stage_bytes"
STORE_TILE = "tl::store_tile"
STORE_VECTOR = "tl::store_vector"
SWAP_MODES = "tl::swap_modes"
SYNC_CONSUMERS = "tl::sync_consumers"
SYNC_READERS = "tl::sync_readers"
TAKES_PART = "tl::takes_part"
THREAD = "tl::thread"
TILE_AT = "tl::tile_at"
TMA_COPY = "tl::tma_copy"
TMA_COPY_MULTICAST = "tl::tma_copy_multicast"
TMA_LOAD = "tl::tma_load"
TMA_STORE = "tl::tma_store"
TMA_STORE_START = "tl::tma_store_start"
TMA_STORE_TRANSPOSED = "tl::tma_store_transposed"
TMA_STORE_WAIT_READ = "tl::tma_store_wait_read"
UNPACK_UINT4 = "tl::unpack_uint4"
UNPACK_UINT4_INTERLEAVED = "tl::unpack_uint4_interleaved"
UP_TO = "tl::up_to"
VALUES_CHANGED = "tl::values_changed"
VALUE_AT = "tl::value_at"
VECTOR_AT = "tl::vector_at"
TMA_CAN_ADDRESS = "tl::tma_can_address"
WARP = "tl::warp"
WARP_SIZE = "tl::warp_size"
WGMMA = "tl::wgmma"
WITHIN = "tl::within"
EVICT = {"evict_first": "tl::LoadEvictFirst", "evict_last": "tl::LoadEvictLast"}
REDUCTIONS = {
    "sum": "tl::ReduceSum",
    "max": "tl::ReduceMax",
    "min": "tl::ReduceMin",
    "abssum": "tl::ReduceAbsSum",
    "absmax": "tl::ReduceAbsMax",
    "bitand": "tl::ReduceBitAnd",
    "bitor": "tl::ReduceBitOr",
    "bitxor": "tl::ReduceBitXor",
}

# CuTe's names that kernels use unqualified, which a name of the user's would hide or make ambiguous.
_CUTE = (
    "copy clear fill size get rank shape stride layout composition make_tensor make_tensor_like make_shape make_stride "
    "make_coord make_layout make_gmem_ptr make_smem_ptr make_tiled_copy make_tiled_copy_C make_tiled_mma "
    "make_identity_tensor partition_fragment_C partition_shape_C tile_to_shape cosize_v array_aligned Layout Shape "
    "Stride Coord Tensor Int Tile Swizzle Copy_Atom MMA_Atom TiledCopy TiledMMA UniversalCopy Copies half_t bfloat16_t "
    "_ cute cutlass gemm group transform tile repeat select take min max abs array tuple GMMA make_tma_map "
    "warpgroup_arrive warpgroup_commit_batch warpgroup_wait warpgroup_fence_operand wait_barrier initialize_barrier "
    "set_barrier_transaction_bytes cluster_sync cluster_arrive cluster_arrive_relaxed cluster_wait "
)
RESERVED = frozenset(_CUTE.split())
# What `using namespace cute` brings, but for the names of instructions; by tools/cute_names.py.
ALL_NAMES = Path(__file__).with_name("cute_names.txt")
