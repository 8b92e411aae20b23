"""Copies of tiles: by windows between memories, and between memory and the registers of fragments."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tile2cu.core.expr import static_value
from tile2cu.core.layout import Replicated
from tile2cu.core.program import Buffer, Reduction, Scope
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.plan import copy_ops
from tile2cu.plan.kernel import Kernel
from tile2cu.plan.operands import Operand, TensorTile, Tile
from tile2cu.styles.ck.encodings import Encoding, copy_of_rows, transposing_copy
from tile2cu.styles.ck.expressions import CkPrinter
from tile2cu.styles.ck.fragments import Distribution, Fragments, Temporary, distribution_of, guarded, tile_of
from tile2cu.styles.ck.shared import SharedTiles
from tile2cu.styles.ck.support import unsupported
from tile2cu.styles.ck.tensors import Box, Tensors, window_on
from tile2cu.styles.ck.types import VECTOR, cast_of_tile, converts, in_ck, in_windows


class Through(Record, frozen=True):
    """The registers between a tensor and a shared tile: how they are `loaded`, and `stored`."""

    loaded: Distribution
    stored: Distribution


@dataclass
class Copies:
    """Prints copies."""

    plan: Kernel
    printer: CkPrinter
    fragments: Fragments
    tensors: Tensors
    shared: SharedTiles

    def text(self, op: copy_ops.Copy) -> str:
        """A copy. Errors: T2C-E034 for what no window does."""
        src, dst, span = op.src, op.dst, op.source.span
        scopes = (src.buffer.scope, dst.buffer.scope)
        if any(isinstance(each, Tile) and each.transposed for each in (src, dst)):
            raise unsupported("a copy that transposes", span)
        if not converts(src.buffer.dtype, dst.buffer.dtype):
            raise unsupported(f"a copy that converts {src.buffer.dtype} to {dst.buffer.dtype}", span)
        if Scope.LOCAL in scopes:
            raise unsupported("a copy of a private array", span)
        if scopes == (Scope.FRAGMENT, Scope.FRAGMENT):
            return self._between_fragments(src.buffer, dst.buffer, src, dst, span)
        if Scope.FRAGMENT in scopes:
            fragment, memory = (dst, src) if scopes[1] is Scope.FRAGMENT else (src, dst)
            return self._fragment(fragment, memory, loads=fragment is dst, span=span)
        if scopes == (Scope.GLOBAL, Scope.SHARED):
            assert isinstance(src, TensorTile)
            return "\n".join(self._to_shared(src, dst, span))
        if scopes == (Scope.SHARED, Scope.GLOBAL):
            assert isinstance(dst, TensorTile)
            return "\n".join(self._from_shared(src, dst, span))
        raise unsupported("a copy between shared tiles, or between tensors", span)

    def add(self, op: copy_ops.AtomicUpdate) -> str:
        """A fragment, added to a box of a tensor atomically. Errors: T2C-E034."""
        src, dst, span = op.src, op.dst, op.source.span
        if not isinstance(dst, TensorTile) or src.buffer.scope is not Scope.FRAGMENT or not src.region.whole:
            raise unsupported("an atomic update other than of a tensor by a fragment", span)
        if op.kind is not Reduction.SUM or {src.buffer.dtype.name, dst.buffer.dtype.name} != {"float32"}:
            raise unsupported("an atomic update other than a sum of float32", span)
        layout = self.fragments.layout(src.buffer)
        if isinstance(layout, Replicated) or len(dst.along) != src.buffer.rank:
            raise unsupported("an atomic update by what every thread holds, or of a box of another rank", span)
        encoding = self.fragments.of(layout, span).encoding
        if encoding.rs:
            raise unsupported("an atomic update by values that several threads hold", span)
        box = self.tensors.box(dst, src.buffer.shape, encoding, span, atomic=True)
        out, name = self.printer.names.fresh(f"{self.printer.names(dst.buffer.name)}_tile"), src.buffer.name
        window = f"auto {out} = {box.window(self.printer)};"
        return "\n".join((*box.lines, window, f"update_tile({out}, {self.printer.names(name)});"))

    def _between_fragments(self, src: Buffer, dst: Buffer, a: Operand, b: Operand, span: Span) -> str:
        whole = a.region.whole and b.region.whole
        if not whole or self.fragments.layout(src) != self.fragments.layout(dst):
            raise unsupported("a copy between fragments of different layouts, or of a part of one", span)
        names = self.printer.names
        if isinstance(self.fragments.layout(src), Replicated):
            return self._of_each_thread(dst, lambda e: f"{names(src.name)}[{e}]")
        return f"{names(dst.name)} = {self.converted(names(src.name), src, dst)};"

    def _of_each_thread(self, tile: Buffer, value: Callable[[str], str]) -> str:
        """A loop over a fragment that each thread holds; `value` gives element e's."""
        e = self.printer.names.fresh("e")
        if tile.rank != 1:
            raise unsupported(f"a copy of {tile.name}, which every thread holds", tile.span)
        extent = self.printer.index(tile.shape[0])
        head = f"for (int {e} = 0; {e} < {extent}; ++{e})"
        return f"{head} {self.printer.names(tile.name)}[{e}] = {value(e)};"

    def converted(self, text: str, src: Buffer, dst: Buffer) -> str:
        """A tile's value with the element type of another, or of windows on it."""
        given, wanted = self.element(src), self.element(dst)
        return text if given == wanted else cast_of_tile(src.dtype, wanted, text)

    def element(self, buffer: Buffer) -> str:
        """The element type of a tile in registers, or of windows on memory."""
        in_registers = in_ck(buffer.dtype.cpp)
        return in_registers if buffer.scope is Scope.FRAGMENT else in_windows(buffer.dtype) or in_registers

    # ---- fragments and memory -----------------------------------------------------------------------------------

    def _fragment(self, fragment: Operand, memory: Operand, *, loads: bool, span: Span) -> str:
        tile = fragment.buffer
        if not fragment.region.whole:
            raise unsupported("a copy of a part of a fragment", span)
        layout, name = self.fragments.layout(tile), self.printer.names(tile.name)
        if isinstance(layout, Replicated):
            return self._everywhere(tile, memory, loads=loads, span=span)
        distribution = self.fragments.of(layout, span)
        lines, view, lengths, origin = self._memory(memory, tile, distribution, span)
        if loads:
            window = window_on(view, lengths, origin, distribution_of(distribution.name))
            return "\n".join((*lines, f"{name} = {self.converted(f'load_tile({window})', memory.buffer, tile)};"))
        out = self.printer.names.fresh(f"{self.printer.names(memory.buffer.name)}_tile")
        value = self.converted(name, tile, memory.buffer)
        store = guarded(f"store_tile({out}, {value});", distribution.encoding)
        return "\n".join((*lines, f"auto {out} = {window_on(view, lengths, origin)};", store))

    def _memory(
        self, memory: Operand, tile: Buffer, distribution: Distribution, span: Span
    ) -> tuple[tuple[str, ...], str, str, str]:
        """(lines before, view, lengths, origin) of a window on a box of a tensor or a part of a shared tile."""
        if isinstance(memory, TensorTile):
            if len(memory.along) != tile.rank:
                raise unsupported("a copy between a fragment and a box of another rank", span)
            box = self.tensors.box(memory, tile.shape, distribution.encoding, span)
            return box.lines, box.view, box.lengths, box.origin_text(self.printer)
        encoding, other = distribution.encoding, memory.buffer
        self.shared.check_rank(other, span)
        if encoding.shape != tile.static_shape or other.rank != tile.rank:
            raise unsupported("a copy between a shared tile and a fragment with idle places, or of another rank", span)
        starts = ", ".join(self.printer.index(part.start) for part in memory.region.ranges)
        lengths = ", ".join(f"number<{self.printer.index(each)}>{{}}" for each in tile.shape)
        return (), f"{self.printer.tile(other)}.view()", f"make_tuple({lengths})", f"{{{starts}}}"

    def _everywhere(self, tile: Buffer, memory: Operand, *, loads: bool, span: Span) -> str:
        """A fragment that every thread holds: each loads all of it, one stores it."""
        starts = [part.start for part in memory.region.ranges]
        along = memory.along if isinstance(memory, TensorTile) else tuple(range(memory.buffer.rank))
        if len(along) != 1 or tile.rank != 1 or (isinstance(memory, TensorTile) and memory.ends):
            raise unsupported("a copy of several dimensions that every thread holds", span)
        if tile.dtype != memory.buffer.dtype:
            raise unsupported("a copy that converts what every thread holds", span)

        def element(e: str) -> str:
            parts = [self.printer.index(start) for start in starts]
            parts[along[0]] = e if static_value(starts[along[0]]) == 0 else f"{parts[along[0]]} + {e}"
            name = self.printer.tile(memory.buffer)
            if memory.buffer.scope is Scope.GLOBAL:
                name = self.printer.tensor(memory.buffer)
            return f"{name}({', '.join(parts)})"

        if loads:
            return self._of_each_thread(tile, element)
        e, extent = self.printer.names.fresh("e"), self.printer.index(tile.shape[0])
        body = f"{element(e)} = {self.printer.names(tile.name)}[{e}];"
        return f"if (threadIdx.x == 0)\nfor (int {e} = 0; {e} < {extent}; ++{e}) {body}"

    # ---- tensors and shared tiles -------------------------------------------------------------------------------

    def through(self, tile: Buffer, source: Buffer, span: Span) -> Through:
        """The registers between a tensor and a shared tile. Errors: T2C-E034 where the threads do not divide it."""
        self.shared.check_rank(tile, span)
        name, threads = self.printer.names(tile.name), self.plan.launch.threads
        size = max(tile.dtype.bytes, source.dtype.bytes)
        columns, extents = self.shared.by_columns.get(tile.name), tile.static_shape
        if columns is not None:
            found = transposing_copy(extents[0], extents[1], columns.count, columns.run, size, threads)
            if found is not None:
                over = ("k", "n")
                about = (f"{name} as it is loaded:",)
                loaded = self.fragments.named(f"{name}_loaded", found.loaded, about, over, shape=tile.shape)
                about = (f"{name} as it is stored: the same elements, consecutive k first",)
                return Through(
                    loaded, self.fragments.named(f"{name}_stored", found.stored, about, over, shape=tile.shape)
                )
        rows, vector = self._rows(tile, min(self.shared.vector(tile), VECTOR // size), span)
        about = (
            f"copies of {{}} between global memory and LDS: {vector * size} bytes per access, of "
            "global memory where rows are aligned",
        )
        both = self.fragments.named(f"{name}_copy", rows, about, shape=tile.shape, tile=name)
        return Through(both, both)

    def _rows(self, tile: Buffer, vector: int, span: Span) -> tuple[Encoding, int]:
        """A copy of a tile row by row, and its vectors: up to `vector` elements, so that all threads take part."""
        extents, threads = tile.static_shape, self.plan.launch.threads
        found: tuple[Encoding, int] | None = None
        while vector >= 1:
            rows = copy_of_rows(extents, vector, threads)
            if rows is not None and rows.shape == extents:
                found = (rows, vector)
                if not rows.rs:
                    break
            vector //= 2
        if found is None:
            raise unsupported(f"a copy of {tile.name}, whose elements the {threads} threads do not share evenly", span)
        return found

    def source_box(self, src: TensorTile, tile: Buffer, through: Through, span: Span) -> Box:
        """The box of a tensor that becomes a shared tile."""
        if len(src.along) != tile.rank:
            raise unsupported("a copy to a shared tile of another rank", span)
        return self.tensors.box(src, tile.shape, through.loaded.encoding, span)

    def stored(self, tile: Buffer, source: Buffer, through: Through, registers: str) -> Iterator[str]:
        """The lines that store what was loaded."""
        window, value = self.shared.window(tile, through.stored, "store"), registers
        if through.loaded != through.stored:
            value = self.printer.names.fresh(f"{self.printer.names(tile.name)}_by_columns")
            self.fragments.hold(Temporary.TRANSPOSE, through.stored.encoding.registers * source.dtype.bytes)
            yield f"auto {value} = {tile_of(self.element(source), through.stored.name)};"
            yield f"shuffle_tile({value}, {registers});"
        yield guarded(f"store_tile({window}, {self.converted(value, source, tile)});", through.stored.encoding)

    def _to_shared(self, src: TensorTile, dst: Operand, span: Span) -> Iterator[str]:
        tile = dst.buffer
        if not dst.region.whole:
            raise unsupported("a copy to a part of a shared tile", span)
        through = self.through(tile, src.buffer, span)
        box = self.source_box(src, tile, through, span)
        yield from box.lines
        window = self.loading_window(box, through)
        if through.loaded == through.stored:
            yield from self.stored(tile, src.buffer, through, f"load_tile({window})")
            return
        name = self.printer.names.fresh(f"{self.printer.names(tile.name)}_by_rows")
        yield f"const auto {name} = load_tile({window});"
        yield from self.stored(tile, src.buffer, through, name)

    def loading_window(self, box: Box, through: Through) -> str:
        """The window from which a tile is loaded."""
        return box.window(self.printer, distribution_of(through.loaded.name))

    def _from_shared(self, src: Operand, dst: TensorTile, span: Span) -> Iterator[str]:
        tile = src.buffer
        if not src.region.whole or len(dst.along) != tile.rank:
            raise unsupported("a copy from a part of a shared tile, or to another rank", span)
        self.shared.check_rank(tile, span)
        vector = min(self.shared.vector(tile), VECTOR // max(tile.dtype.bytes, dst.buffer.dtype.bytes))
        rows, _ = self._rows(tile, vector, span)
        name = self.printer.names(tile.name)
        about = ("copies of {} from LDS to global memory",)
        distribution = self.fragments.named(f"{name}_copy", rows, about, shape=tile.shape, tile=name)
        box = self.tensors.box(dst, tile.shape, rows, span)
        yield from box.lines
        out = self.printer.names.fresh(f"{self.printer.names(dst.buffer.name)}_tile")
        yield f"auto {out} = {box.window(self.printer)};"
        value = f"load_tile({self.shared.window(tile, distribution, 'copy')})"
        yield guarded(f"store_tile({out}, {self.converted(value, tile, dst.buffer)});", rows)
