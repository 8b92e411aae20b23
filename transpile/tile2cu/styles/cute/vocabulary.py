"""The names of headers/tl/cute.h, and those of the launcher's side that kernels in CuTe's style use."""

ALIGNED_ROWS = "tl::Aligned<16>"
CONVERTED = "tl::converted"
COPY_TILE = "tl::copy_tile"
VALUE_AT = "tl::value_at"
GEMM = "tl::gemm"
SHARED = "tl::shared<Shared>"
STORE_TILE = "tl::store_tile"
SWAP_MODES = "tl::swap_modes"

# CuTe's names that kernels use unqualified, which a name of the user's would hide or make ambiguous.
_CUTE = (
    "copy clear fill size get rank shape stride layout composition make_tensor make_shape make_stride make_coord "
    "make_layout make_gmem_ptr make_smem_ptr make_tiled_copy make_tiled_copy_C make_tiled_mma make_identity_tensor "
    "partition_fragment_C tile_to_shape cosize_v array_aligned Layout Shape Stride Coord Tensor Int Tile Swizzle "
    "Copy_Atom MMA_Atom TiledCopy TiledMMA UniversalCopy Copies half_t bfloat16_t _ cute cutlass gemm group "
    "transform tile repeat select take min max abs array tuple "
)
RESERVED = frozenset(_CUTE.split())
