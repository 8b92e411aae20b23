"""The names of headers/tl/cute.h, and those of the launcher's side that kernels in CuTe's style use."""

import functools
from pathlib import Path

ACCUMULATE_ROWS = "tl::accumulate_rows"
ADD_TILE = "tl::add_tile"
AS_OPERAND_A = "tl::as_operand_A"
COLROW = "tl::colrow"
CONVERT = "tl::convert"
CONVERTED = "tl::converted"
COORDINATES = "tl::coordinates"
FILL_TILE = "tl::fill_tile"
COPY_TILE = "tl::copy_tile"
GEMM = "tl::gemm"
INSIDE = "tl::inside"
LOAD_TILE = "tl::load_tile"
ONE_ROW = "tl::one_row"
OR_NAN = "tl::OrNan"
PARTITION_FRAGMENT = "tl::partition_fragment"
REDUCE_ROWS = "tl::reduce_rows"
REDUCE_WORKSPACE = "tl::ReduceWorkspace"
ROWCOL = "tl::rowcol"
SHARED = "tl::shared<Shared>"
SHARING = "tl::Sharing"
SLICE_OR_EMPTY = "tl::slice_or_empty"
STORE_TILE = "tl::store_tile"
SWAP_MODES = "tl::swap_modes"
TAKES_PART = "tl::takes_part"
UP_TO = "tl::up_to"
VALUE_AT = "tl::value_at"
WITHIN = "tl::within"
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
    "_ cute cutlass gemm group transform tile repeat select take min max abs array tuple "
)
RESERVED = frozenset(_CUTE.split())
_NAMES = Path(__file__).with_name("cute_names.txt")  # by tools/cute_names.py


@functools.cache
def all_names() -> frozenset[str]:
    """What `using namespace cute` brings, but for the names of instructions."""
    _, *lines = _NAMES.read_text(encoding="ascii").splitlines()
    return frozenset(" ".join(lines).split())
