"""How many bytes of a tensor's row one access of a copy moves at most: headers/tl/common/copy.h."""

from tile2cu.core.dtype import DType
from tile2cu.core.expr import static_value
from tile2cu.core.layout import (
    Blocked,
    FragmentLayout,
    MmaAccumulator,
    MmaOperandA,
    Replicated,
    Slice,
    SplitColumns,
    WgmmaAccumulator,
)
from tile2cu.core.program import Region

WIDEST = 16  # bytes


def run_of(layout: FragmentLayout) -> int | None:
    """The neighbouring elements of a row that a thread holds: `vector` of the C++ type; None where it has others."""
    match layout:
        case MmaAccumulator() | MmaOperandA() | WgmmaAccumulator():
            return 2
        case Blocked():
            return layout.vector
        case Slice():
            return run_of(layout.of) if layout.kept[-1] == len(layout.of.shape) - 1 else 1
        case Replicated() | SplitColumns():
            return 1
        case _:
            return None


def access_bytes(elements: int, dtype: DType) -> int:
    """The widest access that moves this many elements: a power of two."""
    bytes_ = elements * dtype.bits // 8
    return min(WIDEST, bytes_ & -bytes_)


def copied_bytes(tensor: Region, tile: Region, layout: FragmentLayout | None) -> int:
    """The widest access of a copy to `tensor`, of a tile or a fragment with this layout."""
    dtype, run = tensor.buffer.dtype, run_of(layout) if layout is not None else None
    if run is not None:
        return access_bytes(run, dtype)
    if layout is not None:
        return WIDEST
    extent = static_value(tensor.ranges[-1].extent) if tensor.ranges else None
    both = min(8 * WIDEST // dtype.bits, 8 * WIDEST // tile.buffer.dtype.bits)
    row = int(extent) if extent is not None and extent > 1 else both
    return min(access_bytes(both, dtype), access_bytes(row, dtype)) or WIDEST
