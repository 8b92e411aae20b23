"""Loops whose loads all threads run ahead: by cp.async, and what they share with those through registers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tile2cu.plan.structure import Block, PipelinedLoop
from tile2cu.styles.base.claims import in_words
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.loops import FromZero
from tile2cu.styles.base.view import StatementView

NOT_DISJOINT = "stores of two iterations are not proven disjoint"
Views = Callable[[Block], tuple[StatementView, ...]]


def pipelined(op: PipelinedLoop, printer: Printer, constants: Constants, views: Views) -> StatementView:
    """The view of a loop by cp.async; `views` gives those of its parts."""
    with numbered_iterations(op, printer, constants) as parts:
        loads = views(op.loads)
        notes = tuple(wrapped(about_overlap(op, parts["k"], parts["stages"], printer), BODY_WIDTH))
        kind = "cp_async_pipeline" if op.stages > 1 else "cp_async_serial"
        return StatementView(kind, parts, body=views(op.body), orelse=loads, notes=notes)


@contextmanager
def numbered_iterations(op: PipelinedLoop, printer: Printer, constants: Constants) -> Iterator[dict[str, str]]:
    """The texts of the loop's iterations, which count from 0; inside, its tiles print with their iteration's stage."""
    loop = FromZero.of(op.var, op.start, op.stop, printer, lambda name: printer.names.fresh(f"{name}_iter"))
    stages, outside = constants.stages(op.stages), printer.stages
    printer.stages = outside | {tile.name: f"{loop.k} % {stages}" if op.stages > 1 else "0" for tile in op.tiles}
    yield {
        "k": loop.k,
        "load": part_name("load", op.number, printer),
        "inlined": constants.inlined,
        "stages": stages,
        "direct": "" if op.direct is None else constants.loads(op.direct),
        "trips": "" if loop.count else loop.trips,
        "count": loop.count or printer.names.fresh("num_iterations"),
        "variable": loop.variable,
        "drain": "yes" if op.may_leave else "",
    }
    printer.stages = outside


def part_name(wish: str, number: int, printer: Printer) -> str:
    """The name of the lambda that is a part of a loop's iterations: `wish`, numbered for further loops."""
    return wish if number == 1 else printer.names(f"__{wish}_{number}")


def about_overlap(op: PipelinedLoop, k: str, stages: str, printer: Printer) -> str:
    """What overlaps with what."""
    names = ", ".join(map(printer.names.in_comments, op.reads))
    published = f"; in iteration 0 the barrier also publishes {names}" if names else ""
    barrier = "the barrier" if names else "the barrier at their start"
    published += f"; in later iterations {barrier} orders {in_words(op.ended, printer.names)}" if op.ended else ""
    if op.stores and op.stages == 1:
        text = f"Register-staged pipeline: tile {k} + 1 loads into registers while iteration {k} computes on tile {k}"
    elif op.stores:
        text = (
            f"Register-staged pipeline: while iteration {k} computes on tile {k}, tile {k} + 1 is stored to the other "
            f"stage and tile {k} + 2 loads into registers"
        )
    elif op.stages == 1:
        text = f"One stage: iteration {k} loads tile {k} and waits for it; nothing overlaps"
    elif op.direct is None:
        text = (
            f"cp.async pipeline: while iteration {k} computes on tile {k}, the next {stages} - 1 load; one commit "
            "group per tile, empty after the last"
        )
    else:
        text = f"Direct-to-LDS pipeline: while iteration {k} computes on tile {k}, the next {stages} - 1 load"
    # AMD's; LLVM, "User Guide for AMDGPU Backend", memory model gfx942: a release of a workgroup leaves vmcnt out
    waits = "; a barrier waits for lgkmcnt(0), the LDS, and not for loads to registers (vmcnt)" if op.stores else ""
    return f"{text}{published}{waits}  [{op.rule}]"


def release_method(*, waits_for_loads: bool) -> str:
    """The method that releases a stage, for loads of which an arrival does not wait."""
    return "consumer_release_after_loads" if waits_for_loads else "consumer_release"
