"""Loops whose loads all threads run ahead, by cp.async or through registers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tile2cu.core.program import Copy
from tile2cu.plan.registers import staged_registers
from tile2cu.plan.structure import Block, PipelinedLoop
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.view import StatementView
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.constants import Constants
from tile2cu.styles.tl.expressions import Printer
from tile2cu.styles.tl.loops import FromZero
from tile2cu.styles.tl.operations import Operations

Views = Callable[[Block], tuple[StatementView, ...]]


@dataclass(frozen=True)
class StagedTile:
    """The registers of a tile that one copy loads: their `name` and declaration."""

    name: str
    declaration: str


def pipelined(op: PipelinedLoop, printer: Printer, constants: Constants, views: Views) -> StatementView:
    """The view of a loop by cp.async; `views` gives those of its parts."""
    with _iterations(op, printer, constants) as parts:
        loads = views(op.loads)
        notes = tuple(wrapped(_about(op, parts["k"], parts["stages"], printer), BODY_WIDTH))
        kind = "cp_async_pipeline" if op.stages > 1 else "cp_async_serial"
        return StatementView(kind, parts, body=views(op.body), orelse=loads, notes=notes)


@contextmanager
def _iterations(op: PipelinedLoop, printer: Printer, constants: Constants) -> Iterator[dict[str, str]]:
    """The texts of the loop's iterations, which count from 0; inside, its tiles print with their iteration's stage."""
    loop = FromZero.of(op.var, op.start, op.stop, printer, lambda _: printer.names.fresh("k"))
    stages, outside = constants.stages(op.stages), printer.stages
    printer.stages = outside | {tile.name: f"{loop.k} % {stages}" for tile in op.tiles}
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


def staged_tile(op: Copy, printer: Printer, kind_of_line: str = tl.STAGED_1D) -> StagedTile:
    """The registers through which a copy's tile goes; what is converted is converted on its way out of them."""
    tile, source = op.dst.buffer, op.src.buffer.dtype
    extents = ", ".join(printer.index(extent) for extent in tile.shape)
    converted = f", {tile.dtype.cpp}" if source != tile.dtype else ""
    kind = kind_of_line if tile.rank == 1 else tl.STAGED
    name = printer.names.fresh(f"{printer.names(tile.name)}_next")
    return StagedTile(name, f"{kind}<{source.cpp}, {extents}, threads{converted}> {name};")


def staged(op: PipelinedLoop, operations: Operations, constants: Constants, views: Views) -> StatementView:
    """The view of a loop whose tiles wait in registers."""
    with _iterations(op, operations.printer, constants) as parts:
        return _staged(op, parts, operations, views)


def _staged(op: PipelinedLoop, parts: dict[str, str], operations: Operations, views: Views) -> StatementView:
    printer, registers = operations.printer, operations.copies.registers
    tiles: list[StagedTile] = []
    for store in op.stores:
        assert isinstance(store.source, Copy)
        tiles.append(staged_tile(store.source, printer))
        registers[id(store.source)] = tiles[-1].name
    count = sum(staged_registers(each.source, op.threads) for each in op.stores if isinstance(each.source, Copy))
    about = [f"// {line}" for line in _staged_about(tiles, count)]
    stores = [f"{tl.STORE}({registers[id(each.source)]}, {operations.operands(each.dst)});" for each in op.stores]
    parts |= {"store": part_name("store", op.number, printer), "stores": "\n".join(stores)}
    body = views(op.body)
    return StatementView(
        "register_pipeline" if op.stages > 1 else "register_serial",
        parts,
        body=body,
        orelse=views(op.loads),
        notes=tuple(wrapped(_about(op, parts["k"], parts["stages"], printer), BODY_WIDTH)),
        declared=(*about, *(tile.declaration for tile in tiles)),
    )


def _about(op: PipelinedLoop, k: str, stages: str, printer: Printer) -> str:
    """What overlaps with what."""
    names = ", ".join(map(printer.names, op.reads))
    published = f"; in iteration 0 the barrier also publishes {names}" if names else ""
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
    return f"{text}{published}  [{op.rule}]"


def _staged_about(tiles: list[StagedTile], registers: int) -> tuple[str, ...]:
    """What the registers are for, and how many there are."""
    names = ", ".join(tile.name for tile in tiles)
    text = (
        f"{names}: the next tile, between its global loads and its shared stores, in {registers} registers per thread"
    )
    return tuple(wrapped(text, BODY_WIDTH))
