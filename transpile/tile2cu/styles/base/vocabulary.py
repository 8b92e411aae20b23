"""The names of headers/tl that every style, and the launcher, write."""

DIMS = "tl::Dims"
GROUP_OF = "tl::GroupOf"
MAX_GRID_YZ = "tl::max_grid_yz"
NAMESPACE = "tl::"
TILE_COUNT_FITS_INT = "tl::tile_count_fits_int"
