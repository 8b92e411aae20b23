"""Which GEMMs wgmma takes, and how warpgroups partition them."""

from tile2cu.analysis.accesses import has_view_of_other_rows
from tile2cu.core.expr import static_value
from tile2cu.core.layout import Warps, widest_swizzle_of
from tile2cu.core.program import Buffer, Gemm, Launch, Region, Scope
from tile2cu.rules.engine import Context
from tile2cu.rules.launch.threads import addressed_in_rows
from tile2cu.targets import Wgmma
from tile2cu.targets.partition import MOST_COLUMNS, split_among

WARPGROUP = 128
_REGISTERS = 64 * 1024  # of an SM
_OTHER_REGISTERS = 26  # per thread, besides the accumulator of one wgmma: ptxas 13.0, error C7602


def wgmma_unsupported(launch: Launch, context: Context) -> dict[int, str]:
    """Why each GEMM of a launch cannot run on wgmma, by its id; empty where it can.

    GEMMs that share a fragment need the same layout of it: all of them run on wgmma, or none.
    """
    mmas = [op for op in context.statements if isinstance(op, Gemm)]
    causes = {id(op): _threads_unsupported(op, launch, context) or gemm_unsupported(op, context.of(op)) for op in mmas}
    for _ in mmas:
        for op in mmas:
            met = (causes[id(other)] for other in mmas if not causes[id(op)] and _share_a_fragment(op, other))
            causes[id(op)] = next(filter(None, met), causes[id(op)])
    return causes


def _threads_unsupported(op: Gemm, launch: Launch, context: Context) -> str:
    threads = context.of(op).threads
    firsts = [sum(launch.sizes[:group]) for group, size in enumerate(launch.sizes) if size % WARPGROUP == 0]
    if threads % WARPGROUP or any(first % WARPGROUP for first in firsts):
        return f"{threads} threads, or those of the groups before them, are not a whole number of warpgroups"
    return ""


def _share_a_fragment(op: Gemm, other: Gemm) -> bool:
    """Whether two GEMMs use a common fragment."""
    own, others = (
        {region.buffer.memory.name for region in mma.regions if region.buffer.scope is Scope.FRAGMENT}
        for mma in (op, other)
    )
    return bool(own & others)


def gemm_unsupported(op: Gemm, context: Context) -> str:
    """Why a GEMM cannot run on wgmma; empty if it can."""
    m, n, k = op.mnk
    groups = context.threads // WARPGROUP
    line = f"the GEMM of line {op.span.line}"
    row = instruction_of(op, context)
    if op.metadata is not None:
        return f"{line} is sparse, and runs on mma.sync"
    if row is None:
        return f"{line} {_types_unsupported(op, context)}"
    if k % row.k or split_of(op, groups) is None:
        taken = f"wgmma takes 64 rows per warpgroup, N a multiple of 8 up to 256, K a multiple of {row.k}"
        return f"{line} is {m} x {n} x {k}: {taken}"
    bits = row.operand.bits
    if bits != 16 and (op.transpose_a or not op.transpose_b or op.a.buffer.scope is not Scope.SHARED):
        return f"{line} has {bits}-bit operands: wgmma reads A as M x K and B as N x K, both from shared memory"
    if op.b.buffer.scope is not Scope.SHARED or (op.a.buffer.scope is Scope.FRAGMENT and op.transpose_a):
        return f"{line} has an operand in registers that wgmma reads from shared memory"
    causes = (_operand_unsupported(op, region, context) for region in (op.a, op.b, op.c))
    return next((f"{line} {cause}" for cause in causes if cause), "")


def _types_unsupported(op: Gemm, context: Context) -> str:
    """Which types of a GEMM the target's table of wgmma has no row for."""
    a, b, c = (region.buffer.dtype for region in (op.a, op.b, op.c))
    sums = [str(row.accumulator) for row in context.target.wgmma if row.operand == a == b]
    if sums:
        return f"accumulates in {c}, and wgmma accumulates these operands in {' or '.join(sums)}"
    types = f"{a} operands" if a == b else f"operands of {a} and {b}"
    return f"has {types}, for which wgmma is not used"


def _operand_unsupported(op: Gemm, region: Region, context: Context) -> str:
    """Why wgmma cannot read an operand, or write a result; empty if it can."""
    tile = region.buffer
    if tile.scope is not Scope.SHARED:
        return "" if region.whole else f"uses a slice of `{tile.name}`, which is in registers"
    if has_view_of_other_rows(tile, context.launch):
        return f"reads `{tile.memory.name}`, which has a view of another shape, so that its rows are not swizzled"
    if addressed_in_rows(tile, context):
        return f"reads `{tile.name}`, whose address inline user code takes, so that it is not swizzled"
    if not _wgmma_reads(tile):
        return f"reads `{tile.name}`, whose rows are not a multiple of 32 bytes, or not a multiple of 8 in number"
    k_along_rows = op.transpose_b if region is op.b else not op.transpose_a
    if not _starts_at_swizzle_atom(region, context, k_along_rows=k_along_rows):
        return f"reads a slice of `{tile.name}` that does not start at a swizzle atom"
    return ""


def _starts_at_swizzle_atom(region: Region, context: Context, *, k_along_rows: bool) -> bool:
    """Whether a slice of a shared tile starts where a descriptor can: headers/tl/common/sm90/wgmma_gemm.h."""
    tile = region.buffer
    rows, columns = region.ranges[-2:]
    extent, bytes_ = int(static_value(columns.extent) or 0), tile.dtype.bytes
    slab = widest_swizzle_of(tile.static_shape[-1] * bytes_) // bytes_
    atom_step = extent if k_along_rows and slab % extent == 0 else slab
    starts = context.bounds.multiple_of
    return starts(rows.start) % 8 == 0 and starts(columns.start) % atom_step == 0


def registers_unsupported(op: Gemm, launch: Launch) -> str:
    """Why one instruction of a GEMM takes more registers than a thread starts with; empty if it does not.

    ptxas asks what the block's threads start with, not what setmaxnreg gives them: docs/lab/gemm.md.
    """
    groups = launch.threads // WARPGROUP
    split = split_of(op, groups)
    if split is None:
        return ""
    needed, start = registers_of_wgmma(op, op.mnk[1] // split.n), registers_at_start(launch.threads)
    return (
        ""
        if needed <= start
        else (
            f"one wgmma of line {op.span.line} takes {needed} registers per thread, and the threads of a block of "
            f"{launch.threads} and a producer warpgroup start with {start}: ptxas rejects it (C7602)"
        )
    )


def registers_of_wgmma(op: Gemm, columns: int) -> int:
    """The registers per thread that one instruction of a GEMM takes, of which a warpgroup has so many columns."""
    return op.c.buffer.dtype.bytes_of(64 * min(columns, MOST_COLUMNS)) // (4 * WARPGROUP) + _OTHER_REGISTERS


def registers_at_start(threads: int) -> int:
    """The registers with which each thread of a block with a producer warpgroup starts."""
    return _REGISTERS // (WARPGROUP * (threads // WARPGROUP + 1)) // 8 * 8


def instruction_of(op: Gemm, context: Context) -> Wgmma | None:
    """The row of the target's table for the GEMM's types; None when there is none."""
    a, b, c = (region.buffer.dtype for region in (op.a, op.b, op.c))
    return next((row for row in context.target.wgmma if a == b == row.operand and c == row.accumulator), None)


def split_of(op: Gemm, groups: int) -> Warps | None:
    """How warpgroups partition a GEMM, in warps along M and along N; None where no partition fits."""
    m, n, _ = op.mnk
    return split_among(op, groups, m=m, n=n, row=op.b.buffer.static_shape[-1])


def _wgmma_reads(tile: Buffer) -> bool:
    """Whether wgmma's descriptor can address the tile: rows swizzled in 32, 64 or 128 bytes, in groups of 8."""
    rows, columns = tile.static_shape[-2:]
    return rows % 8 == 0 and widest_swizzle_of(tile.dtype.bytes_of(columns)) > 0
