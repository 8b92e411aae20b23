"""Loops whose tiles wait in registers between their loads and their stores to LDS."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from tile2cu.core.expr import Expr, substitute
from tile2cu.core.program import Buffer, Copy
from tile2cu.core.record import Record
from tile2cu.plan import copy_ops
from tile2cu.plan.operands import TensorTile
from tile2cu.plan.structure import PipelinedLoop
from tile2cu.styles.base.comments import BODY_WIDTH, listed, wrapped
from tile2cu.styles.base.constants import Constants
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.pipelined import Views, about_overlap, numbered_iterations, part_name
from tile2cu.styles.base.view import StatementView
from tile2cu.styles.ck.copies import Copies, Through
from tile2cu.styles.ck.fragments import tile_of
from tile2cu.styles.ck.support import unsupported
from tile2cu.styles.ck.tensors import Box, steps_of


class Staged(Record, frozen=True, kw_only=True):
    """A tile between its load and its store: its registers, and its window, which begins at `first`.

    It moves by `steps` per iteration; without steps it is a new one in each iteration.
    """

    registers: str
    window: str
    first: tuple[Expr, ...]
    steps: tuple[int, ...] | None
    through: Through
    box: Box
    tile: Buffer


@dataclass
class Pipelines:
    """Prints register-staged loops. `staged` are the tiles of the copies that they are printing, by the copy's id.

    One of them has up to `prefetched` registers for its next tiles.
    """

    copies: Copies
    constants: Constants
    staged: dict[int, Staged] = field(default_factory=dict)
    prefetched: int = 0

    def view(self, op: PipelinedLoop, views: Views) -> StatementView:
        """The view of the loop; `views` gives those of its parts."""
        printer = self.copies.printer
        with numbered_iterations(op, printer, self.constants) as parts:
            tiles = [self._staged(store, op, printer) for store in op.stores]
            loads = [each.op for paragraph in op.loads for each in paragraph.statements]
            moves = all(each.steps is not None for each in tiles)  # all windows do in an iteration, or none
            moves = moves and all(isinstance(each, copy_ops.LoadRegisters) for each in loads)
            tiles = tiles if moves else [replace(each, steps=None) for each in tiles]
            self.staged |= {id(store.source): each for store, each in zip(op.stores, tiles, strict=True)}
            declared = [line for each in tiles for line in self._declared(each)]
            names = ", ".join(each.registers for each in tiles)
            held = (each.through.loaded.encoding.registers * each.box.tensor.dtype.bytes for each in tiles)
            count = sum(-(-size // 4) for size in held)
            self.prefetched = max(self.prefetched, count)
            about = f"{names}: the tile in flight from global memory to LDS, in {count} VGPRs per thread"
            about += f". {self._about_loads(tiles)}" if tiles else ""
            if moves:
                parts["load"] = part_name("load_next", op.number, printer)
            parts["moves"] = "\n".join(self._move(each) for each in tiles) if moves else ""
            stores = [line for each in op.stores for line in self._stores(each)]
            parts |= {"store": part_name("store", op.number, printer), "stores": "\n".join(stores)}
            return StatementView(
                "ck_register_pipeline" if op.stages > 1 else "ck_register_serial",
                parts,
                body=views(op.body),
                orelse=views(op.loads),
                notes=tuple(wrapped(about_overlap(op, parts["k"], parts["stages"], printer), BODY_WIDTH)),
                declared=(*(f"// {line}" for line in wrapped(about, BODY_WIDTH)), *declared),
            )

    def _about_loads(self, tiles: list[Staged]) -> str:
        """How wide the loads of an iteration are, and how many are outstanding behind the last barrier."""
        found = []
        for each in tiles:
            encoding, size = each.through.loaded.encoding, each.box.tensor.dtype.bytes
            dim, at = encoding.ys[-1]
            run = min(encoding.hs[dim - 1][at], each.box.vector) if dim == len(encoding.hs) else 1
            found.append((each.registers, encoding.registers // run, run * size))
        widths = ", ".join(
            f"{count} load{'s' * (count > 1)} of {width} byte{'s' * (width > 1)} to {name}"
            for name, count, width in found
        )
        by_instance = [each for each in tiles if each.box.by_instance]
        outstanding = sum(count for _, count, _ in found)
        total = f"{outstanding} vector-memory load{'s' * (outstanding > 1)} in flight per wave"
        single = (
            "; with AnyAlignment, where a tensor's rows are not multiples of 16 bytes, "
            f"{sum(each.through.loaded.encoding.registers for each in by_instance)} of single elements"
        )
        if len(by_instance) < len(tiles):
            single += f" to {listed([each.registers for each in by_instance])}"
        return f"A lane issues {widths}, {total}{single if by_instance else ''}"

    def _staged(self, store: copy_ops.StoreRegisters, op: PipelinedLoop, printer: Printer) -> Staged:
        """A tile of the loop. Errors: T2C-E034 for what is no whole tile of a tensor."""
        copy, span = store.source, store.source.span
        assert isinstance(copy, Copy)
        tile, source = copy.dst.buffer, copy.src.buffer
        load = next(
            each.op
            for paragraph in op.loads
            for each in paragraph.statements
            if isinstance(each.op, copy_ops.LoadRegisters) and each.op.source is copy
        )
        src = load.src
        if not isinstance(src, TensorTile) or not copy.dst.whole:
            raise unsupported("a pipeline that loads other than whole tiles of tensors", span)
        through = self.copies.through(tile, source, span)
        box = self.copies.source_box(src, tile, through, span)
        name = printer.names(tile.name)
        registers, window = printer.names.fresh(f"{name}_next"), printer.names.fresh(f"{name}_source")
        bounds = self.copies.printer.bounds
        steps = None if box.lines else steps_of(box.origin, op.var, bounds)
        first = tuple(substitute(bounds.expanded(start), {op.var: op.start}) for start in box.origin)
        return Staged(registers=registers, window=window, first=first, steps=steps, through=through, box=box, tile=tile)

    def _declared(self, staged: Staged) -> Iterator[str]:
        """The registers of a tile, and the window from which it is loaded, where that moves."""
        box, through = staged.box, staged.through
        yield f"auto {staged.registers} = {tile_of(self.copies.element(box.tensor), through.loaded.name)};"
        if staged.steps is not None:
            first = self.copies.loading_window(replace(box, origin=staged.first), through)
            yield f"auto {staged.window} = {first};"

    def load(self, op: copy_ops.LoadRegisters) -> str:
        """The first half of a copy."""
        staged = self.staged[id(op.source)]
        if staged.steps is None:
            window = self.copies.loading_window(staged.box, staged.through)
            return "\n".join((*staged.box.lines, f"{staged.registers} = load_tile({window});"))
        return f"{staged.registers} = load_tile({staged.window});"

    def _move(self, staged: Staged) -> str:
        """The window's move to the tile of the next iteration."""
        assert staged.steps is not None
        extents = dict(zip(staged.tile.static_shape, staged.tile.shape, strict=True))
        steps = (self.copies.printer.index(extents[step]) if step in extents else str(step) for step in staged.steps)
        return f"move_tile_window({staged.window}, {{{', '.join(steps)}}});"

    def _stores(self, op: copy_ops.StoreRegisters) -> list[str]:
        """The second half."""
        staged, copy = self.staged[id(op.source)], op.source
        assert isinstance(copy, Copy)
        return list(self.copies.stored(staged.tile, copy.src.buffer, staged.through, staged.registers))
