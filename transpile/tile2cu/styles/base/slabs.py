"""The loads and the MMAs of a ping-pong loop's slabs, each behind a wait."""

from collections.abc import Callable

from tile2cu.plan.ping_pong_ops import LoadSlabs, MmaOfSlabs
from tile2cu.styles.base.barriers import SLAB
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.view import StatementView, text_line

Views = tuple[StatementView, ...]


def slab_loads(
    op: LoadSlabs, names: Names, k: str, stages: str, acquire: Callable[[int], str], load: Callable[[str, str], str]
) -> Views:
    """A load of a tile slab by slab, each behind the wait for the warpgroup that releases it.

    `acquire` gives the call that waits for a warpgroup, `load` that of a slab: its number in the tile, in the stage.
    """
    slab, views, place = names(SLAB), list[StatementView](), op.source.span.line
    for part in op.slabs:
        if part in op.acquires:
            until = f"until warpgroup {part.part} has released tile {k} - {stages}: empty[s][{part.part}]"
            views.append(text_line(f"{acquire(part.part)}  // {until}", place))
        alone, shift = part.count == 1, part.first - part.start
        in_tile = str(part.start) if alone else slab
        in_stage = str(part.first) if alone else f"{slab} + {shift}" if shift else slab
        each = text_line(load(in_tile, in_stage), place)
        views.append(each if alone else _each_slab(slab, part.start, part.start + part.count, (each,)))
    return tuple(views)


def slab_mmas(
    op: MmaOfSlabs, names: Names, wait: Callable[[str], str], whole: Views, start: str, fence: str = ""
) -> Views:
    """An MMA slab by slab, each behind the `wait` for its arrival, and a `fence` if threads have gathered it.

    The views of the MMA as a `whole` are those of an operand of one slab; else `start` issues the MMA of a slab.
    """
    slab, first, place = names(SLAB), op.slabs.start, op.source.span.line
    arrived = f"until {'the producer' if op.gathered else 'TMA'} has filled the slab"
    fenced = (text_line(fence, place),) if op.gathered else ()
    if len(op.slabs) == 1:
        return (text_line(f"{wait(str(first))}  // {arrived}: full[s][{first}]", place), *fenced, *whole)
    in_stage = f"{slab} + {first}" if first else slab
    waits = text_line(f"{wait(in_stage)}  // {arrived}: full[s][{in_stage}]", place)
    return (_each_slab(slab, 0, len(op.slabs), (waits, *fenced, text_line(start, place))),)


def _each_slab(slab: str, start: int, stop: int, each: Views) -> StatementView:
    """A loop over slabs of a tile."""
    head = {"end": "", "unroll": "yes", "variable": slab, "compare": "<", "move": f"++{slab}"}
    return StatementView("loop", head | {"start": str(start), "stop": str(stop)}, each[0].line, body=each)
