"""Loops whose loads all threads run ahead through registers."""

from tile2cu.core.program import Copy
from tile2cu.core.record import Record
from tile2cu.plan.buffer_loads import BufferLoads
from tile2cu.plan.registers import staged_loads, staged_registers
from tile2cu.plan.structure import PipelinedLoop
from tile2cu.styles.base.comments import BODY_WIDTH, listed, wrapped
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.pipelined import Views, about_overlap, numbered_iterations, part_name
from tile2cu.styles.base.view import StatementView
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.operations import Operations


class StagedTile(Record, frozen=True):
    """The registers of a tile that one copy loads: their `name` and declaration."""

    name: str
    declaration: str


def staged_tile(op: Copy, printer: Printer, rows: int = 1, kind_of_line: str = tl.STAGED_1D) -> StagedTile:
    """The registers through which a copy's tile goes; values are converted when they leave them.

    `rows` neighbouring ones are one thread's.
    """
    tile, source = op.dst.buffer, op.src.buffer.dtype
    extents = ", ".join(printer.index(extent) for extent in tile.shape)
    converted = f", {tile.dtype.cpp}" if source != tile.dtype else ""
    kind = kind_of_line if tile.rank == 1 else tl.STAGED
    name = printer.names.fresh(f"{printer.names(tile.name)}_next")
    if rows > 1:
        return StagedTile(name, f"{tl.STAGED_ROWS}<{source.cpp}, {extents}, threads, {rows}> {name};")
    return StagedTile(name, f"{kind}<{source.cpp}, {extents}, threads{converted}> {name};")


def staged(op: PipelinedLoop, operations: Operations, constants: Constants, views: Views) -> StatementView:
    """The view of a loop whose tiles wait in registers."""
    with numbered_iterations(op, operations.printer, constants) as parts:
        return _staged(op, parts, operations, views)


def _staged(op: PipelinedLoop, parts: dict[str, str], operations: Operations, views: Views) -> StatementView:
    printer, registers = operations.printer, operations.copies.registers
    tiles: list[StagedTile] = []
    for store in op.stores:
        assert isinstance(store.source, Copy)
        tiles.append(staged_tile(store.source, printer, store.rows))
        registers[id(store.source)] = tiles[-1].name
    copies = [(each.source, op.threads, each.rows) for each in op.stores if isinstance(each.source, Copy)]
    count, loads = sum(staged_registers(*each) for each in copies), [staged_loads(*each) for each in copies]
    aligned = all(each.aligned for each in op.stores)
    buffers = [each.buffer for each in op.stores]
    about = [f"// {line}" for line in _staged_about(tiles, loads, buffers, count, aligned=aligned)]
    stores = [f"{tl.STORE}({registers[id(each.source)]}, {operations.operands(each.dst)});" for each in op.stores]
    parts |= {"store": part_name("store", op.number, printer), "stores": "\n".join(stores)}
    body = views(op.body)
    return StatementView(
        "register_pipeline" if op.stages > 1 else "register_serial",
        parts,
        body=body,
        orelse=views(op.loads),
        notes=tuple(wrapped(about_overlap(op, parts["k"], parts["stages"], printer), BODY_WIDTH)),
        declared=(*about, *(tile.declaration for tile in tiles)),
    )


def _staged_about(
    tiles: list[StagedTile],
    loads: list[tuple[int, int]],
    buffers: list[BufferLoads],
    registers: int,
    *,
    aligned: bool,
) -> tuple[str, ...]:
    """What the registers are for, how many there are, and how tl::load fills them; `loads` are (number, bytes)."""
    names = ", ".join(tile.name for tile in tiles)
    total = sum(count for count, _ in loads)
    issued = " + ".join(f"{count} x {width} bytes" for count, width in loads)
    always, span = all(each.always for each in buffers), f"{max(each.span for each in buffers):,}"
    call = listed(sorted({tl.LOAD_BUFFER if each.always else tl.LOAD for each in buffers}))
    where = "" if aligned else " where rows are 16-byte aligned; else unaligned rows are loaded by elements"
    if any(width < 4 for _, width in loads):  # no buffer load has fewer bytes
        text = f"{names}: the tile in flight from global memory to LDS, in {registers} VGPRs per thread"
        return tuple(wrapped(text, BODY_WIDTH))
    text = (
        f"{names}: the tile in flight from global memory to LDS, in {registers} VGPRs per thread. {call} "
        f"issues {issued} per lane, {total} vector-memory loads in flight per wave{where}. "
        + ("They are buffer loads" if aligned else "The wide ones are buffer loads")
        + ("" if always else " where a tile starts in the tensor and 32-bit offsets reach it (tested), else predicated")
        + f". Byte offsets in a tile have 32 bits: they are less than {span} for all sizes that are accepted" * always
        + ". "
    )
    rows, columns = (any(getattr(each, kind) for each in buffers) for kind in ("clips_rows", "clips_columns"))
    if rows:
        text += "A buffer spans the rows of its tile that the tensor has: past them loads give zeros"
    if columns:
        text += "; a lane" if rows else "A lane"
        text += " past the last column takes an offset past the buffer's end" + ("" if rows else ": zeros")
    return tuple(wrapped(text.rstrip(". "), BODY_WIDTH))
