"""Tiles that wait in registers on their way to shared memory: their declarations, and the loop around them."""

from dataclasses import dataclass

from tile2cu.core.program import Copy
from tile2cu.core.schedule import Pipeline
from tile2cu.styles.base.comments import BODY_WIDTH, wrapped
from tile2cu.styles.tl.expressions import Printer


@dataclass(frozen=True)
class StagedTile:
    """The registers of a tile that one copy loads: their `name` and declaration, and the bytes of the whole tile."""

    name: str
    declaration: str
    bytes: int


def staged_tile(op: Copy, printer: Printer, line: str = "Staged1D") -> StagedTile:
    """The registers through which a copy's tile goes; what is converted is converted on its way out of them."""
    tile, source = op.dst.buffer, op.src.buffer.dtype
    extents = ", ".join(printer.index(extent) for extent in tile.shape)
    converted = f", {tile.dtype.cpp}" if source != tile.dtype else ""
    kind = line if tile.rank == 1 else "Staged"
    name = printer.names.fresh(f"{printer.names(tile.name)}_next")
    bytes_ = source.bytes
    for extent in tile.static_shape:
        bytes_ *= extent
    return StagedTile(name, f"tl::{kind}<{source.cpp}, {extents}, threads{converted}> {name};", bytes_)


def staged_about(tiles: list[StagedTile], threads: int) -> tuple[str, ...]:
    """What the registers are for, and how many there are."""
    registers = sum(-(-tile.bytes // (4 * threads)) for tile in tiles)
    names = ", ".join(tile.name for tile in tiles)
    text = f"{names}: the next tile on its way from global to shared memory, in {registers} registers of each thread"
    return tuple(wrapped(text, BODY_WIDTH))


def staged_notes(name: str, pipeline: Pipeline, rule: str, read_before: str) -> tuple[str, ...]:
    """What a turn of the loop waits for, and what it starts."""
    publishes = f", and in turn 0 publishes {read_before}" if read_before else ""
    if pipeline.stages == 1:
        text = (
            f"In each turn a barrier ends the reads of tile {name} - 1; each thread moves its part of tile {name} from "
            f"registers to shared memory, and tile {name} + 1, if there is one, starts to load into the registers; a "
            f"second barrier makes all parts of tile {name} visible{publishes}  [{rule}]"
        )
    else:
        text = (
            f"In each turn a barrier makes all parts of tile {name} visible and ends the reads of tile {name} - 1"
            f"{publishes}; each thread then moves its part of tile {name} + 1, if there is one, from registers into "
            f"the slot of tile {name} - 1, and tile {name} + 2 starts to load into the registers  [{rule}]"
        )
    return tuple(wrapped(text, BODY_WIDTH))
