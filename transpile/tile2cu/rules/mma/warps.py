"""How the warps of a block partition the rows and columns of a GEMM."""

from collections.abc import Iterator

from tile2cu.analysis.uses import is_per_thread
from tile2cu.core.decisions import BLOCK_WARPS, ON_WGMMA, WARPS
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.layout import Warps
from tile2cu.core.memo import kept
from tile2cu.core.program import Gemm, Launch, Policy, Scope
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.targets import Mfma, Mma, Target
from tile2cu.targets.partition import best_partition, columns_of, policy_of

_GEMM = """
A_shared = T.alloc_shared((128, 32), "float16")
B_shared = T.alloc_shared((32, 128), "float16")
C_local = T.alloc_fragment((128, 128), "float32")
T.gemm(A_shared, B_shared, C_local{policy})
"""
_POLICIES = "TileLang documentation, T.GemmWarpPolicy"
_LDMATRIX_BYTES = 2  # the width of ldmatrix's elements where it transposes: PTX ISA, 'ldmatrix', .b16


@rule(
    "warps.block.threads",
    phase=Phase.WARPS,
    on=Launch,
    writes=(BLOCK_WARPS,),
    source="CUDA C++ Programming Guide, 'Compute Capabilities': threads per block",
    examples=(Example('S = T.alloc_shared((64,), "float32")\nT.clear(S)', "launch", "warps", "4"),),
)
def block_threads(launch: Launch, context: Context) -> Iterator[Decision]:
    """A block is a whole number of warps, unless all its statements are per thread.

    Gives: the warps of a block, the last of which may lack lanes.
    Errors: T2C-L021 when the threads are no multiple of a warp, or too many.
    """
    target = context.target
    whole = launch.threads % target.warp_size == 0
    if not (whole or is_per_thread(context.launch.body)) or not 0 < launch.block_threads <= target.max_threads:
        raise Tile2CuError(
            "T2C-L021",
            f"a block cannot have {launch.threads} threads",
            launch.span,
            help=f"use a multiple of {target.warp_size} up to {target.max_threads}",
        )
    yield launch, BLOCK_WARPS, -(-launch.threads // target.warp_size)


@rule(
    "warps.gemm.square",
    phase=Phase.WARPS,
    on=Gemm,
    reads=(ON_WGMMA,),
    writes=(WARPS,),
    source=_POLICIES,
    examples=(Example(_GEMM.format(policy=""), 4, "warps", "Warps(m=2, n=2)"),),
)
def square(op: Gemm, context: Context) -> Iterator[Decision]:
    """Warps partition a GEMM so that each warp's part is as square as the tile.

    Each element of A and B that a warp reads from shared memory then serves the most multiplications.
    Shapes: a warp's part is a multiple of 16 rows and 8 columns (on AMD 16), in elements.
    Gives: the warps along M and along N.
    Errors: T2C-L010 when no partition fits.
    """
    if policy_of(op, context.statements) is Policy.SQUARE and _on_mma(op, context):
        yield op, WARPS, _partition(op, context)


@rule(
    "warps.gemm.full-row",
    phase=Phase.WARPS,
    on=Gemm,
    reads=(ON_WGMMA,),
    writes=(WARPS,),
    source=_POLICIES,
    examples=(Example(_GEMM.format(policy=", policy=T.GemmWarpPolicy.FullRow"), 4, "warps", "Warps(m=4, n=1)"),),
)
def full_row(op: Gemm, context: Context) -> Iterator[Decision]:
    """Under the FullRow policy as many warps as possible are along M, so that a warp owns whole rows.

    So it is without a policy where a GEMM of the kernel takes an operand from registers: a warp's rows of one GEMM are
    then those that it needs for the next.

    Gives: the warps along M and along N.
    Errors: T2C-L010 when no partition fits.
    """
    if policy_of(op, context.statements) is Policy.FULL_ROW and _on_mma(op, context):
        yield op, WARPS, _partition(op, context)


@rule(
    "warps.gemm.full-col",
    phase=Phase.WARPS,
    on=Gemm,
    reads=(ON_WGMMA,),
    writes=(WARPS,),
    source=_POLICIES,
    examples=(Example(_GEMM.format(policy=", policy=T.GemmWarpPolicy.FullCol"), 4, "warps", "Warps(m=1, n=4)"),),
)
def full_col(op: Gemm, context: Context) -> Iterator[Decision]:
    """Under the FullCol policy as many warps as possible are along N, so that a warp owns whole columns.

    Gives: the warps along M and along N.
    Errors: T2C-L010 when no partition fits.
    """
    if op.policy is Policy.FULL_COL and _on_mma(op, context):
        yield op, WARPS, _partition(op, context)


FMA_ROW = 16  # threads along a row of a GEMM without tensor cores: a thread's parts of A and B are about as large


def mma_of(op: Gemm, context: Context) -> Mma | None:
    """The row of the target's table for the GEMM's types; None when there is none, or its K is larger than the GEMM's.

    A sparse GEMM has no other implementation.
    """
    row = _mma_of_types(op, context.target)
    return None if row and op.metadata is None and _is_less(op, row.m, row.n, row.k) else row


def mfma_of(op: Gemm, context: Context) -> Mfma | None:
    """The row of the target's table for the GEMM's types with the largest K that divides the GEMM's.

    Without such a K, the row with the smallest; None when no row has these types, or the GEMM is smaller.
    """
    row = _mfma_of_types(op, context.target)
    return None if row and _is_less(op, row.size, row.size, row.k) else row


def too_small_for_tensor_cores(op: Gemm, context: Context) -> bool:
    """Whether tensor cores take the GEMM's types, but not its few rows, columns or steps of K."""
    return on_fma(op, context) and bool(_mma_of_types(op, context.target) or _mfma_of_types(op, context.target))


@kept
def _mma_of_types(op: Gemm, target: Target) -> Mma | None:
    a, b, c = (region.buffer.dtype for region in (op.a, op.b, op.c))
    return target.instruction(a, c, sparse=op.metadata is not None) if a == b else None


@kept
def _mfma_of_types(op: Gemm, target: Target) -> Mfma | None:
    if op.metadata is not None:
        return None
    a, b, c = (region.buffer.dtype for region in (op.a, op.b, op.c))
    fits = (row for row in target.mfma if row.accumulator == c and row.operands == (a, b))
    rows = [row for row in fits if row.size == 16]
    _, _, k = op.mnk
    return next((row for row in rows if k % row.k == 0), rows[-1] if rows else None)


def _is_less(op: Gemm, *instruction: int) -> bool:
    """Whether a GEMM is smaller than one instruction's shape, along M, N or K."""
    return any(extent < step for extent, step in zip(op.mnk, instruction, strict=True))


def on_fma(op: Gemm, context: Context) -> bool:
    """Whether no tensor core takes the GEMM's types or its few rows, so that each thread computes FMAs."""
    return not runs_on_wgmma(op, context) and mma_of(op, context) is None and mfma_of(op, context) is None


def gathers_on_mma(op: Gemm, *, is_a: bool) -> bool:
    """Whether lanes read a shared operand of mma.sync element by element: headers/tl/common/mma_operands.h.

    ldmatrix transposes elements of 2 bytes only, and moves others where K runs along their rows.
    """
    bytes_ = (op.a if is_a else op.b).buffer.dtype.bytes
    if bytes_ == _LDMATRIX_BYTES:
        return False
    in_order = is_a or op.a.buffer.scope is not Scope.FRAGMENT
    return bytes_ > 4 or k_across_rows(op, is_a=is_a) or not in_order


def k_across_rows(op: Gemm, *, is_a: bool) -> bool:
    """Whether K runs down the rows of an operand's tile."""
    return op.transpose_a if is_a else not op.transpose_b


def _on_mma(op: Gemm, context: Context) -> bool:
    return not runs_on_wgmma(op, context) and not on_fma(op, context)


def runs_on_wgmma(op: Gemm, context: Context) -> bool:
    """Whether a GEMM runs on wgmma, so that warpgroups partition it: see rules/mma/hopper.py."""
    return bool(context.facts.get(op, ON_WGMMA))


def _partition(op: Gemm, context: Context) -> Warps:
    """How the block's warps tile the GEMM exactly."""
    m, n, _ = op.mnk
    count, columns = context.threads // context.target.warp_size, columns_of(context.target)
    found = best_partition(policy_of(op, context.statements), m=m, n=n, count=count, columns=columns)
    if found is None:
        raise Tile2CuError(
            "T2C-L010",
            f"{count} warps cannot share a GEMM of {m} x {n}",
            op.span,
            notes=(Note(f"each warp owns a multiple of 16 rows and of {columns} columns, and all parts are equal"),),
            help=f"change the tile of `{op.c.buffer.name}` or `threads={context.threads}`",
        )
    return found
