"""MMAs as block GEMMs: the warp GEMM of the instruction, and the windows on its operands."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from tile2cu.core.expr import static_value
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.mfma_layout import WAVE, MfmaTile
from tile2cu.core.program import Scope
from tile2cu.plan import copy_ops, ops
from tile2cu.plan.claims import Executes
from tile2cu.plan.kernel import Kernel
from tile2cu.plan.operands import Tile
from tile2cu.styles.base.view import Declaration
from tile2cu.styles.ck import vocabulary as words
from tile2cu.styles.ck.encodings import operand_a, operand_b
from tile2cu.styles.ck.expressions import CkPrinter
from tile2cu.styles.ck.fragments import Fragments, Temporary
from tile2cu.styles.ck.shared import ByColumns, SharedTiles
from tile2cu.styles.ck.support import unsupported
from tile2cu.styles.ck.types import VECTOR, in_ck

# (operands, C's type, rows, K) of the instructions of which WarpGemmMfmaDispatcher has the warp GEMM with transposed C:
# of 16-bit types those of twice gfx942's K are one instruction on gfx950.
_DISPATCHED = {
    *(
        (kind, "float32", size, k)
        for kind in ("half_t", "bf16_t")
        for size, k in ((16, 16), (16, 32), (32, 8), (32, 16))
    ),
    *((kind, "float32", 32, 16) for kind in ("fp8_t", "bf8_t")),
    ("int8_t", "int32", 16, 32),
    ("int8_t", "int32", 32, 16),
}
# Rows and K of ck_tile's instructions on 8-bit floats of any two of its types: of transposed C the first is B's.
_OF_8_BIT_FLOATS = {
    (16, 32): "WarpGemmAttributeMfmaImpl_f32_16x16x32_f8_base<{b}, {a}>",
    (32, 16): "WarpGemmAttributeMfmaImpl_f32_32x32x16_f8_base<{b}, {a}>",
    (16, 128): "WarpGemmAttributeMfmaImpl_f32_16x16x128_f8_bf8_base<{b}, {a}>",
}


def layouts_of_operands(operations: Iterable[ops.Op], fragments: dict[str, MfmaTile]) -> dict[str, ByColumns]:
    """The shared tiles that MMAs read along rows of K only, and that tensors are copied to: stored by columns.

    `fragments` are the layouts of accumulators.
    """
    along_rows: dict[str, ByColumns] = {}
    others: set[str] = set()
    for op in operations:
        if isinstance(op, ops.Mma):
            layout = fragments.get(op.c.buffer.name)
            for tile, by_rows, columns in (
                (op.a, op.a.transposed, ByColumns(count=1, run=4)),
                (op.b, not op.b.transposed, _columns_of_b(op, layout, fragments.get(op.a.buffer.name))),
            ):
                if tile.buffer.scope is not Scope.SHARED or tile.buffer.rank != 2:
                    continue
                if not by_rows or along_rows.setdefault(tile.buffer.name, columns) != columns:
                    others.add(tile.buffer.name)
    return {name: columns for name, columns in along_rows.items() if name not in others}


def _columns_of_b(op: ops.Mma, c: MfmaTile | None, a: MfmaTile | None) -> ByColumns:
    """How B's tile is stored along K: of A in registers, in the order in which they hold K."""
    count, size = c.interleave if c else 1, op.b.buffer.dtype.bytes
    if a is not None and op.a.buffer.scope is Scope.FRAGMENT:
        held, groups = a.run * a.interleave, WAVE // a.size
        whole = op.b.buffer.static_shape[0] % (groups * VECTOR // size) == 0
        if held * size < VECTOR and VECTOR // size % held == 0 and whole:
            return ByColumns(count=count, run=4, held=held, groups=groups)
    return ByColumns(count=count, run=4)


def _k_of_steps(run: int, layout: MfmaTile, op: ops.Mma, values: int, what: str) -> str:
    """Which of a lane's `values` each MFMA takes, and of which k, in words: headers/tl/ck.h, block_gemm.

    A lane holds runs of `run` consecutive k. Its values along K are those of MFMA step 0, then of step 1. `what` are
    the rows of A, or columns of B.
    """
    groups = WAVE // layout.size
    per_lane = op.instruction.k // groups
    extent = int(static_value(op.a.region.ranges[0 if op.a.transposed else 1].extent) or 0)
    steps = extent // op.instruction.k
    lines = values // (per_lane * steps)
    taken = [f"{per_lane * steps} t"] * (lines > 1) + [f"{per_lane} s"] * (steps > 1) + ["i"]
    which = " step s" * (steps > 1) + f" of tile t of {layout.size} {what}" * (lines > 1)
    text = f"MFMA{which} takes values {' + '.join(taken)}, i < {per_lane}, of k = "
    if run < per_lane:
        within = f"{groups * run} (i / {run}) + {run} (lane / {layout.size}) + i % {run}"
        return text + " + ".join([f"{groups * per_lane} s"] * (steps > 1) + [within])
    of_run = run // per_lane
    runs = extent // (groups * run)
    terms = [f"{groups * run} {f'(s / {of_run})' if of_run > 1 else 's'}"] * (runs > 1)
    terms.append(f"{run} (lane / {layout.size})")
    terms += [f"{per_lane} {f'(s % {of_run})' if runs > 1 else 's'}"] * (of_run > 1)
    return text + " + ".join((*terms, "i"))


@dataclass
class Gemms:
    """Prints MMAs. `warp_gemms` are the names of the warp GEMMs that it decided on, by their types."""

    plan: Kernel
    printer: CkPrinter
    fragments: Fragments
    shared: SharedTiles
    warp_gemms: dict[str, str] = field(default_factory=dict)
    reads: tuple[int, int] = (0, 0)  # bytes that a lane reads at a time of A and B of the MMA printed last
    ways: tuple[int, int] = (0, 0)  # conflict degrees of these reads
    _loaded: int = 0  # registers of the operands that it loads from LDS
    _ways: dict[str, int] = field(default_factory=dict)  # of a tile's reads

    def text(self, op: ops.Mma) -> str:
        """An MMA of shared tiles, or of a fragment's registers and a shared tile. Errors: T2C-E034."""
        span = op.source.span
        flags = (op.starts, op.metadata is not None, op.overwrites_if is not None)
        if any(flags) or op.instruction.unit is not MmaUnit.WARP or not op.c.region.whole or op.instruction.through:
            raise unsupported("this form of MMA", span)
        layout = self.fragments.layout(op.c.buffer)
        if not isinstance(layout, MfmaTile) or layout.run != 4:
            raise unsupported(f"an accumulator of the layout {type(layout).__name__}", span)
        dtype, size = op.instruction.operands[0], layout.size
        warp_gemm = self._warp_gemm(op)
        name, k = self.printer.names(op.c.buffer.name), op.instruction.k
        extent = op.a.region.ranges[0 if op.a.transposed else 1].extent
        per_lane = k * size // 64
        self._loaded = 0
        a, pack = self._held(op, per_lane) if op.a.buffer.scope is Scope.FRAGMENT else ("", 0)
        if not pack:
            wide = VECTOR // dtype.bytes
            along_k = self._shape(op.a)[0 if op.a.transposed else 1]
            pack = wide if along_k % (wide * 64 // size) == 0 else per_lane
            a = self._operand(op.a, "A", layout, pack, op)
        columns = self.shared.by_columns.get(op.b.buffer.name)
        pack_b = VECTOR // dtype.bytes if columns is not None and columns.held == pack else pack
        b = self._operand(op.b, "B", layout, pack_b, op)
        self.reads = (
            self._reads(op.a, pack, along_rows=op.a.transposed),
            self._reads(op.b, pack_b, along_rows=not op.b.transposed),
        )
        self.ways = (self._ways.get(op.a.buffer.name, 0), self._ways.get(op.b.buffer.name, 0))
        self.fragments.hold(Temporary.OPERANDS, 4 * self._loaded)
        count = f", {words.INTERLEAVE}<{layout.interleave}>" if layout.interleave > 1 else ""
        call = f"{words.BLOCK_GEMM}<{warp_gemm}, {self.printer.index(extent)}{count}>({name}, {a}, {b});"
        lines = [f"clear_tile({name});"] * op.overwrites
        if op.priority:
            before, after = (f"__builtin_amdgcn_s_setprio({level});" for level in (op.priority, 0))
            return "\n".join((*lines, before, call, after))
        return "\n".join((*lines, call))

    def executed(self, claim: Executes) -> Executes:
        """The claim of the MMA printed last: the style stores and reads operands in its own way."""
        reads = replace(claim, lds_reads=self.reads, lds_ways=self.ways, permuted=(False, False))
        return replace(reads, registers=self._loaded, steps=0, k_of_mfma="")

    def _reads(self, tile: Tile, pack: int, *, along_rows: bool) -> int:
        """The bytes of an operand that a lane reads from LDS at a time; 0 of registers."""
        if tile.buffer.scope is Scope.FRAGMENT:
            return 0
        is_strided = along_rows and tile.buffer.name not in self.shared.by_columns
        return tile.buffer.dtype.bytes * (1 if is_strided else pack)

    def _shape(self, tile: Tile) -> tuple[int, ...]:
        """The extents of a tile, or of the part that an operand is."""
        return tuple(int(static_value(part.extent) or 0) for part in tile.region.ranges)

    def _operand(self, tile: Tile, role: str, layout: MfmaTile, pack: int, op: ops.Mma) -> str:
        """An operand that is loaded from LDS."""
        buffer, span = tile.buffer, op.source.span
        starts = tuple(static_value(part.start) for part in tile.region.ranges)
        if buffer.scope is not Scope.SHARED or buffer.rank != 2 or None in starts:
            raise unsupported("an MMA's operand B in registers, or a part of a tile that varies", span)
        k_first = tile.transposed if role == "A" else not tile.transposed
        origin = tuple(int(each or 0) for each in starts)
        k = self._shape(tile)[0 if k_first else 1]
        make = operand_a if role == "A" else operand_b
        encoding = make(layout, k, pack, k_first=k_first)
        if encoding is None or encoding.shape != self._shape(tile):
            raise unsupported(f"{buffer.name} as an operand of this MMA", span)
        columns = self.shared.by_columns.get(buffer.name)
        held = columns is not None and columns.permutes(buffer.dtype.bytes)
        k_name, other = "k_slot" if held else "k", "m" if role == "A" else "n"
        over = (k_name, other) if k_first else (other, k_name)
        source = "SrcA" if role == "B" else "SrcB"  # as C is computed transposed
        shape_in_words = ", ".join(f"{extent} {name}" for name, extent in zip(over, encoding.shape, strict=True))
        held_values = f"(T{layout.threads_of_block} threads, V{encoding.registers} values each) -> ({shape_in_words})"
        run, lines = columns.held if columns is not None and held else pack, "rows" if role == "A" else "columns"
        order = _k_of_steps(run, layout, op, encoding.registers, lines)
        about = (f"{self.printer.names(buffer.name)} as operand {role}, {source} of MFMA: {held_values}; {order}",)
        wish, shape = f"{self.printer.names(buffer.name)}_operand", tuple(part.extent for part in tile.region.ranges)
        distribution = self.fragments.named(f"{wish}_layout", encoding, about, over, shape=shape)
        width = self._reads(tile, pack, along_rows=k_first)
        self._ways[buffer.name] = self.shared.ways(buffer, encoding, width, is_read=True, origin=origin)
        starting = tuple(self.printer.index(part.start) for part in tile.region.ranges)
        part = () if tile.region.whole else starting
        self._loaded += -(-encoding.registers * buffer.dtype.bytes // 4)
        return f"load_tile({self.shared.window(buffer, distribution, 'operand', part)})"

    def _held(self, op: ops.Mma, per_lane: int) -> tuple[str, int]:
        """(a fragment's name, how many consecutive k a lane holds): its registers are those of operand A."""
        tile, layout = op.a.buffer, self.fragments.layout(op.a.buffer)
        accumulator = self.fragments.layout(op.c.buffer)
        assert isinstance(accumulator, MfmaTile)
        held = layout.run * layout.interleave if isinstance(layout, MfmaTile) else 0
        if (
            not isinstance(layout, MfmaTile)
            or op.a.transposed
            or not op.a.region.whole
            or layout.waves_of_columns != 1
            or (layout.warps.m, layout.size) != (accumulator.warps.m, accumulator.size)
            or (held % per_lane and per_lane % held)
        ):
            shared = " where several waves hold parts of each row" * (accumulator.warps.n > 1)
            raise unsupported(f"{tile.name} as an MMA's operand in registers{shared}", op.source.span)
        return self.printer.names(tile.name), held

    def _warp_gemm(self, op: ops.Mma) -> str:
        """The name of the warp GEMM of an instruction. Errors: T2C-E034 where ck_tile has no such instruction."""
        instruction, accumulator = op.instruction, op.c.buffer.dtype
        a, b = (in_ck(each.cpp) for each in instruction.operands)
        size, k = instruction.m, instruction.k
        if a == b and (a, accumulator.name, size, k) in _DISPATCHED:
            shape = f"{a}, {b}, {in_ck(accumulator.cpp)}, {size}, {size}, {k}"
            text = f"WarpGemmMfmaDispatcher<{shape}, /*TransposeC=*/true>"
        elif {a, b} <= {"fp8_t", "bf8_t"} and (size, k) in _OF_8_BIT_FLOATS:
            text = f"{words.TRANSPOSED_WARP_GEMM}<{_OF_8_BIT_FLOATS[size, k].format(a=a, b=b)}>"
        else:
            raise unsupported(f"the MMA {instruction}, which ck_tile has not", op.source.span)
        if text not in self.warp_gemms:
            self.warp_gemms[text] = self.printer.names.fresh("WarpGemm" if not self.warp_gemms else "OtherWarpGemm")
        return self.warp_gemms[text]

    def declared(self) -> Iterable[Declaration]:
        """The warp GEMMs."""
        about = ("C is computed transposed: a lane holds neighbouring columns of a row",)
        for text, name in self.warp_gemms.items():
            yield Declaration(f"using {name} = {text};", about)


def written_by_copies(operations: Iterable[ops.Op]) -> frozenset[str]:
    """The shared tiles that tensors are copied to."""
    copied = (copy_ops.Copy, copy_ops.StoreRegisters)
    return frozenset(
        op.dst.buffer.name for op in operations if isinstance(op, copied) and op.dst.buffer.scope is Scope.SHARED
    )
