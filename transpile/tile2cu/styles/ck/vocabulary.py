"""The names of headers/tl/ck.h, and those of ck_tile that a name of the user's would hide."""

from pathlib import Path

ABS_MAXIMUM = "tl::AbsMaximum"
ABS_SUM = "tl::AbsSum"
ANY_CHANGED = "tl::any_changed"
ATOMIC_ADD = "tl::atomic_add"
ATOMIC_MAX = "tl::atomic_max"
ATOMIC_MIN = "tl::atomic_min"
BLOCK_GEMM = "tl::block_gemm"
CLIP = "tl::clip_tensor_view"
FILL_TILE = "tl::fill_tile"
FITS = "tl::fits_in_2gib"
GREATEST = "tl::ReduceMin::identity<{}>()"
INTERLEAVE = "tl::Interleave"
HELD_K = "tl::HeldK"
LDS_ROWS = "tl::LdsRows"
LDS_SWIZZLED = "tl::LdsSwizzled"
ENCODES = "tl::encodes"
LDS_TILE = "tl::LdsTile"
LDS_TRANSPOSED = "tl::LdsTransposed"
LEAST = "tl::ReduceMax::identity<{}>()"
MAXIMUM = "tl::Maximum"
MINIMUM = "tl::Minimum"
MINIMUM_OF = "tl::min"
OPERAND_WINDOW = "tl::operand_window"
PREDICATED = "tl::predicated"
REDUCE_COLUMNS = "tl::block_tile_reduce_columns"
REDUCE_WARPS = "tl::reduce_across_warps"
SCALE_ROWS_IF = "tl::scale_rows_if"
STAGED_WINDOW = "tl::staged_window"
DISTRIBUTED_TILE = "tl::DistributedTile"
TENSOR = "tl::tensor"
TRANSPOSED_WARP_GEMM = "tl::TransposedWarpGemm"
VECTOR_LENGTH = "tl::vector_length"
WINDOW_DATA = "tl::window_data"

# ck_tile's names that kernels use unqualified, and those of the functor.
_CK = (
    "Kargs Kernel MakeKargs GridSize BlockSize GetSmemSize kargs shared ck_tile index_t number sequence "
    "tuple make_tuple array half_t bf16_t fp8_t bf8_t fp16_t make_naive_tensor_view pad_tensor_view make_tile_window "
    "load_tile store_tile cast_tile shuffle_tile clear_tile set_tile set_tile_if sweep_tile move_tile_window "
    "block_sync_lds block_tile_reduce block_tile_reduce_xor_sync make_static_distributed_tensor "
    "make_static_tile_distribution tile_distribution_encoding tile_elementwise_inout tile_elementwise_in type_convert "
    "get_x_indices_from_distributed_indices address_space_enum ReduceOp WarpGemmMfmaDispatcher numeric "
)
RESERVED = frozenset(_CK.split())
ALL_NAMES = Path(__file__).with_name("ck_names.txt")  # what `using namespace ck_tile` brings; by tools/ck_names.py
