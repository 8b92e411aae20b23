"""Operands as arguments of headers/tl's functions."""

from tile2cu.core.expr import static_value
from tile2cu.core.program import Region, Scope
from tile2cu.core.record import Record
from tile2cu.plan.operands import Operand, TensorTile, Threads, Tile
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.tl import vocabulary as tl


class Operands(Record, frozen=True):
    """Prints operands."""

    printer: Printer

    def __call__(self, operand: Operand) -> str:
        return self.tile(operand) if isinstance(operand, Tile) else self.tensor_tile(operand)

    def tile(self, tile: Tile) -> str:
        """A tile: all of it, or rows and columns of a shared one."""
        text = self._part(tile) if tile.buffer.scope is Scope.SHARED else self.printer.tile(tile.buffer)
        return f"{tl.TRANSPOSED}({text})" if tile.transposed else text

    def _part(self, tile: Tile) -> str:
        region, buffer = tile.region, tile.buffer
        text = self.printer.plane(buffer, tuple(part.start for part in region.ranges[:-2]))
        names = ("rows",) if buffer.rank == 1 else ("rows", "cols")
        known = f", {tl.ALIGNED}<{tile.alignment}>" if tile.alignment else ""
        parts = list(zip(names, region.ranges[-2:], buffer.shape[-2:], strict=True))
        for name, part, extent in reversed(parts):
            if static_value(part.extent) != static_value(extent):
                count = self.printer.index(part.extent)
                text = f"{tl.SUB_TILE[name]}<{count}{known}>({text}, {self.printer.index(part.start)})"
        return text

    def tensor_tile(self, tile: TensorTile) -> str:
        """A box of a tensor."""
        starts = [self.printer.index(part.start) for part in tile.region.ranges]
        view = self.printer.names(tile.buffer.name)
        for dim, end in enumerate(tile.ends):
            view = f"{tl.UP_TO}<{dim}>({view}, {self.printer.index(end)})" if end is not None else view
        if len(tile.along) < len(starts):
            inside = [tl.ALL if dim in tile.along else start for dim, start in enumerate(starts)]
            view = f"{view}({', '.join(inside)})"
        return f"{view}.tile({', '.join(starts[dim] for dim in tile.along)})"

    def coordinates(self, region: Region) -> str:
        """Where a box of a tensor starts, for TMA: of all dimensions, outermost first."""
        return f"{tl.AT}({', '.join(self.printer.index(part.start) for part in region.ranges)})"

    def threads(self, threads: Threads | None) -> str:
        """How many threads share an operation; empty where a layout distributes it."""
        if threads is None:
            return ""
        return "threads" if threads.group is None else f"threads[{threads.group}]"
