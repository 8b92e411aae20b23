"""Tensor maps, and how calls name their dimensions."""

from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.core.schedule import Multiple
from tile2cu.styles.base.vocabulary import DIMS


class TensorMap(Record, frozen=True):
    """A tensor as TMA sees it through one shape of tile. `tile` is a C++ expression of the tile's type.

    `when` is what a call need not satisfy: then the kernel does without the map.
    """

    name: str
    tensor: Buffer
    tile: str
    dims: tuple[int, ...]
    when: Multiple | None = None


def store_dims(view: TensorMap) -> str:
    """The template argument of a store through a map whose tile is not along the last two dimensions."""
    last_two = (view.tensor.rank - 2, view.tensor.rank - 1)
    return f"{DIMS}<{', '.join(map(str, view.dims))}>" if view.dims != last_two else ""
