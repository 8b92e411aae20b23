"""Tensor maps as kernels take them and launchers make them."""

from collections.abc import Mapping

from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.tensor_map import TensorMap, store_dims
from tile2cu.styles.base.vocabulary import DIMS
from tile2cu.styles.tl import vocabulary as tl


def notes(maps: Mapping[int, TensorMap]) -> tuple[str, ...]:
    """What a reader of a kernel's declaration has to know of its maps."""
    if not any(store_dims(view) for view in maps.values()):
        return ()
    return (f"{DIMS}<r, c>: the rows and columns of a map's tile are along dimensions r and c of its tensor",)


def parameter(view: TensorMap) -> str:
    """A kernel's parameter."""
    return f"const __grid_constant__ {tl.TENSOR_MAP} {view.name}"


def argument(view: TensorMap, printer: Printer) -> str:
    """The launcher's expression that makes a map."""
    dims = f", {store_dims(view)}" if store_dims(view) else ""
    extents = ", ".join(printer.index(extent) for extent in view.tensor.shape)
    if view.tensor.strides is not None:
        extents = f"{tl.STRIDES}({', '.join(printer.index(stride) for stride in view.tensor.strides)}), {extents}"
    call = tl.MAKE_TENSOR_MAP if view.when is None else tl.MAKE_TENSOR_MAP_IF_ALIGNED
    return f"{call}<decltype({view.tile}){dims}>({printer.names(view.tensor.memory.name)}, {extents})"
