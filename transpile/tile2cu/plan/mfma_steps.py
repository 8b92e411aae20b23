"""The steps along K of a GEMM by MFMA, and the registers of their operands (headers/tl/common/cdna/mfma_gemm.h)."""

from tile2cu.core.decisions import INSTRUCTION, LAYOUT, SHARED_LAYOUT, WARPS
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.layout import SharedLayout
from tile2cu.core.mfma_layout import WAVE, MfmaTile
from tile2cu.core.program import Gemm, Region, Scope
from tile2cu.core.record import Record
from tile2cu.plan.resolved import Resolved

_WIDEST_READ = 16  # bytes


class MfmaSteps(Record, frozen=True, kw_only=True):
    """A lane has `items` values along K of each line per step, in runs of `piece`; `each` are for one instruction.

    `groups` of lanes hold different runs.
    """

    items: int
    piece: int
    each: int
    groups: int

    @property
    def extent(self) -> int:
        """The extent of a step along K."""
        return self.items * self.groups

    def of_mfma(self, depth: int, size: int) -> str:
        """The k of the `each` values, by i, that a lane gives MFMA s of a tile of `depth` along K; empty for others.

        Value x of a step's is at piece (groups (x / piece) + lane / size) + x % piece. [MfmaK of the header]
        """
        count, group = self.items // self.each, f"lane / {size}"
        if self.piece == self.each:
            terms = [f"{self.each * self.groups} s" * (depth > self.each * self.groups), f"{self.each} ({group})"]
        elif self.piece == self.items:
            several = depth > self.extent
            terms = [f"{self.extent} (s / {count})" * several, f"{self.piece} ({group})"]
            terms.append(f"{self.each} (s % {count})" if several else f"{self.each} s")
        else:
            return ""
        return " + ".join(filter(None, (*terms, "i")))


def steps_of(op: Gemm, resolved: Resolved) -> MfmaSteps | None:
    """The steps of a GEMM; None where it is computed by other instructions."""
    layout, instruction = resolved.facts.get(op.c.buffer, LAYOUT), resolved.facts[op, INSTRUCTION]
    if not isinstance(layout, MfmaTile) or not instruction.is_mfma:
        return None
    groups = WAVE // layout.size
    share = op.mnk[2] // groups
    short = share & -share  # the largest power of two that divides a group's share
    of_a, of_b = _piece(op.a, resolved), _piece(op.b, resolved)
    stored = resolved.facts.get(op.b.buffer, SHARED_LAYOUT)
    if isinstance(stored, SharedLayout) and stored.rows_interleaved > 1:
        of_b = stored.rows_interleaved  # interleaved_rows.h: a read has a run along K of several columns
    widest = instruction.k // groups
    items = min(max(of_a, of_b, widest), short)
    return MfmaSteps(items=items, piece=min(of_a, short), each=min(widest, items), groups=groups)


def _piece(operand: Region, resolved: Resolved) -> int:
    """The values along K that are neighbours for a lane: of one read, or of its registers."""
    layout = resolved.facts.get(operand.buffer, LAYOUT)
    if operand.buffer.scope is Scope.FRAGMENT and isinstance(layout, MfmaTile):
        return layout.run * layout.interleave
    return _WIDEST_READ * 8 // operand.buffer.dtype.bits


def operand_registers(op: Gemm, resolved: Resolved) -> int:
    """The registers of operands that a lane has read from shared memory, of wgmma none.

    [headers/tl/common/cdna/mfma_gemm.h, MfmaSteps; headers/tl/common/gemm.h, MmaStep]
    """
    by_warp = resolved.facts[op, INSTRUCTION].unit is MmaUnit.WARP and not resolved.target.is_amd
    if by_warp and op.metadata is None:
        return _of_mma_sync(op, resolved)
    steps, layout = steps_of(op, resolved), resolved.facts.get(op.c.buffer, LAYOUT)
    if steps is None or not isinstance(layout, MfmaTile):
        return 0
    (m, n, _), warps = op.mnk, resolved.facts[op, WARPS]
    of_a = m // warps.m if op.a.buffer.scope is Scope.SHARED else 0
    lines = ((of_a, op.a), (n // warps.n, op.b))
    words = (count // layout.size * -(-steps.items * each.buffer.dtype.bits // 32) for count, each in lines)
    return steps_held(op, resolved) * sum(words)


def _of_mma_sync(op: Gemm, resolved: Resolved) -> int:
    """Those of two steps of 32 bytes along K: 4 for each 16 rows of A, 2 for each 8 columns of B."""
    (m, n, k), warps = op.mnk, resolved.facts[op, WARPS]
    of_a = 4 * (m // warps.m // 16) if op.a.buffer.scope is Scope.SHARED else 0
    of_b = 2 * (n // warps.n // 8) if op.b.buffer.scope is Scope.SHARED else 0
    return min(2, k * op.a.buffer.dtype.bits // 256) * (of_a + of_b)


def steps_held(op: Gemm, resolved: Resolved) -> int:
    """The steps whose operands a lane holds at a time: the next one's are read while a step's MFMAs run."""
    steps = steps_of(op, resolved)
    return 0 if steps is None else min(2, op.mnk[2] // steps.extent)
