"""Names, C++ types and descriptions of the layouts of fragments and loops."""

from dataclasses import dataclass, field

from tile2cu.core.decisions import LAYOUT
from tile2cu.core.expr import Expr
from tile2cu.core.layout import (
    SLICES,
    Blocked,
    FragmentLayout,
    MmaAccumulator,
    MmaOperandA,
    MmaOperandB,
    Replicated,
    Slice,
    SplitColumns,
    WgmmaAccumulator,
    slice_of,
)
from tile2cu.core.mfma_layout import MfmaAccumulator, MfmaOperandA
from tile2cu.core.program import Buffer, Gemm, Parallel, Scope, walk_stmts
from tile2cu.plan.producer import ping_pong_of
from tile2cu.plan.settled import Settled
from tile2cu.styles.base.comments import rule_line, wrapped
from tile2cu.styles.base.view import Declaration, Section
from tile2cu.styles.tl.expressions import Printer


@dataclass(frozen=True)
class _Alias:
    """A name for a layout, as tiles of one shape have it. Extents are spelled as the user does."""

    name: str
    layout: FragmentLayout
    extents: tuple[str, ...]
    reason: str
    loop: str = ""  # over what, where it is no tile's
    users: list[Buffer] = field(default_factory=list)


class Layouts:
    """Names for the layouts of fragments and loops, in order of first use.

    Tiles whose extents have other names have a name of their own for the same layout: numbers may meet by chance.
    """

    def __init__(self, settled: Settled, printer: Printer) -> None:
        self.settled = settled
        self.printer = printer
        self.aliases: list[_Alias] = []
        for tile in settled.launch.tiles:
            if tile.scope is Scope.FRAGMENT and (layout := settled.facts.get(tile, LAYOUT)) is not None:
                extents = self._spelled(tile.shape)
                alias = self._find(layout, extents) or self._add(
                    layout, extents, tile.name, settled.facts.rule(tile, LAYOUT)
                )
                alias.users.append(tile)
        for op in walk_stmts(settled.launch.body):
            if isinstance(op, Parallel) and self._of(settled.facts[op, LAYOUT]) is None:
                layout, name = settled.facts[op, LAYOUT], "".join(var.name for var in op.vars)
                over = ", ".join(var.name for var in op.vars)
                self._add(layout, self._spelled(op.extents), name, settled.facts.rule(op, LAYOUT), over)

    def of_tile(self, tile: Buffer) -> str:
        """The name of a fragment's layout."""
        return next(alias.name for alias in self.aliases if any(user is tile for user in alias.users))

    def of_extents(self, layout: FragmentLayout, extents: tuple[Expr, ...]) -> str:
        """The name of a loop's layout: that of tiles of its shape, if there are such."""
        alias = self._find(layout, self._spelled(extents)) or self._of(layout)
        assert alias is not None, "every loop's layout has a name"
        return alias.name

    def _add(self, layout: FragmentLayout, extents: tuple[str, ...], wish: str, reason: str, loop: str = "") -> _Alias:
        alias = _Alias(self.printer.names.fresh(f"{wish}_layout"), layout, extents, reason, loop)
        self.aliases.append(alias)
        return alias

    def _find(self, layout: FragmentLayout, extents: tuple[str, ...]) -> _Alias | None:
        """The name of a layout at a shape; a slice is said by what it is a slice of, whatever its shape."""
        same = (alias for alias in self.aliases if alias.layout == layout)
        return next((alias for alias in same if alias.extents == extents or isinstance(layout, Slice)), None)

    def _of(self, layout: FragmentLayout) -> _Alias | None:
        """The first name of a layout."""
        return next((alias for alias in self.aliases if alias.layout == layout), None)

    def _spelled(self, extents: tuple[Expr, ...]) -> tuple[str, ...]:
        return tuple(map(self.printer.index, extents))

    def section(self) -> Section:
        """One alias a layout, after those it is a slice of."""
        ordered = sorted(self.aliases, key=lambda alias: isinstance(alias.layout, Slice))
        registers = tile_registers(self.settled)
        title = f"registers: {registers} per thread for tiles" if registers else "how loops are spread over the threads"
        if registers > self.settled.target.max_registers:
            title += f", of {self.settled.target.max_registers} that it can have: some go through memory"
        return Section(rule_line(title), tuple(map(self._declared, ordered)))

    def _declared(self, alias: _Alias) -> Declaration:
        users = ", ".join(self.printer.names(tile.name) for tile in alias.users)
        first = self._of(alias.layout)
        about = f"{self._about(alias.layout)}  [{alias.reason}]"
        if first is not None and first is not alias:
            about = f"here the same as {first.name}: the sizes are equal"
        text = f"using {alias.name} = {self._type(alias.layout, alias.extents)};"
        comments = [f"of {users}:" if users else f"of a loop over {alias.loop}:", about, *self._operand_about(alias)]
        return Declaration(text, tuple(line for comment in comments for line in wrapped(comment)))

    def _about(self, layout: FragmentLayout) -> str:
        """The layout for people; where warpgroups take turns, each has a tile of its own."""
        dealt = ping_pong_of(self.settled)
        if dealt is None or layout != self.settled.facts[dealt.store.src.buffer, LAYOUT]:
            return described(layout)
        rows, cols = layout.shape
        return (
            f"(T128 threads, V{layout.registers} values each) -> ({rows}, {cols}); each warpgroup holds a tile of its "
            "own, its warp w rows 16 w to 16 w + 15 of each 64"
        )

    def _operand_about(self, alias: _Alias) -> tuple[str, ...]:
        """Why a product's result may be the next one's operand."""
        operands = [op.a.buffer for op in walk_stmts(self.settled.launch.body) if isinstance(op, Gemm)]
        names = [self.printer.names(tile.name) for tile in alias.users if any(tile is a for a in operands)]
        if not names or not isinstance(alias.layout, MmaAccumulator | WgmmaAccumulator | MfmaAccumulator):
            return ()
        return (f"{', '.join(names)}: an accumulator's registers are the A operand's, lane for lane: no shuffle",)

    def _type(self, layout: FragmentLayout, extents: tuple[str, ...]) -> str:
        """The C++ type of a layout."""
        match layout:
            case MmaAccumulator() | MmaOperandA():
                rows, cols = extents
                kind = "MmaAccumulator" if isinstance(layout, MmaAccumulator) else "MmaOperandA"
                return f"tl::{kind}<{rows}, {cols}, tl::Warps<{layout.warps.m}, {layout.warps.n}>>"
            case MmaOperandB():
                rows, cols = extents
                kind = "MmaTransposedOperandB" if layout.transposed else "MmaOperandB"
                return f"tl::{kind}<{rows}, {cols}, tl::Warps<{layout.warps.m}, {layout.warps.n}>>"
            case MfmaAccumulator() | MfmaOperandA():
                rows, cols = extents
                kind = "MfmaAccumulator" if isinstance(layout, MfmaAccumulator) else "MfmaOperandA"
                shape = ", tl::Mfma16x16Double" if layout.run == 1 else ""
                interleave = f", tl::Interleave<{layout.interleave}>" if layout.interleave > 1 or shape else ""
                return f"tl::{kind}<{rows}, {cols}, tl::Warps<{layout.warps.m}, {layout.warps.n}>{interleave}{shape}>"
            case WgmmaAccumulator():
                rows, cols = extents
                groups = self._warpgroups(layout.along_m)
                if layout.along_n > 1:
                    groups += f", {self._warpgroups(layout.along_n)}"
                return f"tl::WgmmaAccumulator<{rows}, {cols}, {groups}>"
            case Blocked():
                shape, threads = ", ".join(extents), ", ".join(map(str, layout.threads))
                each = f"{layout.vector}, {layout.rows}" if layout.rows > 1 else str(layout.vector)
                return f"tl::Blocked<tl::Shape<{shape}>, tl::Shape<{threads}>, {each}>"
            case Replicated():
                return f"tl::Replicated<tl::Shape<{', '.join(extents)}>>"
            case Slice():
                return self._slice(layout)
            case SplitColumns():
                of = self._named(layout.of)
                return f"tl::SplitColumns<{of}, {extents[2]}>"
            case _:
                raise TypeError(f"no C++ type for {layout}")

    def _warpgroups(self, count: int) -> str:
        """A number of warpgroups, said in the block's threads where it is all of them."""
        launch = self.settled.launch
        return "threads / 128" if 128 * count == launch.threads and not launch.shares else str(count)

    def _slice(self, layout: Slice) -> str:
        """A row or column slice, of a layout that has a name if there is one."""
        kind, _ = SLICES[len(layout.of.shape), layout.kept]
        for alias in self.aliases:
            whole = alias.layout
            if len(whole.shape) == len(layout.of.shape) and slice_of(whole, layout.kept) == layout:
                return f"{kind}<{alias.name}>"
        return f"{kind}<{self._named(layout.of)}>"

    def _named(self, layout: FragmentLayout) -> str:
        """A layout's name, or else its type, in numbers."""
        alias = self._of(layout)
        return alias.name if alias is not None else self._type(layout, tuple(map(str, layout.shape)))


def _has_registers(tile: Buffer) -> bool:
    """Whether it is a fragment that is no view of another."""
    return tile.scope is Scope.FRAGMENT and tile.of is None


def described(layout: FragmentLayout) -> str:
    """The layout in CuTe's notation, (threads, values) -> (rows, columns), and which warp holds what."""
    shape = ", ".join(map(str, layout.shape))
    text = f"(T{layout.threads_of_block} threads, V{layout.registers} values each) -> ({shape})"
    match layout:
        case MmaAccumulator() | MmaOperandA():
            text += f"; {_warp_part(layout)}"
        case MmaOperandB():
            cols = layout.n // layout.warps.n
            text += f"; warp w holds columns {cols} (w % {layout.warps.n}) and the {cols - 1} after of the product's B"
        case MfmaAccumulator() | MfmaOperandA():
            run = layout.run * layout.interleave
            text += f"; {_warp_part(layout)}, a lane {run} neighbouring columns of a row at a time"
        case WgmmaAccumulator():
            text += f"; {_warpgroup_part(layout)}, its warp w rows 16 w to 16 w + 15 of each 64"
        case Blocked():
            grid = " x ".join(map(str, layout.threads))
            elements = "one element" if layout.vector == 1 else f"{layout.vector} consecutive elements"
            text += f"; one thread with {elements}" if grid == "1" else f"; {grid} threads with {elements} each"
            text += f" of {layout.rows} neighbouring rows" if layout.rows > 1 else ""
        case SplitColumns():
            text += f"; the registers of a tile of ({layout.shape[0]}, {layout.shape[1] * layout.width})"
        case _:
            pass
    return text + (f"; {layout.replicas} threads hold the same value" if layout.replicas > 1 else "")


def _warpgroup_part(layout: WgmmaAccumulator) -> str:
    """Which rows and columns of the tile a warpgroup holds."""
    rows, cols = layout.rows // layout.along_m, layout.cols // layout.along_n
    row = "g" if layout.along_n * layout.copies == 1 else f"(g % {layout.along_m})"
    col = f"{cols} g" if layout.along_m == 1 else f"{cols} (g / {layout.along_m})"
    held_rows = "all rows" if layout.along_m == 1 else f"rows {rows} {row} to {rows} {row} + {rows - 1}"
    if layout.along_n == 1:
        return f"warpgroup g holds {held_rows}"
    return f"warpgroup g holds {held_rows} and columns {col} to {col} + {cols - 1}"


def _warp_part(layout: MmaAccumulator | MmaOperandA | MfmaAccumulator | MfmaOperandA) -> str:
    """Which rows and columns of the tile a warp holds."""
    warps, rows, cols = layout.warps, layout.rows // layout.warps.m, layout.cols // layout.warps.n
    if warps.n == 1:
        return f"warp w holds rows {rows} w to {rows} w + {rows - 1}"
    if isinstance(layout, MmaOperandA | MfmaOperandA):
        return f"warp w holds rows {rows} (w / {warps.n}) and the {rows - 1} after"
    return f"warp w holds {rows} rows from {rows} (w / {warps.n}) and {cols} columns from {cols} (w % {warps.n})"


def tile_registers(settled: Settled) -> int:
    """The registers, of 4 bytes, that a thread needs for its parts of all tiles at once."""
    size, dealt = 0, ping_pong_of(settled)
    if dealt is not None:  # the operands, a warpgroup's own and the other's
        size += 2 * settled.facts[dealt.store.src.buffer, LAYOUT].registers * dealt.tile.dtype.bytes
    for tile in filter(_has_registers, settled.launch.tiles):
        layout = settled.facts.get(tile, LAYOUT)
        size += layout.registers * tile.dtype.bytes if layout is not None else 0
    return -(-size // 4)
