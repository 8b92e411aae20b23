"""Tensor maps: the functions that make them, and the copies that go through them."""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from tile2cu.core.expr import Const, Expr, Named, Var, static_value, walk
from tile2cu.core.layout import SharedLayout, WgmmaAccumulator
from tile2cu.core.program import Buffer, Region
from tile2cu.core.span import Span
from tile2cu.plan import copy_ops, ops
from tile2cu.plan.kernel import Kernel
from tile2cu.styles.base.comments import rule_line
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.shared import struct_of
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.view import NO_SECTION, Declaration, Section
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.copies import Copies
from tile2cu.styles.cute.expressions import CutePrinter
from tile2cu.styles.cute.fragments import Fragments
from tile2cu.styles.cute.layouts import static, swizzled_atom
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import SUPPORTED, in_cute

ByTma = copy_ops.TmaLoad | copy_ops.TmaCopy | copy_ops.TmaStore | copy_ops.TmaReduceAdd
_BOX_ROWS = 16  # of a warp: what one lane stores
_OPERATIONS = {
    copy_ops.TmaLoad: "SM90_TMA_LOAD",
    copy_ops.TmaCopy: "SM90_TMA_LOAD",
    copy_ops.TmaStore: "SM90_TMA_STORE",
    copy_ops.TmaReduceAdd: "SM90_TMA_REDUCE_ADD",
}


def parameter(view: TensorMap) -> str:
    """A map as a kernel's parameter."""
    return f"const __grid_constant__ {view.name}_type {view.name}"


def argument(view: TensorMap, printer: Printer) -> str:
    """The launcher's call of the function that makes it."""
    given = [printer.names(view.tensor.memory.name), *(printer.names(var.name) for var in _sizes(view.tensor))]
    return f"make_{view.name}({', '.join(given)})"


@dataclass
class Maps:
    """The maps of a kernel, by the id of the statement."""

    plan: Kernel
    printer: CutePrinter
    fragments: Fragments
    copies: Copies
    maps: Mapping[int, TensorMap]

    # ---- copies -------------------------------------------------------------------------------------------------

    def text(self, op: ByTma) -> str:
        """A copy through a map. Errors: T2C-E034."""
        view, span = self.maps[id(op.source)], op.source.span
        self._check(view, op, span)
        match op:
            case copy_ops.TmaLoad():
                if op.multicast:
                    raise unsupported("a TMA load that is multicast", span)
                return f"{words.TMA_LOAD}({self._loaded(op, view, self._arrival(op))});"
            case copy_ops.TmaCopy():
                return self._copy(op, view)
            case copy_ops.TmaStore() | copy_ops.TmaReduceAdd():
                return self._store(op, view)

    def load_slab(self, op: copy_ops.TmaLoad, full: str, slab: str) -> str:
        """The load of one slab of a tile, which completes on the barrier `full`."""
        view = self.maps[id(op.source)]
        self._check(view, op, op.source.span)
        return f"{words.TMA_LOAD_SLAB}({self._loaded(op, view, full)}, {slab});"

    def _loaded(self, op: copy_ops.TmaLoad, view: TensorMap, full: str) -> str:
        name, stage = self.printer.names(op.dst.name), self.printer.stages.get(op.dst.name)
        tile = f"{name}({', '.join(['_'] * op.dst.rank)}, {stage})" if stage else name
        return f"{view.name}, {full}, {self._coordinate(view, op.src)}, {tile}"

    def _copy(self, op: copy_ops.TmaCopy, view: TensorMap) -> str:
        """The user's own load, whose bytes arrive at a barrier of his; perhaps for several blocks of a cluster."""
        span = op.source.span
        if op.awaited:
            raise unsupported("a TMA load for other blocks that all of them wait for", span)
        tile = self.copies.plane(op.dst, span) if op.dst.buffer.rank == 3 else self.copies.tile(op.dst.buffer)
        if op.dst.buffer.rank == 2 and not op.dst.region.whole:
            raise unsupported("a TMA load of a part of a shared tile", span)
        given = [view.name, self.printer.text(op.barrier), self._coordinate(view, op.src), tile]
        name = f"{words.TMA_COPY_MULTICAST}<{bin(op.blocks)}>" if op.blocks else words.TMA_COPY
        return f"{name}({', '.join(given)});"

    def _store(self, op: copy_ops.TmaStore | copy_ops.TmaReduceAdd, view: TensorMap) -> str:
        outstanding = isinstance(op, copy_ops.TmaReduceAdd) or op.outstanding
        name = words.TMA_STORE_START if outstanding else words.TMA_STORE
        name = f"{words.TMA_STORE_TRANSPOSED}<threads>" if _is_transposed(op) else name
        tiled = self.fragments.tiled(op.src, op.source.span)
        given = [f"{tiled}{{}}", self.printer.names(op.src.name), self.printer.names(op.staging), view.name]
        return f"{name}({', '.join((*given, self._coordinate(view, op.dst)))});"

    def _coordinate(self, view: TensorMap, region: Region) -> str:
        starts = [self.printer.coordinate(part.start) for part in region.ranges]
        return f"make_coord({', '.join(starts[dim] for dim in _modes(view))})"

    def _arrival(self, op: copy_ops.TmaLoad) -> str:
        """The barrier at which a load arrives."""
        if op.own_ring:
            return self.fragments.counter(f"{self.printer.names(op.dst.name)}_full")
        return "prologue_full" if op.prologue else "full"

    def _check(self, view: TensorMap, op: ByTma, span: Span) -> None:
        tensor = view.tensor
        if tensor.dtype.name not in SUPPORTED:
            raise unsupported(f"a tensor map of {tensor.name}", span)
        if len(view.dims) != 2 or view.dims[1] != tensor.rank - 1:
            raise unsupported(f"a tensor map of {tensor.name} whose boxes are no rows", span)
        if tensor.strides is not None and static_value(tensor.strides[-1]) != 1:
            raise unsupported(f"the strides of {tensor.name}", span)
        match op:
            case copy_ops.TmaLoad():
                fits = op.dst.rank == 2 and op.dst.dtype == tensor.dtype
            case copy_ops.TmaCopy():
                fits = op.dst.buffer.rank in (2, 3) and op.dst.buffer.dtype == tensor.dtype
            case copy_ops.TmaStore():
                fits = self._is_staged(op.src, op.staging, transposed=op.transposed)
                fits &= not (op.transposed and (op.outstanding or tensor.dtype.bytes != 2))
            case copy_ops.TmaReduceAdd():
                fits = self._is_staged(op.src, op.staging)
        if not fits:
            raise unsupported(f"the copy of a tile of {tensor.name} by TMA", span)

    def _is_staged(self, tile: Buffer, name: str, *, transposed: bool = False) -> bool:
        """Whether an accumulator of wgmma, of which no two warpgroups hold the same part, is staged as a whole."""
        (staging,) = (each for each in self.plan.staging if each.name == name)
        shape = tile.static_shape[::-1] if transposed else tile.static_shape
        layout = self.fragments.layout(tile)
        return staging.layout.extents == shape and isinstance(layout, WgmmaAccumulator) and layout.copies == 1

    # ---- functions ----------------------------------------------------------------------------------------------

    def section(self, used: tuple[ops.Op, ...]) -> Section:
        """The functions that make the maps of the operations, and the maps' types."""
        by_name: dict[str, Declaration] = {}
        for op in used:
            if isinstance(op, ByTma):
                view = self.maps[id(op.source)]
                by_name.setdefault(view.name, self._function(view, op))
        if not by_name:
            return NO_SECTION
        title = "tensor maps: the first modes are the dimensions of a box"
        return Section(rule_line(title), tuple(by_name.values()))

    def _function(self, view: TensorMap, op: ByTma) -> Declaration:
        tensor, plain = view.tensor, replace(self.printer, derived={})  # the launcher has no derived sizes
        name, sizes = plain.names(tensor.memory.name), _sizes(tensor)
        const = "const " if isinstance(op, copy_ops.TmaLoad | copy_ops.TmaCopy) else ""
        multicast = "_MULTICAST" if isinstance(op, copy_ops.TmaCopy) and op.blocks else ""
        element = in_cute(tensor.dtype.cpp)
        extents, strides = [plain.index(extent) for extent in tensor.shape], _strides(tensor, plain)
        modes = _modes(view)
        shape, stride = (", ".join(each[dim] for dim in modes) for each in (extents, strides))
        params = ", ".join([f"{const}void* {name}", *(f"int {plain.names(var.name)}" for var in sizes)])
        none = ", ".join(["nullptr", *["0"] * len(sizes)])
        lines = (
            f"inline auto make_{view.name}({params}) {{",
            f"  const auto data = make_gmem_ptr(static_cast<{const}{element}*>({name}));",
            f"  const Tensor tensor = make_tensor(data, make_shape({shape}), make_stride({stride}));",
            f"  return {words.MAKE_TMA_MAP}({_OPERATIONS[type(op)]}{multicast}{{}}, tensor, {self._box(op)});",
            "}",
            f"using {view.name}_type = decltype(make_{view.name}({none}))::Map;",
        )
        return Declaration("\n".join(lines))

    def _box(self, op: ByTma) -> str:
        """The layout in shared memory of what one instruction, or a lane, moves."""
        if isinstance(op, copy_ops.TmaLoad | copy_ops.TmaCopy):
            tile = op.dst if isinstance(op, copy_ops.TmaLoad) else op.dst.buffer
            place = struct_of(tile.name, self.plan.overlay, self.printer.names)
            layout = f"{place}::{self.fragments.own(self.printer.names(tile.name), 'layout')}{{}}"
            return f"take<0, 2>({layout})" if self.printer.stages.get(tile.name) or tile.rank == 3 else layout
        (staging,) = (each for each in self.plan.staging if each.name == op.staging)
        if _is_transposed(op):
            place = struct_of(staging.name, self.plan.overlay, self.printer.names)
            return f"{place}::{self.fragments.own(self.printer.names(staging.name), 'layout')}{{}}"
        columns = staging.layout.extents[1] // self.fragments.warpgroups_along_n(self.fragments.layout(op.src))
        return staging_box(staging.layout, in_cute(staging.dtype.cpp), columns)


def staging_box(layout: SharedLayout, element: str, columns: int) -> str:
    """The layout of a warp's rows in a staging tile."""
    shape = f"Shape<{static(_BOX_ROWS)}, {static(columns)}>{{}}"
    return f"tile_to_shape({swizzled_atom(layout, element)}, {shape})"


def _is_transposed(op: ByTma) -> bool:
    """Whether a store takes columns of the accumulator as rows."""
    return isinstance(op, copy_ops.TmaStore) and op.transposed


def _modes(view: TensorMap) -> tuple[int, ...]:
    """The tensor's dimensions in the order of a map's modes: those of its boxes, then the others, innermost first."""
    others = (dim for dim in reversed(range(view.tensor.rank)) if dim not in view.dims)
    return (*view.dims, *others)


def _strides(tensor: Buffer, printer: Printer) -> list[str]:
    """As 64-bit integers, but for the last dimension."""
    if tensor.strides is not None:
        return [*(f"int64_t({printer.index(each)})" for each in tensor.strides[:-1]), "_1{}"]
    return [*(row_major(tensor.shape[dim + 1 :], printer) for dim in range(tensor.rank - 1)), "_1{}"]


def row_major(inner: tuple[Expr, ...], printer: Printer) -> str:
    """The stride of a dimension in front of others."""
    first, *more = inner
    texts = ((printer.index(each), isinstance(each, Const | Named | Var)) for each in more)
    factors = (text if is_name else f"({text})" for text, is_name in texts)
    return " * ".join([f"int64_t({printer.index(first)})", *factors])


def _sizes(tensor: Buffer) -> tuple[Var, ...]:
    """The run-time sizes that a tensor's extents and strides depend on, in order."""
    exprs = (*tensor.shape, *(tensor.strides or ()))
    return tuple(dict.fromkeys(part for expr in exprs for part in walk(expr) if isinstance(part, Var)))
