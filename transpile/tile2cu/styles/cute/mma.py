"""MMAs of warps and of warpgroups, and the waits that retire them."""

from tile2cu.core.expr import static_value
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.layout import MmaAccumulator, WgmmaAccumulator
from tile2cu.core.program import Scope
from tile2cu.core.record import Record
from tile2cu.plan import ops
from tile2cu.plan.operands import Tile
from tile2cu.styles.base.comments import listed
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.copies import Copies
from tile2cu.styles.cute.expressions import CutePrinter
from tile2cu.styles.cute.fragments import Fragments
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import in_cute
from tile2cu.styles.cute.wgmma import fences


class Mmas(Record, frozen=True):
    """Prints MMAs."""

    printer: CutePrinter
    fragments: Fragments
    copies: Copies

    def text(self, op: ops.Mma) -> str:
        """An MMA of shared tiles, or of an accumulator's registers and a shared tile."""
        if op.instruction.unit is MmaUnit.WARPGROUP:
            return self._wgmma(op)
        flags = (op.starts, op.metadata is not None, op.overwrites_if is not None, op.priority)
        if any(flags) or op.instruction.unit is not MmaUnit.WARP or not op.c.region.whole:
            raise unsupported("this form of MMA", op.source.span)
        c = self.printer.names(op.c.buffer.name)
        mma = self.fragments.partition(self.fragments.layout(op.c.buffer), op.source.span)
        assert isinstance(mma.layout, MmaAccumulator)
        if op.instruction.through is not None:
            return self._as_half(op, mma.name, c, wide=mma.layout.cols // mma.layout.warps.n % 16 == 0)
        even = mma.layout.cols // mma.layout.warps.n % 16 == 0
        load_b, b = self._operand(op.b, op, k_is_contiguous=op.b.transposed, wide=even)
        if not op.b.transposed:
            b = f"{words.SWAP_MODES}({b})"
        first = f"clear({c});\n" if op.overwrites else ""
        if op.a.buffer.scope is Scope.FRAGMENT:
            return f"{first}{words.GEMM}({mma.name}{{}}, {load_b}, {self._held(op)}, {b}, {c});"
        load_a, a = self._operand(op.a, op, k_is_contiguous=not op.a.transposed, wide=True)
        if op.a.transposed:
            a = f"{words.SWAP_MODES}({a})"
        return f"{first}{words.GEMM}({mma.name}{{}}, {load_a}, {load_b}, {a}, {b}, {c});"

    def _as_half(self, op: ops.Mma, mma: str, c: str, *, wide: bool) -> str:
        """An MMA of 8-bit floats as one of float16: ldmatrix loads pairs of them."""
        if op.a.buffer.scope is Scope.FRAGMENT or op.a.transposed or not op.b.transposed:
            raise unsupported("an MMA of float8 as float16 whose operands are not contiguous along K", op.source.span)
        a, b = (self._pairs(each, op) for each in (op.a, op.b))
        load_a, load_b = (
            f"Copy_Atom<{kind}, half_t>{{}}"
            for kind in ("SM75_U32x4_LDSM_N", "SM75_U32x4_LDSM_N" if wide else "SM75_U32x2_LDSM_N")
        )
        first = f"clear({c});\n" if op.overwrites else ""
        element = in_cute(op.a.buffer.dtype.cpp)
        return f"{first}{words.GEMM_AS_HALF}<{element}>({mma}{{}}, {load_a}, {load_b}, {a}, {b}, {c});"

    def _pairs(self, tile: Tile, op: ops.Mma) -> str:
        """A shared tile, or some of its rows, as pairs of 8-bit floats."""
        buffer, (rows, columns), names = tile.buffer, tile.region.ranges, self.printer.names
        stage, extents = self.printer.stages.get(buffer.name), (static_value(rows.extent), static_value(columns.extent))
        if static_value(columns.start) != 0 or columns.extent != buffer.shape[1] or None in extents:
            raise unsupported("an MMA of float8 as float16 of a part of the tile's columns", op.source.span)
        name = self.fragments.own(names(buffer.name), "pairs")
        self.fragments.views[name] = f"Tensor {name} = recast<half_t>({names(buffer.name)});  // as words of ldmatrix"
        text = f"{name}(_, _, {stage})" if stage else name
        if tile.region.whole:
            return text
        shape = f"Shape<Int<{self.printer.index(rows.extent)}>, Int<{self.printer.index(columns.extent)} / 2>>{{}}"
        return f"{words.TILE_AT}({text}, {shape}, make_coord({self.printer.coordinate(rows.start)}, 0))"

    def has_stages(self, op: ops.Mma) -> bool:
        """Whether an operand is a stage whose descriptors are computed in front of the loop."""
        of_warpgroups = op.instruction.unit is MmaUnit.WARPGROUP and self._are_filled(op)
        shared = (tile.buffer for tile in (op.a, op.b) if tile.buffer.scope is Scope.SHARED)
        return of_warpgroups and any(buffer.name in self.printer.stages for buffer in shared)

    def of_slab(self, op: ops.Mma, slab: str) -> str:
        """The same of one slab of its operands' K."""
        return self._wgmma(op, slab)

    def _wgmma(self, op: ops.Mma, slab: str = "") -> str:
        """An MMA of warpgroups: issued and committed, and awaited unless it only `starts`."""
        if op.metadata is not None or op.priority or not op.c.region.whole:
            raise unsupported("this form of MMA", op.source.span)
        c = self.printer.names(op.c.buffer.name)
        mma = self.fragments.mma(op)
        in_front = not slab and self._are_filled(op)
        if op.a.buffer.scope is Scope.FRAGMENT:
            a = self._held(op)
        else:
            a = self._shared_operand(op.a, op, in_front=in_front)
            a = f"{words.SWAP_MODES}({a})" if op.a.transposed else a
        b = self._shared_operand(op.b, op, in_front=in_front)
        b = b if op.b.transposed else f"{words.SWAP_MODES}({b})"
        arguments = [f"{mma}{{}}", self._warpgroup(op), a, b, c, *filter(None, (slab, self._first(op, slab)))]
        name = words.WGMMA_SLAB if slab else words.WGMMA
        lines = [fences((c,)), "warpgroup_arrive();", f"{name}({', '.join(arguments)});", "warpgroup_commit_batch();"]
        if not op.starts:
            staged = any(tile.buffer.name in self.printer.stages for tile in (op.a, op.b))
            read = "this stage" if staged else "its operands"
            lines += [f"warpgroup_wait<0>();  // wgmma has finished reading {read}", fences((c,))]
        return "\n".join(lines)

    def _first(self, op: ops.Mma, slab: str) -> str:
        """Whether an MMA, or that of a slab, overwrites C; empty where it adds."""
        if op.overwrites and not slab:
            return "GMMA::ScaleOut::Zero"
        conditions = [f"{slab} == 0"] * bool(slab)
        if op.overwrites_if is not None:
            text = self.printer.condition(op.overwrites_if)
            conditions.append(f"({text})" if slab else text)
        if not (op.overwrites or op.overwrites_if is not None):
            return ""
        return f"{' && '.join(conditions)} ? GMMA::ScaleOut::Zero : GMMA::ScaleOut::One"

    def _warpgroup(self, op: ops.Mma) -> str:
        """The warpgroup's number among those of an MMA, which a variable holds where there are several."""
        layout = self.fragments.layout(op.c.buffer)
        assert isinstance(layout, WgmmaAccumulator)
        if layout.along_m * layout.along_n == 1:
            return "0"
        if layout.copies > 1:
            raise unsupported("an MMA that pairs of warpgroups compute each for themselves", op.source.span)
        return self.warpgroup()

    def warpgroup(self) -> str:
        """The variable that has the number of the thread's warpgroup."""
        name = self.fragments.counter("warpgroup")
        about = "shuffled, so that descriptors are in uniform registers"
        self.fragments.views[name] = f"const int {name} = cutlass::canonical_warp_group_idx();  // {about}"
        return name

    def _are_filled(self, op: ops.Mma) -> bool:
        """Whether a producer fills all shared operands, and as a whole: the MMA then follows the wait for its stage.

        Where threads write an operand after that wait, its descriptors are computed meanwhile.
        """
        producer = self.copies.plan.producer
        shared = [tile for tile in (op.a, op.b) if tile.buffer.scope is Scope.SHARED]
        return producer is not None and all(tile.region.whole and producer.fills(tile.buffer) for tile in shared)

    def _shared_operand(self, tile: Tile, op: ops.Mma, *, in_front: bool = False) -> str:
        """An operand in shared memory; the descriptors of its stages may be computed `in_front` of the loop."""
        stage = self.printer.stages.get(tile.buffer.name)
        if in_front and stage is not None:
            return f"{words.STAGE_OF}({self.printer.names(tile.buffer.name)}, {stage})"
        if tile.buffer.scope is not Scope.SHARED:
            raise unsupported("an MMA whose operand B is in registers", op.source.span)
        if tile.buffer.rank == 3:
            return self.copies.plane(tile, op.source.span)
        text = self.copies.tile(tile.buffer)
        if tile.region.whole:
            return text
        self.copies.check_part(tile, op.source.span)
        extents = [static_value(part.extent) for part in tile.region.ranges]
        if None in extents:
            raise unsupported(
                "an MMA's operand that is a part of a tile, of an extent that is not known", op.source.span
            )
        shape = ", ".join(f"Int<{self.printer.index(part.extent)}>" for part in tile.region.ranges)
        start = ", ".join(self.printer.coordinate(part.start) for part in tile.region.ranges)
        return f"{words.TILE_AT}({text}, Shape<{shape}>{{}}, make_coord({start}))"

    def _operand(self, tile: Tile, op: ops.Mma, *, k_is_contiguous: bool, wide: bool) -> tuple[str, str]:
        """(the atom that loads an operand from shared memory, the tile)."""
        text = self._shared_operand(tile, op)
        element = in_cute(tile.buffer.dtype.cpp)
        if k_is_contiguous:
            kind = "SM75_U32x4_LDSM_N" if wide else "SM75_U32x2_LDSM_N"
        elif tile.buffer.dtype.bytes == 2:
            kind = "SM75_U16x8_LDSM_T" if wide else "SM75_U16x4_LDSM_T"
        else:  # ldmatrix transposes elements of 16 bits
            kind = f"UniversalCopy<{element}>"
        return f"Copy_Atom<{kind}, {element}>{{}}", text

    def _held(self, op: ops.Mma) -> str:
        """An accumulator's registers as the A operand."""
        layout, tile = self.fragments.layout(op.a.buffer), op.a.buffer
        whole_rows = (
            layout.along_n == 1
            if isinstance(layout, WgmmaAccumulator)
            else isinstance(layout, MmaAccumulator) and layout.warps.n == 1
        )
        is_same = whole_rows and op.instruction.k == 16
        if not is_same or op.a.transposed or not op.a.region.whole or tile.dtype.bytes != 2:
            raise unsupported(f"{tile.name} as an MMA's operand in registers", op.source.span)
        return f"{words.AS_OPERAND_A}({self.printer.names(tile.name)})"

    def wait(self, op: ops.MmaWait) -> StatementView:
        """A wait for MMAs; behind it their results may be read."""
        names = self.printer.names
        flying = [names(tile.name) for tile in op.in_flight]
        about = f"  // {listed(flying)} {'remains' if len(flying) == 1 else 'remain'} in flight" if flying else ""
        resolved = fences(tuple(names(tile.name) for tile in op.results))
        above = ("until this MMA and those issued before it are done",) * (op.point is ops.WaitPoint.ISSUED)
        return text_line(f"warpgroup_wait<{op.pending}>();{about}\n{resolved}", op.source.span.line, above)
