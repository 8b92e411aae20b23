"""Loops whose loads all threads run ahead, by cp.async or through registers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tile2cu.core.expr import binary, static_value
from tile2cu.core.program import Copy
from tile2cu.plan.structure import Block, PipelinedLoop
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.base.view import StatementView
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.constants import Constants
from tile2cu.styles.tl.expressions import Printer
from tile2cu.styles.tl.operations import Operations

Views = Callable[[Block], tuple[StatementView, ...]]


@dataclass(frozen=True)
class StagedTile:
    """The registers of a tile that one copy loads: their `name` and declaration, and the bytes of the whole tile."""

    name: str
    declaration: str
    bytes: int


def pipelined(op: PipelinedLoop, operations: Operations, constants: Constants, views: Views) -> StatementView:
    """The view of the loop; `views` gives those of its parts."""
    with _iterations(op, operations.printer, constants) as parts:
        if op.stores:
            return _staged(op, parts, operations, views)
        notes = _notes(op, parts["turn"], operations.printer)
        loads = views(op.loads)
        return StatementView("pipeline", parts, body=views(op.body), orelse=loads, notes=notes)


@contextmanager
def _iterations(op: PipelinedLoop, printer: Printer, constants: Constants) -> Iterator[dict[str, str]]:
    """The texts of the loop's iterations, which count from 0; inside, its tiles print with their iteration's stage."""
    name, from_zero = printer.names(op.var.name), static_value(op.start) == 0
    turn, stages = name if from_zero else f"{name}_turn", constants.stages(op.stages)
    trips = printer.text(op.stop if from_zero else binary("-", op.stop, op.start))
    outside = dict(printer.slots)
    printer.slots |= {tile.name: f"{turn} % {stages}" for tile in op.tiles}
    yield {
        "turn": turn,
        "load": part_name("load", op.number, printer),
        "stages": stages,
        "direct": "" if op.direct is None else f", {constants.loads(op.direct)}",
        "trips": trips,
        "variable": "" if from_zero else f"const int {name} = {printer.text(op.start)} + {turn};",
    }
    printer.slots = outside


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
    bytes_ = source.bytes
    for extent in tile.static_shape:
        bytes_ *= extent
    return StagedTile(name, f"{kind}<{source.cpp}, {extents}, threads{converted}> {name};", bytes_)


def _staged(op: PipelinedLoop, parts: dict[str, str], operations: Operations, views: Views) -> StatementView:
    """A loop whose tiles wait in registers."""
    printer, registers = operations.printer, operations.copies.registers
    tiles: list[StagedTile] = []
    for store in op.stores:
        assert isinstance(store.source, Copy)
        tiles.append(staged_tile(store.source, printer))
        registers[id(store.source)] = tiles[-1].name
    about = [f"// {line}" for line in _staged_about(tiles, op.threads)]
    stores = [f"{tl.STORE}({registers[id(each.source)]}, {operations.operands(each.dst)});" for each in op.stores]
    parts |= {"store": part_name("store", op.number, printer), "stores": "\n".join(stores)}
    body = views(op.body)
    return StatementView(
        "staged",
        parts,
        body=body,
        orelse=views(op.loads),
        notes=_staged_notes(op, parts["turn"], printer),
        declared=(*about, *(tile.declaration for tile in tiles)),
    )


def _notes(op: PipelinedLoop, name: str, printer: Printer) -> tuple[str, ...]:
    """What an iteration waits for, and what it starts."""
    ahead = op.stages - 1
    if ahead == 0:
        text = f"Each turn loads tile {name}, waits for it, and meets a barrier before and after  [{op.rule}]"
        return tuple(wrapped(text, BODY_WIDTH))
    text = (
        f"In each turn a thread waits for its own copies of tile {name}; a barrier then makes all of them visible and "
        f"ends the reads of tile {name} - 1{_published(op, printer)}; then tile {name} + {ahead}, if there is one, "
        f"starts to load into the slot of tile {name} - 1  [{op.rule}]"
    )
    return tuple(wrapped(text, BODY_WIDTH))


def _published(op: PipelinedLoop, printer: Printer) -> str:
    names = ", ".join(map(printer.names, op.reads))
    return f", and in turn 0 publishes {names}" if names else ""


def _staged_about(tiles: list[StagedTile], threads: int) -> tuple[str, ...]:
    """What the registers are for, and how many there are."""
    registers = sum(-(-tile.bytes // (4 * threads)) for tile in tiles)
    names = ", ".join(tile.name for tile in tiles)
    text = f"{names}: the next tile on its way from global to shared memory, in {registers} registers of each thread"
    return tuple(wrapped(text, BODY_WIDTH))


def _staged_notes(op: PipelinedLoop, name: str, printer: Printer) -> tuple[str, ...]:
    """The same where tiles wait in registers."""
    publishes = _published(op, printer)
    if op.stages == 1:
        text = (
            f"In each turn a barrier ends the reads of tile {name} - 1; each thread moves its part of tile {name} from "
            f"registers to shared memory, and tile {name} + 1, if there is one, starts to load into the registers; a "
            f"second barrier makes all parts of tile {name} visible{publishes}  [{op.rule}]"
        )
    else:
        text = (
            f"In each turn a barrier makes all parts of tile {name} visible and ends the reads of tile {name} - 1"
            f"{publishes}; each thread then moves its part of tile {name} + 1, if there is one, from registers into "
            f"the slot of tile {name} - 1, and tile {name} + 2 starts to load into the registers  [{op.rule}]"
        )
    return tuple(wrapped(text, BODY_WIDTH))
