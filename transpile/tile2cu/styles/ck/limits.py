"""The sizes that ck_tile's offsets of 32 bits allow."""

from collections.abc import Iterator

from tile2cu.analysis.uses import statements
from tile2cu.core.expr import static_value
from tile2cu.core.program import Launch, Parallel, Scope
from tile2cu.plan.settled import Settled
from tile2cu.plan.tensors import tensor_view, viewed_tensors
from tile2cu.styles.base.comments import listed
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.view import Limit
from tile2cu.styles.ck import vocabulary as words
from tile2cu.styles.ck.types import in_ck


def size_limits(launches: tuple[Settled, ...], printer: Printer) -> Iterator[Limit]:
    """Each tensor of a run-time size, with the tiles that overhang it, has less than 2 GiB."""
    conditions: dict[str, str] = {}
    for settled in launches:
        overhang = _largest_extent(settled.launch)
        for tensor in viewed_tensors(settled):
            if tensor.of is not None or all(static_value(extent) is not None for extent in tensor.shape):
                continue
            checked = tensor_view(tensor, settled).checked
            extents = (
                f"int64_t{{{text}}} + {overhang}" if is_checked else text
                for text, is_checked in zip(map(printer.index, tensor.shape), checked, strict=True)
            )
            conditions[printer.names(tensor.name)] = f"!{words.FITS}<{in_ck(tensor.dtype.cpp)}>({', '.join(extents)})"
    if conditions:
        yield Limit(
            conditions=tuple(dict.fromkeys(conditions.values())),
            comment="ck_tile's offsets have 32 bits: a tensor, and the tiles that overhang it, have less than 2 GiB",
            stated=f"{listed(list(conditions))} must have less than 2 GiB each",
        )


def _largest_extent(launch: Launch) -> int:
    """The largest extent of a tile or a loop over elements: by so much a tile overhangs a tensor at most."""
    found = [extent for tile in launch.tiles if tile.scope is not Scope.BARRIER for extent in tile.static_shape]
    loops = [*statements(launch.body, Parallel)]
    found += [int(static_value(extent) or 0) for loop in loops for extent in loop.extents]
    return max(found, default=1)
